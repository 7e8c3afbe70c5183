//! One run: a piece of work, the conversation it goes on in, and all that it may use.

use std::{sync::Arc, time::Duration};

use super::{
    Desk, Office, approval::is_asked_about, background::Background, dispatch::dispatch,
    lineage::Lineage,
};
use crate::{
    base::{Interrupted, Scope},
    guard::Rights,
    model::{AgentName, CallId, Mail, Message, MessageId, ToolCall, ToolResult, Turn},
    store::{Activity, Awaiting, Inbox, Kept, StoreError, Trace},
    tools::Attempt,
};

/// How long to wait before something is tried again that failed for want of space or rights.
const RETRY: Duration = Duration::from_secs(2);

/// A piece of work under way.
pub struct Run<'a> {
    /// What the team shares.
    pub office: &'a Arc<Office>,
    /// Whose run it is.
    pub name: &'a AgentName,
    /// What it works with.
    pub desk: &'a Desk,
    /// What it works on.
    pub work: &'a Message,
    /// What it waits with.
    pub scope: &'a Scope,
    /// Its mail.
    pub inbox: &'a Inbox,
    /// Its conversation.
    pub kept: &'a mut Kept,
    /// Its trace.
    pub trace: &'a mut Trace,
    /// What becomes of requests that come meanwhile.
    pub meanwhile: Meanwhile,
    /// The call that may have run without its result being kept.
    pub begun: &'a mut Option<CallId>,
    /// Where it stands below its teammate.
    pub lineage: &'a Lineage,
    /// What its teammate runs in the background.
    pub background: &'a Background,
    /// Whether the life before died with work in hand: then so may have the calls that it had begun.
    pub has_died: bool,
    /// What it remembers while it is under way.
    pub memo: Memo,
    /// Whether somebody wants the whole work ended, where that is a subagent's.
    pub is_interrupted: bool,
}

/// What a run remembers while it is under way, and begins without again.
#[derive(Default)]
pub struct Memo {
    /// The wait for a response that is not settled yet.
    pub awaiting: Option<Awaiting>,
    /// Whether its model was asked.
    pub has_asked: bool,
    /// How long its conversation was, in tokens, when the model failed to sum it up.
    pub unsummed: u64,
}

/// What becomes of requests that come while a run is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meanwhile {
    /// They wait; what belongs to the work joins it.
    Join,
    /// The run pauses between two calls, and its teammate answers them in its own conversation.
    Pause,
    /// All mail waits for the teammate: a subagent has none.
    Apart,
}

impl Meanwhile {
    /// What becomes of mail in a subagent of a run: one that pauses pauses in its subagents, too.
    pub fn of_subagent(self) -> Self {
        match self {
            Self::Join | Self::Apart => Self::Apart,
            Self::Pause => Self::Pause,
        }
    }
}

