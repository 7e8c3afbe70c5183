//! Agent programs as workers: one turn is one run of such a program, which owns its loop, its tools
//! and its session.
//!
//! It is told what is new since the last turn of its session, whose id lies in that turn, so the
//! conversation on disk finds the session again after a restart. What it may do it judges by itself,
//! in the mode that it is started with. Nothing that it started outlives the turn.

mod claude;
mod codex;
mod failing;
mod opencode;
mod told;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ffi::OsString};

use serde_json::{Value, json};

use super::{
    Provider, ProviderError, Reads, Reply, Request,
    program::{Ended, Program, beside},
    rounds::Ids,
};
use crate::{
    base::Cancel,
    model::{Cost, PermissionMode, Preset, Status, Tokens, ToolCall, Turn},
};

pub use failing::{is_there, not_there};
pub use told::PROGRAMS_EXPLAINED;

use failing::{failure, is_gone, no_answer};

/// The longest system prompt that is handed over as an argument, in bytes: the system takes no more
/// than 128 KiB for one.
const LONGEST_ARGUMENT: usize = 100 * 1024;
/// An agent program that is run for each turn.
pub struct Cli {
    preset: Preset,
    model: Option<String>,
    program: Program,
}

/// What a program is started for.
struct Ask<'a> {
    /// What it may do.
    mode: PermissionMode,
    /// The model, where it is not its own choice.
    model: Option<&'a str>,
    /// The session to go on with.
    session: Option<&'a str>,
    /// Who it is and how to behave.
    system: &'a str,
    /// What is new.
    news: &'a str,
}

/// How a program is started for that.
#[derive(Debug, Default)]
struct Start {
    /// Behind its first arguments.
    arguments: Vec<OsString>,
    /// Beside its environment.
    env: BTreeMap<OsString, OsString>,
    /// What it reads.
    input: String,
}

/// What a program printed, as far as it is known here.
#[derive(Debug, Default, PartialEq)]
struct Printed {
    /// Its last words.
    text: String,
    /// Under which id it keeps the session.
    session: Option<String>,
    /// Why it has failed, where it says so.
    failure: Option<String>,
    /// What it has taken.
    tokens: Tokens,
    /// What it has taken in the whole session, where it counts that.
    of_session: Option<Tokens>,
    /// What it says that it has cost.
    cost: Option<Cost>,
    /// What it was not let do, for the trace.
    refused: Option<String>,
}

/// The last turn of a session: where it stands, and what was kept of it.
struct Last<'a> {
    at: usize,
    session: &'a str,
    of_session: Option<Tokens>,
}

/// How a run has ended.
enum Outcome {
    Reply(Reply),
    /// The program does not know the session.
    Gone,
}

impl Provider for Cli {
    fn model(&self) -> &str {
        self.model.as_deref().unwrap_or(self.preset.as_str())
    }

    /// It shortens its session by itself.
    fn reads(&self) -> Reads {
        Reads::Recent
    }

    fn holds_rights(&self) -> Option<Preset> {
        Some(self.preset)
    }

    /// Claude Code always says what it has cost; `OpenCode` says 0 where it knows no price.
    fn states_cost(&self) -> bool {
        self.preset == Preset::Claude
    }

    fn complete(&self, request: &Request<'_>, cancel: &Cancel) -> Result<Reply, ProviderError> {
        if let Some(why) = not_there(self.preset, &self.program) {
            return Err(ProviderError::Final(why));
        }
        let Some(last) = last_turn(self.preset, request.turns) else {
            return self.begin(request, cancel);
        };
        match self.attempt(request, Some(&last), cancel)? {
            Outcome::Reply(reply) => Ok(reply),
            Outcome::Gone => Ok(noting(self.begin(request, cancel)?, last.session)),
        }
    }
}

impl Cli {
    /// A program of `preset`, which has to be there.
    pub fn new(preset: Preset, model: Option<String>, program: Program) -> Self {
        Self { preset, model, program }
    }

    /// Tells a new session everything.
    fn begin(&self, request: &Request<'_>, cancel: &Cancel) -> Result<Reply, ProviderError> {
        match self.attempt(request, None, cancel)? {
            Outcome::Reply(reply) => Ok(reply),
            Outcome::Gone => crate::base::broken("a new session is not gone"),
        }
    }

    fn attempt(
        &self,
        request: &Request<'_>,
        last: Option<&Last<'_>>,
        cancel: &Cancel,
    ) -> Result<Outcome, ProviderError> {
        let news = last.map_or(request.turns, |it| behind(request.turns, it.at));
        let ask = Ask {
            mode: request.mode,
            model: self.model.as_deref(),
            session: last.map(|it| it.session),
            system: request.system,
            news: &told::told(news, request.may_be_again),
        };
        let start = start(self.preset, &ask);
        let argv = self.program.argv.iter().cloned().chain(start.arguments).collect();
        let env = self.program.env.clone().into_iter().chain(start.env).collect();
        let program = Program { argv, env, ..self.program.clone() };
        let ended = program.run(&start.input, cancel)?;
        let printed = printed(self.preset, &ended.output);
        if last.is_some() && is_gone(&ended, printed.as_ref()) {
            return Ok(Outcome::Gone);
        }
        let is_answer = |it: &Printed| {
            it.session.is_some() || it.failure.is_some() || !it.text.trim().is_empty()
        };
        let Some(printed) = printed.filter(is_answer) else {
            return Err(no_answer(self.preset, &ended));
        };
        Ok(Outcome::Reply(self.reply(request, printed, &ended, last)))
    }

