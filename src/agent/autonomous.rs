//! A teammate: one thread that reads its mail, works, and waits in one place.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{
    Desk, Ended, ModelLoop, Office, Run, Worker,
    approval::withdraw_of_tasks,
    background::Background,
    lineage::Lineage,
    run::{Meanwhile, Memo, as_mail, cut_off},
    shutdown::announce,
};
use crate::{
    base::{Clock, Haste, Scope, Stop, Wake, text::headline},
    journal::Subscription,
    model::{
        AgentName, CallId, Claims, Desired, Envelope, Kind, Life, Message, MessageId, Next,
        Obedience, Protocol, RunId, Status, TaskId, Tries, Turn,
    },
    store::{Activity, Claim, Inbox, Kept, Rebirth, StoreError, Trace},
};

/// A teammate that runs.
pub struct AutonomousAgent {
    pub(super) office: Arc<Office>,
    pub(super) name: AgentName,
    pub(super) inbox: Inbox,
    pub(super) kept: Kept,
    pub(super) trace: Trace,
    pub(super) desk: Arc<Desk>,
    pub(super) scope: Scope,
    trouble: Arc<Mutex<Option<StoreError>>>,
    /// The task in hand.
    pub(super) claim: Option<Claim>,
    /// The call that may have run without its result being kept.
    pub(super) begun: Option<CallId>,
    /// Whether the life before died with work in hand.
    pub(super) has_died: bool,
    /// What it runs in the background.
    pub(super) background: Background,
    _mail: Subscription,
}

/// What one step has done.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// It has dealt with this message.
    Handled(MessageId),
    /// It has dealt with this task.
    Worked(TaskId),
    /// There is nothing to do.
    Idle,
    /// It has ended.
    Ended(Ending),
}

/// Why a teammate has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It was stopped, and stays so until it is started.
    Stopped,
    /// The daemon ends; it goes on when the daemon does.
    WithDaemon,
}

impl AutonomousAgent {
    /// Takes up the life of `name` where its files say it was left.
    pub fn open(
        office: Arc<Office>,
        name: AgentName,
        stop: &Stop,
        rebirth: Rebirth,
    ) -> Result<Self, StoreError> {
        let (store, wake) = (&office.store, Wake::default());
        let (team, dead) = (Arc::clone(&office.team), office.dead.clone());
        let inbox = Inbox::open(store, &office.bus, team, dead, &name, rebirth)?;
        let mail = inbox.subscribe(&wake);
        let kept = store.conversation(&RunId::of(&name))?;
        let before = inbox.life();
        inbox.record(|life| life.life += 1)?;
        let trace =
            Trace::begin(store, &name, &office.desk(&name).agent_type.name, before.life + 1)?;
        let trouble = Arc::new(Mutex::new(None));
        let stop = stop.child(&wake);
        let clock = store.clock().clone();
        let look = looking(&office, &name, &inbox, &stop, &clock, &trouble);
        let scope = Scope { clock, wake, stop, look, deadline: None };
        let background = Background::new(scope.wake.clone());
        let desk = office.desk(&name);
        let begun = begun_before(&before, &kept, &desk);
        let takes_any = office.team.claims(&name) == Claims::Any;
        let names = office.team.names_of(&name);
        office.board.wake_on_ready(&name, names, &scope.wake, takes_any);
        let mut agent = Self {
            claim: None,
            office,
            name,
            inbox,
            kept,
            trace,
            desk,
            scope,
            trouble,
            begun,
            has_died: before.taken.is_some(),
            background,
            _mail: mail,
        };
        agent.tell_of_lost_background()?;
        Ok(agent)
    }

    /// Works until it is ended.
    pub fn run(mut self) -> Result<Ending, StoreError> {
        loop {
            let stepped = match self.step() {
                Ok(Step::Idle) => self.rest().map(|()| Step::Idle),
                stepped => stepped,
            };
            match stepped {
                Ok(Step::Handled(_) | Step::Worked(_) | Step::Idle) => {}
                Ok(Step::Ended(ending)) => return Ok(ending),
                // Whoever has to end does not wait for room: its files say where it was.
                Err(why) if why.is_passing() && !self.has_to_stop() => self.wait_for_room(&why),
                Err(why) => {
                    self.trace.error(&why.to_string());
                    return Err(why);
                }
            }
        }
    }

