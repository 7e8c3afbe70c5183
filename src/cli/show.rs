//! `show`: one message, what answered it, and where its trace is.

use serde::Serialize;

use super::{
    args::Show,
    client::read_on,
    context::Context,
    failure::{Code, Failure},
    find::by_beginning,
    follow::Follower,
    render::{MessageView, Printer, SCHEMA, line_of, time_of, word_for, word_of},
};
use crate::{
    journal::Position,
    model::{Kind, Message},
    store::{MessageBus, Store},
};

#[derive(Serialize)]
struct Shown<'a> {
    schema: u32,
    message: MessageView<'a>,
    about_it: Vec<MessageView<'a>>,
    trace: Option<String>,
}

/// Shows a message.
pub fn show(context: &Context, args: &Show, printer: &mut Printer) -> Result<Code, Failure> {
    let store = context.store()?;
    let (bus, _) = context.bus(&store)?;
    let message = find_message(&store, &bus, &args.id)?;
    let said = &message.envelope;
    let mut reader = bus.reader(&bus.mailbox_of(&said.from), Position::ZERO)?;
    let about: Vec<Message> = read_on(&mut reader)?
        .into_iter()
        .filter(|it| it.envelope.in_reply_to.as_ref() == Some(&said.id))
        .collect();
    let trace = about.iter().find_map(|it| it.envelope.trace_id.clone());
    let trace = trace.map(|id| format!(".mailbox/traces/{id}.jsonl"));
    if args.json {
        let about_it = about.iter().map(MessageView::from).collect();
        let message = MessageView::from(&message);
        printer.say_json(&Shown { schema: SCHEMA, message, about_it, trace });
        return Ok(Code::Ok);
    }
    printer.say_titled("id      ", said.id.as_str());
    printer.say_titled("time    ", &time_of(&message));
    printer.say_titled("from    ", &origin(&message));
    printer.say_titled("to      ", said.to.as_str());
    printer.say_titled("kind    ", word_of(said.kind));
    printer.say(&said.content);
    for reply in &about {
        match reply.envelope.status {
            Some(status) if reply.envelope.kind == Kind::Response => {
                let title = format!("\nanswered by {}, {}:", reply.envelope.from, word_for(status));
                printer.say_titled(&title, &time_of(reply));
                printer.say(&reply.envelope.content);
            }
            Some(_) | None => printer.say(&line_of(reply, 200)),
        }
    }
    if about.is_empty() && said.kind == Kind::Request {
        printer.say("\nnot answered yet");
    }
    if let Some(trace) = trace {
        printer.say_titled("\ntrace   ", &trace);
    }
    Ok(Code::Ok)
}

fn origin(message: &Message) -> String {
    let seal = if message.sealed { "written by postroom" } else { "as the line says" };
    format!("{} ({seal})", message.envelope.from)
}

/// The message whose id begins with `given`.
pub fn find_message(store: &Store, bus: &MessageBus, given: &str) -> Result<Message, Failure> {
    let all = Follower::new(store, bus, None)?.more();
    by_beginning(
        given,
        all,
        |it| it.envelope.id.as_str(),
        || {
            Failure::failed(format!(
                "no message has an id that begins with {given:?}; `postroom log --json` shows ids"
            ))
        },
    )
}
