//! A task in hand: claimed, worked on in a run of its own, ended on the board.
//!
//! Mail is answered between its calls. Whoever has lost its claim stops within one call and writes
//! nothing more for it.

use std::sync::Arc;

use super::{
    AutonomousAgent, Desk, Ended, ModelLoop, Run, Step, Worker,
    lineage::Lineage,
    run::{Meanwhile, Memo, as_mail},
    subagent::word,
};
use crate::{
    base::{Haste, Scope, text::headline},
    model::{Claims, Envelope, Final, Kind, Message, MessageId, RunId, Status, TaskId, Turn},
    store::{Activity, Claim, ClaimEnd, Kept, RunHead, StoreError, Trace, TraceHead},
};

/// The run in which a task is worked on.
struct TaskRun {
    task: TaskId,
    message: Message,
    scope: Scope,
    kept: Kept,
    trace: Trace,
    desk: Arc<Desk>,
    lineage: Lineage,
}

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
        let takes_any = claims == Claims::Any;
        let names = self.office.team.names_of(&self.name);
        let can_do = |task: &_| self.office.can_do(&self.name, task);
        self.claim = self.office.board.claim_next(&self.name, &names, takes_any, can_do)?;
        Ok(self.claim.is_some())
    }

    /// Works on the task in hand until it has ended, or the teammate has to.
    pub(super) fn work_on_task(&mut self) -> Result<Step, StoreError> {
        let Some(claim) = self.claim.clone() else { return Ok(Step::Idle) };
        let desk = match self.office.desk_for(&self.name, &claim.task) {
            Ok(desk) => desk,
            Err(why) => return self.refuse_task(&claim, why),
        };
        let mut it = self.begin_task(&claim, desk)?;
        loop {
            match self.go_on(&mut it)? {
                Ended::Paused => {
                    if let Some(step) = self.answer_meanwhile(&it)? {
                        it.trace.end("failed", "given back");
                        return Ok(step);
                    }
                }
                // The next step ends the teammate, or finds that the claim is lost.
                Ended::Stopping => {
                    it.trace.end("failed", "given back");
                    self.forget_lost_task()?;
                    return Ok(Step::Worked(it.task));
                }
                Ended::Concluded { status, text, .. } => {
                    self.end_task(&mut it, status, &text)?;
                    return Ok(Step::Worked(it.task));
                }
            }
        }
    }

    /// Answers the mail that lies there, between two calls of a task; a step where that is all that
    /// it can do now.
    fn answer_meanwhile(&mut self, it: &TaskRun) -> Result<Option<Step>, StoreError> {
        while !self.has_to_stop()
            && let Some(mail) = self.inbox.next()
        {
            if let Step::Ended(ending) = self.handle(&mail)? {
                return Ok(Some(Step::Ended(ending)));
            }
            // The message is still in hand; the next step ends the teammate.
            if self.has_to_stop() {
                return Ok(Some(Step::Worked(it.task.clone())));
            }
        }
        Ok(None)
    }

    /// Gives the task in hand back, if there is one.
    pub(super) fn give_task_back(
        &mut self,
        reason: Option<&'static str>,
    ) -> Result<(), StoreError> {
        if let Some(claim) = &self.claim {
            self.office.board.end(claim, ClaimEnd::Released(reason), &claim.run)?;
        }
        self.claim = None;
        Ok(())
    }

    /// A task that can't be done as what it says has failed before it is begun.
    fn refuse_task(&mut self, claim: &Claim, why: String) -> Result<Step, StoreError> {
        self.trace.error(&format!("task {}: {why}", claim.task.id));
        self.office.board.end(claim, ClaimEnd::Failed(why), self.trace.id())?;
        self.claim = None;
        Ok(Step::Worked(claim.task.id.clone()))
    }

    fn begin_task(&mut self, claim: &Claim, desk: Arc<Desk>) -> Result<TaskRun, StoreError> {
        let type_name = desk.agent_type.name.clone();
        let message = as_message(claim);
        let head = RunHead {
            agent: self.name.clone(),
            agent_type: type_name.clone(),
            parent: RunId::of(&self.name),
        };
        let mut kept = self.office.store.conversation_of(&claim.run, &head)?;
        let work = &message.envelope.content;
        let trace = TraceHead {
            agent: self.name.clone(),
            agent_type: type_name.clone(),
            life: None,
            parent: Some(self.trace.id().clone()),
            spawned_by_tool: None,
            task: Some(work.clone()),
            parent_task: Some(claim.task.id.to_string()),
            description: Some(claim.task.title.clone()),
            in_background: false,
        };
        let trace = Trace::begin_run(&self.office.store, claim.run.clone(), trace)?;
        self.trace.subagent_started(&claim.run, None, &type_name, work, false);
        kept.push(Turn::Mail(as_mail(&message)))?;
        let mark = RunId::of(&self.name);
        Ok(TaskRun {
            task: claim.task.id.clone(),
            scope: self.scope_of(claim).within(desk.agent_type.limits.timeout),
            kept,
            trace,
            lineage: Lineage::of_teammate(claim.run.clone(), mark, &type_name, work),
            desk,
            message,
        })
    }

    fn go_on(&mut self, it: &mut TaskRun) -> Result<Ended, StoreError> {
        let said = &it.message.envelope;
        if let Some((_, end)) = it.kept.conversation().concluded(&said.from, &said.id) {
            // Only the line on the board is missing.
            let (status, text) = (end.status, end.text.clone());
            return Ok(Ended::Concluded { status, text, decision: None });
        }
        let about = format!("on task {}", headline(&said.content, 60));
        self.office.statuses.set(&self.name, Activity::Working, about);
        let mut run = Run {
            office: &self.office,
            name: &self.name,
            desk: &it.desk,
            work: &it.message,
            scope: &it.scope,
            inbox: &self.inbox,
            kept: &mut it.kept,
            trace: &mut it.trace,
            meanwhile: Meanwhile::Pause,
            begun: &mut self.begun,
            lineage: &it.lineage,
            background: &self.background,
            has_died: self.has_died,
            memo: Memo::default(),
            is_interrupted: false,
        };
        let ended = ModelLoop.handle(&mut run)?;
        // A lost claim stops the scope's own stop, which is no lateness either.
        let above = Scope { deadline: None, ..it.scope.clone() };
        Ok(ended.or_late(&run, &above))
    }

    fn end_task(&mut self, it: &mut TaskRun, status: Status, text: &str) -> Result<(), StoreError> {
        let said = &it.message.envelope;
        if it.kept.conversation().concluded(&said.from, &said.id).is_none() {
            it.kept.push(Turn::Final(Final::told(status, text.to_owned())))?;
        }
        if let Some(claim) = &self.claim {
            let end = match status {
                Status::Ok => ClaimEnd::Done(text.to_owned()),
                Status::Failed | Status::Denied | Status::Stopped => {
                    ClaimEnd::Failed(text.to_owned())
                }
            };
            if !self.office.board.end(claim, end, &claim.run)? {
                it.trace.error("the task was taken away before its end was written");
            }
            it.trace.conclusion(&said.id, status, text);
            it.trace.end(word(status), "");
            self.trace.subagent_completed(&claim.run, status, text, it.trace.with_children());
        }
        self.claim = None;
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
    Message::internal(Envelope {
        task_id: Some(task.id.to_string()),
        ..Envelope::new(id, from, to, Kind::Request, task.work())
    })
}