impl Run<'_> {
    /// What it may do now: while a plan waits for approval, nothing that changes anything.
    pub fn rights(&self) -> Rights {
        let rights = self.desk.rights.allowing(&self.inbox.life().always);
        if self.is_gated() { rights.planning() } else { rights }
    }

    /// Whether a plan has to be approved before anything may be changed. Only the runtime notes an
    /// approval, and only in the work in hand.
    pub fn is_gated(&self) -> bool {
        self.desk.plan_required && !self.plans().contains(&true)
    }

    /// What was decided about the plans of the work in hand.
    pub fn plans(&self) -> Vec<bool> {
        self.kept.conversation().tally().plans
    }

    /// Says what the teammate is doing; what runs in the background is not what it is doing.
    pub fn note(&self, activity: Activity, about: impl Into<String>) {
        if !self.lineage.is_background {
            self.office.statuses.set(self.name, activity, about);
        }
    }

    /// Whether the run shall pause for mail.
    pub fn has_to_pause(&self) -> bool {
        self.meanwhile == Meanwhile::Pause && self.inbox.has_next()
    }

    /// Whether the run shall end before its next turn or call.
    pub fn has_to_stop(&self) -> bool {
        self.scope.has_to_stop()
    }

    /// Runs a call and keeps its result. A call that is cut off by the end of its teammate has a
    /// result only where it can't simply be made again.
    pub fn call_tool(&mut self, call: &ToolCall) -> Result<(), StoreError> {
        let is_repeatable = self.desk.is_repeatable(call);
        let was_begun = self.begun.as_ref() == Some(&call.id) && !is_asked_about(self, call);
        let attempt = if was_begun {
            Attempt::Again
        } else {
            *self.begun = Some(call.id.clone());
            Attempt::First
        };
        let result = if attempt == Attempt::Again && !is_repeatable {
            let result = cut_off(call);
            self.trace.tool_call(call, "unknown", 0, &Err(result.text.clone()));
            result
        } else {
            match dispatch(self, call, attempt)? {
                Ok(result) => result,
                Err(Interrupted::Stopping) if is_repeatable => {
                    if !self.has_to_stop() {
                        // A subagent has paused for mail: it goes on where it is, in order.
                        *self.begun = None;
                    }
                    return Ok(());
                }
                Err(Interrupted::Stopping) if self.scope.is_late() => {
                    failed(call, "interrupted: the time for this work is over".to_owned())
                }
                Err(Interrupted::Stopping) if is_asked_about(self, call) => {
                    *self.begun = None;
                    return Ok(());
                }
                Err(Interrupted::Stopping) => failed(
                    call,
                    "interrupted: the teammate was stopped during this call".to_owned(),
                ),
                Err(Interrupted::Interrupt) => {
                    self.is_interrupted = self.lineage.depth > 0;
                    let why = "interrupted: somebody asked for this call to be ended";
                    failed(call, why.to_owned())
                }
                Err(Interrupted::Late) => failed(call, "timed out".to_owned()),
            }
        };
        let answer = result.answer.clone();
        self.keep(Turn::Result(result))?;
        *self.begun = None;
        self.settle_answer(answer)?;
        self.memo.awaiting = None;
        Ok(())
    }

    /// The work on a message consumes the answers it waited for when it ends. A task's run pauses for
    /// mail before that, and a subagent's has a conversation of its own, so what these have been
    /// answered is consumed at once.
    fn settle_answer(&self, answer: Option<(AgentName, MessageId)>) -> Result<(), StoreError> {
        match (answer, self.meanwhile) {
            (Some(answer), Meanwhile::Pause | Meanwhile::Apart) => {
                self.inbox.settle(&self.inbox.unread_among(&[answer].into()))
            }
            (_, Meanwhile::Join) | (None, _) => Ok(()),
        }
    }

    /// Takes mail that belongs to the work, or is context, into the conversation.
    pub fn take_joining_mail(&mut self) -> Result<(), StoreError> {
        for message in self.inbox.joining(&self.work.envelope.id) {
            let mail = as_mail(&message);
            if !self.kept.has_mail(&mail.from, &mail.id) {
                self.trace.message(&mail.id, &mail.from, mail.kind, &mail.text);
            }
            self.keep(Turn::Mail(mail))?;
        }
        Ok(())
    }

    /// Keeps a turn. What has had effects must not be done again only because the disk is full: it
    /// waits until there is room, or the teammate has to end.
    pub fn keep(&mut self, turn: Turn) -> Result<(), StoreError> {
        self.insist(|run| run.kept.push(turn.clone()))
    }

    /// Tries what fails for want of space or rights until it is done, or the teammate has to end.
    pub fn insist<T>(
        &mut self,
        mut attempt: impl FnMut(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        loop {
            let why = match attempt(self) {
                Err(why) if why.is_passing() => why,
                done => return done,
            };
            self.note(Activity::Retrying, why.to_string());
            let again = self.scope.clock.now().after(RETRY);
            if let Err(Interrupted::Stopping) = self.scope.wait::<()>(Some(again), || None) {
                return Err(why);
            }
        }
    }

    /// An id for a call of the last round that is the same after a restart and unlike that of any
    /// other call: a model may give an id again once its first call was summed up.
    pub fn call_id(&self, call: &ToolCall) -> CallId {
        let (work, round) =
            (&self.work.envelope, self.kept.conversation().tally().turns.to_string());
        let parts = [self.name.as_str(), work.from.as_str(), work.id.as_str(), &round];
        CallId::derived(&[parts.as_slice(), &[call.id.as_str()]].concat())
    }
}

/// A message as a turn of a conversation.
pub fn as_mail(message: &Message) -> Mail {
    let said = &message.envelope;
    Mail {
        id: said.id.clone(),
        from: said.from.clone(),
        kind: said.kind,
        protocol: said.protocol,
        text: said.content.clone(),
        hops: said.hops,
    }
}

/// The result of a call with effects that has run and whose own result is not known.
pub fn cut_off(call: &ToolCall) -> ToolResult {
    let why = "unknown: the daemon stopped during this call; inspect before repeating it";
    failed(call, why.to_owned())
}

/// The result of a call that was wanted and not begun.
pub fn not_run(call: &ToolCall) -> ToolResult {
    failed(call, "not run: the work ended before this call".to_owned())
}

fn failed(call: &ToolCall, text: String) -> ToolResult {
    ToolResult::new(call.id.clone(), Err(text))
}
