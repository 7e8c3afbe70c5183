//! Journals in memory, for tests: the same lines, positions and tails as in files, without files.

use std::{collections::BTreeMap, io, sync::Arc};

use parking_lot::Mutex;

use super::{
    AppendError, Batch, Journal, JournalName, Journals, Listing, Position, ReadError, Subscription,
    Tick, Wakes, Watch,
    append::{Append, append, objection},
    generation::{Before, Generation},
    scan::{Hints, Reader},
    tail::{Due, Extent, Tail, due},
};
use crate::base::{FileError, Moment, Wake, broken};

/// Journals that live as long as this.
#[derive(Default)]
pub struct MemoryJournals(Mutex<BTreeMap<JournalName, Arc<MemoryJournal>>>);

impl MemoryJournals {
    /// The journal itself, to write to as an outsider does.
    pub fn journal(&self, name: &JournalName) -> Arc<MemoryJournal> {
        Arc::clone(self.0.lock().entry(name.clone()).or_default())
    }
}

/// One journal.
#[derive(Default)]
pub struct MemoryJournal {
    state: Mutex<State>,
    wakes: Wakes,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    generation: Generation,
    hints: Hints,
    tail: Option<Tail>,
}

impl MemoryJournal {
    /// Adds `bytes` as an outside writer does: any bytes, in any pieces.
    pub fn push(&self, bytes: &[u8]) {
        self.state.lock().bytes.extend_from_slice(bytes);
        self.wakes.notify();
    }

    /// All that is in it.
    pub fn bytes(&self) -> Vec<u8> {
        self.state.lock().bytes.clone()
    }

    fn tend(&self, now: Moment) -> Option<Moment> {
        let due = self.state.lock().tend_tail(now);
        match due {
            Due::Nothing => None,
            Due::At(moment) => Some(moment),
            Due::Now => {
                self.push(b"\n");
                None
            }
        }
    }
}

impl State {
    fn reader(&mut self) -> Reader<'_, Vec<u8>> {
        let reader = Reader::new(&self.bytes, &mut self.hints, self.generation.number());
        reader.unwrap_or_else(|why| memory_fails(&why))
    }

    fn judge(&mut self, position: Position) -> Result<(), ReadError> {
        let length = self.bytes.len() as u64;
        let is_same = position.offset <= length
            && self.reader().check(position.offset).is_ok_and(|check| check == position.check);
        let before = if is_same { Before::Same } else { Before::Other("replaced") };
        self.generation.judge(position, before, length)
    }

    fn tend_tail(&mut self, now: Moment) -> Due {
        let mut tail = self.tail.take();
        let generation = self.generation.number();
        let mut reader = self.reader();
        let start = reader.line_end().unwrap_or_else(|why| memory_fails(&why));
        let extent = Extent { generation, start, end: reader.length() };
        let due = due(&mut tail, extent, now, || reader.is_whole_from(start));
        self.tail = tail;
        due.unwrap_or_else(|why| memory_fails(&why))
    }
}

impl Append for &mut Vec<u8> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn place(&mut self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn byte(&self, offset: u64) -> io::Result<u8> {
        let byte = usize::try_from(offset).ok().and_then(|offset| self.get(offset));
        byte.copied().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

fn memory_fails(why: &io::Error) -> ! {
    broken(&format!("memory can be read: {why}"))
}

impl Journal for MemoryJournal {
    fn append(&self, line: &str) -> Result<Position, AppendError> {
        if let Some(why) = objection(line) {
            return Err(AppendError::Invalid(why));
        }
        let position = {
            let mut state = self.state.lock();
            let place = append(&mut &mut state.bytes, line, None)
                .unwrap_or_else(|failure| broken(&format!("memory takes every line: {failure:?}")));
            state.reader().position(place).unwrap_or_else(|why| memory_fails(&why))
        };
        self.wakes.notify();
        Ok(position)
    }

    fn read(&self, after: Position, at_most: usize) -> Result<Batch, ReadError> {
        let mut state = self.state.lock();
        state.judge(after)?;
        let batch = state.reader().batch(after, at_most);
        Ok(batch.unwrap_or_else(|why| memory_fails(&why)))
    }

    fn start(&self) -> Result<Position, ReadError> {
        Ok(self.state.lock().generation.start())
    }

    fn end(&self) -> Result<Position, ReadError> {
        let mut state = self.state.lock();
        let mut reader = state.reader();
        let end = reader.line_end().and_then(|end| reader.position(end));
        Ok(end.unwrap_or_else(|why| memory_fails(&why)))
    }

    fn anchor(&self, kept: Position) -> Result<(), ReadError> {
        match self.state.lock().judge(kept) {
            Ok(()) | Err(ReadError::Lost { .. }) => Ok(()),
            Err(failed @ ReadError::Failed(_)) => Err(failed),
        }
    }

    fn subscribe(&self, wake: &Wake) -> Subscription {
        self.wakes.add(wake)
    }

    fn sync(&self) -> Result<(), FileError> {
        Ok(())
    }

    fn back(&self, place: Position, bytes: u64) -> Result<Position, ReadError> {
        let mut state = self.state.lock();
        state.judge(place)?;
        let mut reader = state.reader();
        let start = reader.line_start(place.offset.saturating_sub(bytes), place.offset);
        let found = start.and_then(|start| reader.position(start));
        Ok(found.unwrap_or_else(|why| memory_fails(&why)))
    }

    fn close_tail(&self) -> Result<(), ReadError> {
        let mut state = self.state.lock();
        if state.bytes.last().is_some_and(|last| *last != b'\n') {
            state.bytes.push(b'\n');
        }
        Ok(())
    }

    fn replace(&self, line: &str) -> Result<(), AppendError> {
        if let Some(why) = objection(line) {
            return Err(AppendError::Invalid(why));
        }
        {
            let mut state = self.state.lock();
            let length = state.bytes.len() as u64;
            state.bytes = format!("{line}\n").into_bytes();
            state.generation.turn("replaced", length);
            state.hints = Hints::default();
        }
        self.wakes.notify();
        Ok(())
    }
}

impl Journals for MemoryJournals {
    fn open(&self, name: &JournalName) -> Result<Arc<dyn Journal>, FileError> {
        Ok(self.journal(name))
    }

    fn list(&self, folder: &str) -> Result<Listing, FileError> {
        let open = self.0.lock();
        // As with files, a journal is there once something was written to it.
        let written = open.iter().filter(|(_, journal)| !journal.state.lock().bytes.is_empty());
        let in_folder = |name: &&JournalName| {
            name.0.rsplit_once('/').map_or("", |(before, _)| before) == folder
        };
        let journals = written.map(|(name, _)| name).filter(in_folder).cloned().collect();
        Ok(Listing { journals, strays: Vec::new() })
    }

    fn watch(&self, _changed: Box<dyn Fn() + Send + Sync>) -> Result<Watch, FileError> {
        Ok(Watch::nothing())
    }

    fn watch_folder(
        &self,
        _folder: &str,
        _changed: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Watch, FileError> {
        Ok(Watch::nothing())
    }

    fn tick(&self, now: Moment, _what: Tick) -> Option<Moment> {
        let open = self.0.lock();
        let of_root = open.iter().filter(|(name, _)| !name.0.contains('/'));
        of_root.filter_map(|(_, journal)| journal.tend(now)).min()
    }
}
