//! The chunks of an answer folded to the model's turn, as forgiving as the servers are many.

use serde_json::{Map, Value, json};

use crate::{
    model::{Status, ToolCall},
    provider::{
        ProviderError, Reply, Tokens,
        events::Event,
        fault::Refusal,
        rounds::{Ids, cut_text, input_of},
        wire::{self, Flow, broken_off, number, parsed, text},
    },
};

/// What has come of a turn.
#[derive(Debug, Default)]
pub struct Fold {
    words: String,
    reasoning: String,
    refusal: String,
    calls: Vec<Call>,
    finish: Option<String>,
    tokens: Tokens,
    is_done: bool,
}

/// A call as far as it has come.
#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Arguments that came as an object instead of as text.
    object: Option<Map<String, Value>>,
}

impl Call {
    fn input(&self) -> Value {
        self.object.clone().map_or_else(|| input_of(&self.arguments), Value::Object)
    }

    /// Whether its arguments are all there.
    fn is_whole(&self) -> bool {
        self.object.is_some() || serde_json::from_str::<Map<String, Value>>(&self.arguments).is_ok()
    }

    /// Whether a fragment goes on with this call.
    fn goes_on(&self, index: Option<u64>, id: &str, name: &str) -> bool {
        let is_same_id = id.is_empty() || self.id.is_empty() || id == self.id;
        // Without ids a name begins a call, except where a server repeats it in each fragment.
        let begins = !name.is_empty()
            && !self.name.is_empty()
            && id.is_empty()
            && (name != self.name || self.is_whole());
        let is_same_place = match (index, self.index) {
            (Some(index), Some(own)) => index == own,
            _ => true,
        };
        is_same_place && is_same_id && !begins
    }
}

impl Fold {
    /// What it has taken, as far as the server has counted.
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// The turn.
    pub fn reply(mut self, ids: &mut Ids<'_>) -> Reply {
        let is_cut = self.finish.as_deref() == Some("length");
        let dropped = if is_cut { self.calls.pop_if(|last| !last.is_whole()) } else { None };
        let is_denied =
            self.finish.as_deref() == Some("content_filter") || !self.refusal.is_empty();
        if is_denied {
            self.calls.clear();
        }
        let calls = self.calls.iter().map(|call| {
            let id = ids.take(Some(call.id.as_str()).filter(|id| !id.is_empty()));
            ToolCall { id, tool: call.name.clone(), input: call.input() }
        });
        let calls: Vec<ToolCall> = calls.collect();
        let status = match (is_denied, is_cut && calls.is_empty()) {
            (true, _) => Status::Denied,
            (false, true) => Status::Failed,
            (false, false) => Status::Ok,
        };
        let mut words = self.words;
        if is_denied {
            let refusal = [self.refusal.as_str(), "the model's server filtered the answer"];
            let refusal = refusal.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
            if self.refusal.is_empty() && !words.trim().is_empty() {
                words = format!("{}\n[{refusal}]", words.trim_end());
            } else {
                words.push_str(refusal);
            }
        } else if is_cut {
            words = cut_text(&words, dropped.as_ref().map(|call| call.name.as_str()));
        }
        let vendor = (!self.reasoning.is_empty())
            .then(|| json!({ "openai": { "reasoning": self.reasoning } }));
        Reply {
            text: words,
            calls,
            status,
            decision: None,
            tokens: self.tokens,
            cost: None,
            vendor,
        }
    }

    /// Takes a message, whole or a piece of one.
    fn message(&mut self, message: &Value) {
        match message.get("content") {
            Some(Value::String(piece)) => self.words.push_str(piece),
            Some(Value::Array(parts)) => {
                for part in parts {
                    self.words.push_str(text(part, "text"));
                }
            }
            _ => {}
        }
        let reasoning = ["reasoning_content", "reasoning"].map(|key| text(message, key));
        self.reasoning.push_str(reasoning.into_iter().find(|it| !it.is_empty()).unwrap_or(""));
        self.refusal.push_str(text(message, "refusal"));
        for fragment in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.fragment(fragment);
        }
        // The older shape, with one call and no id.
        if let Some(function @ Value::Object(_)) = message.get("function_call") {
            self.fragment(&json!({ "index": 0, "function": function }));
        }
    }

    fn fragment(&mut self, fragment: &Value) {
        let index = fragment.get("index").and_then(Value::as_u64);
        let function = fragment.get("function").unwrap_or(&Value::Null);
        let (id, name) = (text(fragment, "id"), text(function, "name"));
        let place = self
            .calls
            .iter()
            .rposition(|call| index.is_none() || call.index.is_none() || call.index == index);
        let place = place.filter(|place| {
            self.calls.get(*place).is_some_and(|call| call.goes_on(index, id, name))
        });
        let place = place.unwrap_or_else(|| {
            self.calls.push(Call { index, ..Call::default() });
            self.calls.len() - 1
        });
        let Some(call) = self.calls.get_mut(place) else { return };
        if !id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if !name.is_empty() {
            name.clone_into(&mut call.name);
        }
        match function.get("arguments") {
            Some(Value::String(piece)) => call.arguments.push_str(piece),
            Some(Value::Object(arguments)) => call.object = Some(arguments.clone()),
            _ => {}
        }
    }

    /// A chunk of a stream, or a whole answer: their choices differ by one word.
    fn chunk(&mut self, chunk: &Value) -> Result<(), ProviderError> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Refusal { body: &chunk.to_string(), ..Refusal::default() }.error());
        }
        if let Some(choice) = chunk.pointer("/choices/0") {
            for key in ["delta", "message"] {
                if let Some(message @ Value::Object(_)) = choice.get(key) {
                    self.message(message);
                }
            }
            let finish = text(choice, "finish_reason");
            if !finish.is_empty() {
                self.finish = Some(finish.to_owned());
            }
        }
        if let Some(usage @ Value::Object(_)) = chunk.get("usage") {
            self.count(usage);
        }
        Ok(())
    }

    fn count(&mut self, usage: &Value) {
        let cached = usage.get("prompt_tokens_details").unwrap_or(&Value::Null);
        let cache_read = number(cached, "cached_tokens");
        self.tokens = Tokens {
            input: number(usage, "prompt_tokens").saturating_sub(cache_read),
            output: number(usage, "completion_tokens"),
            cache_read,
            cache_write: 0,
        };
    }
}

impl wire::Fold for Fold {
    fn event(&mut self, event: &Event) -> Result<Flow, ProviderError> {
        if event.data.trim() == "[DONE]" {
            let is_empty = self.words.is_empty() && self.calls.is_empty();
            if is_empty && self.finish.is_none() && self.refusal.is_empty() {
                return Err(broken_off("it ended before it began"));
            }
            self.is_done = true;
            return Ok(Flow::Whole);
        }
        if event.name == "error" {
            return Err(Refusal { body: &event.data, ..Refusal::default() }.error());
        }
        self.chunk(&parsed(event)?)?;
        Ok(Flow::More)
    }

    fn document(&mut self, document: Value) -> Result<(), ProviderError> {
        self.chunk(&document)?;
        self.is_done = document.pointer("/choices/0/message").is_some();
        if self.is_done { Ok(()) } else { Err(broken_off("an answer without a message")) }
    }

    fn is_enough(&self) -> bool {
        self.is_done || self.finish.is_some()
    }
}
