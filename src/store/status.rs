//! What everybody is doing: kept in memory by the daemon, written to one file for whoever asks.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{Store, StoreError, UsedUp};
use crate::{
    base::FileError,
    model::{AgentName, Cost, MessageId, RunId, Status},
};

const FILE: &str = "status.json";

/// What a teammate is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// It has nothing to do.
    Idle,
    /// It works on a message.
    Working,
    /// It waits for somebody's answer.
    Waiting,
    /// Something outside has to change first; it tries again by itself.
    Retrying,
    /// It was stopped.
    Stopped,
    /// It died too often, or can't start.
    Failed,
}

impl Activity {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Working => "working",
            Self::Waiting => "waiting",
            Self::Retrying => "retrying",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

/// A teammate's line in the status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeammateStatus {
    /// What it is doing.
    pub state: Activity,
    /// Since when.
    pub since: String,
    /// On what, for whom, or why, in a few words.
    pub about: String,
    /// What its calls of a model wait for: of several, of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The same, by the run that makes the call.
    #[serde(skip)]
    pub holds: BTreeMap<RunId, String>,
    /// The message it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// The question that it waits to have decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<MessageId>,
    /// How its last piece of work ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Status>,
    /// Requests answered in this life of the daemon.
    pub answered: u64,
    /// Tokens its models have read in this life of the daemon.
    pub tokens_in: u64,
    /// Tokens its models have written in this life of the daemon.
    pub tokens_out: u64,
    /// What its models have cost in this life of the daemon, as far as known.
    #[serde(default, skip_serializing_if = "Cost::is_nothing")]
    pub cost: Cost,
    /// How many of its calls in this life of the daemon have cost nobody knows what.
    #[serde(default)]
    pub unknown_costs: u64,
    /// How many subagents and commands it runs in the background.
    #[serde(default)]
    pub in_background: usize,
    /// Whether it obeys a SHUTDOWN, so that its thread is going to end.
    #[serde(skip)]
    pub is_ending: bool,
}

/// That a budget is used up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedUpNote {
    /// Whose, and how.
    pub text: String,
    /// Until when; for ever if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

impl From<UsedUp> for UsedUpNote {
    fn from(it: UsedUp) -> Self {
        Self { text: it.to_string(), until: it.until.map(|until| until.to_string()) }
    }
}

/// The status of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamStatus {
    /// The team's name.
    pub team: AgentName,
    /// The team file, as an absolute path.
    pub file: String,
    /// The daemon's process.
    pub pid: u32,
    /// The daemon's life: another after each start.
    pub life: MessageId,
    /// Since when it is up.
    pub since: String,
    /// Whether all teammates have been started.
    pub ready: bool,
    /// What holds for the whole team and somebody should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Budgets that are used up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_up: Vec<UsedUpNote>,
    /// By name.
    pub teammates: BTreeMap<AgentName, TeammateStatus>,
}

impl TeamStatus {
    /// The status as it was last written; `None` where there was never one. One that can't be read
    /// counts as none: it is only a copy of what the daemon knows.
    pub fn read(store: &Store) -> Result<Option<Self>, StoreError> {
        let bytes = match store.state.read(FILE) {
            Err(FileError::Refused { .. }) => None,
            bytes => bytes?,
        };
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// Writes it for whoever asks.
    pub fn write(&self, store: &Store) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec_pretty(self)
            .unwrap_or_else(|_| crate::base::broken("a status has a JSON form"));
        Ok(store.state.replace_loosely(FILE, &bytes)?)
    }
}

/// What the teammates of this process are doing.
#[derive(Clone)]
pub struct Statuses {
    store: Store,
    changed: Arc<dyn Fn() + Send + Sync>,
    all: Arc<Mutex<BTreeMap<AgentName, TeammateStatus>>>,
}

impl Statuses {
    /// `changed` is called after each change and must only notify.
    pub fn new(store: &Store, changed: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self { store: store.clone(), changed, all: Arc::default() }
    }

    /// All of them.
    pub fn all(&self) -> BTreeMap<AgentName, TeammateStatus> {
        self.all.lock().clone()
    }

    /// `name` does something else from now on.
    pub fn set(&self, name: &AgentName, state: Activity, about: impl Into<String>) {
        let (since, about) = (self.store.now().to_string(), about.into());
        self.update(name, |status| {
            if status.state != state || status.about != about {
                status.since = since;
            }
            if state != Activity::Working && state != Activity::Waiting {
                status.message = None;
            }
            (status.state, status.about) = (state, about);
        });
    }

    /// What the call of a model in `run` of `name` waits for from now on, if for anything.
    pub fn hold(&self, name: &AgentName, run: &RunId, waits: Option<String>) {
        let known = self.all.lock().get(name).and_then(|status| status.holds.get(run).cloned());
        if known == waits {
            return;
        }
        self.update(name, |status| {
            match waits {
                Some(waits) => drop(status.holds.insert(run.clone(), waits)),
                None => drop(status.holds.remove(run)),
            }
            status.held = status.holds.values().next().cloned();
        });
    }

    /// Changes what is known of `name`.
    pub fn update(&self, name: &AgentName, change: impl FnOnce(&mut TeammateStatus)) {
        {
            let mut all = self.all.lock();
            let status = all.entry(name.clone()).or_insert_with(|| TeammateStatus {
                state: Activity::Stopped,
                since: self.store.now().to_string(),
                about: String::new(),
                held: None,
                holds: BTreeMap::new(),
                message: None,
                question: None,
                last: None,
                answered: 0,
                tokens_in: 0,
                tokens_out: 0,
                cost: Cost::default(),
                unknown_costs: 0,
                in_background: 0,
                is_ending: false,
            });
            change(status);
        }
        (self.changed)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        base::{Clock, Folder, Timestamp},
        journal::memory::MemoryJournals,
    };

    #[test]
    fn what_one_run_waits_for_is_shown_until_no_run_waits() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::make(&temp.path().canonicalize().unwrap().join(".mailbox")).unwrap();
        let journals = Arc::new(MemoryJournals::default());
        let store = Store::on(journals, folder, Clock::fake(Timestamp(0))).unwrap();
        let statuses = Statuses::new(&store, Arc::new(|| {}));
        let (name, runs) = (AgentName::named("lead"), ["a", "b"].map(|it| RunId::new(it).unwrap()));
        let hold = |run: &RunId, why: Option<&str>| {
            statuses.hold(&name, run, why.map(str::to_owned));
            statuses.all().get(&name).and_then(|status| status.held.clone()).unwrap_or_default()
        };
        assert_eq!(hold(&runs[0], None), "");
        assert_eq!(hold(&runs[1], Some("until ten")), "until ten");
        assert_eq!(hold(&runs[0], Some("until nine")), "until nine");
        assert_eq!(hold(&runs[0], None), "until ten");
        assert_eq!(hold(&runs[1], None), "");
    }
}
