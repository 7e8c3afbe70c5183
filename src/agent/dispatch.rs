//! The only way in to a tool: find, prepare, guard, ask, run, fulfil, trace. One result, always.

use std::time::Duration;

use super::{
    Run,
    approval::{Question, ask, note_decided, note_taken_up, remember, withdraw},
    background::command_in_background,
    run::Meanwhile,
    subagent::{Wish, delegate, delegate_in_background, send_to},
};
use crate::{
    base::{Interrupted, left_overs::Mark},
    guard::{Verdict, decide, exactly},
    model::{AgentName, Asked, MessageId, Protocol, ToolCall, ToolResult, counts_as},
    store::{Activity, StoreError},
    tools::{Attempt, Caller, Letter, Outcome, Prepared, ToolError},
};

/// What became of a call: its result, or what ended it.
pub type Called = Result<ToolResult, Interrupted>;

/// Runs a call of the model.
pub fn dispatch(
    run: &mut Run<'_>,
    call: &ToolCall,
    attempt: Attempt,
) -> Result<Called, StoreError> {
    let started = run.scope.clock.now();
    let caller = Caller {
        agent: run.name.clone(),
        mark: Mark { folder: run.office.folder().clone(), run: run.lineage.mark.to_string() },
        call: run.call_id(call),
        hops: run.work.envelope.hops,
        attempt,
    };
    let found = run.desk.tools.find(&call.tool);
    let prepared = found.and_then(|tool| tool.prepare(&run.desk.kit, &caller, &call.input));
    let (verdict, outcome, allowed_by) = match prepared {
        Ok(prepared) => admit(run, call, prepared)?,
        Err(correction) => ("invalid", Ok(Err(correction)), None),
    };
    let called = match outcome {
        Ok(Ok(outcome)) => fulfil(run, call, outcome, attempt)?,
        Ok(Err(why)) => Ok(result(call, Err(why))),
        Err(why) => Err(why),
    };
    let called = called.map(|it| ToolResult {
        answer: it.answer.or(allowed_by),
        text: run.office.secrets.hide(it.text),
        ..it
    });
    let shown = match &called {
        Ok(it) if it.is_error => Err(it.text.clone()),
        Ok(it) => Ok(it.text.clone()),
        Err(why) => Err(format!("interrupted: {why:?}")),
    };
    let milliseconds = run.scope.clock.now().since(started).as_millis();
    run.trace.tool_call(call, verdict, milliseconds, &shown);
    Ok(called)
}

/// What came of a call that was let in, or what ended it.
type Ran = Result<Result<Outcome, String>, Interrupted>;

