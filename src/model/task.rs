//! A task, and what a line of the board says about one.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    AgentName, BadName, MessageId, RunId, TypeName,
    fields::{Fault, Fields},
};

/// How long a claim without a run holds unless its line says otherwise, in seconds.
pub const DEFAULT_LEASE_S: u64 = 900;

/// A task's id: the number of its create, or one given by whoever added it, which holds a letter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(String);

impl TaskId {
    /// Checks a given or typed id.
    pub fn new(text: impl Into<String>) -> Result<Self, BadName> {
        MessageId::new(text).map(|id| Self(id.into()))
    }

    /// The id of the create with this number, counted from 1.
    pub fn numbered(number: u64) -> Self {
        Self(number.to_string())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_given(&self) -> bool {
        self.0.bytes().any(|byte| byte.is_ascii_alphabetic())
    }
}

impl TryFrom<String> for TaskId {
    type Error = BadName;
    fn try_from(text: String) -> Result<Self, BadName> {
        Self::new(text)
    }
}
impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.0
    }
}
impl fmt::Display for TaskId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.0)
    }
}

/// A task as the board has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// What it is, in a few words.
    pub title: String,
    /// The work; the title where it is empty.
    pub description: String,
    /// What has to be done first.
    pub depends_on: Vec<TaskId>,
    /// Who shall do it: a teammate, or a type. It binds those who look for work, not the board.
    pub assignee: Option<AgentName>,
    /// As what it is done, where not as what its worker is.
    #[serde(default)]
    pub agent_type: Option<TypeName>,
    /// Who added it, and is told of its end.
    pub added_by: AgentName,
    /// How often it has been claimed.
    pub attempt: u64,
    /// How often it was given back, by reason.
    pub released: std::collections::BTreeMap<String, u32>,
    /// Who claimed it last.
    pub worker: Option<Worker>,
    /// How it stands.
    pub state: TaskState,
}

/// Who works on a task, or did so last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// The teammate or outsider.
    pub name: AgentName,
    /// The trace of the work: as the end of the claim says, else the run that claimed it.
    pub trace: Option<RunId>,
}

impl Task {
    /// What is to be done.
    pub fn work(&self) -> &str {
        if self.description.is_empty() { &self.title } else { &self.description }
    }
}

/// How a task stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Nobody has it.
    Pending,
    /// Somebody has it.
    InProgress {
        /// Who.
        owner: AgentName,
        /// What ends the claim.
        hold: Hold,
    },
    /// It is done; what came of it.
    Done(String),
    /// It was tried and did not work; why.
    Failed(String),
    /// It is not wanted any more.
    Cancelled,
}

impl TaskState {
    /// The word for it on the board.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress { .. } => "in_progress",
            Self::Done(_) => "done",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a claim lives by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// A run of the daemon: the daemon gives the task back when the run is dead.
    Run(RunId),
    /// A lease, in seconds from when the daemon saw the claim or its renewal.
    Lease(u64),
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskEvent {
    /// There is a new task.
    Create(Create),
    /// A task changes.
    Update(Update),
}

/// A new task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// The line's own id, where it has one: a repetition does not count.
    pub event: Option<MessageId>,
    /// Its id, where one is given.
    pub id: Option<TaskId>,
    /// What it is.
    pub title: String,
    /// The work.
    pub description: String,
    /// What has to be done first.
    pub depends_on: Vec<TaskId>,
    /// Who shall do it.
    pub assignee: Option<AgentName>,
    /// As what.
    pub agent_type: Option<TypeName>,
    /// Who adds it.
    pub by: AgentName,
}

/// A change of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The line's own id, where it has one.
    pub event: Option<MessageId>,
    /// Which task.
    pub id: TaskId,
    /// How the task has to stand; a line without it is void.
    pub expected: Option<StateWord>,
    /// How it shall stand; absent for a renewal.
    pub to: Option<StateWord>,
    /// The attempt the line speaks of.
    pub attempt: Option<u64>,
    /// Who claims.
    pub owner: Option<AgentName>,
    /// The run that claims.
    pub run: Option<RunId>,
    /// How long the claim holds, in seconds.
    pub lease_s: Option<u64>,
    /// What came of it, or why it is given back.
    pub result: Option<String>,
    /// Why it is given back.
    pub reason: Option<String>,
    /// The trace that tells how it came about.
    pub trace: Option<RunId>,
    /// Who says so.
    pub by: AgentName,
}

/// How a task stands, without the details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateWord {
    /// Nobody has it.
    Pending,
    /// Somebody has it.
    InProgress,
    /// It is done.
    Done,
    /// It did not work.
    Failed,
    /// It is not wanted.
    Cancelled,
}

