//! A conversation as vendors want it: the user and the model in turns, each call with exactly one
//! result in the user's turn behind it. So a request is valid whatever was cut off before.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Map, Value, json};

use crate::{
    base::hash::derived_id,
    model::{CallId, Mail, ToolCall, ToolResult, Turn},
};

/// What is told of a call that has no result.
const NO_RESULT: &str =
    "no result: the work ended before this call was answered; it may have run or not";
/// What begins a conversation whose beginning is gone.
const BEGINNING_GONE: &str = "(What was said before is left out.)";
/// What stands between two turns of the model, and behind the last.
const GO_ON: &str = "(Go on.)";

/// One side's turn.
#[derive(Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// What the model is told: the results of its calls first.
    User(Vec<Part<'a>>),
    /// What it said.
    Model {
        /// In words.
        text: &'a str,
        /// What it wanted done, each once.
        calls: Vec<&'a ToolCall>,
        /// The vendor's own blocks.
        vendor: Option<&'a Value>,
    },
}

/// A part of what the model is told.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// What came of a call.
    Result {
        /// The call's id as vendors take it.
        call: Cow<'a, str>,
        /// What is told of it.
        text: &'a str,
        /// Whether it did not work.
        is_error: bool,
    },
    /// A message.
    Mail(&'a Mail),
    /// A word of ours.
    Note(&'a str),
}

/// The turns of both sides: they alternate, and the user has the first and the last.
pub fn rounds(turns: &[Turn]) -> Vec<Said<'_>> {
    let mut rounds = Rounds::default();
    for turn in turns {
        match turn {
            Turn::Mail(mail) => rounds.mail.push(mail),
            Turn::Result(result) => rounds.results.push(result),
            Turn::Model { text, calls, vendor, .. } => {
                rounds.user_ends();
                let mut seen = BTreeSet::new();
                let calls: Vec<_> = calls.iter().filter(|call| seen.insert(&call.id)).collect();
                rounds.calls.clone_from(&calls);
                rounds.said.push(Said::Model { text, calls, vendor: vendor.as_ref() });
            }
            Turn::Summary(summary) => rounds.notes.push(&summary.text),
            // What was told others at the end is what the model said last.
            Turn::Final(_) | Turn::Shrunk { .. } => {}
        }
    }
    rounds.user_ends();
    rounds.said
}

#[derive(Default)]
struct Rounds<'a> {
    said: Vec<Said<'a>>,
    calls: Vec<&'a ToolCall>,
    results: Vec<&'a ToolResult>,
    notes: Vec<&'a str>,
    mail: Vec<&'a Mail>,
}

impl<'a> Rounds<'a> {
    fn user_ends(&mut self) {
        let results = std::mem::take(&mut self.results);
        let calls = self.calls.drain(..);
        let mut parts: Vec<Part<'a>> = calls.map(|call| part_of(call, &results)).collect();
        parts.extend(self.notes.drain(..).map(Part::Note));
        parts.extend(self.mail.drain(..).map(Part::Mail));
        if parts.is_empty() {
            let is_first = self.said.is_empty();
            parts.push(Part::Note(if is_first { BEGINNING_GONE } else { GO_ON }));
        }
        self.said.push(Said::User(parts));
    }
}

fn part_of<'a>(call: &'a ToolCall, results: &[&'a ToolResult]) -> Part<'a> {
    let result = results.iter().find(|result| result.call == call.id);
    let (text, is_error) =
        result.map_or((NO_RESULT, true), |result| (result.text.as_str(), result.is_error));
    Part::Result { call: vendor_id(&call.id), text, is_error }
}

/// A call's id in the letters and the length that all vendors take.
pub fn vendor_id(id: &CallId) -> Cow<'_, str> {
    let id = id.as_str();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if id.len() <= 40 && id.bytes().all(is_plain) {
        Cow::Borrowed(id)
    } else {
        Cow::Owned(derived_id(&[id.as_bytes()]))
    }
}

/// A tool's name in the letters and the length that all vendors take, whatever a model has called.
pub fn vendor_name(tool: &str) -> Cow<'_, str> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if (1..=64).contains(&tool.len()) && tool.chars().all(is_plain) {
        return Cow::Borrowed(tool);
    }
    let plain = tool.chars().take(64).map(|it| if is_plain(it) { it } else { '_' });
    let plain: String = plain.collect();
    Cow::Owned(if plain.is_empty() { "unnamed".to_owned() } else { plain })
}

/// A call's input as vendors take it back: an object. What the model wrote instead of one stays
/// readable in it.
pub fn as_object(input: &Value) -> Cow<'_, Value> {
    match input {
        Value::Object(_) => Cow::Borrowed(input),
        Value::Null => Cow::Owned(Value::Object(Map::new())),
        other => Cow::Owned(json!({ "not_an_object": other })),
    }
}

/// A call's input from the text that a model wrote; text that is no JSON is kept as it is, so that
/// whoever runs the call can say what is valid.
pub fn input_of(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Null) => Value::Object(Map::new()),
        Ok(input) => input,
        Err(_) => Value::String(text.to_owned()),
    }
}

/// What is told of a turn that reached the limit of its tokens, within a call of `tool` or not.
pub fn cut_text(words: &str, tool: Option<&str>) -> String {
    let call = tool.map_or(String::new(), |tool| {
        format!("; a call of {tool} was not finished and is left out")
    });
    let note = format!("[cut off: the answer reached the limit of its tokens{call}]");
    if words.trim().is_empty() { note } else { format!("{}\n{note}", words.trim_end()) }
}

/// Gives each new call an id that no other call of its conversation has.
pub struct Ids<'a> {
    taken: BTreeSet<Cow<'a, str>>,
    turns: usize,
}

