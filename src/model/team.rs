//! A team as its file describes it: who is in it, how they work, what they begin with.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use super::{
    AgentName, AgentType, Budget, Message, PermissionMode, Preset, Prices, ProviderEntry, Report,
    Rule, Task, TypeName, UnknownType, message::resolve_lead, provider_entry::unknown_provider,
};
use crate::base::text::listed;

/// A team.
#[derive(Debug, Clone, PartialEq)]
pub struct Team {
    /// What it is called.
    pub name: AgentName,
    /// Who leads: answers for the team, may stop the others.
    pub lead: AgentName,
    /// All teammates, by name.
    pub teammates: BTreeMap<AgentName, Teammate>,
    /// What its teammates and their subagents may be, by name: the built-in types and its own.
    pub types: BTreeMap<TypeName, AgentType>,
    /// Who may think for them, by name: the kinds that are always there and its own.
    pub providers: BTreeMap<String, ProviderEntry>,
    /// Who thinks where nothing else is said.
    pub provider: String,
    /// The type where none is named.
    pub default_type: TypeName,
    /// What becomes of a subagent of a type that is not known.
    pub on_unknown_type: OnUnknownType,
    /// What of the definitions could not be used.
    pub reports: Vec<Report>,
    /// Names with a mailbox and no thread.
    pub outside: BTreeSet<AgentName>,
    /// Limits for all of them.
    pub limits: Limits,
    /// How much all of them may spend together.
    pub budget: Budget,
    /// What models cost.
    pub prices: Prices,
    /// What may, must be asked for, or must not happen, for all of them.
    pub rules: Vec<Rule>,
    /// Who approves plans, where a teammate's entry does not say.
    pub approver: AgentName,
    /// What has to outlive what.
    pub durability: Durability,
    /// Tasks that a run without a message puts on the board.
    pub tasks: Vec<TeamTask>,
    /// Messages that a run without a message sends.
    pub start: Vec<Errand>,
}

/// What becomes of a subagent of a type that is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnUnknownType {
    /// It is refused, and the valid names are told.
    #[default]
    Refuse,
    /// It is of the default type, as older systems have it.
    Default,
}

/// One teammate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Teammate {
    /// What it is.
    pub agent_type: TypeName,
    /// What it is there for, in a few words.
    pub role: String,
    /// What it is told about itself.
    pub system_prompt: String,
    /// Who thinks for it, where its entry says so.
    pub provider: Option<String>,
    /// With which model, where its entry says so.
    pub model: Option<String>,
    /// What a clerk does with each request.
    pub script: Option<Placed<String>>,
    /// How its side effects are judged.
    pub permission_mode: PermissionMode,
    /// Whether nothing may be changed before a plan is approved.
    pub plan_required: bool,
    /// Who approves its plans, where its entry says so.
    pub approver: Option<AgentName>,
    /// Which tasks it takes by itself, where its entry says so.
    pub claims: Option<Claims>,
    /// How much it may spend, with its subagents.
    pub budget: Budget,
}

/// Which tasks a teammate takes from the board by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claims {
    /// Those meant for it, and those meant for nobody.
    Any,
    /// Those meant for it.
    Assigned,
    /// None.
    None,
}

/// Something to be done by somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errand {
    /// Who does it.
    pub to: AgentName,
    /// What is to be done.
    pub content: String,
}

