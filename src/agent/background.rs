//! Runs beside the work: a subagent or a command on a thread of its own, below its teammate's stop.
//!
//! A run is in the teammate's life before it begins and until its end is told. Its end is an event in
//! the teammate's mailbox: kept, woken for and deduplicated like any mail. What a crash has cut off
//! is told as failed at the next start, and not resumed.

use std::{fmt::Write, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;

use super::{
    AutonomousAgent, Run,
    abandoned::abandon,
    dispatch::{Called, result},
    lineage::Lineage,
    subagent::{short_name, told_how},
};
use crate::{
    base::{
        Haste, Interrupted, Moment, Scope, Stop, Wake, left_overs::Mark, text::headline, thread,
    },
    model::{
        AgentName, Envelope, InBackground, Kind, MessageId, RunId, Status, ToolCall, TypeName,
        without_metadata,
    },
    store::{Inbox, MessageBus, StoreError, Totals},
    tools::{Attempt, Caller, Outcome, Tool, ToolError, bash::Bash},
};

/// Why a run in the background was ended.
pub const CANCELLED: &str = "its teammate, or the task that began it, was stopped";
/// How many runs that have ended can still be asked about.
const REMEMBERED: usize = 64;
/// How long to wait before an end is told again that could not be written.
const RETRY: Duration = Duration::from_secs(2);

/// What a teammate runs in the background.
#[derive(Clone)]
pub struct Background {
    runs: Arc<Mutex<Runs>>,
    /// The teammate's, whoever below it has begun a run.
    wake: Wake,
}

#[derive(Default)]
struct Runs {
    /// In the order in which they were started.
    entries: Vec<Entry>,
    /// Whether the teammate is ending, so that nothing more begins.
    is_closed: bool,
}

impl Runs {
    /// Forgets the oldest of the runs that have ended and are told of, where there are many.
    fn drop_oldest(&mut self) {
        let told = self.entries.iter().filter(|it| it.is_traced).count();
        let mut too_many = told.saturating_sub(REMEMBERED);
        self.entries.retain(|it| {
            let goes = it.is_traced && too_many > 0;
            too_many -= usize::from(goes);
            !goes
        });
    }
}

struct Entry {
    name: String,
    run: RunId,
    about: String,
    begun_by: RunId,
    is_subagent: bool,
    since: Moment,
    stop: Stop,
    thread: Option<thread::Thread<()>>,
    end: Option<(Moment, BackgroundEnd)>,
    is_traced: bool,
}

/// How a run in the background has ended.
#[derive(Clone)]
pub struct BackgroundEnd {
    /// How.
    pub status: Status,
    /// What is told.
    pub text: String,
    /// What it has come to, with all below it.
    pub totals: Totals,
}

/// A run that is to begin.
pub struct Beside {
    /// What it is called by.
    pub name: String,
    /// Its run.
    pub run: RunId,
    /// What is begun.
    pub what: What,
    /// What it does, in a few words.
    pub about: String,
}

/// What runs in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A subagent of this type.
    Subagent(TypeName),
    /// A command.
    Command,
}

impl What {
    fn word(&self) -> &'static str {
        match self {
            Self::Subagent(_) => "Subagent",
            Self::Command => "Command",
        }
    }
}

impl Background {
    /// Nothing yet; the end of each run notifies `wake`.
    pub fn new(wake: Wake) -> Self {
        Self { runs: Arc::default(), wake }
    }