/// The verdict's word, what came of the call, and the message that allowed it.
type Admitted = (&'static str, Ran, By);

/// Lets the guard judge a prepared call, asks where it has to be asked, and runs exactly what was
/// prepared.
fn admit(run: &mut Run<'_>, call: &ToolCall, prepared: Prepared) -> Result<Admitted, StoreError> {
    let rights = run.rights();
    let mut allowed_by = None;
    match decide(&rights, &call.tool, &prepared.accesses) {
        Verdict::Deny(why) => return Ok(("deny", Ok(Err(gated(run, why))), None)),
        Verdict::Ask(why) => match ask_leave(run, call, &prepared, &why)? {
            Ok(Ok(by)) => allowed_by = by,
            Ok(Err((refusal, by))) => return Ok(("ask", Ok(Err(refusal)), by)),
            Err(why) => return Ok(("ask", Err(why), None)),
        },
        Verdict::Allow => {}
    }
    let ran = match (prepared.run)(run.scope) {
        Ok(outcome) => Ok(Ok(outcome)),
        Err(ToolError::Failed(why)) => Ok(Err(why)),
        Err(ToolError::Interrupted(why)) => Err(why),
    };
    let word = if allowed_by.is_some() { "asked" } else { "allow" };
    Ok((word, ran, allowed_by))
}

/// Says that it is the missing plan which forbids, where it is.
fn gated(run: &Run<'_>, why: String) -> String {
    if run.is_gated() {
        "a plan has to be approved first: call submit_plan and wait for the decision".to_owned()
    } else {
        why
    }
}

/// The message that decided, where one did.
type By = Option<(AgentName, MessageId)>;

/// Leave for a call, or why it is refused; or what ended the wait.
type Leave = Result<Result<By, (String, By)>, Interrupted>;

fn ask_leave(
    run: &mut Run<'_>,
    call: &ToolCall,
    prepared: &Prepared,
    why: &str,
) -> Result<Leave, StoreError> {
    if run.office.is_unattended() {
        run.office.note_refusal();
        let why = format!("refused, since nobody is here to be asked: {why}");
        return Ok(Ok(Err((why, None))));
    }
    let question = Question::permission(run, call, why, &prepared.preview);
    let decided = match ask(run, &question)? {
        Ok(decided) => decided,
        Err(why) => return withdrawn(run, &question, why),
    };
    let refusal = match decided.asked {
        Asked::Approved(_) => {
            note_decided(run, &question)?;
            if decided.always {
                for access in &prepared.accesses {
                    remember(run, exactly(counts_as(&call.tool), access))?;
                }
            }
            return Ok(Ok(Ok(decided.by)));
        }
        Asked::Rejected(reason) if reason.is_empty() => format!("refused by the user: {why}"),
        Asked::Rejected(reason) => format!("refused by the user: {reason}"),
        Asked::Open | Asked::Expired | Asked::Withdrawn => {
            format!("refused, since nobody has decided in time: {why}")
        }
    };
    Ok(Ok(Err((refusal, decided.by))))
}

/// A task that goes back takes its questions with it; a message keeps them for its next start.
fn withdrawn<T>(
    run: &Run<'_>,
    question: &Question,
    why: Interrupted,
) -> Result<Result<T, Interrupted>, StoreError> {
    if run.meanwhile == Meanwhile::Pause || why == Interrupted::Interrupt || run.scope.is_late() {
        withdraw(run, question)?;
    }
    Ok(Err(why))
}

/// Carries out what only the runtime can.
fn fulfil(
    run: &mut Run<'_>,
    call: &ToolCall,
    outcome: Outcome,
    attempt: Attempt,
) -> Result<Called, StoreError> {
    match outcome {
        Outcome::Text(text) => Ok(Ok(result(call, Ok(text)))),
        Outcome::Sent { id, text } => {
            Ok(Ok(ToolResult { sent: Some(id), ..result(call, Ok(text)) }))
        }
        Outcome::Ask { letter, at_most } => Ok(ask_member(run, call, letter, at_most)),
        Outcome::Delegate { task, agent_type, description, in_background } => {
            let wish = Wish { task, agent_type, description };
            if in_background {
                delegate_in_background(run, call, wish, attempt)
            } else {
                delegate(run, call, wish, attempt)
            }
        }
        Outcome::SendToSubagent { id, message } => send_to(run, call, &id, message, attempt),
        Outcome::RunInBackground { input, command } => {
            command_in_background(run, call, input, command)
        }
        Outcome::CheckBackground(id) => {
            let told = run.background.tell(id.as_deref(), run.scope.clock.now(), run.lineage);
            Ok(Ok(result(call, told)))
        }
        Outcome::SubmitPlan(plan) => submit_plan(run, call, plan),
        Outcome::DecidePlan { approve, reason } => Ok(Ok(decide_plan(run, call, approve, reason))),
    }
}

fn submit_plan(run: &Run<'_>, call: &ToolCall, plan: String) -> Result<Called, StoreError> {
    let question = Question::plan(run, call, plan);
    if run.lineage.is_background {
        let why = "rejected, since nobody can be asked from the background".to_owned();
        return Ok(Ok(ToolResult { plan: Some(false), ..result(call, Err(why)) }));
    }
    if run.office.is_unattended() && question.approver == AgentName::user() {
        run.office.note_refusal();
        let why = "rejected, since nobody is here to approve a plan".to_owned();
        return Ok(Ok(ToolResult { plan: Some(false), ..result(call, Err(why)) }));
    }
    let Ok(wait) = run.office.asks.begin(run.name, &question.approver) else {
        let why = format!("{} is waiting for you: answer first", question.approver);
        return Ok(Ok(result(call, Err(why))));
    };
    let decided = match ask(run, &question)? {
        Ok(decided) => decided,
        Err(why) => return withdrawn(run, &question, why),
    };
    drop(wait);
    if run.meanwhile == Meanwhile::Pause && decided.by.is_some() {
        // The questions of a task are withdrawn with it, and this one is settled.
        note_taken_up(run, &question)?;
    }
    let (approved, text) = match decided.asked {
        Asked::Approved(reason) if reason.is_empty() => (true, "approved".to_owned()),
        Asked::Approved(reason) => (true, format!("approved: {reason}")),
        Asked::Rejected(reason) => (false, format!("rejected: {reason}")),
        Asked::Open | Asked::Expired | Asked::Withdrawn => {
            (false, "rejected: nobody has decided in time".to_owned())
        }
    };
    let text = if approved { Ok(text) } else { Err(text) };
    Ok(Ok(ToolResult { plan: Some(approved), answer: decided.by, ..result(call, text) }))
}

/// Only whoever works on a question about a plan can decide one.
fn decide_plan(run: &Run<'_>, call: &ToolCall, approve: bool, reason: String) -> ToolResult {
    if run.work.envelope.protocol != Some(Protocol::PlanApproval) {
        let why = "the message you work on asks about no plan".to_owned();
        return result(call, Err(why));
    }
    let word = if approve { "approved" } else { "rejected" };
    let text = format!("{word}; your answer carries it. {reason}");
    ToolResult { decides: Some(approve), ..result(call, Ok(text.trim_end().to_owned())) }
}

/// Sends a request and waits for the response. A SHUTDOWN ends the wait at once: nothing is lost by it.
/// From before it is sent until the response is kept, the response is this run's alone.
fn ask_member(run: &mut Run<'_>, call: &ToolCall, letter: Letter, at_most: Duration) -> Called {
    run.memo.awaiting = Some(run.inbox.await_response(&letter.envelope.id));
    let from = &letter.envelope.to.clone();
    let request = &match run.office.post.send(run.scope, letter) {
        Ok(request) => request,
        Err(ToolError::Failed(why)) => return Ok(result(call, Err(why))),
        Err(ToolError::Interrupted(why)) => return Err(why),
    };
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
    run.note(Activity::Waiting, format!("for {from} to answer"));
    let until = run.scope.clock.now().after(at_most);
    let answer = run.scope.wait_lightly(Some(until), || run.inbox.response(request, from));
    drop(ask);
    run.note(Activity::Working, "after the answer");
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

/// The result of a call that is text alone.
pub fn result(call: &ToolCall, text: Result<String, String>) -> ToolResult {
    ToolResult::new(call.id.clone(), text)
}
