//! Which generation a journal is in, and what a reader of an earlier one is told. Pure.

use super::{Position, ReadError};

/// The present generation and the end of the one before.
#[derive(Debug, Default)]
pub struct Generation {
    number: u64,
    before: Option<Ended>,
}

#[derive(Debug)]
struct Ended {
    length: u64,
    how: &'static str,
}

/// What is known of the bytes before a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// They are those that were read.
    Same,
    /// They are not; how that came about.
    Other(&'static str),
}

impl Generation {
    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its first place.
    pub fn start(&self) -> Position {
        Position { generation: self.number, offset: 0, check: 0 }
    }

    /// Begins the next one: the present one had `length` bytes and ended by being `how`.
    pub fn turn(&mut self, how: &'static str, length: u64) {
        self.number = self.number.saturating_add(1);
        self.before = Some(Ended { length, how });
    }

    /// Lets a reader go on at `position`, or tells it what it lost. A position of a later generation,
    /// which an earlier process knew, brings this one up to it.
    pub fn judge(
        &mut self,
        position: Position,
        before: Before,
        seen: u64,
    ) -> Result<(), ReadError> {
        if position.generation >= self.number {
            self.number = position.generation;
            match before {
                Before::Same => return Ok(()),
                Before::Other(how) => self.turn(how, seen),
            }
        }
        Err(self.lost(position))
    }

    fn lost(&self, position: Position) -> ReadError {
        let last =
            self.before.as_ref().filter(|_| position.generation.saturating_add(1) == self.number);
        let how = self.before.as_ref().map_or("replaced", |ended| ended.how);
        let unread = last.map_or(0, |ended| ended.length.saturating_sub(position.offset));
        ReadError::Lost { resume: self.start(), unread, how }
    }
}
