//! The seam between a piece of work and who does it: a model that is asked turn by turn, or later
//! a program that owns its loop, its tools and its session.

use super::{
    Run, compactor,
    model_call::{self, Asked},
    run::Meanwhile,
};
use crate::{
    base::{Interrupted, Scope},
    model::{Next, Status, Turn},
    provider::ProviderError,
    store::StoreError,
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
    /// The same, or the end of a work whose time is over, or that of whoever called it from `above`,
    /// while nobody has stopped them.
    #[must_use]
    pub fn or_late(self, run: &Run<'_>, above: &Scope) -> Self {
        if self != Self::Stopping || !run.scope.is_late() || above.is_stopped() {
            return self;
        }
        let limit = run.desk.agent_type.limits.timeout.filter(|_| !above.is_late());
        let why = limit.map_or("stopped with the time of its caller".to_owned(), |limit| {
            format!("timed out after {} s", limit.as_secs())
        });
        Self::unfinished(run, &why)
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
                    let decision = decision.or(run.kept.conversation().tally().decides);
                    return Ok(Ended::Concluded { status, text: text.to_owned(), decision });
                }
                Next::RunTool(call) => {
                    let call = call.clone();
                    run.call_tool(&call)?;
                }
                Next::AskModel => {
                    if run.plans().iter().filter(|approved| !**approved).count() >= MOST_REJECTIONS
                    {
                        let text = format!("{MOST_REJECTIONS} plans were rejected");
                        return Ok(Ended::failed(text));
                    }
                    let most = run.desk.agent_type.max_turns;
                    if run.kept.conversation().tally().turns >= most {
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

/// Asks the model and keeps its turn; an end where there is none to come.
fn ask_model(run: &mut Run<'_>) -> Result<Option<Ended>, StoreError> {
    if let Err(why) = compactor::fit(run)? {
        return Ok(interrupted(run, why));
    }
    let asked = match model_call::ask(run)? {
        Asked::Failed(ProviderError::TooLong) => match compactor::fit_refused(run)? {
            Ok(true) => model_call::ask(run)?,
            Ok(false) => Asked::Failed(ProviderError::TooLong),
            Err(why) => Asked::Interrupted(why),
        },
        asked => asked,
    };
    let reply = match asked {
        Asked::Reply(reply) => reply,
        Asked::Refused(why) => return Ok(Some(Ended::failed(why))),
        Asked::Failed(why @ (ProviderError::Passing { .. } | ProviderError::Final(_))) => {
            return Ok(Some(Ended::failed(why.to_string())));
        }
        Asked::Failed(ProviderError::TooLong) => return Ok(Some(Ended::failed(too_long(run)))),
        Asked::Interrupted(why) => return Ok(interrupted(run, why)),
    };
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

/// What an interrupted call of a model comes to.
fn interrupted(run: &mut Run<'_>, why: Interrupted) -> Option<Ended> {
    if why == Interrupted::Stopping {
        return Some(Ended::Stopping);
    }
    // Whoever interrupts wants to be read: the mail joins and the model is asked again.
    run.is_interrupted |= why == Interrupted::Interrupt && run.lineage.depth > 0;
    None
}

fn too_long(run: &Run<'_>) -> String {
    format!(
        "the request or its last results are longer than {} can read, and there is nothing older to \
         leave out: send a shorter request that names files to read in parts (the conversation lies \
         in .mailbox/state/conversations/{}.jsonl)",
        run.desk.provider.model(),
        run.lineage.run
    )
}