    /// Begins a run, or says why not. `job` gets a scope of its own and the mail of its teammate.
    pub fn start(
        &self,
        run: &mut Run<'_>,
        call: &ToolCall,
        beside: Beside,
        job: impl FnOnce(&Scope, &Inbox, &Self) -> BackgroundEnd + Send + 'static,
    ) -> Result<Result<(), String>, StoreError> {
        let wake = Wake::default();
        let stop = run.scope.stop.child(&wake);
        if let Err(refusal) = self.enter(&beside, run, &stop) {
            return Ok(Err(refusal));
        }
        let note = InBackground {
            id: beside.name.clone(),
            run: beside.run.clone(),
            life: run.inbox.life().life,
            about: beside.about.clone(),
        };
        if let Err(why) = run.inbox.record(|life| life.background.push(note.clone())) {
            self.forget(&beside.run);
            return Err(why);
        }
        let scope = Scope { wake, stop, deadline: None, ..run.scope.clone() };
        let started = self.start_thread(run, &beside, note, scope, job);
        if let Err(why) = started {
            self.forget(&beside.run);
            run.inbox.record(|life| life.background.retain(|it| it.run != beside.run))?;
            return Ok(Err(format!("no thread for it: {why}")));
        }
        if let What::Subagent(it) = &beside.what {
            let by = run.call_id(call);
            run.trace.subagent_started(&beside.run, Some(&by), it, &beside.about, true);
        }
        self.say(run);
        Ok(Ok(()))
    }

    fn start_thread(
        &self,
        run: &Run<'_>,
        beside: &Beside,
        note: InBackground,
        scope: Scope,
        job: impl FnOnce(&Scope, &Inbox, &Self) -> BackgroundEnd + Send + 'static,
    ) -> std::io::Result<()> {
        let (inbox, office, name) = (run.inbox.clone(), Arc::clone(run.office), run.name.clone());
        let (kind, all) = (beside.what.word(), self.clone());
        let alive = scope.clock.hold();
        let look = inbox.clone();
        // A SHUTDOWN is the teammate's to obey; here mail is only read for whoever waits for it.
        let scope = Scope {
            look: Arc::new(move || {
                drop(look.pull());
                false
            }),
            ..scope
        };
        let body = move || {
            let _mail = inbox.subscribe(&scope.wake);
            let ended = thread::caught(|| job(&scope, &inbox, &all));
            let end = ended.unwrap_or_else(|panic| BackgroundEnd {
                status: Status::Failed,
                text: format!("it panicked: {panic}"),
                totals: Totals::default(),
            });
            let text = office.secrets.hide(end.text);
            let end = BackgroundEnd { text, ..end };
            let event = told(&name, kind, &note, &end);
            tell(&office.bus, &inbox, &scope, &event, &note);
            all.leave(&note.run, scope.clock.now(), end);
            all.wake.notify();
            drop(alive);
        };
        let thread = thread::Thread::start(&format!("beside:{}", beside.name), body)?;
        let mut runs = self.runs.lock();
        let entry = runs.entries.iter_mut().find(|it| it.run == beside.run);
        if let Some(entry) = entry {
            entry.thread = Some(thread);
        }
        Ok(())
    }

    fn enter(&self, beside: &Beside, run: &Run<'_>, stop: &Stop) -> Result<(), String> {
        let most = run.office.team.limits.max_children;
        let mut runs = self.runs.lock();
        let live = runs.entries.iter().filter(|it| it.end.is_none()).count();
        if most == 0 {
            return Err("nothing runs in the background here: `max_children` is 0".to_owned());
        }
        if live >= most {
            return Err(format!(
                "{} refused: {live} runs are in the background already and `max_children` is \
                 {most}; their ends come as mail. Wait for one, or do it without the background.",
                beside.what.word()
            ));
        }
        if runs.is_closed {
            let what = beside.what.word();
            return Err(format!("{what} refused: the teammate is being stopped"));
        }
        runs.entries.push(Entry {
            name: beside.name.clone(),
            run: beside.run.clone(),
            about: beside.about.clone(),
            begun_by: run.lineage.run.clone(),
            is_subagent: matches!(beside.what, What::Subagent(_)),
            since: run.scope.clock.now(),
            stop: stop.clone(),
            thread: None,
            end: None,
            is_traced: false,
        });
        Ok(())
    }

    fn forget(&self, run: &RunId) {
        self.runs.lock().entries.retain(|it| it.run != *run);
    }

    fn leave(&self, run: &RunId, now: Moment, end: BackgroundEnd) {
        let mut runs = self.runs.lock();
        if let Some(entry) = runs.entries.iter_mut().find(|it| it.run == *run) {
            entry.end = Some((now, end));
        }
    }

