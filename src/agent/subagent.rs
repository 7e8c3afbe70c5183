//! Subagents: a piece of work in a context of its own, as an agent of some type.
//!
//! A subagent's run has an id that follows from the call, and its conversation is on disk. So whoever
//! called it goes on with it after a restart, or when it has paused for mail, by making the same call
//! again. Its end is a result for its caller, whatever it is.

use std::sync::Arc;

use super::{
    Desk, Ended, ModelLoop, Office, Run, Worker,
    abandoned::abandon,
    background::{Background, BackgroundEnd, Beside, CANCELLED, What},
    dispatch::{Called, result},
    lineage::Lineage,
    run::{Meanwhile, Memo, as_mail},
};
use crate::{
    base::{Interrupted, Scope},
    journal::Position,
    model::{
        AgentName, AgentType, CallId, Envelope, Final, Kind, METADATA_CLOSES, METADATA_OPENS,
        Message, MessageId, Next, RunId, Status, Tally, Tokens, ToolCall, ToolResult, Turn,
        TypeName, without_metadata,
    },
    store::{Inbox, RunHead, Store, StoreError, Totals, Trace, TraceHead},
    tools::Attempt,
};

/// What a caller wants done.
pub struct Wish {
    /// What.
    pub task: String,
    /// As what.
    pub agent_type: TypeName,
    /// In a few words, for people.
    pub description: Option<String>,
}

/// A subagent, ready to work: all it needs of its caller was copied, so it may run beside it.
pub struct Subagent {
    desk: Desk,
    lineage: Lineage,
    work: Message,
    head: RunHead,
    spawned_by: CallId,
    /// The trace of its caller.
    above: RunId,
    description: Option<String>,
    /// Whether a call that it has begun may have run without its result being kept.
    was_cut_off: bool,
}

/// What a subagent works amid.
pub struct Host<'a> {
    /// What the team shares.
    pub office: &'a Arc<Office>,
    /// In whose name.
    pub name: &'a AgentName,
    /// What it waits with.
    pub scope: &'a Scope,
    /// The teammate's mail.
    pub inbox: &'a Inbox,
    /// What the teammate runs in the background.
    pub background: &'a Background,
    /// What becomes of mail meanwhile.
    pub meanwhile: Meanwhile,
    /// Whether the life before died with work in hand.
    pub has_died: bool,
}

/// How a subagent's piece of work ended.
pub struct Report {
    /// How.
    pub status: Status,
    /// What its caller is told: its last words and what it took.
    pub text: String,
    /// What it has cost, with all below it.
    pub spent: Tokens,
    /// The same with all counts.
    pub totals: Totals,
}

/// Lets a subagent do the work, and waits for it.
pub fn delegate(
    run: &mut Run<'_>,
    call: &ToolCall,
    wish: Wish,
    attempt: Attempt,
) -> Result<Called, StoreError> {
    let it = type_of(run, &wish.agent_type);
    let mut spent = Tokens::default();
    for number in 0..=it.limits.max_retries {
        let id = run_of(run, call, number);
        let child = match Subagent::called_by(run, call, &it, &wish, id, attempt) {
            Ok(child) => child,
            Err(refusal) => return Ok(Ok(result(call, Err(refusal)))),
        };
        match child.work_for(run)? {
            Ok(report) => {
                spent += report.spent;
                let is_last = number == it.limits.max_retries || run.has_to_stop();
                if report.status != Status::Failed || is_last {
                    return Ok(Ok(as_result(call, Report { spent, ..report })));
                }
            }
            Err(why) => return Ok(Err(why)),
        }
    }
    crate::base::broken("the last retry has an end")
}

