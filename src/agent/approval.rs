//! Questions: a plan that somebody shall approve, a call that somebody shall allow.
//!
//! A question is a line in its asker's own mailbox, with a copy to whoever is asked; so is whatever
//! decides it, and the order of that file says what came first. Its id follows from the call: after
//! a restart it is the same question, and an answer that came meanwhile counts.

use super::{Run, run::Meanwhile, subagent::short_name};
use crate::{
    base::{Interrupted, text::headline},
    journal::Position,
    model::{
        AgentName, Asked, Envelope, Kind, MessageId, Pattern, Protocol, ProtocolEvent, ProtocolFsm,
        QuestionStep, Told, ToolCall,
    },
    store::{Activity, Inbox, MessageBus, StoreError},
};

/// Something to be decided.
pub struct Question {
    /// The same after a restart, another for every call.
    pub id: MessageId,
    /// What it is about.
    pub protocol: Protocol,
    /// Who is asked.
    pub approver: AgentName,
    /// What whoever is asked sees.
    pub text: String,
}

/// How a question has ended.
pub struct Decided {
    /// How.
    pub asked: Asked,
    /// The message that decided it.
    pub by: Option<(AgentName, MessageId)>,
    /// Whether the same may happen from now on without asking.
    pub always: bool,
}

impl Decided {
    const EXPIRED: Self = Self { asked: Asked::Expired, by: None, always: false };
}

impl Question {
    /// About a plan, to the teammate's approver.
    pub fn plan(run: &Run<'_>, call: &ToolCall, plan: String) -> Self {
        let approver = run.office.team.approver_of(run.name);
        Self { id: id(run, call), protocol: Protocol::PlanApproval, approver, text: plan }
    }

    /// About a call, which only the user can allow.
    pub fn permission(run: &Run<'_>, call: &ToolCall, why: &str, preview: &str) -> Self {
        let text = format!("{why}\n\n{preview}");
        let approver = AgentName::user();
        Self { id: id(run, call), protocol: Protocol::Permission, approver, text }
    }
}

fn id(run: &Run<'_>, call: &ToolCall) -> MessageId {
    MessageId::derived(&["question", run.call_id(call).as_str()])
}

/// Whether a call has been asked about and nobody has acted on a yes: then it has not run, whatever
/// was begun.
pub fn is_asked_about(run: &Run<'_>, call: &ToolCall) -> bool {
    run.inbox.has_asked(&id(run, call))
}

/// Asks, unless it stands there already, and waits for the end. A SHUTDOWN ends the wait; the question
/// stays, and so does an answer.
pub fn ask(run: &Run<'_>, question: &Question) -> Result<Result<Decided, Interrupted>, StoreError> {
    if let Some(end) = run.inbox.closed_at(&question.id) {
        let decided = first_decision(run, question, Some(end));
        return Ok(Ok(decided.unwrap_or(Decided::EXPIRED)));
    }
    put(run, question)?;
    let about = format!("for {} to decide: {}", question.approver, headline(&question.text, 60));
    run.note(Activity::Waiting, about);
    run.office.statuses.update(run.name, |status| status.question = Some(question.id.clone()));
    let until = run.office.team.limits.question_timeout.map(|it| run.scope.clock.now().after(it));
    let decided = run.scope.wait_lightly(until, || first_decision(run, question, None));
    run.office.statuses.update(run.name, |status| status.question = None);
    run.note(Activity::Working, "after the decision");
    match decided {
        Ok(decided) => Ok(Ok(decided)),
        Err(Interrupted::Late) => expire(run, question).map(Ok),
        Err(why) => Ok(Err(why)),
    }
}

/// The line in the own mailbox first, then the copy: killed in between, the copy is made at the next
/// start.
fn put(run: &Run<'_>, question: &Question) -> Result<(), StoreError> {
    let bus = &run.office.bus;
    let copy = Envelope {
        protocol: Some(question.protocol),
        trace_id: Some(run.trace.id().to_string()),
        hops: run.work.envelope.hops.saturating_add(1),
        ..Envelope::new(
            question.id.clone(),
            run.name.clone(),
            question.approver.clone(),
            Kind::Request,
            for_approver(run, question),
        )
    };
    if run.inbox.has_asked(&question.id) {
        let start = bus.start_of(&question.approver)?;
        if !bus.has(&question.approver, run.name, &question.id, start)? {
            bus.reply(&copy)?;
        }
        return Ok(());
    }
    bus.reply(&asking(run, question))?;
    bus.reply(&copy)?;
    Ok(())
}

/// A person is told what to type; a teammate knows. Either is told of whom in the teammate's name it
/// comes.
fn for_approver(run: &Run<'_>, question: &Question) -> String {
    let (mut text, id) = (question.text.clone(), &question.id);
    if run.lineage.depth > 0 {
        let (as_what, which) = (&run.desk.agent_type.name, &run.lineage.run);
        let which = short_name("subagent", which);
        text = format!("{} ({as_what}, {which}) asks: {text}", run.name);
    }
    if question.approver != AgentName::user() {
        return text;
    }
    format!("{text}\n\n`postroom approve {id}` says yes, `postroom reject {id} WHY` says no")
}