/// A task to be put on the board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamTask {
    /// What it is, in a few words.
    pub title: String,
    /// The work; the title where it is empty.
    pub description: String,
    /// Who shall do it: a teammate, or whoever is of a type.
    pub assignee: Option<AgentName>,
    /// As what it is done, where not as what its worker is.
    pub agent_type: Option<TypeName>,
    /// Which tasks of the list have to be done first, counted from 0; all stand before it.
    pub depends_on: Vec<usize>,
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
    /// How long a question waits for its decision; for ever if there is none.
    pub question_timeout: Option<Duration>,
    /// How deep subagents may delegate in their turn; 1 lets teammates delegate and nobody else.
    pub max_depth: usize,
    /// The most runs in the background that a teammate may have at a time; with 0 there are none.
    pub max_children: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tool_timeout: Duration::from_mins(2),
            grace: Duration::from_secs(10),
            mail_per_minute: 120,
            question_timeout: Some(Duration::from_mins(30)),
            max_depth: 3,
            max_children: 8,
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

    /// Which tasks `name` takes by itself: whoever leads, or can change nothing, waits for what is
    /// meant for it.
    pub fn claims(&self, name: &AgentName) -> Claims {
        let stated = self.teammates.get(name).and_then(|teammate| teammate.claims);
        let only_reads = self.type_of(name).is_some_and(AgentType::only_reads);
        let waits = *name == self.lead || only_reads;
        let default = if waits { Claims::Assigned } else { Claims::Any };
        stated.unwrap_or(default)
    }

    /// What `name` is.
    pub fn type_of(&self, name: &AgentName) -> Option<&AgentType> {
        self.types.get(&self.teammates.get(name)?.agent_type)
    }

    /// Who thinks for `name`: as its entry says, else as its type does. One with a script is a clerk.
    pub fn provider_of(&self, name: &AgentName) -> &str {
        let teammate = self.teammates.get(name);
        let own = teammate.and_then(|it| it.provider.as_deref());
        let of_script = teammate.and_then(|it| it.script.as_ref()).map(|_| "clerk");
        let of_type = self.type_of(name).and_then(|it| it.provider.as_deref());
        own.or(of_script).or(of_type).unwrap_or(&self.provider)
    }

    /// The agent program that thinks for `name` and judges by itself what it may do, where one does.
    pub fn program_of(&self, name: &AgentName) -> Option<Preset> {
        self.providers.get(self.provider_of(name))?.preset
    }

    /// Lets `provider` think for everybody, whatever the file says.
    pub fn let_think(&mut self, provider: &str) -> Result<(), String> {
        if !self.providers.contains_key(provider) {
            return Err(unknown_provider(provider, self.providers.keys()));
        }
        provider.clone_into(&mut self.provider);
        for teammate in self.teammates.values_mut() {
            (teammate.provider, teammate.model) = (Some(provider.to_owned()), None);
        }
        for it in self.types.values_mut() {
            (it.provider, it.model) = (None, None);
        }
        Ok(())
    }

    /// The names for which a task is meant for `name`: its own, and that of its type unless a
    /// teammate is so called.
    pub fn names_of(&self, name: &AgentName) -> Vec<AgentName> {
        let of_type = self.type_of(name).and_then(|it| AgentName::new(it.name.as_str()).ok());
        let of_type = of_type.filter(|it| !self.teammates.contains_key(it));
        [name.clone()].into_iter().chain(of_type).collect()
    }

    /// Whether a task may be meant for `name`: a member, or a type.
    pub fn is_assignable(&self, name: &AgentName) -> bool {
        let is_type = TypeName::new(name.as_str()).is_ok_and(|it| self.types.contains_key(&it));
        is_type || self.members().contains(name)
    }

    /// As what the teammate who claimed a task last works on it.
    pub fn worked_as(&self, task: &Task) -> Option<&TypeName> {
        let own = self.type_of(&task.worker.as_ref()?.name)?;
        let it = match &task.agent_type {
            Some(wanted) => self.spawnable(wanted.as_str()).ok()?,
            None => own,
        };
        Some(&it.name)
    }

    /// What a task wants that the team has not, so that nobody can do it.
    pub fn fault_of(&self, task: &Task) -> Option<String> {
        let as_what = task.agent_type.as_ref();
        match as_what.and_then(|it| self.spawnable(it.as_str()).err()) {
            // Whoever has a guess needs no list.
            Some(UnknownType::NoType { shown, hint, about, .. }) if !hint.is_empty() => {
                return Some(format!("no type is called {shown:?}{hint}{about}"));
            }
            Some(why) => return Some(why.to_string()),
            None => {}
        }
        let name = task.assignee.as_ref().filter(|name| !self.is_assignable(name))?;
        let known = listed(self.members());
        Some(format!("nobody is called {name}, and no type; there are {known}"))
    }

    /// Who approves the plans of `name`.
    pub fn approver_of(&self, name: &AgentName) -> AgentName {
        let own = self.teammates.get(name).and_then(|teammate| teammate.approver.clone());
        let approver = own.unwrap_or_else(|| self.approver.clone());
        // Nobody decides what they have asked.
        if approver == *name { AgentName::user() } else { approver }
    }

    /// Whose word a decision in the mailbox of `asker` is. A teammate's line without a seal has no
    /// authority, so it counts as nobody's, which is the asker's own.
    pub fn who_decides(&self, message: &Message, asker: &AgentName) -> AgentName {
        let from = &message.envelope.from;
        let is_teammate = self.teammates.contains_key(from);
        if is_teammate && !message.sealed { asker.clone() } else { from.clone() }
    }

    /// All who have a mailbox: teammates, outsiders and `user`.
    pub fn members(&self) -> BTreeSet<AgentName> {
        let teammates = self.teammates.keys().cloned();
        teammates.chain(self.outside.iter().cloned()).chain([AgentName::user()]).collect()
    }
}
