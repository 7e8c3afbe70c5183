//! The lives of the teammates, one small journal each. Only the holder of the daemon's lock records.

use std::sync::Arc;

use super::{Store, StoreError, layout};
use crate::{
    base::crash,
    journal::{Journal, Position, ReadError},
    model::{AgentName, LIFE_VERSION, Life},
};

/// The size from which on a life's journal is begun anew, in bytes.
const LARGEST: u64 = 1 << 20;

/// All lives.
#[derive(Clone)]
pub struct Lives(Store);

impl Lives {
    pub(super) fn new(store: Store) -> Self {
        Self(store)
    }

    /// The names of all who have a life.
    pub fn names(&self) -> Result<Vec<AgentName>, StoreError> {
        let listing = self.0.journals.list(layout::LIVES)?;
        let names = listing.journals.iter().filter_map(|name| name.0.rsplit('/').next());
        Ok(names.filter_map(|name| AgentName::new(name).ok()).collect())
    }

    /// The life of `name`, with its log; a new one, which is not yet recorded, where it has none.
    pub fn open(&self, name: &AgentName) -> Result<LifeLog, StoreError> {
        let journal = self.0.journals.open(&layout::life(name))?;
        let known = self.names()?.contains(name).then(|| read_last(&*journal, name)).transpose()?;
        let is_new = known.is_none();
        let life = match known {
            Some(life) => life,
            None => Life::new(self.mailbox_start(name)?),
        };
        Ok(LifeLog { store: self.0.clone(), journal, life, is_new })
    }

    fn mailbox_start(&self, name: &AgentName) -> Result<Position, StoreError> {
        Ok(self.0.journals.open(&layout::mailbox(name))?.start()?)
    }
}

fn read_last(journal: &dyn Journal, name: &AgentName) -> Result<Life, StoreError> {
    let damaged = |why: String| StoreError::Damaged {
        path: format!(".mailbox/{}.jsonl", layout::life(name)),
        why: format!(
            "{why}; move it away to begin anew at the start of {name}'s mailbox (mail that was \
             answered before is then answered again)"
        ),
    };
    let mut last = None;
    let mut place = journal.start()?;
    loop {
        let batch = match journal.read(place, 4096) {
            // The daemon has begun it anew meanwhile, with the last record.
            Err(ReadError::Lost { resume, .. }) => {
                (place, last) = (resume, None);
                continue;
            }
            batch => batch?,
        };
        if batch.lines.is_empty() {
            break;
        }
        place = batch.next;
        last = batch.lines.into_iter().filter_map(|line| line.body.ok()).next_back().or(last);
    }
    let last = last.ok_or_else(|| damaged("it holds no whole record".to_owned()))?;
    let version: Version = serde_json::from_str(&last).map_err(|why| damaged(why.to_string()))?;
    if version.v != LIFE_VERSION {
        let why = format!("it is of version {}, but this postroom knows {LIFE_VERSION}", version.v);
        return Err(StoreError::Damaged {
            path: format!(".mailbox/{}.jsonl", layout::life(name)),
            why: format!("{why}; use the postroom that wrote it"),
        });
    }
    serde_json::from_str(&last).map_err(|why| damaged(why.to_string()))
}

#[derive(serde::Deserialize)]
struct Version {
    v: u32,
}

/// One life and the right to write it down.
pub struct LifeLog {
    store: Store,
    journal: Arc<dyn Journal>,
    life: Life,
    is_new: bool,
}

impl LifeLog {
    /// The life as it was last recorded.
    pub fn life(&self) -> &Life {
        &self.life
    }

    /// Whether nothing is recorded yet: it has never run.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Records the life as `change` leaves it. What was not recorded has not happened.
    pub fn record(&mut self, change: impl FnOnce(&mut Life)) -> Result<(), StoreError> {
        let mut life = self.life.clone();
        change(&mut life);
        life.timestamp = self.store.now().to_string();
        let line = serde_json::to_string(&life)
            .unwrap_or_else(|_| crate::base::broken("a life has a JSON form"));
        crash::point("life-before-record");
        if self.is_new || self.journal.end()?.offset > LARGEST {
            self.journal.replace(&line)?;
        } else {
            self.journal.append(&line)?;
        }
        crash::point("life-after-record");
        self.life = life;
        self.is_new = false;
        Ok(())
    }

    /// Returns when the last record outlives a power cut.
    pub fn sync(&self) -> Result<(), StoreError> {
        Ok(self.journal.sync()?)
    }
}