    /// Does one piece of work, whole: an obeyed SHUTDOWN, else the next message, else a task.
    pub fn step(&mut self) -> Result<Step, StoreError> {
        self.inbox.pull()?;
        self.report_losses()?;
        self.note_ended_background();
        if self.inbox.life().desired == Desired::Stopped {
            // It has said that it stops and was kept from ending: it does not come back by itself.
            return self.end(Ending::Stopped);
        }
        if self.claim.is_none() {
            withdraw_of_tasks(&self.office.bus, &self.inbox)?;
        }
        let orders = self.inbox.shutdowns();
        if !orders.is_empty() {
            self.obey(&orders)?;
            return self.end(Ending::Stopped);
        }
        match self.scope.stop.requested() {
            // After this end a SHUTDOWN would be stale, so one that waits for its turn has it now.
            Some(Haste::Grace(_) | Haste::Now) => {
                let orders = self.inbox.all_shutdowns();
                let ending = if orders.is_empty() { Ending::WithDaemon } else { Ending::Stopped };
                self.obey(&orders)?;
                return self.end(ending);
            }
            Some(Haste::Drain) | None => {}
        }
        match self.inbox.next() {
            Some(message) => self.handle(&message),
            None if self.claim.is_some() => self.work_on_task(),
            None if self.scope.stop.requested().is_some() && self.background.live() == 0 => {
                self.end(Ending::WithDaemon)
            }
            None if self.scope.stop.requested().is_none() && self.claim_task()? => {
                self.work_on_task()
            }
            None => Ok(Step::Idle),
        }
    }

    pub(super) fn handle(&mut self, message: &Message) -> Result<Step, StoreError> {
        let id = message.envelope.id.clone();
        match self.inbox.judge(message) {
            Some(Obedience::Obey) => {
                announce(&self.office, &self.name, message);
                self.let_background_end();
                self.obey(std::slice::from_ref(message))?;
                return self.end(Ending::Stopped);
            }
            Some(why) => self.decline(message, why)?,
            None if message.envelope.kind == Kind::Request => self.answer(message)?,
            None if self.wants_turn(message) => self.answer(message)?,
            None if message.envelope.decision.is_some() => self.tell_too_late(message)?,
            None => self.note(message)?,
        }
        Ok(Step::Handled(id))
    }

    /// A SHUTDOWN that takes its turn lets what runs in the background end, unless somebody wants the
    /// end at once.
    fn let_background_end(&self) {
        if self.background.live() > 0 {
            self.office.statuses.set(&self.name, Activity::Waiting, "for what runs beside it");
            let is_done = || (self.background.live() == 0).then_some(());
            let _ = self.scope.wait_lightly(None, is_done);
        }
    }

    /// Whether a message without a claim to a reply starts a turn all the same: the result of what
    /// this teammate began itself and did not wait for.
    fn wants_turn(&self, message: &Message) -> bool {
        let said = &message.envelope;
        let of_teammate = self.office.team.teammates.contains_key(&said.from);
        let is_of_task = said.kind == Kind::Event && said.from == AgentName::daemon();
        if is_of_task {
            return message.sealed && said.task_id.is_some();
        }
        let is_own = said.kind == Kind::Event && said.from == self.name;
        if is_own {
            // The end of what ran in the background.
            return message.sealed && said.trace_id.is_some();
        }
        said.kind == Kind::Response
            && said.protocol != Some(Protocol::Shutdown)
            && (message.sealed || !of_teammate)
            && said.in_reply_to.as_ref().is_some_and(|id| self.kept.has_sent(id))
    }

    /// A decision that nobody waits for: it came too late, or from somebody who was not asked.
    fn tell_too_late(&mut self, message: &Message) -> Result<(), StoreError> {
        let said = &message.envelope;
        let question = said.in_reply_to.as_ref().map(ToString::to_string).unwrap_or_default();
        let text = format!(
            "the decision about {question} changes nothing: the question is decided, or not open, \
             or was not yours to decide"
        );
        let id = MessageId::derived(&["too-late", self.name.as_str(), said.id.as_str()]);
        let event = Envelope {
            in_reply_to: Some(said.id.clone()),
            ..Envelope::new(id, self.name.clone(), said.from.clone(), Kind::Event, text)
        };
        self.office.bus.reply(&event)?;
        self.inbox.settle(std::slice::from_ref(message))
    }