impl<'a> Ids<'a> {
    /// For the turn behind `turns`.
    pub fn of(turns: &'a [Turn]) -> Self {
        let calls = turns.iter().flat_map(|turn| match turn {
            Turn::Model { calls, .. } => calls.as_slice(),
            _ => &[],
        });
        Self { taken: calls.map(|call| call.id.as_str().into()).collect(), turns: turns.len() }
    }

    /// The id that the vendor gave, where it is one and is new.
    pub fn take(&mut self, given: Option<&str>) -> CallId {
        let given = given.and_then(|id| CallId::new(id).ok());
        let mut id = given.unwrap_or_else(|| self.derived(0));
        let mut salt = 1;
        while !self.taken.insert(id.as_str().to_owned().into()) {
            id = self.derived(salt);
            salt += 1;
        }
        id
    }

    fn derived(&self, salt: usize) -> CallId {
        CallId::derived(&["call", &self.turns.to_string(), &salt.to_string()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AgentName, Final, Kind, MessageId, Status};

    fn mail(id: &str) -> Turn {
        let (id, from) = (MessageId::new(id).unwrap(), AgentName::named("lead"));
        let text = "do it".to_owned();
        Turn::Mail(Mail { id, from, kind: Kind::Request, protocol: None, text, hops: 0 })
    }

    fn model(calls: &[&str]) -> Turn {
        let call = |id: &&str| ToolCall {
            id: CallId::new(*id).unwrap(),
            tool: "bash".to_owned(),
            input: json!({}),
        };
        let calls = calls.iter().map(call).collect();
        let text = "said".to_owned();
        Turn::Model {
            text,
            calls,
            status: Status::Ok,
            decision: None,
            vendor: None,
            tokens: crate::model::Tokens::default(),
        }
    }

    fn result(id: &str) -> Turn {
        Turn::Result(ToolResult::new(CallId::new(id).unwrap(), Ok(format!("of {id}"))))
    }

    fn end() -> Turn {
        let (status, text) = (Status::Ok, String::new());
        Turn::Final(Final {
            status,
            text,
            decision: None,
            places: std::collections::BTreeMap::new(),
        })
    }

    fn shown(turns: &[Turn]) -> String {
        let part = |part: &Part<'_>| match part {
            Part::Result { call, text, .. } if *text == NO_RESULT => format!("{call}=none"),
            Part::Result { call, .. } => format!("{call}=result"),
            Part::Mail(mail) => mail.id.to_string(),
            Part::Note(text) => (*text).to_owned(),
        };
        let said = |said: &Said<'_>| match said {
            Said::User(parts) => parts.iter().map(part).collect::<Vec<_>>().join(" "),
            Said::Model { calls, .. } => format!("[{}]", calls.len()),
        };
        rounds(turns).iter().map(said).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn every_call_has_one_result_in_the_turn_behind_it() {
        let whole = [mail("m1"), model(&["a", "b"]), result("b"), result("a"), mail("m2")];
        assert_eq!(shown(&whole), "m1 | [2] | a=result b=result m2");
        let cut = [mail("m1"), model(&["a", "b"]), result("b"), end(), mail("m2")];
        assert_eq!(shown(&cut), "m1 | [2] | a=none b=result m2");
        let odd = [mail("m1"), result("x"), model(&["a"]), result("a"), result("a"), result("x")];
        assert_eq!(shown(&odd), "m1 | [1] | a=result");
        let twice = [mail("m1"), model(&["a", "a"]), result("a")];
        assert_eq!(shown(&twice), "m1 | [1] | a=result");
    }

    #[test]
    fn the_user_has_the_first_and_the_last_turn() {
        assert_eq!(shown(&[]), BEGINNING_GONE);
        let turns = [model(&[]), model(&["a"]), model(&[])];
        let expected = format!("{BEGINNING_GONE} | [0] | {GO_ON} | [1] | a=none | [0] | {GO_ON}");
        assert_eq!(shown(&turns), expected);
        assert_eq!(shown(&[mail("m1"), model(&[]), end(), mail("m2")]), "m1 | [0] | m2");
    }

    #[test]
    fn ids_are_new_and_fit() {
        let turns = [mail("m1"), model(&["a"])];
        let mut ids = Ids::of(&turns);
        assert_eq!(ids.take(Some("b")).as_str(), "b");
        let others = [Some("a"), Some("b"), None, None, Some(""), Some("ü")].map(|id| ids.take(id));
        let distinct: BTreeSet<_> = others.iter().map(CallId::as_str).collect();
        assert_eq!(distinct.len(), 6);
        assert!(!distinct.contains("a") && !distinct.contains("b"));
        assert_eq!(Ids::of(&turns).take(None), Ids::of(&turns).take(None));
        assert_eq!(vendor_id(&CallId::new("toolu_01").unwrap()), "toolu_01");
        assert_eq!(vendor_id(&CallId::new("lead:m1.2").unwrap()).len(), 12);
        assert_eq!(vendor_id(&CallId::new("x".repeat(41)).unwrap()).len(), 12);
    }

    #[test]
    fn inputs_are_objects_or_stay_readable() {
        assert_eq!(input_of(" "), json!({}));
        assert_eq!(input_of("null"), json!({}));
        assert_eq!(input_of("{\"a\": 1}"), json!({"a": 1}));
        assert_eq!(input_of("{\"a\": "), json!("{\"a\": "));
        assert_eq!(*as_object(&json!({"a": 1})), json!({"a": 1}));
        assert_eq!(*as_object(&Value::Null), json!({}));
        assert_eq!(*as_object(&json!("{\"a")), json!({"not_an_object": "{\"a"}));
    }
}