impl StateWord {
    /// All, with their words on the board.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("pending", Self::Pending),
        ("in_progress", Self::InProgress),
        ("done", Self::Done),
        ("failed", Self::Failed),
        ("cancelled", Self::Cancelled),
    ];

    /// The word on the board.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl From<&TaskState> for StateWord {
    fn from(state: &TaskState) -> Self {
        match state {
            TaskState::Pending => Self::Pending,
            TaskState::InProgress { .. } => Self::InProgress,
            TaskState::Done(_) => Self::Done,
            TaskState::Failed(_) => Self::Failed,
            TaskState::Cancelled => Self::Cancelled,
        }
    }
}

/// The field that a key means on the board.
const ALIASES: &[(&str, &str)] = &[
    ("timestamp", "timestamp"),
    ("ts", "timestamp"),
    ("op", "op"),
    ("event", "event"),
    ("id", "id"),
    ("title", "title"),
    ("subject", "title"),
    ("description", "description"),
    ("depends_on", "depends_on"),
    ("blockedBy", "depends_on"),
    ("blocked_by", "depends_on"),
    ("dependsOn", "depends_on"),
    ("assignee", "assignee"),
    ("agent_type", "agent_type"),
    ("type", "agent_type"),
    ("agentType", "agent_type"),
    ("subagent_type", "agent_type"),
    ("subagentType", "agent_type"),
    ("owner", "owner"),
    ("by", "by"),
    ("expected_status", "expected_status"),
    ("status", "status"),
    ("attempt", "attempt"),
    ("run", "run"),
    ("lease_s", "lease_s"),
    ("result", "result"),
    ("reason", "reason"),
    ("trace_id", "trace_id"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Create,
    Update,
}

const OPS: &[(&str, Op)] = &[("create", Op::Create), ("update", Op::Update)];

/// Reads a line of the board, or says why it is none.
pub fn read_task_line(body: &str) -> Result<TaskEvent, Fault> {
    let fields = Fields::read(body, ALIASES)?;
    let implied = if fields.has("title") { Op::Create } else { Op::Update };
    match fields.choice("op", OPS)?.unwrap_or(implied) {
        Op::Create => create(&fields).map(TaskEvent::Create),
        Op::Update => update(&fields).map(TaskEvent::Update),
    }
}

fn create(fields: &Fields<'_>) -> Result<Create, Fault> {
    let title = fields.text("title")?;
    let title = title.ok_or("no title: a task needs {\"title\":\"…\"}")?;
    let id = task_id(fields)?;
    if let Some(id) = id.as_ref().filter(|id| !id.is_given()) {
        return Err(format!("a given id holds a letter, and {id} does not"));
    }
    let assignee = name(fields, "assignee")?;
    if assignee.is_some() && fields.has("owner") {
        return Err("duplicate key \"owner\" (also assignee)".to_owned());
    }
    Ok(Create {
        event: fields.id("event")?,
        id,
        title,
        description: fields.text("description")?.unwrap_or_default(),
        depends_on: depends_on(fields)?,
        assignee: assignee.or(name(fields, "owner")?),
        agent_type: type_name(fields)?,
        by: name(fields, "by")?.unwrap_or_else(AgentName::user),
    })
}

fn update(fields: &Fields<'_>) -> Result<Update, Fault> {
    let id = task_id(fields)?;
    let run = fields.text("run")?.map(RunId::new).transpose();
    Ok(Update {
        event: fields.id("event")?,
        id: id.ok_or("no id: an update names its task, a new task has a title")?,
        expected: fields.choice("expected_status", StateWord::ALL)?,
        to: fields.choice("status", StateWord::ALL)?,
        attempt: fields.number("attempt")?,
        owner: name(fields, "owner")?,
        run: run.map_err(|why| why.to_string())?,
        lease_s: fields.number("lease_s")?,
        result: fields.text("result")?,
        reason: fields.text("reason")?,
        // One that can't be read is unknown and no fault, since it decides nothing.
        trace: fields.text("trace_id").ok().flatten().and_then(|it| RunId::new(it).ok()),
        by: name(fields, "by")?.unwrap_or_else(AgentName::user),
    })
}

fn task_id(fields: &Fields<'_>) -> Result<Option<TaskId>, Fault> {
    let id = fields.text_or_number("id")?;
    id.map(TaskId::new).transpose().map_err(|why| format!("bad id: {why}"))
}

fn depends_on(fields: &Fields<'_>) -> Result<Vec<TaskId>, Fault> {
    let texts = fields.texts_or_numbers("depends_on")?.unwrap_or_default();
    let ids: Result<Vec<TaskId>, BadName> = texts.into_iter().map(TaskId::new).collect();
    ids.map_err(|why| format!("bad depends_on: {why}"))
}

fn type_name(fields: &Fields<'_>) -> Result<Option<TypeName>, Fault> {
    let name = fields.text("agent_type")?.map(TypeName::new).transpose();
    name.map_err(|why| format!("bad name in agent_type: {why}"))
}

fn name(fields: &Fields<'_>, field: &str) -> Result<Option<AgentName>, Fault> {
    let name = fields.text(field)?.map(AgentName::new).transpose();
    name.map_err(|why| format!("bad name in {field}: {why}"))
}