    /// Context for the next turn.
    fn note(&mut self, message: &Message) -> Result<(), StoreError> {
        let mail = as_mail(message);
        self.trace.message(&mail.id, &mail.from, mail.kind, &mail.text);
        self.kept.push(Turn::Mail(mail))?;
        self.inbox.settle(std::slice::from_ref(message))
    }

    fn answer(&mut self, message: &Message) -> Result<(), StoreError> {
        let said = &message.envelope;
        let tries = self.inbox.take(message)?;
        let in_hand = self.kept.has_mail(&said.from, &said.id);
        if in_hand && self.kept.conversation().concluded(&said.from, &said.id).is_some() {
            return self.tell(message);
        }
        if tries.are_used_up() {
            return self.give_up(message, tries);
        }
        let about = format!("on {} from {}: {}", said.id, said.from, headline(&said.content, 60));
        self.office.statuses.set(&self.name, Activity::Working, about);
        self.office.statuses.update(&self.name, |status| status.message = Some(said.id.clone()));
        if !in_hand {
            self.trace.message(&said.id, &said.from, said.kind, &said.content);
            self.kept.push(Turn::Mail(as_mail(message)))?;
        }
        let ended = self.work(message)?;
        self.conclude(message, ended)
    }

    fn work(&mut self, message: &Message) -> Result<Ended, StoreError> {
        let (run, kind) = (RunId::of(&self.name), &self.desk.agent_type.name);
        let lineage = Lineage::of_teammate(run.clone(), run, kind, &message.envelope.content);
        let scope = self.scope.within(self.desk.agent_type.limits.timeout);
        let mut run = Run {
            office: &self.office,
            name: &self.name,
            desk: &self.desk,
            work: message,
            scope: &scope,
            inbox: &self.inbox,
            kept: &mut self.kept,
            trace: &mut self.trace,
            meanwhile: Meanwhile::Join,
            begun: &mut self.begun,
            lineage: &lineage,
            background: &self.background,
            has_died: self.has_died,
            memo: Memo::default(),
            is_interrupted: false,
        };
        let ended = ModelLoop.handle(&mut run)?;
        Ok(ended.or_late(&run, &self.scope))
    }

    /// A message that has been begun too often and never ended is not begun again: its sender is
    /// told, the lead is told, and the next message has its turn.
    fn give_up(&mut self, message: &Message, tries: Tries) -> Result<(), StoreError> {
        let said = &message.envelope;
        let text = format!(
            "given up: this message was begun {} times and never ended ({} errors, {} deaths of \
             the daemon); see `postroom dead list`",
            tries.errors + tries.deaths,
            tries.errors,
            tries.deaths
        );
        self.inbox.bury(message, &text)?;
        let id = MessageId::derived(&["given-up", self.name.as_str(), said.id.as_str()]);
        let lead = self.office.team.lead.clone();
        let told = format!("{} has given up on {} from {}", self.name, said.id, said.from);
        let event = Envelope::new(id, self.name.clone(), lead, Kind::Event, told);
        self.send_once(&event)?;
        if !self.kept.has_mail(&said.from, &said.id) {
            self.kept.push(Turn::Mail(as_mail(message)))?;
        }
        let end = Ended::Concluded { status: Status::Failed, text, decision: None };
        self.conclude(message, end)
    }

