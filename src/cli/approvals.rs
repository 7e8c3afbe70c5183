//! `approvals`, `approve`, `reject`: questions that wait for somebody, and the answers to them.
//!
//! A decision is a line in the asker's mailbox; anybody may write it by hand.

use serde::Serialize;

use super::{
    args::{Approvals, Approve, Reject},
    client::Client,
    context::Context,
    failure::{Code, Failure},
    find::by_beginning,
    render::{Printer, SCHEMA, indented, time_of},
    trace::short_id,
};
use crate::{
    base::text::headline,
    journal::{Line, ReadError},
    model::{
        AgentName, Asked, Envelope, Kind, Message, MessageId, Protocol, ProtocolEvent, ProtocolFsm,
        QuestionStep, RunId,
    },
    store::{MessageBus, Store, StoreError, TeamFile},
};

#[derive(Serialize)]
struct View<'a> {
    schema: u32,
    id: &'a str,
    asker: &'a str,
    /// The asker, and which of its subagents or tasks it is about.
    by: &'a str,
    /// The trace of the run that waits.
    trace_id: Option<&'a str>,
    protocol: Option<Protocol>,
    asked: Option<String>,
    text: &'a str,
}

/// A question that waits for a decision.
pub struct OpenQuestion {
    /// Who asks: a teammate, and where it is not itself as what and for what.
    pub by: String,
    /// The line that asks.
    pub message: Message,
}

impl OpenQuestion {
    fn new(store: &Store, message: Message) -> Self {
        let said = &message.envelope;
        let run = said.trace_id.as_ref().and_then(|id| RunId::new(id.as_str()).ok());
        let head = run.as_ref().and_then(|run| store.run_head(run).ok().flatten());
        let by = match (run.zip(head), &said.task_id) {
            (Some((_, head)), Some(task)) if head.parent == RunId::of(&said.from) => {
                format!("{} ({}, task {task})", said.from, head.agent_type)
            }
            (Some((run, head)), _) => {
                format!("{} ({}, {})", said.from, head.agent_type, short_id(&run, false))
            }
            // It is about the teammate's own conversation.
            (None, _) => said.from.to_string(),
        };
        Self { by, message }
    }
}

/// How many lines are read at a time.
const BATCH: usize = 4096;

/// Lists what waits for a decision.
pub fn approvals(
    context: &Context,
    args: &Approvals,
    printer: &mut Printer,
) -> Result<Code, Failure> {
    let store = context.store()?;
    let (bus, file) = context.bus(&store)?;
    let questions = open_questions(&store, &bus, file.as_ref())?;
    for OpenQuestion { by, message: question } in &questions {
        let said = &question.envelope;
        if args.json {
            printer.say_json(&View {
                schema: SCHEMA,
                id: said.id.as_str(),
                asker: said.from.as_str(),
                by,
                trace_id: said.trace_id.as_deref(),
                protocol: said.protocol,
                asked: question.timestamp.map(|time| time.to_string()),
                text: &said.content,
            });
            continue;
        }
        let about = format!("{by} asks since {}: {}", time_of(question), what(question));
        printer.say_titled(said.id.as_str(), &about);
        printer.say(&indented(&said.content));
    }
    if questions.is_empty() && !args.json {
        printer.note("nothing waits for a decision");
    } else if !args.json {
        printer.note("`postroom approve ID` says yes, `postroom reject ID WHY` says no");
    }
    Ok(Code::Ok)
}

/// Says yes.
pub fn approve(context: &Context, args: &Approve, printer: &mut Printer) -> Result<Code, Failure> {
    let client = Client::new(context, AgentName::user())?;
    let OpenQuestion { by, message: question } = find(&client, &args.id)?;
    decide(&client, &question, true, args.always, args.reason.as_deref().unwrap_or_default())?;
    let what = headline(&question.envelope.content, 80);
    printer.note(&format!("approved: {by} goes on with {what}"));
    Ok(Code::Ok)
}

/// Says no.
pub fn reject(context: &Context, args: &Reject, printer: &mut Printer) -> Result<Code, Failure> {
    let client = Client::new(context, AgentName::user())?;
    let OpenQuestion { by, message: question } = find(&client, &args.id)?;
    decide(&client, &question, false, false, &args.why)?;
    printer.note(&format!("rejected: {by} is told why"));
    Ok(Code::Ok)
}

