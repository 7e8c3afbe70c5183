//! Reads a mailbox line by line: messages, and what is none.

use std::sync::Arc;

use crate::{
    journal::{Journal, Line, Position, ReadError},
    model::{Mailbox, Message},
};

/// What a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A message.
    Message(Box<Message>),
    /// Not one.
    Dead(DeadLine),
}

impl Entry {
    /// Where its line begins.
    pub fn at(&self) -> Position {
        match self {
            Self::Message(message) => message.at,
            Self::Dead(line) => line.at,
        }
    }
}

/// A line that is no message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLine {
    /// Where it begins.
    pub at: Position,
    /// Just behind it.
    pub after: Position,
    /// Why it is none.
    pub reason: String,
    /// How many bytes it has.
    pub length: u64,
    /// The first of them.
    pub raw: Vec<u8>,
}

impl DeadLine {
    /// A line that is none, for this reason.
    pub fn of_line(line: Line, reason: String) -> Self {
        let (length, raw) = match line.body {
            Ok(body) => (body.len() as u64, body.into_bytes()),
            Err(dead) => (dead.length, dead.raw),
        };
        Self { at: line.at, after: line.after, reason, length, raw }
    }

    /// A message that can't be worked on, for this reason.
    pub fn of_message(message: &Message, reason: String) -> Self {
        let (at, after) = (message.at, message.after);
        let length = after.offset.saturating_sub(at.offset);
        Self { at, after, reason, length, raw: message.envelope.content.clone().into_bytes() }
    }
}

/// A place in a mailbox, which moves forward.
pub struct MailReader {
    journal: Arc<dyn Journal>,
    mailbox: Mailbox,
    next: Position,
}

impl MailReader {
    /// Begins to read behind `after`.
    pub fn new(journal: Arc<dyn Journal>, mailbox: Mailbox, after: Position) -> Self {
        Self { journal, mailbox, next: after }
    }

    /// Where it will read on.
    pub fn next(&self) -> Position {
        self.next
    }

    /// Reads on elsewhere.
    pub fn go_to(&mut self, place: Position) {
        self.next = place;
    }

    /// The journal it reads.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// About `at_most` entries; none where there are none yet.
    pub fn more(&mut self, at_most: usize) -> Result<Vec<Entry>, ReadError> {
        let batch = self.journal.read(self.next, at_most)?;
        self.next = batch.next;
        Ok(batch.lines.into_iter().map(|line| self.entry(line)).collect())
    }

    /// As [`MailReader::more`], for whoever has no cursor to lose: where the mailbox was cut or replaced it
    /// goes on with what is there now. `None` where there is nothing yet.
    pub fn more_or_anew(&mut self, at_most: usize) -> Result<Option<Vec<Entry>>, ReadError> {
        loop {
            match self.more(at_most) {
                Ok(entries) if entries.is_empty() => return Ok(None),
                Ok(entries) => return Ok(Some(entries)),
                Err(ReadError::Lost { resume, .. }) => self.go_to(resume),
                Err(why) => return Err(why),
            }
        }
    }

    fn entry(&self, line: Line) -> Entry {
        match self.mailbox.parse(&line) {
            Ok(message) => Entry::Message(Box::new(message)),
            Err(reason) => Entry::Dead(DeadLine::of_line(line, reason)),
        }
    }
}
