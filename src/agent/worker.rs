//! The seam between a piece of work and who does it: a model that is asked turn by turn, or later
//! a program that owns its loop, its tools and its session.

use super::{Run, run::Meanwhile};
use crate::{
    base::{Interrupted, Scope},
    model::{CallId, Next, Status, Tokens, Turn},
    provider::{ProviderError, Request},
    store::{Call, OpenCall, StoreError},
};

/// How many plans may be rejected before the work has failed.
const MOST_REJECTIONS: usize = 3;

/// How a piece of work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It came to an end.
    Concluded {
        /// How.
        status: Status,
        /// What is told.
        text: String,
        /// The verdict, where it was a question.
        decision: Option<bool>,
    },
    /// The teammate has to end, or the work was taken from it; the work is not done.
    Stopping,
    /// There is mail to answer first; then the work goes on.
    Paused,
}

impl Ended {
    fn failed(text: String) -> Self {
        Self::Concluded { status: Status::Failed, text, decision: None }
    }

    /// The work ends without a last word; what was said so far is told all the same.
    pub fn unfinished(run: &Run<'_>, why: &str) -> Self {
        let said = run.kept.conversation().last_words();
        let partial = said.map(|said| format!("{said}\n\n")).unwrap_or_default();
        Self::failed(format!("{partial}{why} without a final answer"))
    }
}

impl Ended {
    /// The same, or the end of a work whose time is over while nobody has stopped `above` it.
    #[must_use]
    pub fn or_late(self, run: &Run<'_>, above: &Scope) -> Self {
        let limit = run.desk.agent_type.limits.timeout;
        match (self, limit) {
            (Self::Stopping, Some(limit)) if run.scope.is_late() && !above.has_to_stop() => {
                Self::unfinished(run, &format!("timed out after {} s", limit.as_secs()))
            }
            (ended, _) => ended,
        }
    }
}

/// Does a piece of work.
pub trait Worker: Send + Sync {
    /// Goes on with the conversation of the run until the work has ended.
    fn handle(&self, run: &mut Run<'_>) -> Result<Ended, StoreError>;
}

/// Asks a model, runs what it calls, and asks again, while its answers hold calls.
pub struct ModelLoop;

impl Worker for ModelLoop {
    fn handle(&self, run: &mut Run<'_>) -> Result<Ended, StoreError> {
        loop {
            if run.has_to_stop() {
                return Ok(Ended::Stopping);
            }
            if run.has_to_pause() {
                return Ok(Ended::Paused);
            }
            if run.is_interrupted {
                let text = "interrupted: somebody asked for this work to be ended".to_owned();
                return Ok(Ended::Concluded { status: Status::Stopped, text, decision: None });
            }
            match run.kept.conversation().next() {
                Next::Conclude { status, text, decision } => {
                    let decision = decision.or_else(|| run.decided());
                    return Ok(Ended::Concluded { status, text: text.to_owned(), decision });
                }
                Next::RunTool(call) => {
                    let call = call.clone();
                    run.call_tool(&call)?;
                }
                Next::AskModel => {
                    if run.plans().filter(|approved| !approved).count() >= MOST_REJECTIONS {
                        let text = format!("{MOST_REJECTIONS} plans were rejected");
                        return Ok(Ended::failed(text));
                    }
                    let most = run.desk.agent_type.max_turns;
                    if run.kept.conversation().model_turns() >= most {
                        return Ok(Ended::unfinished(run, &format!("stopped after {most} turns")));
                    }
                    if run.meanwhile == Meanwhile::Join {
                        run.take_joining_mail()?;
                    }
                    if let Some(ended) = ask_model(run)? {
                        return Ok(ended);
                    }
                }
            }
        }
    }
}

/// The call that a run is going to make of its model.
fn call_of(run: &Run<'_>) -> Call {
    let work = &run.work.envelope;
    Call {
        call: CallId::random(),
        teammate: run.name.clone(),
        agent_type: run.desk.agent_type.name.clone(),
        run: run.lineage.run.clone(),
        trace: run.trace.id().clone(),
        task: work.task_id.clone(),
        message: work.id.clone(),
        model: run.desk.provider.model().to_owned(),
    }
}

/// Writes down what a call has taken.
fn charge(run: &mut Run<'_>, call: &OpenCall, tokens: Option<Tokens>) -> Result<(), StoreError> {
    let charge = run.insist(|run| run.office.costs.end(call, tokens))?;
    run.office.statuses.update(run.name, |status| {
        let tokens = charge.tokens.unwrap_or_default();
        status.tokens_in += tokens.read();
        status.tokens_out += tokens.output;
        status.cost = status.cost.plus(charge.cost.unwrap_or_default());
        status.unknown_costs += u64::from(charge.cost.is_none());
    });
    Ok(())
}

fn ask_model(run: &mut Run<'_>) -> Result<Option<Ended>, StoreError> {
    let call = match run.insist(|run| run.office.costs.begin(call_of(run)))? {
        Ok(call) => call,
        Err(refusal) => return Ok(Some(Ended::failed(refusal))),
    };
    run.trace.model_call_started();
    let started = run.scope.clock.now();
    let conversation = run.kept.conversation();
    let request = Request {
        system: &run.desk.system,
        turns: conversation.turns(),
        in_hand: conversation.in_hand_from(),
        tools: run.desk.tools.specs(),
    };
    let provider = &run.desk.provider;
    let asked = run.scope.call("model", |cancel| provider.complete(&request, cancel));
    let tokens = asked.as_ref().ok().and_then(|reply| reply.as_ref().ok()).map(|it| it.tokens);
    charge(run, &call, tokens)?;
    let reply = match asked {
        Ok(Ok(reply)) => reply,
        Ok(Err(why @ (ProviderError::Passing { .. } | ProviderError::Final(_)))) => {
            return Ok(Some(Ended::failed(why.to_string())));
        }
        Ok(Err(ProviderError::TooLong)) => {
            return Ok(Some(Ended::failed(format!(
                "the conversation is too long for its model; it lies in \
                     .mailbox/state/conversations/{}.jsonl: moved away, a new one begins",
                run.lineage.run
            ))));
        }
        Err(Interrupted::Stopping) => return Ok(Some(Ended::Stopping)),
        Err(Interrupted::Interrupt) if run.lineage.depth > 0 => {
            run.is_interrupted = true;
            return Ok(None);
        }
        // Whoever interrupts wants to be read: the mail joins and the model is asked again.
        Err(Interrupted::Interrupt | Interrupted::Late) => return Ok(None),
    };
    let milliseconds = run.scope.clock.now().since(started).as_millis();
    let tokens = (reply.tokens.read(), reply.tokens.output);
    run.trace.model_call(tokens, milliseconds, &reply.text);
    let complaints = reply.vendor.as_ref().and_then(|it| it.pointer("/command/stderr")?.as_str());
    if let Some(complaints) = complaints.filter(|it| !it.trim().is_empty()) {
        run.trace.error(complaints);
    }
    run.keep(Turn::Model {
        text: reply.text,
        calls: reply.calls,
        status: reply.status,
        decision: reply.decision,
        tokens: reply.tokens,
        vendor: reply.vendor,
    })?;
    Ok(None)
}