/// Writes a decision into the asker's mailbox.
pub fn decide(
    client: &Client<'_>,
    question: &Message,
    yes: bool,
    always: bool,
    reason: &str,
) -> Result<(), Failure> {
    let said = &question.envelope;
    let (id, me) = (MessageId::random(), AgentName::user());
    client.send(Envelope {
        protocol: said.protocol,
        decision: Some(yes),
        always,
        in_reply_to: Some(said.id.clone()),
        ..Envelope::new(id, me, said.from.clone(), Kind::Response, reason)
    })?;
    Ok(())
}

fn find(client: &Client<'_>, id: &str) -> Result<OpenQuestion, Failure> {
    let questions = open_questions(&client.store, &client.bus, client.team.as_ref())?;
    by_beginning(
        id,
        questions,
        |it| it.message.envelope.id.as_str(),
        || {
            Failure::failed(format!(
                "no open question has an id that begins with {id:?}; `postroom approvals` lists them"
            ))
        },
    )
}

/// The questions that wait for a decision, by asker and in the order they were asked.
pub fn open_questions(
    store: &Store,
    bus: &MessageBus,
    file: Option<&TeamFile>,
) -> Result<Vec<OpenQuestion>, Failure> {
    let mut open = Vec::new();
    for name in &bus.roster().members {
        // Somebody whose life or mailbox can't be read is told of by `status`.
        let Ok(mail) = unsettled(store, bus, name) else { continue };
        let is_asked =
            |it: &&Message| it.sealed && it.envelope.question == Some(QuestionStep::Asked);
        let asked = mail.iter().filter(is_asked);
        let waiting = asked.filter(|it| is_open(it, &mail, file));
        open.extend(waiting.map(|it| OpenQuestion::new(store, it.clone())));
    }
    Ok(open)
}

/// Whether no line of its asker's mailbox decides or closes a question: only the word of somebody who
/// may decide it counts.
fn is_open(question: &Message, mail: &[Message], file: Option<&TeamFile>) -> bool {
    let Some(protocol) = question.envelope.protocol else { return false };
    let (id, asker) = (&question.envelope.id, &question.envelope.from);
    let approver = file.map_or_else(AgentName::user, |file| file.team.approver_of(asker));
    let mut fsm = ProtocolFsm::new(id.clone(), asker.clone(), approver, protocol);
    for message in mail.iter().filter(|it| it.envelope.in_reply_to.as_ref() == Some(id)) {
        let said = &message.envelope;
        let event = match (said.question.filter(|_| message.sealed), said.decision) {
            (Some(QuestionStep::Expired), _) => ProtocolEvent::Deadline,
            (Some(QuestionStep::Withdrawn), _) => ProtocolEvent::Withdrawal,
            (Some(QuestionStep::Asked | QuestionStep::Decided) | None, Some(yes)) => {
                let by = file.map(|it| it.team.who_decides(message, asker));
                let by = by.unwrap_or_else(|| said.from.clone());
                ProtocolEvent::Decision { by, yes, reason: String::new() }
            }
            (Some(QuestionStep::Asked | QuestionStep::Decided) | None, None) => continue,
        };
        fsm.on(event);
    }
    fsm.state == Asked::Open
}

/// What bears on questions behind somebody's cursor: one that is open is asked there. Most mail is
/// about none, and is not read any closer.
fn unsettled(
    store: &Store,
    bus: &MessageBus,
    name: &AgentName,
) -> Result<Vec<Message>, StoreError> {
    let log = store.lives().open(name)?;
    let mut found = Vec::new();
    if log.is_new() {
        return Ok(found);
    }
    let (mut place, mailbox) = (log.life().cursor, bus.mailbox(name));
    let reader = bus.reader(name, place)?;
    let journal = reader.journal();
    journal.anchor(place)?;
    loop {
        let batch = match journal.read(place, BATCH) {
            Err(ReadError::Lost { resume, .. }) => {
                place = resume;
                continue;
            }
            batch => batch?,
        };
        if batch.lines.is_empty() {
            return Ok(found);
        }
        place = batch.next;
        let about = batch.lines.iter().filter(|line| may_be_about_a_question(line));
        found.extend(about.filter_map(|line| mailbox.parse(line).ok()));
    }
}

fn may_be_about_a_question(line: &Line) -> bool {
    let words = ["\"question\"", "\"decision\"", "\"approve"];
    line.body.as_ref().is_ok_and(|body| words.iter().any(|word| body.contains(word)))
}

/// What a question is about.
pub fn what(question: &Message) -> &'static str {
    match question.envelope.protocol {
        Some(Protocol::PlanApproval) => "a plan",
        Some(Protocol::Permission | Protocol::Shutdown) | None => "leave for a call",
    }
}
