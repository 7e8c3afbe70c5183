//! How far the mailboxes have been read that are no teammate's: one small file each.

use serde::{Deserialize, Serialize};

use super::{Store, StoreError};
use crate::{
    base::{FileError, Folder},
    journal::Position,
    model::AgentName,
};

/// The cursors. Only the holder of the daemon's lock moves one.
pub struct Cursors(Folder);

#[derive(Serialize, Deserialize)]
struct Record {
    cursor: Position,
}

impl Cursors {
    pub(super) fn open(store: &Store) -> Result<Self, FileError> {
        store.state.inside("readers").map(Self)
    }

    /// How far the mailbox of `name` was read; `None` where it never was. A cursor that can't be
    /// read counts as none: what it guards is only told again.
    pub fn read(&self, name: &AgentName) -> Result<Option<Position>, StoreError> {
        let bytes = self.0.read(&format!("{name}.json"))?;
        let record = bytes.and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok());
        Ok(record.map(|record| record.cursor))
    }

    /// Remembers how far the mailbox of `name` was read. A power cut may take the last of it: then
    /// some lines are dealt with twice, which whoever deals with them has to stand anyway.
    pub fn move_to(&self, name: &AgentName, cursor: Position) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(&Record { cursor })
            .unwrap_or_else(|_| crate::base::broken("a cursor has a JSON form"));
        Ok(self.0.replace_loosely(&format!("{name}.json"), &bytes)?)
    }
}
