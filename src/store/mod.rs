//! Journals with meaning: mail, the board, lives, conversations, traces, dead letters, the status.
//!
//! The same code serves the daemon, the command line beside it, and the command line alone. It
//! starts no thread and judges nothing.

mod board;
mod bus;
mod conversation;
mod costs;
mod cursors;
mod dead;
mod inbox;
mod layout;
mod lives;
mod recent;
mod reader;
mod status;
mod teams;
mod trace;

use std::{path::Path, sync::Arc};

pub use board::{BoardLine, BoardNews, Claim, ClaimEnd, TaskBoard};
pub use bus::{MessageBus, Roster, SendError};
pub use conversation::{Kept, RunHead};
pub use costs::{
    Call, Charge, CostLine, Costs, Ledger, OpenCall, PricedBy, Settled, Spending, Spent, Usage,
    UsedUp, Whose, budgets_of, read_costs,
};
pub use cursors::Cursors;
pub use dead::{DeadEntry, DeadLetters, News};
pub use inbox::{Awaiting, Inbox, Rebirth};
pub use layout::{MAILBOX_FOLDER, find_root};
pub use lives::{LifeLog, Lives};
pub use reader::{DeadLine, Entry, MailReader};
pub use status::{Activity, Statuses, TeamStatus, TeammateStatus, UsedUpNote};
pub use teams::{TeamFile, TeamFileError, find_team, read_team_file, team_files};
pub use trace::{
    ToolUse, Totals, Trace, TraceCall, TraceChild, TraceEnd, TraceEvent, TraceHead, TraceLine,
    TraceNode, TracePiece, TraceReader,
};

use crate::{
    base::{
        Clock, FileError, Folder, Timestamp,
        hash::{Key, random_key},
    },
    journal::{AppendError, FileJournals, Journals, Position, ReadError},
    model::{AgentName, RunId},
};

/// Why something was not stored or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A line was not appended.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// A journal was not read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file was not written or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of ours holds what we did not write there.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// Which file.
        path: String,
        /// What is wrong, and the mend.
        why: String,
    },
}

impl StoreError {
    /// Whether it may pass while the program waits: no space, no descriptors, no rights.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Append(AppendError::NotAppended(why))
            | Self::File(why)
            | Self::Read(ReadError::Failed(why)) => why.is_passing(),
            Self::Append(AppendError::Invalid(_) | AppendError::Unknown(_))
            | Self::Read(ReadError::Lost { .. })
            | Self::Damaged { .. } => false,
        }
    }
}

/// A mailbox folder and all that is in it.
#[derive(Clone)]
pub struct Store {
    journals: Arc<dyn Journals>,
    clock: Clock,
    root: Folder,
    state: Folder,
    key: Key,
}

impl Store {
    /// Opens the mailbox folder `root`.
    pub fn open(root: Folder, clock: Clock) -> Result<Self, FileError> {
        let journals = Arc::new(FileJournals::new(root.clone()));
        Self::on(journals, root, clock)
    }

    /// Opens a store on other journals; what is no journal is kept in `root`.
    pub fn on(journals: Arc<dyn Journals>, root: Folder, clock: Clock) -> Result<Self, FileError> {
        let state = root.inside(layout::STATE)?;
        let key = read_key(&state)?;
        Ok(Self { journals, clock, root, state, key })
    }

    /// The mailbox folder.
    pub fn root(&self) -> &Folder {
        &self.root
    }

    /// The folder of what a person need not read.
    pub fn state(&self) -> &Folder {
        &self.state
    }

    /// The folder of whole tool outputs.
    pub fn outputs(&self) -> Result<Folder, FileError> {
        self.state.inside("outputs")
    }

    /// The folder that holds the mailbox folder.
    pub fn workspace(&self) -> &Path {
        self.root.path().parent().unwrap_or_else(|| Path::new("/"))
    }

    /// The journals.
    pub fn journals(&self) -> &dyn Journals {
        &*self.journals
    }

    /// The clocks.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The time to write on lines.
    pub fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    /// Whether the mailbox folder and its state are still where they were.
    pub fn is_in_place(&self) -> bool {
        self.root.is_in_place() && self.state.is_in_place()
    }

    /// Sends the daemon's mail, sealed, among the members of `roster`.
    pub fn bus(&self, roster: Arc<Roster>) -> MessageBus {
        MessageBus::new(self.clone(), roster, bus::Hand::Daemon)
    }

    /// Sends mail for whoever calls the command line.
    pub fn unsealed_bus(&self, roster: Arc<Roster>) -> MessageBus {
        MessageBus::new(self.clone(), roster, bus::Hand::Client)
    }

    /// Where the mailbox of `name` ends; an error where what is in its place may not be used.
    pub fn mailbox_end(&self, name: &AgentName) -> Result<Position, StoreError> {
        Ok(self.journals.open(&layout::mailbox(name))?.end()?)
    }

    /// Makes the mailboxes of `members` that are missing: whoever appends to one finds it private,
    /// whatever the umask. What is in the place of one is told to whoever reads it.
    pub fn make_mailboxes<'a>(&self, members: impl IntoIterator<Item = &'a AgentName>) {
        for name in members {
            drop(self.root.make_file(&layout::mailbox_file(name)));
        }
    }

    /// The teammates' lives.
    pub fn lives(&self) -> Lives {
        Lives::new(self.clone())
    }

    /// The conversation of a run.
    pub fn conversation(&self, run: &RunId) -> Result<Kept, StoreError> {
        Kept::open(self, run)
    }

    /// The conversation of a run of its own, which is begun where it is new.
    pub fn conversation_of(&self, run: &RunId, head: &RunHead) -> Result<Kept, StoreError> {
        Kept::begin(self, run, head)
    }

    /// What a run of its own is; none where it has no conversation, or one that can't be read.
    pub fn run_head(&self, run: &RunId) -> Result<Option<RunHead>, StoreError> {
        RunHead::read(self, run)
    }

    /// The runs with a conversation whose ids begin so.
    pub fn runs_beginning(&self, with: &str) -> Result<Vec<RunId>, StoreError> {
        let listed = self.journals.list(layout::CONVERSATIONS)?;
        let names = listed.journals.into_iter();
        let last = names.filter_map(|name| name.0.rsplit('/').next().map(str::to_owned));
        let begins = last.filter(|name| name.starts_with(with));
        Ok(begins.filter_map(|name| RunId::new(name).ok()).collect())
    }

    /// Cursors of mailboxes that are no teammate's.
    pub fn cursors(&self) -> Result<Cursors, FileError> {
        Cursors::open(self)
    }
}

/// The key of the seals, made at the first need.
fn read_key(state: &Folder) -> Result<Key, FileError> {
    if let Some(key) = known_key(state)? {
        return Ok(key);
    }
    state.create("key", &random_key())?;
    known_key(state)?.ok_or_else(|| FileError::Refused {
        path: state.path().join("key"),
        why: "it is not the 32 bytes that postroom wrote; remove it to get a new one, after which \
              older lines no longer count as written by postroom"
            .to_owned(),
    })
}

fn known_key(state: &Folder) -> Result<Option<Key>, FileError> {
    Ok(state.read("key")?.and_then(|bytes| bytes.try_into().ok()))
}