/// Begins a subagent that works beside its caller.
pub fn delegate_in_background(
    run: &mut Run<'_>,
    call: &ToolCall,
    wish: Wish,
    attempt: Attempt,
) -> Result<Called, StoreError> {
    if run.office.team.limits.max_children == 0 {
        let why =
            "Subagent background execution unavailable: background manager is not configured.";
        return Ok(Ok(result(call, Err(why.to_owned()))));
    }
    let it = type_of(run, &wish.agent_type);
    let id = run_of(run, call, 0);
    let child = match Subagent::called_by(run, call, &it, &wish, id.clone(), Attempt::First) {
        Ok(child) => child.in_background(),
        Err(refusal) => return Ok(Ok(result(call, Err(refusal)))),
    };
    let name = short_name("subagent", &id);
    let started = format!("Subagent {name} started in the background.{}", told_how(run));
    // One that a crash has cut off was told as failed when its teammate came back.
    let was_begun = attempt == Attempt::Again
        && run.office.store.conversation(&id)?.has_mail(run.name, &child.work.envelope.id);
    if was_begun {
        return Ok(Ok(result(call, Ok(started))));
    }
    let beside =
        Beside { name, run: id, what: What::Subagent(it.name.clone()), about: child.about() };
    let (office, teammate, has_died) = (Arc::clone(run.office), run.name.clone(), run.has_died);
    let job = move |scope: &Scope, inbox: &Inbox, background: &Background| {
        let host = Host {
            office: &office,
            name: &teammate,
            scope,
            inbox,
            background,
            meanwhile: Meanwhile::Apart,
            has_died,
        };
        child.work_beside(&host)
    };
    Ok(Ok(result(call, run.background.clone().start(run, call, beside, job)?.map(|()| started))))
}

/// Gives more work to a subagent of this run that has finished.
pub fn send_to(
    run: &mut Run<'_>,
    call: &ToolCall,
    id: &str,
    message: String,
    attempt: Attempt,
) -> Result<Called, StoreError> {
    let (id, it) = match own_subagent(run, id)? {
        Ok(found) => found,
        Err(refusal) => return Ok(Ok(result(call, Err(refusal)))),
    };
    let wish = Wish { task: message, agent_type: it.name.clone(), description: None };
    let child = match Subagent::called_by(run, call, &it, &wish, id, attempt) {
        Ok(child) => child,
        Err(refusal) => return Ok(Ok(result(call, Err(refusal)))),
    };
    if child.is_amid_other_work(&run.office.store)? {
        let why = "what it was last given has not ended, and nobody goes on with it; begin another";
        return Ok(Ok(result(call, Err(why.to_owned()))));
    }
    Ok(child.work_for(run)?.map(|report| as_result(call, report)))
}

/// The finished subagent of this run that `given` means, and its type.
fn own_subagent(
    run: &Run<'_>,
    given: &str,
) -> Result<Result<(RunId, AgentType), String>, StoreError> {
    let store = &run.office.store;
    let begin = given.trim().strip_prefix("subagent-").unwrap_or(given.trim());
    let runs = if begin.len() < 3 { Vec::new() } else { store.runs_beginning(begin)? };
    let mut own = Vec::new();
    for id in runs {
        let head = store.run_head(&id)?;
        let is_own = |head: &RunHead| head.agent == *run.name && head.parent == run.lineage.run;
        own.extend(head.filter(is_own).map(|head| (id, head.agent_type)));
    }
    let shown = crate::base::text::headline(given, 80);
    let [(id, type_name)] = own.as_slice() else {
        let why = match own.len() {
            0 => format!(
                "no subagent of yours is called `{shown}`; its `sub_trace_id` stands in the result \
                 of the call that began it"
            ),
            many => format!("{many} subagents of yours begin with `{shown}`; give more of the id"),
        };
        return Ok(Err(why));
    };
    if run.background.is_running(id) {
        return Ok(Err(format!("`{shown}` is still running; its end comes as mail")));
    }
    let it = match run.office.team.spawnable(type_name.as_str()) {
        Ok(it) => it,
        Err(why) => return Ok(Err(format!("`{shown}` was of type {type_name}: {why}"))),
    };
    Ok(Ok((id.clone(), it.clone())))
}