    /// How many runs have not ended.
    pub fn live(&self) -> usize {
        self.runs.lock().entries.iter().filter(|it| it.end.is_none()).count()
    }

    /// Whether this run has not ended.
    pub fn is_running(&self, run: &RunId) -> bool {
        self.runs.lock().entries.iter().any(|it| it.run == *run && it.end.is_none())
    }

    /// Whether one has ended that is not in the teammate's trace yet.
    pub fn has_ended(&self) -> bool {
        self.runs.lock().entries.iter().any(|it| it.end.is_some() && !it.is_traced)
    }

    /// The subagents that have ended since the last call.
    pub fn take_ended(&self) -> Vec<(RunId, BackgroundEnd)> {
        let mut runs = self.runs.lock();
        let (mut ended, mut threads) = (Vec::new(), Vec::new());
        for entry in runs.entries.iter_mut().filter(|it| it.end.is_some() && !it.is_traced) {
            entry.is_traced = true;
            threads.extend(entry.thread.take());
            let end = entry.end.as_ref().filter(|_| entry.is_subagent);
            ended.extend(end.map(|(_, end)| (entry.run.clone(), end.clone())));
        }
        runs.drop_oldest();
        drop(runs);
        // They have nothing left to do but to end.
        drop(threads);
        ended
    }

    /// How one run stands, or all.
    /// What a subagent has begun itself is all that it is told of.
    pub fn tell(&self, id: Option<&str>, now: Moment, lineage: &Lineage) -> Result<String, String> {
        let runs = self.runs.lock();
        let is_own = |it: &&Entry| lineage.depth == 0 || it.begun_by == lineage.run;
        let entries: Vec<&Entry> = runs.entries.iter().filter(is_own).collect();
        let Some(id) = id.map(str::trim) else {
            if entries.is_empty() {
                return Ok("[nothing was started in the background]".to_owned());
            }
            return Ok(entries.iter().map(|it| it.line(now) + "\n").collect());
        };
        let Some(entry) = entries.iter().find(|it| it.name == id) else {
            let known = crate::base::text::listed(entries.iter().map(|it| &it.name));
            return Err(format!(
                "nothing in the background is called `{}`; there are {known}",
                headline(id, 80)
            ));
        };
        let mut told = entry.line(now);
        if let Some((_, end)) = &entry.end {
            let _ = write!(told, "\n\n{}", end.text);
        }
        Ok(told)
    }

    /// Ends all runs and waits for them; from now on none begins.
    pub fn close(&self) {
        loop {
            let threads: Vec<_> = {
                let mut runs = self.runs.lock();
                runs.is_closed = true;
                runs.entries.iter().for_each(|it| it.stop.request(Haste::Now));
                runs.entries.iter_mut().filter_map(|it| it.thread.take()).collect()
            };
            if threads.is_empty() {
                return;
            }
            drop(threads);
        }
    }

    /// Shows how many there are.
    fn say(&self, run: &Run<'_>) {
        let live = self.live();
        run.office.statuses.update(run.name, |status| status.in_background = live);
    }
}

impl Entry {
    fn line(&self, now: Moment) -> String {
        let until = self.end.as_ref().map_or(now, |(at, _)| *at);
        let seconds = until.since(self.since).as_secs();
        match &self.end {
            None => format!("{} ({}): running for {seconds} s", self.name, self.about),
            Some((_, end)) => {
                let how = status_word(end.status);
                format!("{} ({}): {how} after {seconds} s", self.name, self.about)
            }
        }
    }
}

fn status_word(status: Status) -> &'static str {
    match status {
        Status::Ok => "done",
        Status::Failed => "failed",
        Status::Denied => "denied",
        Status::Stopped => "cancelled",
    }
}

