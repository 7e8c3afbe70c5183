//! The one primitive: bytes in order. Append a line, read what lies behind a position, be told of
//! more. No word of the domain, and nothing above knows that a journal is a file.
//!
//! A journal's order decides: whoever appends finds out what came of it by reading on.

mod append;
mod file;
mod files;
mod generation;
pub mod memory;
mod scan;
mod source;
pub mod split;
mod tail;

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

pub use files::FileJournals;

use crate::base::{FileError, Moment, Wake};

/// The most bytes a line may have, its newline not counted.
pub const LONGEST_LINE: usize = 1 << 20;

/// A place between two lines, or behind one of several objects on a line.
///
/// Positions of one journal are ordered by generation and offset. The check is a fingerprint of the
/// bytes before the place: it shows when they are no longer those that were read.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u32)", into = "(u64, u64, u32)")]
pub struct Position {
    /// Grows when the file is truncated, replaced or rotated.
    pub generation: u64,
    /// Bytes from the file's beginning.
    pub offset: u64,
    /// Fingerprint of the bytes before; 0 at offset 0.
    pub check: u32,
}

impl Position {
    /// Before everything.
    pub const ZERO: Self = Self { generation: 0, offset: 0, check: 0 };

    fn order(self) -> (u64, u64) {
        (self.generation, self.offset)
    }
}

impl PartialEq for Position {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}
impl Eq for Position {}
impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Position {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}
impl From<(u64, u64, u32)> for Position {
    fn from((generation, offset, check): (u64, u64, u32)) -> Self {
        Self { generation, offset, check }
    }
}
impl From<Position> for (u64, u64, u32) {
    fn from(position: Position) -> Self {
        (position.generation, position.offset, position.check)
    }
}

/// One whole JSON object, or what stood in place of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where its first byte stands.
    pub at: Position,
    /// Just behind it.
    pub after: Position,
    /// The object's text, which is valid JSON, at most 128 deep; or why there is none.
    pub body: Result<String, Dead>,
}

/// Bytes that are no line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dead {
    /// A fragment such as `not an object`.
    pub reason: String,
    /// How many bytes there are.
    pub length: u64,
    /// The first of them, at most 64 KiB.
    pub raw: Vec<u8>,
}

/// What a read gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// In the journal's order.
    pub lines: Vec<Line>,
    /// To be read after next time. It is behind the last of `lines`, and behind all that was passed
    /// over after it.
    pub next: Position,
    /// How many NUL bytes were passed over.
    pub nuls: u64,
}

/// A journal's name below its root, without an ending: `scout`, `state/agents/scout`. Built by the
/// store's layout alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JournalName(pub String);