impl Subagent {
    /// The subagent that a call wants; the error says why there must be none.
    fn called_by(
        run: &Run<'_>,
        call: &ToolCall,
        it: &AgentType,
        wish: &Wish,
        id: RunId,
        attempt: Attempt,
    ) -> Result<Self, String> {
        let max_depth = run.office.team.limits.max_depth;
        let lineage = run.lineage.child(id.clone(), &it.name, &wish.task, max_depth)?;
        let rights = run.desk.rights.clone();
        let rights = if run.is_gated() { rights.planning() } else { rights };
        let spawned_by = run.call_id(call);
        let work_id = MessageId::derived(&["subagent", id.as_str(), spawned_by.as_str()]);
        let above = &run.work.envelope;
        let envelope = Envelope {
            task_id: above.task_id.clone(),
            hops: above.hops,
            ..Envelope::new(work_id, run.name.clone(), run.name.clone(), Kind::Request, &*wish.task)
        };
        let head = RunHead {
            agent: run.name.clone(),
            agent_type: it.name.clone(),
            parent: run.lineage.run.clone(),
        };
        let thinker = run.office.thinker_of(it, run.desk)?;
        Ok(Self {
            desk: run.desk.narrowed(it, &rights, thinker),
            lineage,
            work: Message::internal(envelope),
            head,
            spawned_by,
            above: run.trace.id().clone(),
            description: wish.description.clone(),
            was_cut_off: attempt == Attempt::Again && run.has_died,
        })
    }

    /// Whether its conversation holds work that has not ended and is not this.
    fn is_amid_other_work(&self, store: &Store) -> Result<bool, StoreError> {
        let kept = store.conversation(&self.lineage.run)?;
        let is_this =
            |turn: &Turn| matches!(turn, Turn::Mail(it) if it.id == self.work.envelope.id);
        let in_hand = kept.conversation().in_hand();
        Ok(!in_hand.is_empty() && !in_hand.iter().any(is_this))
    }

    fn in_background(self) -> Self {
        Self { desk: self.desk.fail_closed(), lineage: self.lineage.in_background(), ..self }
    }

    /// What it does, in a few words.
    fn about(&self) -> String {
        let said = self.description.as_ref().unwrap_or(&self.work.envelope.content);
        format!("{}: {}", self.head.agent_type, crate::base::text::headline(said, 60))
    }

    /// Works while its caller waits, and is in its caller's trace.
    fn work_for(&self, run: &mut Run<'_>) -> Result<Result<Report, Interrupted>, StoreError> {
        let (id, task) = (&self.lineage.run, &self.work.envelope.content);
        let type_name = &self.head.agent_type;
        run.trace.subagent_started(id, Some(&self.spawned_by), type_name, task, false);
        run.note(crate::store::Activity::Working, format!("in {}", self.about()));
        let host = Host {
            office: run.office,
            name: run.name,
            scope: run.scope,
            inbox: run.inbox,
            background: run.background,
            meanwhile: run.meanwhile.of_subagent(),
            has_died: run.has_died,
        };
        let worked = self.work(&host)?;
        if let Ok(report) = &worked {
            let words = without_metadata(&report.text);
            run.trace.subagent_completed(id, report.status, words, report.totals);
        }
        Ok(worked)
    }

    /// Works beside its caller: whatever ends it is its end.
    fn work_beside(&self, host: &Host<'_>) -> BackgroundEnd {
        let worked = self.work(host);
        let (status, text, totals) = match worked {
            Ok(Ok(report)) => (report.status, report.text, report.totals),
            Ok(Err(_)) => (Status::Stopped, CANCELLED.to_owned(), Totals::default()),
            Err(why) => (Status::Failed, format!("it could not go on: {why}"), Totals::default()),
        };
        // What ended by itself has nothing left to end; what can't be written now is refused later.
        drop(abandon(&host.office.store, &self.lineage.run, status, &text));
        BackgroundEnd { status, text, totals }
    }

    /// Works until its piece of work has ended, or it has to stop or pause.
    fn work(&self, host: &Host<'_>) -> Result<Result<Report, Interrupted>, StoreError> {
        let store = &host.office.store;
        let mut kept = store.conversation_of(&self.lineage.run, &self.head)?;
        let mut trace = self.begin_trace(host)?;
        kept.push(Turn::Mail(as_mail(&self.work)))?;
        let said = &self.work.envelope;
        if kept.conversation().concluded(&said.from, &said.id).is_none() {
            let scope = host.scope.within(self.desk.agent_type.limits.timeout);
            let mut begun = match kept.conversation().next() {
                Next::RunTool(call) if self.was_cut_off => Some(call.id.clone()),
                _ => None,
            };
            let mut run = Run {
                office: host.office,
                name: host.name,
                desk: &self.desk,
                work: &self.work,
                scope: &scope,
                inbox: host.inbox,
                kept: &mut kept,
                trace: &mut trace,
                meanwhile: host.meanwhile,
                begun: &mut begun,
                lineage: &self.lineage,
                background: host.background,
                has_died: host.has_died,
                memo: Memo::default(),
                is_interrupted: false,
            };
            let ended = ModelLoop.handle(&mut run)?;
            let ended = ended.or_late(&run, host.scope);
            let Ended::Concluded { status, text, .. } = ended else {
                return Ok(Err(Interrupted::Stopping));
            };
            kept.push(Turn::Final(Final::told(status, text)))?;
        }
        let report = self.report(&kept, &trace);
        trace.conclusion(&said.id, report.status, without_metadata(&report.text));
        trace.end(word(report.status), "");
        Ok(Ok(report))
    }