/// A line that closes a question.
struct Closing {
    step: QuestionStep,
    word: &'static str,
    text: &'static str,
}

const ALLOWED: Closing =
    Closing { step: QuestionStep::Decided, word: "decided", text: "allowed; the call is made now" };
const TAKEN_UP: Closing =
    Closing { step: QuestionStep::Decided, word: "decided", text: "the decision is taken up" };
const EXPIRED: Closing =
    Closing { step: QuestionStep::Expired, word: "expired", text: "nobody has decided in time" };
const WITHDRAWN: Closing =
    Closing { step: QuestionStep::Withdrawn, word: "withdrawn", text: "the work was given back" };

/// The line that asks a question, in the own mailbox.
fn asking(run: &Run<'_>, question: &Question) -> Envelope {
    let (id, name) = (question.id.clone(), run.name.clone());
    let line = Envelope {
        question: Some(QuestionStep::Asked),
        trace_id: Some(run.trace.id().to_string()),
        ..Envelope::new(id, name.clone(), name, Kind::Event, question.text.clone())
    };
    belonging(run, question, line)
}

/// A line of the question's life that closes it, in the own mailbox.
fn closing(run: &Run<'_>, question: &Question, how: &Closing) -> Envelope {
    belonging(run, question, closed(run.name, &question.id, how))
}

fn belonging(run: &Run<'_>, question: &Question, line: Envelope) -> Envelope {
    // A question about a message names no task, whatever the message names.
    let task_id = run.work.envelope.task_id.clone().filter(|_| run.meanwhile == Meanwhile::Pause);
    Envelope { protocol: Some(question.protocol), task_id, ..line }
}

/// A line that closes a question of `asker`; its id follows from the question.
fn closed(asker: &AgentName, question: &MessageId, how: &Closing) -> Envelope {
    let id = MessageId::derived(&[how.word, question.as_str()]);
    Envelope {
        question: Some(how.step),
        in_reply_to: Some(question.clone()),
        ..Envelope::new(id, asker.clone(), asker.clone(), Kind::Event, how.text)
    }
}

/// The first line of the mailbox that decides the question, before `end` where there is one.
fn first_decision(run: &Run<'_>, question: &Question, end: Option<Position>) -> Option<Decided> {
    let mut fsm = ProtocolFsm::new(
        question.id.clone(),
        run.name.clone(),
        question.approver.clone(),
        question.protocol,
    );
    let mut decisions = run.inbox.decisions(&question.id);
    decisions.sort_by_key(|message| message.at);
    for message in decisions.into_iter().filter(|it| end.is_none_or(|end| it.at < end)) {
        let said = message.envelope.clone();
        let event = ProtocolEvent::Decision {
            by: run.office.team.who_decides(&message, run.name),
            yes: said.decision.unwrap_or_default(),
            reason: said.content.clone(),
        };
        if fsm.on(event) == Told::Taken {
            let by = Some((said.from, said.id));
            return Some(Decided { asked: fsm.state, by, always: said.always });
        }
    }
    None
}

/// Nobody has decided in time, unless a decision stands before the line that says so.
fn expire(run: &Run<'_>, question: &Question) -> Result<Decided, StoreError> {
    let place = run.office.bus.reply(&closing(run, question, &EXPIRED))?;
    run.inbox.pull()?;
    let decided = first_decision(run, question, Some(place));
    Ok(decided.unwrap_or(Decided::EXPIRED))
}

/// Says in the own mailbox that a call is allowed and from now on may have run.
pub fn note_decided(run: &Run<'_>, question: &Question) -> Result<(), StoreError> {
    run.office.bus.reply(&closing(run, question, &ALLOWED))?;
    run.inbox.pull()
}

/// Says in the own mailbox that the decision about a plan is taken up, so that it is not withdrawn.
pub fn note_taken_up(run: &Run<'_>, question: &Question) -> Result<(), StoreError> {
    run.office.bus.reply(&closing(run, question, &TAKEN_UP))?;
    run.inbox.pull()
}

/// Says in the own mailbox that an answer is no longer wanted.
pub fn withdraw(run: &Run<'_>, question: &Question) -> Result<(), StoreError> {
    run.office.bus.reply(&closing(run, question, &WITHDRAWN))?;
    Ok(())
}

/// Withdraws what an earlier life has asked while it worked on tasks: they went back with it, and
/// whoever takes them asks anew.
pub fn withdraw_of_tasks(bus: &MessageBus, inbox: &Inbox) -> Result<(), StoreError> {
    for asked in inbox.asked_for_tasks() {
        let said = asked.envelope;
        let line = closed(&said.from, &said.id, &WITHDRAWN);
        bus.reply(&Envelope { protocol: said.protocol, ..line })?;
    }
    Ok(())
}

/// Remembers that something may happen without asking, until the teammate is started anew.
pub fn remember(run: &Run<'_>, pattern: Pattern) -> Result<(), StoreError> {
    run.inbox.record(|life| {
        if !life.always.contains(&pattern) {
            life.always.push(pattern);
        }
    })
}