impl fmt::Display for JournalName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// What may have become of an append that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The line would not be read back as one line; nothing was written.
    #[error("the line is not one JSON object of at most 1 MiB: {0}")]
    Invalid(String),
    /// The line is not in the journal.
    #[error("{0}")]
    NotAppended(#[source] FileError),
    /// The line may be in the journal; reading on tells.
    #[error("{0}; whether the line was written is not known")]
    Unknown(#[source] FileError),
}

/// Why a read gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// What lay before the position is no longer there: the journal was truncated, replaced, rotated
    /// or deleted.
    #[error("the journal was {how}; {unread} unread bytes are lost")]
    Lost {
        /// Where to go on: the start of the new generation.
        resume: Position,
        /// How many bytes behind the position are known to be lost.
        unread: u64,
        /// `truncated`, `replaced` or `deleted`.
        how: &'static str,
    },
    /// What is in the journal's place may not be read; or reading failed.
    #[error(transparent)]
    Failed(#[from] FileError),
}

/// Bytes in order. All methods may be called from any thread and never wait for anything to come.
pub trait Journal: Send + Sync {
    /// Writes `line`, which holds no newline, with its newline in one write behind all that is
    /// there. Gives the place just behind it. Tells the wakes of this process at once.
    fn append(&self, line: &str) -> Result<Position, AppendError>;
    /// The lines behind `after`, about `at_most` of them.
    fn read(&self, after: Position, at_most: usize) -> Result<Batch, ReadError>;
    /// The start of the present generation.
    fn start(&self) -> Result<Position, ReadError>;
    /// Behind the last newline.
    fn end(&self) -> Result<Position, ReadError>;
    /// Tells the journal a position that a reader has kept, maybe in an earlier process: its
    /// generation is at least that one, and one more if the bytes before it have changed.
    fn anchor(&self, kept: Position) -> Result<(), ReadError>;
    /// Notifies `wake` at every change while the subscription lives.
    fn subscribe(&self, wake: &Wake) -> Subscription;
    /// Returns when what was appended outlives a power cut.
    fn sync(&self) -> Result<(), FileError>;
    /// A place between two lines, at most `bytes` before `place` and not behind it; the start where
    /// nothing lies farther back.
    fn back(&self, place: Position, bytes: u64) -> Result<Position, ReadError>;
    /// Gives an unfinished last line its newline, for the journal's only writer.
    fn close_tail(&self) -> Result<(), ReadError>;
    /// Durably makes `line` all that is in the journal, for the journal's only writer. Positions from
    /// before are lost.
    fn replace(&self, line: &str) -> Result<(), AppendError>;
}

/// Journals under one root.
pub trait Journals: Send + Sync {
    /// Opens a journal; it need not exist. One object a name, whoever asks.
    fn open(&self, name: &JournalName) -> Result<Arc<dyn Journal>, FileError>;
    /// The journals in `folder` (empty: the root itself), and the names there that are none.
    fn list(&self, folder: &str) -> Result<Listing, FileError>;
    /// Starts telling the wakes what other processes append to journals of the root itself. After
    /// the wakes `changed` is called, on the watcher's own thread: it must only notify.
    fn watch(&self, changed: Box<dyn Fn() + Send + Sync>) -> Result<Watch, FileError>;
    /// Calls `changed` at every change of a journal in `folder`, which is made where it is missing, on
    /// the watcher's own thread: it must only notify.
    fn watch_folder(
        &self,
        folder: &str,
        changed: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Watch, FileError>;
    /// Completes tails that rest and notices what no event told of; gives the moment at which it
    /// wants to be called again for a tail. Only the master of the root calls it.
    fn tick(&self, now: Moment, what: Tick) -> Option<Moment>;
}

/// What a tick looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tick {
    /// Journals of the root that have changed or have a tail.
    Changed,
    /// All open journals of the root.
    All,
}

/// What is in a folder of journals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Sorted.
    pub journals: Vec<JournalName>,
    /// File names that are no journal's, sorted; folders apart.
    pub strays: Vec<String>,
}

/// Ends the watching when dropped.
pub struct Watch {
    watcher: Option<notify::RecommendedWatcher>,
}

impl Watch {
    /// For journals that need no watcher.
    pub fn nothing() -> Self {
        Self { watcher: None }
    }

    /// Whether changes are told of at once; if not, ticks alone find them.
    pub fn is_watching(&self) -> bool {
        self.watcher.is_some()
    }
}

/// The wakes of a journal.
#[derive(Clone, Default)]
pub struct Wakes(Arc<parking_lot::Mutex<Listeners>>);

#[derive(Default)]
struct Listeners {
    next: u64,
    wakes: std::collections::BTreeMap<u64, Wake>,
}

impl Wakes {
    /// Adds `wake` for as long as the subscription lives.
    pub fn add(&self, wake: &Wake) -> Subscription {
        let mut listeners = self.0.lock();
        let key = listeners.next;
        listeners.next += 1;
        listeners.wakes.insert(key, wake.clone());
        Subscription { wakes: self.clone(), key }
    }

    /// Notifies them all.
    pub fn notify(&self) {
        let wakes: Vec<Wake> = self.0.lock().wakes.values().cloned().collect();
        wakes.iter().for_each(Wake::notify);
    }
}

/// Ends on drop.
pub struct Subscription {
    wakes: Wakes,
    key: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.wakes.0.lock().wakes.remove(&self.key);
    }
}
