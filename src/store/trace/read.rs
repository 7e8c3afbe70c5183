//! Reads a trace line by line. A line that is damaged, half or of another postroom is passed over.

use std::sync::Arc;

use super::{TraceEvent, TraceLine};
use crate::{
    journal::{Journal, Position, ReadError},
    model::RunId,
    store::{Store, StoreError, layout},
};

/// How many lines are read at a time; each may hold a whole tool input.
const BATCH: usize = 64;
/// How far from its end a trace is looked at first, in bytes.
const REACH: u64 = 1 << 16;

/// A place in a trace, which moves forward.
pub struct TraceReader {
    journal: Arc<dyn Journal>,
    next: Position,
}

impl TraceReader {
    /// Begins to read a trace, which need not be there, behind `after`.
    pub fn open(store: &Store, id: &RunId, after: Position) -> Result<Self, StoreError> {
        Ok(Self { journal: store.journals.open(&layout::trace(id))?, next: after })
    }

    /// Where it will read on.
    pub fn next(&self) -> Position {
        self.next
    }

    /// Whether there is more.
    pub fn has_more(&self) -> bool {
        self.journal.end().is_ok_and(|end| end != self.next)
    }

    /// Some of the lines that are there, in order, as far as they can be read; `None` where there are
    /// no more yet.
    pub fn more(&mut self) -> Result<Option<Vec<TraceLine>>, StoreError> {
        let batch = loop {
            match self.journal.read(self.next, BATCH) {
                // Nobody's cursor is lost: it goes on with what is there now.
                Err(ReadError::Lost { resume, .. }) => self.next = resume,
                batch => break batch?,
            }
        };
        self.next = batch.next;
        let is_end = batch.lines.is_empty();
        let bodies = batch.lines.into_iter().filter_map(|line| line.body.ok());
        Ok((!is_end).then(|| bodies.filter_map(|body| TraceLine::read(&body)).collect()))
    }
}

/// Whether the last line that can be read is the end.
pub fn is_closed(journal: &dyn Journal) -> Result<bool, StoreError> {
    let (end, mut reach) = (journal.end()?, REACH);
    loop {
        let start = journal.back(end, reach)?;
        if let Some(last) = last_behind(journal, start)? {
            return Ok(matches!(last, TraceEvent::Ended { .. }));
        }
        if start.offset == 0 {
            return Ok(false);
        }
        reach = reach.saturating_mul(8);
    }
}

fn last_behind(journal: &dyn Journal, start: Position) -> Result<Option<TraceEvent>, StoreError> {
    let (mut place, mut last) = (start, None);
    loop {
        let batch = journal.read(place, BATCH)?;
        if batch.lines.is_empty() {
            return Ok(last);
        }
        place = batch.next;
        let mut bodies = batch.lines.into_iter().rev().filter_map(|line| line.body.ok());
        last = bodies.find_map(|body| TraceLine::read(&body)).map(|it| it.event).or(last);
    }
}