    fn reply(
        &self,
        request: &Request<'_>,
        printed: Printed,
        ended: &Ended,
        last: Option<&Last<'_>>,
    ) -> Reply {
        let failure = failure(self.preset, &printed, ended);
        let session = printed.session.as_deref().or(last.map(|it| it.session));
        let before = last.and_then(|it| it.of_session);
        let tokens = printed.of_session.map_or(printed.tokens, |now| since(now, before));
        let of_session = printed.of_session.or(before);
        let complaints = [ended.errors.as_str(), printed.refused.as_deref().unwrap_or_default()];
        let complaints: Vec<&str> = complaints.into_iter().filter(|it| !it.is_empty()).collect();
        let kept = json!({ "session": session, "of_session": of_session });
        let mut vendor = json!({ self.preset.as_str(): kept });
        complain(&mut vendor, &complaints.join("\n"));
        let plain = Reply {
            text: printed.text,
            calls: Vec::new(),
            status: Status::Ok,
            decision: None,
            tokens,
            cost: printed.cost,
            vendor: Some(vendor),
        };
        match failure {
            Some(text) => Reply { text, status: Status::Failed, ..plain },
            None => understood(plain, request),
        }
    }
}

fn behind(turns: &[Turn], at: usize) -> &[Turn] {
    turns.get(at + 1..).unwrap_or_default()
}

fn start(preset: Preset, ask: &Ask<'_>) -> Start {
    match preset {
        Preset::Claude => claude::start(ask),
        Preset::Codex => codex::start(ask),
        Preset::OpenCode => opencode::start(ask),
    }
}

fn printed(preset: Preset, output: &str) -> Option<Printed> {
    match preset {
        Preset::Claude => claude::printed(output),
        Preset::Codex => codex::printed(output),
        Preset::OpenCode => opencode::printed(output),
    }
}

/// The objects of an output that has one on each line; what is none is passed over.
fn events(output: &str) -> impl Iterator<Item = Value> {
    let lines = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(Value::is_object)
}

fn text_at<'v>(value: &'v Value, path: &str) -> Option<&'v str> {
    value.pointer(path)?.as_str()
}

fn count_at(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or_default()
}

/// A prompt that says who it is where the program takes no system prompt: the first of a session.
fn with_system(ask: &Ask<'_>) -> String {
    match ask.session {
        Some(_) => ask.news.to_owned(),
        None => format!("{}\n\n{}", ask.system, ask.news),
    }
}

/// The last turn that was one of a session of this program.
fn last_turn(preset: Preset, turns: &[Turn]) -> Option<Last<'_>> {
    turns.iter().enumerate().rev().find_map(|(at, turn)| {
        let Turn::Model { vendor: Some(vendor), .. } = turn else { return None };
        let kept = vendor.get(preset.as_str())?;
        let of_session = kept.get("of_session").cloned();
        let of_session = of_session.and_then(|it| serde_json::from_value(it).ok());
        let session = kept.get("session")?.as_str().filter(|it| is_id(it))?;
        Some(Last { at, session, of_session })
    })
}

/// Whether it is an id that can stand as an argument.
fn is_id(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_part)
}

/// What a session has taken since a time, from what it had taken then. One that has less than before
/// has begun to count anew.
fn since(now: Tokens, before: Option<Tokens>) -> Tokens {
    let before = before.unwrap_or_default();
    let less = |count: fn(&Tokens) -> u64| count(&now).checked_sub(count(&before));
    let parts = (
        less(|it| it.input),
        less(|it| it.output),
        less(|it| it.cache_read),
        less(|it| it.cache_write),
    );
    match parts {
        (Some(input), Some(output), Some(cache_read), Some(cache_write)) => {
            Tokens { input, output, cache_read, cache_write }
        }
        _ => now,
    }
}

/// Notes in a reply that the session before it was lost.
fn noting(mut reply: Reply, lost: &str) -> Reply {
    let note = format!("the session {lost} is gone; a new one was told the whole conversation");
    let vendor = reply.vendor.get_or_insert_with(|| json!({}));
    let said = text_at(vendor, "/command/stderr").map(|it| format!("{note}\n{it}"));
    complain(vendor, &said.unwrap_or(note));
    reply
}

/// Keeps what a program complains of beside its answer, for the trace.
fn complain(vendor: &mut Value, text: &str) {
    if let (Value::Object(vendor), Some(Value::Object(kept))) = (vendor, beside(text)) {
        vendor.extend(kept);
    }
}

/// A reply whose first line says that the rest is a plan to be approved, or a verdict: a program has
/// no tools of ours to say so.
fn understood(reply: Reply, request: &Request<'_>) -> Reply {
    let (first, rest) = reply.text.trim_start().split_once('\n').unwrap_or((&reply.text, ""));
    let (first, rest) = (first.trim(), rest.trim());
    let has_tool = request.tools.iter().any(|it| it.name == "submit_plan");
    if first == told::PLAN && has_tool && !rest.is_empty() {
        let call = ToolCall {
            id: Ids::of(request.turns).take(None),
            tool: "submit_plan".to_owned(),
            input: json!({ "plan": rest }),
        };
        return Reply { text: String::new(), calls: vec![call], ..reply };
    }
    match first {
        told::APPROVE if told::is_asked_to_decide(request) => {
            Reply { decision: Some(true), ..reply }
        }
        told::REJECT if told::is_asked_to_decide(request) => {
            Reply { decision: Some(false), ..reply }
        }
        _ => reply,
    }
}