/// The event that tells of an end. Its id is another in each life: what was cut off in one may be
/// begun again in the next.
fn told(name: &AgentName, kind: &str, note: &InBackground, end: &BackgroundEnd) -> Envelope {
    let id = MessageId::derived(&["background", note.run.as_str(), &note.life.to_string()]);
    let how = status_word(end.status);
    let text = format!("{kind} {} ({}) {how}:\n\n{}", note.id, note.about, end.text);
    Envelope {
        trace_id: Some(note.run.to_string()),
        ..Envelope::new(id, name.clone(), name.clone(), Kind::Event, text)
    }
}

/// Tells of an end, then strikes the run off the life. What can't be written now is tried again until
/// the teammate has to end; then the next start tells of it.
fn tell(bus: &MessageBus, inbox: &Inbox, scope: &Scope, event: &Envelope, note: &InBackground) {
    loop {
        let done = bus
            .reply(event)
            .and_then(|_| inbox.record(|life| life.background.retain(|it| it.run != note.run)));
        if done.is_ok() {
            return;
        }
        let again = scope.clock.now().after(RETRY);
        if let Err(Interrupted::Stopping) = scope.wait::<()>(Some(again), || None) {
            return;
        }
    }
}

/// Starts a command beside the work: the call of bash that was judged, and no other.
pub fn command_in_background(
    run: &mut Run<'_>,
    call: &ToolCall,
    input: Value,
    command: String,
) -> Result<Called, StoreError> {
    let id = RunId::derived(&["command", run.call_id(call).as_str()]);
    let name = short_name("command", &id);
    let caller = Caller {
        agent: run.name.clone(),
        mark: Mark { folder: run.office.folder().clone(), run: id.to_string() },
        call: run.call_id(call),
        hops: run.work.envelope.hops,
        attempt: Attempt::First,
    };
    let prepared = match Bash.prepare(&run.desk.kit, &caller, &input) {
        Ok(prepared) => prepared,
        Err(why) => return Ok(Ok(result(call, Err(why)))),
    };
    let started = format!("Command {name} started in the background.{}", told_how(run));
    let beside = Beside { name, run: id, what: What::Command, about: headline(&command, 60) };
    let limit = run.desk.agent_type.limits.timeout;
    let job = move |scope: &Scope, _: &Inbox, _: &Background| {
        let scope = scope.within(limit);
        let (status, text) = match (prepared.run)(&scope) {
            Ok(Outcome::Text(text)) => (Status::Ok, text),
            Ok(other) => crate::base::broken(&format!("bash gives text, not {other:?}")),
            Err(ToolError::Failed(why)) => (Status::Failed, why),
            Err(ToolError::Interrupted(_)) if scope.is_late() => {
                let seconds = limit.unwrap_or_default().as_secs();
                (Status::Failed, format!("timed out after {seconds} s"))
            }
            Err(ToolError::Interrupted(_)) => (Status::Stopped, CANCELLED.to_owned()),
        };
        BackgroundEnd { status, text, totals: Totals::default() }
    };
    Ok(Ok(result(call, run.background.clone().start(run, call, beside, job)?.map(|()| started))))
}

impl AutonomousAgent {
    /// Tells of what an earlier life had begun in the background and a crash has cut off.
    pub(super) fn tell_of_lost_background(&mut self) -> Result<(), StoreError> {
        for note in self.inbox.life().background {
            let kind = if note.id.starts_with("command") { "Command" } else { "Subagent" };
            let why = "the daemon stopped during it; what it did until then stands, and nobody goes on \
                       with it";
            let end = BackgroundEnd {
                status: Status::Failed,
                text: why.to_owned(),
                totals: Totals::default(),
            };
            self.send_once(&told(&self.name, kind, &note, &end))?;
            abandon(&self.office.store, &note.run, Status::Failed, why)?;
            self.inbox.record(|life| life.background.retain(|it| it.run != note.run))?;
        }
        Ok(())
    }

    /// Takes up in the trace and the status what has ended in the background.
    pub(super) fn note_ended_background(&mut self) {
        for (run, end) in self.background.take_ended() {
            let words = without_metadata(&end.text);
            self.trace.subagent_completed(&run, end.status, words, end.totals);
        }
        let live = self.background.live();
        self.office.statuses.update(&self.name, |status| status.in_background = live);
    }
}
