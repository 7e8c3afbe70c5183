//! Reads all mailboxes side by side, from a place on.

use std::collections::BTreeSet;

use super::{
    client::{go_before_last, read_on},
    failure::Failure,
};
use crate::{
    base::{Timestamp, Wake},
    journal::{Position, Subscription},
    model::{AgentName, Message},
    store::{MailReader, MessageBus, Store},
};

/// Reads all mailboxes side by side.
pub struct Follower {
    readers: Vec<(MailReader, Option<Subscription>)>,
    known: BTreeSet<AgentName>,
}

impl Follower {
    /// Begins at least `lines` messages before the end of each mailbox, or at its start.
    pub fn new(store: &Store, bus: &MessageBus, lines: Option<usize>) -> Result<Self, Failure> {
        let mut follower = Self { readers: Vec::new(), known: BTreeSet::new() };
        for name in mailboxes(store, bus)? {
            follower.open(bus, name, lines)?;
        }
        Ok(follower)
    }

    fn open(
        &mut self,
        bus: &MessageBus,
        name: AgentName,
        lines: Option<usize>,
    ) -> Result<(), Failure> {
        let mut reader = bus.reader(&name, Position::ZERO)?;
        // What may not be read is told by `check`; the others are shown.
        let Ok(end) = reader.journal().end() else { return Ok(()) };
        match lines {
            Some(0) => reader.go_to(end),
            Some(lines) => go_before_last(&mut reader, lines)?,
            None => {
                let start = reader.journal().start();
                reader.go_to(start.map_err(|why| Failure::failed(why.to_string()))?);
            }
        }
        self.readers.push((reader, None));
        self.known.insert(name);
        Ok(())
    }

    /// Looks for mailboxes that are new.
    pub fn look_for_new(&mut self, store: &Store, bus: &MessageBus) -> Result<(), Failure> {
        for name in mailboxes(store, bus)? {
            if !self.known.contains(&name) {
                self.open(bus, name, None)?;
            }
        }
        Ok(())
    }

    /// Notifies `wake` when there is more.
    pub fn subscribe(&mut self, wake: &Wake) {
        for (reader, subscription) in &mut self.readers {
            if subscription.is_none() {
                *subscription = Some(reader.journal().subscribe(wake));
            }
        }
    }

    /// Whether there is more.
    pub fn has_more(&self) -> bool {
        self.readers
            .iter()
            .any(|(reader, _)| reader.journal().end().is_ok_and(|end| end != reader.next()))
    }

    /// What has come since, in the order of time. Time decides nothing else: a line without one
    /// stays behind the line before it in its mailbox. A mailbox that can't be read keeps nobody from
    /// seeing the others.
    pub fn more(&mut self) -> Vec<Message> {
        let mut timed = Vec::new();
        for (reader, _) in &mut self.readers {
            let mut latest = Timestamp(i64::MIN);
            for message in read_on(reader).unwrap_or_default() {
                latest = message.timestamp.unwrap_or(latest).max(latest);
                timed.push((latest, message));
            }
        }
        timed.sort_by_key(|(time, _)| *time);
        timed.into_iter().map(|(_, message)| message).collect()
    }
}

/// All who have a mailbox, in use or not.
fn mailboxes(store: &Store, bus: &MessageBus) -> Result<BTreeSet<AgentName>, Failure> {
    let listing = store.journals().list("")?;
    let there = listing.journals.iter().filter(|it| it.0 != "tasks");
    let there = there.filter_map(|journal| AgentName::new(journal.0.as_str()).ok());
    Ok(there.chain(bus.roster().members.iter().cloned()).collect())
}
