//! `send`: one message; its id, or its answer.

use std::{io::Read, time::Duration};

use serde::Serialize;

use super::{
    args::Send,
    client::{Asked, Client},
    context::Context,
    failure::{Code, Failure},
    render::{Printer, SCHEMA, say_answer},
};
use crate::model::{AgentName, Desired, Envelope, Kind, MessageId};

#[derive(Serialize)]
struct Sent<'a> {
    schema: u32,
    id: &'a str,
    to: &'a str,
}

/// Sends.
pub fn send(context: &Context, args: &Send, printer: &mut Printer) -> Result<Code, Failure> {
    let name = AgentName::new(args.name.as_str())?;
    let me = context.sender(args.from.as_deref())?;
    let client = Client::new(context, me.clone())?;
    refuse_members_name(&client, context, &me, args.from.as_deref())?;
    let id = match &args.id {
        Some(id) => MessageId::new(id.as_str())?,
        None => MessageId::random(),
    };
    let to = client.bus.roster().resolve(name);
    let envelope = Envelope {
        interrupt: args.interrupt,
        ..Envelope::new(id.clone(), me, to.clone(), Kind::Request, text(args)?)
    };
    let before = match &args.id {
        // It may have been sent and answered before.
        Some(_) => client.bus.start_of(client.me())?,
        None => client.bus.end_of(client.me())?,
    };
    let asked = Asked::from(&envelope);
    client.bus.send(envelope)?;
    note_rest(context, &client, &to, printer)?;
    if !args.wait {
        if args.json {
            let sent = Sent { schema: SCHEMA, id: id.as_str(), to: to.as_str() };
            printer.say_json(&sent);
        } else {
            printer.say(id.as_str());
        }
        return Ok(Code::Ok);
    }
    let timeout = args.timeout.map(Duration::from_secs);
    let answers = client.await_answers(std::slice::from_ref(&asked), before, timeout, |_| {})?;
    let mut code = Code::Ok;
    for answer in answers.values() {
        code = code.or(say_answer(answer, args.json, printer));
    }
    Ok(code)
}

fn text(args: &Send) -> Result<String, Failure> {
    if args.text != "-" {
        return Ok(args.text.clone());
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|why| Failure::failed(format!("read standard input: {why}")))?;
    String::from_utf8(bytes).map_err(|_| Failure::usage("standard input is not UTF-8"))
}

/// Whoever types may speak as the user or as somebody outside; a teammate speaks for itself.
fn refuse_members_name(
    client: &Client<'_>,
    context: &Context,
    me: &AgentName,
    given: Option<&str>,
) -> Result<(), Failure> {
    let is_teammate = client.team.as_ref().is_some_and(|it| it.team.teammates.contains_key(me));
    let reserved = *me != AgentName::user() && AgentName::RESERVED.contains(&me.as_str());
    if given.is_some() && (is_teammate || reserved) && context.sender(None)? != *me {
        return Err(Failure::usage(format!(
            "{me} speaks for itself; send as `user`, or as somebody of the team file's \"outside\""
        )));
    }
    Ok(())
}

/// Says where mail will lie for a while.
fn note_rest(
    context: &Context,
    client: &Client<'_>,
    to: &AgentName,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let is_teammate = client.team.as_ref().is_some_and(|it| it.team.teammates.contains_key(to));
    if !is_teammate {
        return Ok(());
    }
    if !context.is_up() {
        printer.note("no daemon is up: the message is kept, and `postroom up` has it answered");
    } else if client.store.lives().open(to)?.life().desired == Desired::Stopped {
        printer.note(&format!(
            "{to} is stopped: the message is kept, and `postroom start {to}` has it answered"
        ));
    }
    Ok(())
}
