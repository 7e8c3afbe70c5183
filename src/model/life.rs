//! A teammate's life as it is kept: what it has consumed, what it has in hand, whether it shall run.
//!
//! Each record is a whole snapshot: the last whole line of its journal holds. Only the holder of the
//! daemon's lock writes one.

use serde::{Deserialize, Serialize};

use super::{MessageId, Pattern, RunId};
use crate::journal::Position;

/// The version of the records; a newer one is refused, not guessed at.
pub const LIFE_VERSION: u32 = 1;

/// One snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Life {
    /// When it was written; shown, never compared.
    pub timestamp: String,
    /// Version of this record.
    pub v: u32,
    /// Grows with each start.
    pub life: u64,
    /// Whether its user wants it to run.
    pub desired: Desired,
    /// Where its mailbox ended at its last explicit start: a SHUTDOWN before is stale.
    pub birth: Position,
    /// All before is consumed.
    pub cursor: Position,
    /// Consumed beyond the cursor, in order, without overlaps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<Span>,
    /// What may happen without asking since somebody said `always`, until the next explicit start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub always: Vec<Pattern>,
    /// The message in hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
    /// What runs in the background: begun, and its end not told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<InBackground>,
}

/// A run in the background, written down before it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InBackground {
    /// What it is called by: `subagent-` or `command-` and the beginning of its run's id.
    pub id: String,
    /// Its run.
    pub run: RunId,
    /// The life in which it began.
    pub life: u64,
    /// What it does, in a few words.
    pub about: String,
}

/// Whether a teammate shall run. Changed only by SHUTDOWN, `stop` and `start`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Desired {
    /// It runs while the daemon does.
    Running,
    /// It is stopped; its mail is kept.
    Stopped,
}

/// A consumed stretch of a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Position, Position)", into = "(Position, Position)")]
pub struct Span {
    /// Where it begins.
    pub from: Position,
    /// Just behind it.
    pub to: Position,
}

impl From<(Position, Position)> for Span {
    fn from((from, to): (Position, Position)) -> Self {
        Self { from, to }
    }
}
impl From<Span> for (Position, Position) {
    fn from(span: Span) -> Self {
        (span.from, span.to)
    }
}

/// The message in hand, written before it has any effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Where it begins.
    pub at: Position,
    /// Its id.
    pub id: MessageId,
    /// How often it was begun and not ended.
    pub tries: Tries,
}

/// How often a piece of work was begun and not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tries {
    /// By a panic or a failing store.
    pub errors: u32,
    /// By the death of the process.
    pub deaths: u32,
}

impl Tries {
    /// The most errors before a message becomes a dead letter.
    pub const MOST_ERRORS: u32 = 3;
    /// The most deaths of the process before a message becomes a dead letter.
    pub const MOST_DEATHS: u32 = 10;

    /// Whether no further try is made.
    pub fn are_used_up(self) -> bool {
        self.errors >= Self::MOST_ERRORS || self.deaths >= Self::MOST_DEATHS
    }
}

impl Life {
    /// The life of a teammate that never ran: it begins at the start of its mailbox, so that mail
    /// sent before is answered, and is born at `birth`.
    pub fn new(birth: Position) -> Self {
        Self {
            timestamp: String::new(),
            v: LIFE_VERSION,
            life: 0,
            desired: Desired::Running,
            birth,
            cursor: Position { offset: 0, check: 0, ..birth },
            ahead: Vec::new(),
            always: Vec::new(),
            taken: None,
            background: Vec::new(),
        }
    }

    /// An explicit start: what came before `place` was meant for an earlier life.
    pub fn be_born(&mut self, place: Position) {
        self.birth = place;
        self.always.clear();
    }

    /// Whether the place is consumed.
    pub fn has_consumed(&self, at: Position) -> bool {
        at < self.cursor || self.ahead.iter().any(|span| span.from <= at && at < span.to)
    }

    /// Consumes a stretch beyond the cursor.
    pub fn consume(&mut self, span: Span) {
        let place = self.ahead.partition_point(|known| known.from < span.from);
        self.ahead.insert(place, span);
        let mut merged: Vec<Span> = Vec::with_capacity(self.ahead.len());
        for span in self.ahead.drain(..) {
            match merged.last_mut() {
                Some(last) if span.from <= last.to => last.to = last.to.max(span.to),
                _ => merged.push(span),
            }
        }
        self.ahead = merged;
    }

    /// Moves the cursor to `place`, before which all is consumed.
    pub fn advance(&mut self, place: Position) {
        self.cursor = self.cursor.max(place);
        let cursor = self.cursor;
        self.ahead.retain(|span| span.to > cursor);
    }

    /// Goes on in a new generation of the mailbox: what was consumed or taken there is gone.
    pub fn go_on_at(&mut self, resume: Position) {
        self.cursor = resume;
        self.ahead.clear();
        self.taken = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> Position {
        Position { generation: 0, offset, check: 0 }
    }

    #[test]
    fn what_is_consumed_ahead_is_merged_and_forgotten_behind_the_cursor() {
        let mut life = Life::new(at(0));
        for (from, to) in [(30, 40), (10, 20), (20, 30), (60, 70)] {
            life.consume(Span { from: at(from), to: at(to) });
        }
        let spans: Vec<_> = life.ahead.iter().map(|it| (it.from.offset, it.to.offset)).collect();
        assert_eq!(spans, [(10, 40), (60, 70)]);
        assert!(life.has_consumed(at(35)) && !life.has_consumed(at(40)));
        life.advance(at(40));
        assert_eq!(life.ahead.len(), 1);
        assert!(life.has_consumed(at(39)) && !life.has_consumed(at(59)));
        life.go_on_at(Position { generation: 1, offset: 0, check: 0 });
        assert!(life.ahead.is_empty() && life.has_consumed(at(99)));
    }
}
