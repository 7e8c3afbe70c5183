//! A team as its file describes it: who is in it, how they work, what they begin with.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use super::{AgentName, PermissionMode, message::resolve_lead};

/// A team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Team {
    /// What it is called.
    pub name: AgentName,
    /// Who leads: answers for the team, may stop the others.
    pub lead: AgentName,
    /// All teammates, by name.
    pub teammates: BTreeMap<AgentName, Teammate>,
    /// Names with a mailbox and no thread.
    pub outside: BTreeSet<AgentName>,
    /// Limits for all of them.
    pub limits: Limits,
    /// What has to outlive what.
    pub durability: Durability,
    /// Work that a run without a message gives out.
    pub tasks: Vec<Errand>,
    /// Messages that a run without a message sends.
    pub start: Vec<Errand>,
}

/// One teammate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Teammate {
    /// What it is there for, in a few words.
    pub role: String,
    /// What it is told about itself.
    pub system_prompt: String,
    /// What a clerk does with each request.
    pub script: Option<Placed<String>>,
    /// How its side effects are judged.
    pub permission_mode: PermissionMode,
}

/// Something to be done by somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errand {
    /// Who does it.
    pub to: AgentName,
    /// What is to be done.
    pub content: String,
}

/// Limits of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a command may run.
    pub tool_timeout: Duration,
    /// How long a tool may go on by itself after a SHUTDOWN.
    pub grace: Duration,
    /// The most messages an agent may send in a minute.
    pub mail_per_minute: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tool_timeout: Duration::from_mins(2),
            grace: Duration::from_secs(10),
            mail_per_minute: 120,
        }
    }
}

/// What outlives what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// Everything outlives the death of any process.
    #[default]
    Kill,
    /// Answers and cursors outlive a power cut, too.
    Power,
}

/// A value and where it stands in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed<T> {
    /// Where.
    pub place: Place,
    /// What.
    pub value: T,
}

/// A place in a file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.line, self.column)
    }
}

/// What is wrong with a team file, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TeamFault {
    /// Where.
    pub place: Place,
    /// What is wrong and what would be right.
    pub why: String,
}

impl fmt::Display for TeamFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.why)
    }
}

impl Team {
    /// Whoever `name` means: `lead` and `team-lead` are whoever leads, unless a teammate is so named.
    pub fn resolve(&self, name: AgentName) -> AgentName {
        if self.teammates.contains_key(&name) {
            return name;
        }
        resolve_lead(name, Some(&self.lead))
    }

    /// The name that `lead` and `team-lead` stand for, unless a teammate who does not lead bears one
    /// of them.
    pub fn lead_by_alias(&self) -> Option<AgentName> {
        let bears_one = |name: &&AgentName| ["lead", "team-lead"].contains(&name.as_str());
        let mut bearers = self.teammates.keys().filter(bears_one);
        bearers.all(|name| *name == self.lead).then(|| self.lead.clone())
    }

    /// All who have a mailbox: teammates, outsiders and `user`.
    pub fn members(&self) -> BTreeSet<AgentName> {
        let teammates = self.teammates.keys().cloned();
        teammates.chain(self.outside.iter().cloned()).chain([AgentName::user()]).collect()
    }
}