    fn begin_trace(&self, host: &Host<'_>) -> Result<Trace, StoreError> {
        let head = TraceHead {
            agent: host.name.clone(),
            agent_type: self.head.agent_type.clone(),
            life: None,
            parent: Some(self.above.clone()),
            spawned_by_tool: Some(self.spawned_by.clone()),
            task: Some(self.work.envelope.content.clone()),
            parent_task: self.work.envelope.task_id.clone(),
            description: self.description.clone(),
            in_background: self.lineage.is_background,
        };
        Trace::begin_run(&host.office.store, self.lineage.run.clone(), head)
    }

    /// What has come of it, read off its conversation.
    fn report(&self, kept: &crate::store::Kept, trace: &Trace) -> Report {
        let said = &self.work.envelope;
        let Some((turns, end)) = kept.conversation().concluded(&said.from, &said.id) else {
            crate::base::broken("a subagent's work that is reported has ended");
        };
        let text = if end.text.trim().is_empty() { "(no summary)" } else { &end.text };
        let Tally { tokens, turns: steps, tools, .. } = Tally::of(turns);
        let called: Vec<String> =
            tools.iter().map(|(name, count)| format!("{name}×{count}")).collect();
        let called = if called.is_empty() { "none".to_owned() } else { called.join(", ") };
        let text = format!(
            "{text}\n\n{METADATA_OPENS}\nsub_trace_id: {}\ntotal_steps: {steps}\ntool_calls: {called}\n\
             tokens: {} in, {} out\n{METADATA_CLOSES}",
            self.lineage.run,
            tokens.read(),
            tokens.output
        );
        Report { status: end.status, text, spent: tokens, totals: trace.with_children() }
    }
}

/// How whoever begins something in the background hears of its end, where that is not by mail: a
/// subagent has none.
pub fn told_how(run: &Run<'_>) -> &'static str {
    if run.lineage.depth == 0 { "" } else { " Ask background_check for its end." }
}

/// The word for an end in a trace.
pub fn word(status: Status) -> &'static str {
    match status {
        Status::Ok => "completed",
        Status::Failed | Status::Denied | Status::Stopped => "failed",
    }
}

/// What `subagent-` and `command-` are followed by: enough to be told apart and to be typed.
pub fn short_name(kind: &str, id: &RunId) -> String {
    format!("{kind}-{}", id.as_str().chars().take(8).collect::<String>())
}

fn type_of(run: &Run<'_>, name: &TypeName) -> AgentType {
    let known = run.office.team.types.get(name);
    known.unwrap_or_else(|| crate::base::broken("a tool gives known types alone")).clone()
}

/// The run of a call's subagent, or of one of its retries.
fn run_of(run: &Run<'_>, call: &ToolCall, retry: u32) -> RunId {
    RunId::derived(&["subagent", run.call_id(call).as_str(), &retry.to_string()])
}

fn as_result(call: &ToolCall, report: Report) -> ToolResult {
    let text = match report.status {
        Status::Ok => Ok(report.text),
        Status::Failed | Status::Denied | Status::Stopped => Err(report.text),
    };
    ToolResult { spent: report.spent, ..result(call, text) }
}

impl Message {
    /// A message that lies in no mailbox: the work of a run of its own.
    pub(super) fn internal(envelope: Envelope) -> Self {
        Self {
            envelope,
            at: Position::ZERO,
            after: Position::ZERO,
            timestamp: None,
            id_given: true,
            sealed: true,
        }
    }
}