    /// Waits for something to do: the one place in which an idle teammate stands.
    fn rest(&mut self) -> Result<(), StoreError> {
        self.inbox.note_progress()?;
        match self.background.live() {
            0 => self.office.statuses.set(&self.name, Activity::Idle, ""),
            _ => self.office.statuses.set(&self.name, Activity::Waiting, "for what runs beside it"),
        }
        let background = &self.background;
        let (inbox, stop, trouble) = (&self.inbox, &self.scope.stop, &self.trouble);
        let claimable = || self.office.may_claim(&self.name);
        // Whatever ends the wait, the next step looks at everything.
        let _ = self.scope.wait_lightly(None, || {
            let ends = stop.requested();
            let woken = inbox.has_next()
                || (ends.is_none() && claimable())
                || ends.is_some_and(|it| it > Haste::Drain || background.live() == 0)
                || background.has_ended()
                || trouble.lock().is_some()
                || inbox.has_losses()
                || inbox.has_progress();
            woken.then_some(())
        });
        match self.trouble.lock().take() {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }

    /// Waits two seconds for space, descriptors or rights; all that was written down stands.
    fn wait_for_room(&mut self, why: &StoreError) {
        self.office.statuses.set(&self.name, Activity::Retrying, why.to_string());
        let again = self.scope.clock.now().after(std::time::Duration::from_secs(2));
        // Whatever ends the wait, the next step finds out.
        let _ = self.scope.wait_lightly::<()>(Some(again), || None);
    }

    /// Whether it has to end before it begins anything more.
    pub(super) fn has_to_stop(&self) -> bool {
        self.scope.has_to_stop()
    }

    fn report_losses(&mut self) -> Result<(), StoreError> {
        for loss in self.inbox.take_losses() {
            self.trace.error(&loss);
            let (from, user) = (self.name.clone(), AgentName::user());
            let event = Envelope::new(MessageId::random(), from, user, Kind::Event, loss);
            self.office.bus.reply(&event)?;
        }
        Ok(())
    }

    /// Tells what became of a call with effects that has run without its result being kept, while it
    /// is still known that it has: a message that goes back is one that was never begun. Where what was
    /// cut off may be a call of a subagent, that is told of the subagent, unless the message `stays` in
    /// hand; then it gives `false`.
    pub(super) fn tell_of_cut_off(&mut self, stays: bool) -> Result<bool, StoreError> {
        let mut is_told = true;
        if let Next::RunTool(call) = self.kept.conversation().next()
            && self.begun.as_ref() == Some(&call.id)
        {
            let is_safe = self.desk.is_repeatable(call) && !self.has_died;
            is_told = is_safe || !(stays && self.desk.is_repeatable(call));
            if is_told && !is_safe {
                let result = cut_off(call);
                self.kept.push(Turn::Result(result))?;
            }
        }
        self.begun = None;
        Ok(is_told)
    }

    /// Ends this life in order: what was in hand goes back, untried.
    fn end(&mut self, ending: Ending) -> Result<Step, StoreError> {
        self.background.close();
        self.note_ended_background();
        self.give_task_back(None)?;
        let is_told = self.tell_of_cut_off(true)?;
        if is_told && self.inbox.life().taken.is_some() {
            self.inbox.record(|life| life.taken = None)?;
        }
        let (reason, about) = match ending {
            Ending::Stopped => ("shutdown", "by a SHUTDOWN"),
            Ending::WithDaemon => ("the daemon ends", "with the daemon"),
        };
        self.trace.end("completed", reason);
        self.office.statuses.set(&self.name, Activity::Stopped, about);
        Ok(Step::Ended(ending))
    }
}

impl Drop for AutonomousAgent {
    /// However it ends, nothing that it has begun goes on without it.
    fn drop(&mut self) {
        self.background.close();
    }
}

/// The call that the life before has left without a result and may have begun. After an end in order
/// only one that can simply be made again is left so.
fn begun_before(before: &Life, kept: &Kept, desk: &Desk) -> Option<CallId> {
    let Next::RunTool(call) = kept.conversation().next() else { return None };
    let may_have_run = before.taken.is_some() || desk.is_repeatable(call);
    may_have_run.then(|| call.id.clone())
}

/// What a teammate does at every wake-up, wherever it waits: it reads its mail, and a SHUTDOWN in it
/// begins the end.
fn looking(
    office: &Arc<Office>,
    name: &AgentName,
    inbox: &Inbox,
    stop: &Stop,
    clock: &Clock,
    trouble: &Arc<Mutex<Option<StoreError>>>,
) -> crate::base::scope::Look {
    let (office, name, inbox) = (Arc::clone(office), name.clone(), inbox.clone());
    let (stop, clock, trouble) = (stop.clone(), clock.clone(), Arc::clone(trouble));
    Arc::new(move || {
        if let Err(why) = inbox.pull() {
            *trouble.lock() = Some(why);
            return false;
        }
        let ends = matches!(stop.requested(), Some(Haste::Grace(_) | Haste::Now));
        if let Some(order) = inbox.shutdowns().first()
            && !ends
        {
            announce(&office, &name, order);
            stop.request(Haste::Grace(clock.now().after(office.team.limits.grace)));
        }
        inbox.is_interrupted()
    })
}
