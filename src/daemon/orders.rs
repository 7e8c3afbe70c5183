//! Orders to a running daemon: lines in the mailbox `daemon`, each answered.

use super::Instance;
use crate::{
    base::Haste,
    journal::Position,
    model::{AgentName, Envelope, Kind, Message, MessageId, Status},
    store::{Entry, MailReader, StoreError},
};

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Start a teammate.
    Start(AgentName),
    /// End the daemon's life.
    Down(DownHow),
}

/// How fast to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownHow {
    /// After the work that lies there.
    Drain,
    /// After the tools in hand.
    Gracefully,
    /// At once.
    Force,
}

impl DownHow {
    /// The wish to end that it means.
    pub fn haste(self, grace_end: crate::base::Moment) -> Haste {
        match self {
            Self::Drain => Haste::Drain,
            Self::Gracefully => Haste::Grace(grace_end),
            Self::Force => Haste::Now,
        }
    }
}

impl std::str::FromStr for Order {
    type Err = String;

    /// `start NAME`, `down`, `down drain`, `down force`.
    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["start", name] => {
                AgentName::new(*name).map(Self::Start).map_err(|why| why.to_string())
            }
            ["down"] => Ok(Self::Down(DownHow::Gracefully)),
            ["down", "drain"] => Ok(Self::Down(DownHow::Drain)),
            ["down", "force"] => Ok(Self::Down(DownHow::Force)),
            _ => Err(format!(
                "{text:?} is no order; there are `start NAME`, `down`, `down drain` and `down force`"
            )),
        }
    }
}

/// Reads the mailbox `daemon`.
pub struct OrderBook {
    reader: MailReader,
}

/// How many lines are read at a time.
const BATCH: usize = 64;

impl OrderBook {
    /// Begins behind all that lies there: an order that is older than the daemon's life is void, and
    /// answered so.
    pub fn open(instance: &Instance) -> Result<Self, StoreError> {
        let name = AgentName::daemon();
        let (bus, cursors) = (&instance.office.bus, instance.store().cursors()?);
        let cursor = cursors.read(&name)?.unwrap_or(Position::ZERO);
        let mut book = Self { reader: bus.reader(&name, cursor)? };
        for message in book.read(instance)? {
            let text = "void: the order is older than this life of the daemon; give it again";
            answer(instance, &message, Status::Denied, text)?;
        }
        Ok(book)
    }

    /// The orders that have come, with their messages. What is no message is a dead letter.
    pub fn read(&mut self, instance: &Instance) -> Result<Vec<Message>, StoreError> {
        let (name, before) = (AgentName::daemon(), self.reader.next());
        let mut orders = Vec::new();
        while let Some(entries) = self.reader.more_or_anew(BATCH)? {
            for entry in entries {
                match entry {
                    // An order behind it must not wait for room to record it.
                    Entry::Dead(line) => drop(instance.office.dead.record(&name, &line)),
                    Entry::Message(it) if it.envelope.kind == Kind::Request => orders.push(*it),
                    Entry::Message(_) => {}
                }
            }
        }
        if self.reader.next() != before {
            instance.store().cursors()?.move_to(&name, self.reader.next())?;
        }
        Ok(orders)
    }
}

/// Whether the sender of an order may give it: the user, outsiders, and nobody of the team.
pub fn may_order(instance: &Instance, message: &Message) -> bool {
    let from = &message.envelope.from;
    *from == AgentName::user() || instance.office.team.outside.contains(from)
}

/// Answers an order.
pub fn answer(
    instance: &Instance,
    order: &Message,
    status: Status,
    text: &str,
) -> Result<(), StoreError> {
    let said = &order.envelope;
    let id = MessageId::derived(&["order", instance.life.as_str(), said.id.as_str()]);
    let reply = Envelope {
        status: Some(status),
        in_reply_to: Some(said.id.clone()),
        ..Envelope::new(id, AgentName::daemon(), said.from.clone(), Kind::Response, text)
    };
    instance.office.bus.reply(&reply)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_or_refused_with_what_is_valid() {
        let name = AgentName::new("scout").unwrap();
        assert_eq!("start scout".parse(), Ok(Order::Start(name)));
        assert_eq!(" down  drain ".parse(), Ok(Order::Down(DownHow::Drain)));
        for text in ["", "start", "start a b", "start ../x", "Down", "down now", "stop scout"] {
            assert!(text.parse::<Order>().is_err(), "{text}");
        }
    }
}
