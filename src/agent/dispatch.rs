//! The only way in to a tool: find, prepare, guard, run, fulfil, trace. One result, always.

use std::time::Duration;

use super::Run;
use crate::{
    base::{Interrupted, left_overs::Mark},
    guard::{Verdict, decide},
    model::{AgentName, MessageId, RunId, ToolCall, ToolResult},
    store::{Activity, StoreError},
    tools::{Attempt, Caller, Outcome, Prepared, ToolError},
};

/// What became of a call: its result, or what ended it.
type Called = Result<ToolResult, Interrupted>;

/// Runs a call of the model.
pub fn dispatch(
    run: &mut Run<'_>,
    call: &ToolCall,
    attempt: Attempt,
) -> Result<Called, StoreError> {
    let started = run.scope.clock.now();
    let caller = Caller {
        agent: run.name.clone(),
        mark: Mark { folder: run.office.folder().clone(), run: RunId::of(run.name).to_string() },
        call: run.call_id(call),
        hops: run.work.envelope.hops,
        attempt,
    };
    let found = run.desk.tools.find(&call.tool);
    let prepared = found.and_then(|tool| tool.prepare(&run.desk.kit, &caller, &call.input));
    let (verdict, outcome) = match prepared {
        Ok(prepared) => admit(run, call, prepared),
        Err(correction) => ("invalid", Ok(Err(correction))),
    };
    let called = match outcome {
        Ok(Ok(outcome)) => fulfil(run, call, outcome),
        Ok(Err(why)) => Ok(result(call, Err(why))),
        Err(why) => Err(why),
    };
    let shown = match &called {
        Ok(it) if it.is_error => Err(it.text.clone()),
        Ok(it) => Ok(it.text.clone()),
        Err(why) => Err(format!("interrupted: {why:?}")),
    };
    let milliseconds = run.scope.clock.now().since(started).as_millis();
    run.trace.tool_call(call, verdict, milliseconds, &shown)?;
    Ok(called)
}

/// Lets the guard judge a prepared call and runs exactly what was prepared.
fn admit(
    run: &Run<'_>,
    call: &ToolCall,
    prepared: Prepared,
) -> (&'static str, Result<Result<Outcome, String>, Interrupted>) {
    match decide(&run.desk.rights, &call.tool, &prepared.accesses) {
        Verdict::Deny(why) => return ("deny", Ok(Err(why))),
        // Nobody can be asked yet, and a question that reaches nobody is a refusal.
        Verdict::Ask(why) => return ("ask", Ok(Err(why))),
        Verdict::Allow => {}
    }
    let ran = match (prepared.run)(run.scope) {
        Ok(outcome) => Ok(Ok(outcome)),
        Err(ToolError::Failed(why)) => Ok(Err(why)),
        Err(ToolError::Interrupted(why)) => Err(why),
    };
    ("allow", ran)
}

/// Carries out what only the runtime can.
fn fulfil(run: &Run<'_>, call: &ToolCall, outcome: Outcome) -> Called {
    match outcome {
        Outcome::Text(text) => Ok(result(call, Ok(text))),
        Outcome::Sent { id, text } => Ok(ToolResult { sent: Some(id), ..result(call, Ok(text)) }),
        Outcome::AwaitReply { request, from, at_most } => {
            await_reply(run, call, &request, &from, at_most)
        }
    }
}

/// Waits for the response to a request. A SHUTDOWN ends the wait at once: nothing is lost by it.
fn await_reply(
    run: &Run<'_>,
    call: &ToolCall,
    request: &MessageId,
    from: &AgentName,
    at_most: Duration,
) -> Called {
    let ask = match run.office.asks.begin(run.name, from) {
        Ok(ask) => ask,
        Err(ring) => {
            let names: Vec<&str> = ring.iter().map(AgentName::as_str).collect();
            let why = format!(
                "{} is waiting for you ({}): answer first, then ask; your message was sent all \
                 the same and its answer will come as mail",
                from,
                names.join(" → ")
            );
            return Ok(ToolResult { sent: Some(request.clone()), ..result(call, Err(why)) });
        }
    };
    run.office.statuses.set(run.name, Activity::Waiting, format!("for {from} to answer"));
    let until = run.scope.clock.now().after(at_most);
    let answer = run.scope.wait_lightly(Some(until), || run.inbox.response(request, from));
    drop(ask);
    run.office.statuses.set(run.name, Activity::Working, "after the answer".to_owned());
    match answer {
        Ok(message) => {
            let said = message.envelope;
            let is_ok = said.status.is_none_or(|status| status == crate::model::Status::Ok);
            let text = if is_ok { Ok(said.content) } else { Err(said.content) };
            Ok(ToolResult { answer: Some((said.from, said.id)), ..result(call, text) })
        }
        Err(Interrupted::Late) => {
            let seconds = at_most.as_secs();
            let why = format!("{from} has not answered within {seconds} s; it may answer by mail");
            Ok(ToolResult { sent: Some(request.clone()), ..result(call, Err(why)) })
        }
        Err(why) => Err(why),
    }
}

fn result(call: &ToolCall, text: Result<String, String>) -> ToolResult {
    let is_error = text.is_err();
    let (Ok(text) | Err(text)) = text;
    ToolResult { call: call.id.clone(), text, is_error, answer: None, sent: None }
}
