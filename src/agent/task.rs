//! A task in hand: claimed, worked on in a conversation of its own, ended on the board.
//!
//! Mail is answered between its calls. Whoever has lost its claim stops within one call and writes
//! nothing more for it.

use std::sync::Arc;

use super::{
    AutonomousAgent, Ended, ModelLoop, Run, Step, Worker,
    run::{Meanwhile, as_mail, has_to_stop},
};
use crate::{
    base::{Haste, Scope, text::headline},
    journal::Position,
    model::{Claims, Envelope, Final, Kind, Message, MessageId, Status, Turn},
    store::{Activity, Claim, ClaimEnd, Kept, StoreError},
};

impl AutonomousAgent {
    /// Takes a task, if there is one for it.
    pub(super) fn claim_task(&mut self) -> Result<bool, StoreError> {
        let claims = self.office.team.claims(&self.name);
        if claims == Claims::None {
            return Ok(false);
        }
        if let Some(claim) = self.office.board.adopt(&self.name)? {
            self.claim = Some(claim);
            return Ok(true);
        }
        let provider = Arc::clone(&self.desk.provider);
        let takes_any = claims == Claims::Any;
        self.claim = self
            .office
            .board
            .claim_next(&self.name, takes_any, |task| provider.can_do(task.work()))?;
        Ok(self.claim.is_some())
    }

    /// Works on the task in hand until it has ended, or the teammate has to.
    pub(super) fn work_on_task(&mut self) -> Result<Step, StoreError> {
        let Some(claim) = self.claim.take() else { return Ok(Step::Idle) };
        let id = claim.task.id.clone();
        let mut kept = self.office.store.conversation(&claim.run)?;
        let message = as_message(&claim);
        let scope = self.scope_of(&claim);
        self.claim = Some(claim);
        self.trace.message(
            &message.envelope.id,
            &message.envelope.from,
            Kind::Request,
            &message.envelope.content,
        );
        kept.push(Turn::Mail(as_mail(&message)))?;
        loop {
            match self.go_on(&message, &scope, &mut kept)? {
                Ended::Paused => {
                    while !self.has_to_stop()
                        && let Some(mail) = self.inbox.next()
                    {
                        if let Step::Ended(ending) = self.handle(&mail)? {
                            return Ok(Step::Ended(ending));
                        }
                        // The message is still in hand; the next step ends the teammate.
                        if has_to_stop(&self.scope) {
                            return Ok(Step::Worked(id));
                        }
                    }
                }
                // The next step ends the teammate, or finds that the claim is lost.
                Ended::Stopping => {
                    self.forget_lost_task()?;
                    return Ok(Step::Worked(id));
                }
                Ended::Concluded { status, text, .. } => {
                    self.end_task(&message, &mut kept, status, &text)?;
                    return Ok(Step::Worked(id));
                }
            }
        }
    }

    /// Gives the task in hand back, if there is one.
    pub(super) fn give_task_back(
        &mut self,
        reason: Option<&'static str>,
    ) -> Result<(), StoreError> {
        if let Some(claim) = &self.claim {
            self.office.board.end(claim, ClaimEnd::Released(reason), self.trace.id())?;
        }
        self.claim = None;
        Ok(())
    }

    fn go_on(
        &mut self,
        message: &Message,
        scope: &Scope,
        kept: &mut Kept,
    ) -> Result<Ended, StoreError> {
        let said = &message.envelope;
        if let Some((_, end)) = kept.conversation().concluded(&said.from, &said.id) {
            // Only the line on the board is missing.
            let (status, text) = (end.status, end.text.clone());
            return Ok(Ended::Concluded { status, text, decision: None });
        }
        let about = format!("on task {}", headline(&said.content, 60));
        self.office.statuses.set(&self.name, Activity::Working, about);
        let mut run = Run {
            office: &self.office,
            name: &self.name,
            desk: &self.desk,
            work: message,
            scope,
            inbox: &self.inbox,
            kept,
            trace: &mut self.trace,
            meanwhile: Meanwhile::Pause,
            begun: &mut self.begun,
        };
        ModelLoop.handle(&mut run)
    }

    fn end_task(
        &mut self,
        message: &Message,
        kept: &mut Kept,
        status: Status,
        text: &str,
    ) -> Result<(), StoreError> {
        let said = &message.envelope;
        if kept.conversation().concluded(&said.from, &said.id).is_none() {
            let end = Final {
                status,
                text: text.to_owned(),
                decision: None,
                places: std::collections::BTreeMap::new(),
            };
            kept.push(Turn::Final(end))?;
        }
        if let Some(claim) = &self.claim {
            let end = match status {
                Status::Ok => ClaimEnd::Done(text.to_owned()),
                Status::Failed | Status::Denied | Status::Stopped => {
                    ClaimEnd::Failed(text.to_owned())
                }
            };
            if !self.office.board.end(claim, end, self.trace.id())? {
                self.trace.error("the task was taken away before its end was written");
            }
        }
        self.claim = None;
        self.trace.conclusion(&said.id, status, text);
        self.office.statuses.update(&self.name, |it| it.last = Some(status));
        Ok(())
    }

    /// A claim that no longer holds is nobody's business here any more.
    fn forget_lost_task(&mut self) -> Result<(), StoreError> {
        let is_ours = match &self.claim {
            Some(claim) => self.office.board.is_ours(claim)?,
            None => true,
        };
        if !is_ours {
            self.claim = None;
            self.trace.error("the task was taken away: its work was stopped");
        }
        Ok(())
    }

    /// The teammate's scope, and a stop of its own that is raised once the claim is lost.
    fn scope_of(&self, claim: &Claim) -> Scope {
        let stop = self.scope.stop.child(&self.scope.wake);
        let (board, mine, look) =
            (self.office.board.clone(), claim.clone(), Arc::clone(&self.scope.look));
        let fence = stop.clone();
        let look: crate::base::scope::Look = Arc::new(move || {
            let interrupt = look();
            if matches!(board.is_ours(&mine), Ok(false)) {
                fence.request(Haste::Now);
            }
            interrupt
        });
        Scope { stop, look, ..self.scope.clone() }
    }
}

/// A claimed task as the message that its run works on.
fn as_message(claim: &Claim) -> Message {
    let task = &claim.task;
    let id = MessageId::derived(&["task", claim.run.as_str()]);
    let (from, to) = (task.added_by.clone(), claim.owner().clone());
    let envelope = Envelope {
        task_id: Some(task.id.to_string()),
        ..Envelope::new(id, from, to, Kind::Request, task.work())
    };
    Message {
        envelope,
        at: Position::ZERO,
        after: Position::ZERO,
        timestamp: None,
        id_given: true,
        sealed: true,
    }
}
