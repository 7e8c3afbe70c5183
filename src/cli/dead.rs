//! `dead`: lines that are no message, and messages that were given up. The mailbox keeps them all;
//! here is what became of them and what can be done.

use std::sync::Arc;

use serde::Serialize;

use super::{
    args::{Dead, DeadVerb},
    context::Context,
    failure::{Code, Failure},
    find::by_beginning,
    render::{Printer, SCHEMA},
};
use crate::{
    base::text::headline,
    journal::JournalName,
    model::MessageId,
    store::{DeadEntry, DeadLetters, MessageBus, Store},
};

#[derive(Serialize)]
struct View<'a> {
    schema: u32,
    id: &'a str,
    mailbox: &'a str,
    timestamp: &'a str,
    reason: &'a str,
    generation: u64,
    offset: u64,
    bytes: u64,
    raw: &'a str,
}

/// Looks at dead letters.
pub fn dead(context: &Context, args: &Dead, printer: &mut Printer) -> Result<Code, Failure> {
    let store = context.store()?;
    match &args.verb {
        DeadVerb::List { json } => list(&store, *json, printer),
        DeadVerb::Show { id } => show(&store, id, printer),
        DeadVerb::Retry { ids } => {
            let (bus, _) = context.bus(&store)?;
            let mut code = Code::Ok;
            for id in ids {
                if let Err(failure) = retry(&store, &bus, id, printer) {
                    printer.complain(&failure.text);
                    code = failure.code;
                }
            }
            Ok(code)
        }
        DeadVerb::Drop { ids } => {
            for id in ids {
                let entry = find(&store, id)?;
                DeadLetters::finish(&store, &entry.id, "dropped")?;
                printer.note(&format!("{} is struck from the list", entry.id));
            }
            Ok(Code::Ok)
        }
    }
}

fn list(store: &Store, json: bool, printer: &mut Printer) -> Result<Code, Failure> {
    let entries = DeadLetters::list(store)?;
    for entry in &entries {
        if json {
            printer.say_json(&View {
                schema: SCHEMA,
                id: entry.id.as_str(),
                mailbox: entry.mailbox.as_str(),
                timestamp: &entry.timestamp,
                reason: &entry.reason,
                generation: entry.at.generation,
                offset: entry.at.offset,
                bytes: entry.length,
                raw: &entry.raw,
            });
        } else {
            printer.say(&format!(
                "{}  {}.jsonl byte {}  {}  {}",
                entry.id,
                entry.mailbox,
                entry.at.offset,
                headline(&entry.reason, 100),
                headline(&entry.raw, 60)
            ));
        }
    }
    if entries.is_empty() && !json {
        printer.note("no dead letters");
    }
    Ok(Code::Ok)
}

fn show(store: &Store, id: &str, printer: &mut Printer) -> Result<Code, Failure> {
    let entry = find(store, id)?;
    printer.say_titled("id      ", entry.id.as_str());
    printer.say_titled("mailbox ", &format!("{}.jsonl", entry.mailbox));
    let place = format!("byte {} of generation {}", entry.at.offset, entry.at.generation);
    printer.say_titled("place   ", &format!("{place}, {} bytes", entry.length));
    printer.say_titled("recorded", &entry.timestamp);
    printer.say_titled("reason  ", &entry.reason);
    printer.say(&entry.raw);
    Ok(Code::Ok)
}

/// Sends again what can be read: under a new id, since the old one counts as seen.
fn retry(store: &Store, bus: &MessageBus, id: &str, printer: &mut Printer) -> Result<(), Failure> {
    let entry = find(store, id)?;
    let journal = store.journals().open(&JournalName(entry.mailbox.to_string()))?;
    let lost = |why: String| {
        Failure::failed(format!("{} is no longer in {}.jsonl: {why}", entry.id, entry.mailbox))
    };
    let batch = journal.read(entry.at, 1).map_err(|why| lost(why.to_string()))?;
    let line = batch.lines.first().ok_or_else(|| lost("nothing is there".to_owned()))?;
    let message = bus.mailbox(&entry.mailbox).parse(line).map_err(|why| {
        Failure::failed(format!(
            "{} still can't be read: {why}; send what it means anew with `postroom send {} TEXT`",
            entry.id, entry.mailbox
        ))
    })?;
    let mut envelope = message.envelope;
    let roster = Arc::new(bus.roster().clone());
    envelope.id = MessageId::random();
    envelope.to = entry.mailbox.clone();
    let new = envelope.id.clone();
    store.unsealed_bus(roster).send(envelope)?;
    DeadLetters::finish(store, &entry.id, "retried")?;
    printer.say(new.as_str());
    Ok(())
}

fn find(store: &Store, id: &str) -> Result<DeadEntry, Failure> {
    by_beginning(
        id,
        DeadLetters::list(store)?,
        |it| it.id.as_str(),
        || {
            Failure::failed(format!(
                "no dead letter has an id that begins with {id:?}; `postroom dead list` shows them"
            ))
        },
    )
}
