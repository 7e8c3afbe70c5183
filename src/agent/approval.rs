//! Questions: a plan that somebody shall approve, a call that somebody shall allow.
//!
//! A question is a line in its asker's own mailbox, with a copy to whoever is asked; so is whatever
//! decides it, and the order of that file says what came first. Its id follows from the call: after
//! a restart it is the same question, and an answer that came meanwhile counts.

use super::Run;
use crate::{
    base::{Interrupted, text::headline},
    journal::Position,
    model::{
        AgentName, Asked, Envelope, Kind, Message, MessageId, Pattern, Protocol, ProtocolEvent,
        ProtocolFsm, QuestionStep, Told, ToolCall,
    },
    store::{Activity, Standing, StoreError},
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

impl Question {
    /// About a plan, to the teammate's approver.
    pub fn plan(run: &Run<'_>, call: &ToolCall, plan: String) -> Self {
        let approver = run.office.approver_of(run.name);
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

/// Asks, unless it stands there already, and waits for the end. A SHUTDOWN ends the wait; the question
/// stays, and so does an answer.
pub fn ask(run: &Run<'_>, question: &Question) -> Result<Result<Decided, Interrupted>, StoreError> {
    match run.inbox.question(&question.id) {
        Some(Standing::Decided(line)) => return Ok(Ok(decided_before(run, &line))),
        Some(Standing::Expired) => return Ok(Ok(Decided::unanswered(Asked::Expired))),
        Some(Standing::Withdrawn) => return Ok(Ok(Decided::unanswered(Asked::Withdrawn))),
        Some(Standing::Open) => send_copy_once(run, question)?,
        None => {
            run.office.bus.reply(&step(run, question, QuestionStep::Asked))?;
            run.office.bus.reply(&copy(run, question))?;
        }
    }
    let about = format!("for {} to decide: {}", question.approver, headline(&question.text, 60));
    run.office.statuses.set(run.name, Activity::Waiting, about);
    run.office.statuses.update(run.name, |status| status.question = Some(question.id.clone()));
    let until = run.office.team.limits.question_timeout.map(|it| run.scope.clock.now().after(it));
    let decided = run.scope.wait_lightly(until, || first_decision(run, question, None));
    run.office.statuses.update(run.name, |status| status.question = None);
    run.office.statuses.set(run.name, Activity::Working, "after the decision".to_owned());
    match decided {
        Ok(decided) => {
            note(run, question, &decided)?;
            Ok(Ok(decided))
        }
        Err(Interrupted::Late) => expire(run, question).map(Ok),
        Err(why) => Ok(Err(why)),
    }
}

/// Writes the decision down before anything follows from it: a restart finds the same one, and knows
/// that what was allowed may have begun.
fn note(run: &Run<'_>, question: &Question, decided: &Decided) -> Result<(), StoreError> {
    let (yes, text) = match &decided.asked {
        Asked::Approved(reason) => (true, reason.clone()),
        Asked::Rejected(reason) => (false, reason.clone()),
        Asked::Open | Asked::Expired | Asked::Withdrawn => return Ok(()),
    };
    let line = Envelope {
        decision: Some(yes),
        always: decided.always,
        content: text,
        ..step(run, question, QuestionStep::Decided)
    };
    run.office.bus.reply(&line)?;
    Ok(())
}

/// What was decided before a restart, and the message that decided it, if that is still unread.
fn decided_before(run: &Run<'_>, line: &Envelope) -> Decided {
    let yes = line.decision.unwrap_or_default();
    let reason = line.content.clone();
    let asked = if yes { Asked::Approved(reason) } else { Asked::Rejected(reason) };
    let question = line.in_reply_to.as_ref();
    let decisions = question.map(|id| run.inbox.decisions(id)).unwrap_or_default();
    let by = decisions.into_iter().find(|it| it.envelope.decision == Some(yes));
    let by = by.map(|it| (it.envelope.from, it.envelope.id));
    Decided { asked, by, always: line.always }
}

impl Decided {
    fn unanswered(asked: Asked) -> Self {
        Self { asked, by: None, always: false }
    }
}

/// The copy for whoever is asked. It is written after the line in the own mailbox.
fn copy(run: &Run<'_>, question: &Question) -> Envelope {
    let (id, me, approver) = (question.id.clone(), run.name.clone(), question.approver.clone());
    Envelope {
        protocol: Some(question.protocol),
        hops: run.work.envelope.hops.saturating_add(1),
        ..Envelope::new(id, me, approver, Kind::Request, for_approver(question))
    }
}

/// Killed between the line and its copy, the copy is made at the next start.
fn send_copy_once(run: &Run<'_>, question: &Question) -> Result<(), StoreError> {
    let bus = &run.office.bus;
    let start = bus.start_of(&question.approver)?;
    if !bus.has(&question.approver, run.name, &question.id, start)? {
        bus.reply(&copy(run, question))?;
    }
    Ok(())
}

/// A person is told what to type; a teammate knows.
fn for_approver(question: &Question) -> String {
    let (text, id) = (&question.text, &question.id);
    if question.approver != AgentName::user() {
        return text.clone();
    }
    format!("{text}\n\n`postroom approve {id}` says yes, `postroom reject {id} WHY` says no")
}

/// A line of the question's life in the own mailbox.
fn step(run: &Run<'_>, question: &Question, what: QuestionStep) -> Envelope {
    let (word, text) = match what {
        QuestionStep::Asked => ("asked", question.text.as_str()),
        QuestionStep::Decided => ("decided", ""),
        QuestionStep::Expired => ("expired", "nobody has decided in time"),
        QuestionStep::Withdrawn => ("withdrawn", "the work was given back"),
    };
    let is_first = what == QuestionStep::Asked;
    let id = if is_first {
        question.id.clone()
    } else {
        MessageId::derived(&[word, question.id.as_str()])
    };
    let me = run.name.clone();
    Envelope {
        protocol: Some(question.protocol),
        question: Some(what),
        in_reply_to: (!is_first).then(|| question.id.clone()),
        ..Envelope::new(id, me.clone(), me, Kind::Event, text)
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
            by: speaker(run, &message),
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

/// Who speaks: a line without a seal has no authority of a teammate, so it counts as nobody's, which
/// is the asker's own.
fn speaker(run: &Run<'_>, message: &Message) -> AgentName {
    let from = &message.envelope.from;
    let is_teammate = run.office.team.teammates.contains_key(from);
    if is_teammate && !message.sealed { run.name.clone() } else { from.clone() }
}

/// Nobody has decided in time, unless a decision stands before the line that says so.
fn expire(run: &Run<'_>, question: &Question) -> Result<Decided, StoreError> {
    let place = run.office.bus.reply(&step(run, question, QuestionStep::Expired))?;
    run.inbox.pull()?;
    let decided = first_decision(run, question, Some(place));
    Ok(decided.unwrap_or_else(|| Decided::unanswered(Asked::Expired)))
}

/// Says in the own mailbox that an answer is no longer wanted.
pub fn withdraw(run: &Run<'_>, question: &Question) -> Result<(), StoreError> {
    run.office.bus.reply(&step(run, question, QuestionStep::Withdrawn))?;
    Ok(())
}

/// Whether a call has asked for leave and nobody has decided yet: then it has not begun.
pub fn waits_for_leave(run: &Run<'_>, call: &ToolCall) -> bool {
    run.inbox.question(&id(run, call)) == Some(Standing::Open)
}

/// Remembers that something may happen without asking, until the teammate is started anew.
pub fn remember(run: &Run<'_>, pattern: Pattern) -> Result<(), StoreError> {
    run.inbox.record(|life| {
        if !life.always.contains(&pattern) {
            life.always.push(pattern);
        }
    })
}
