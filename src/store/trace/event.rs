//! The lines of a trace: who it is about, what happened, how it ended. One shape to write and to
//! read; what a reader does not understand it passes over.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use crate::{
    base::Timestamp,
    model::{AgentName, CallId, Kind, MessageId, RunId, Status, ToolCall, TypeName},
};

/// How much was done and spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Messages that came in.
    pub messages: u64,
    /// How often the model was asked.
    pub model_calls: u64,
    /// How often a tool was called.
    pub tool_calls: u64,
    /// Tokens that the model was given.
    pub tokens_in: u64,
    /// Tokens that the model gave.
    pub tokens_out: u64,
}

impl Add for Totals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            messages: self.messages.saturating_add(other.messages),
            model_calls: self.model_calls.saturating_add(other.model_calls),
            tool_calls: self.tool_calls.saturating_add(other.tool_calls),
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
        }
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Totals {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// Who a trace is about and what it hangs on; the first line of its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Head", into = "Head")]
pub struct TraceHead {
    /// Who did the work.
    pub agent: AgentName,
    /// What it is.
    pub agent_type: TypeName,
    /// Which life of a teammate it is; none for a run of its own.
    pub life: Option<u64>,
    /// The trace in which the run was started.
    pub parent: Option<RunId>,
    /// The tool call that started it.
    pub spawned_by_tool: Option<CallId>,
    /// The text of the work.
    pub task: Option<String>,
    /// The task of the board that it is for.
    pub parent_task: Option<String>,
    /// The work in a few words.
    pub description: Option<String>,
    /// Whether nobody waits for it.
    pub in_background: bool,
}

impl TraceHead {
    /// That of a life.
    pub fn of_life(agent: AgentName, agent_type: TypeName, life: u64) -> Self {
        Self {
            agent,
            agent_type,
            life: Some(life),
            parent: None,
            spawned_by_tool: None,
            task: None,
            parent_task: None,
            description: None,
            in_background: false,
        }
    }
}

/// How a head is written.
#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_trace_id: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spawned_by_tool: Option<CallId>,
    agent: AgentName,
    #[serde(default = "unknown_type")]
    agent_type: TypeName,
    #[serde(default)]
    mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    life: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    in_background: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    #[serde(default, skip_serializing_if = "Context::is_empty")]
    context: Context,
}

#[derive(Default, Serialize, Deserialize)]
struct Context {
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_task: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

impl Context {
    fn is_empty(&self) -> bool {
        self.parent_task.is_none() && self.description.is_none()
    }
}

fn unknown_type() -> TypeName {
    TypeName::named("unknown")
}

impl From<TraceHead> for Head {
    fn from(head: TraceHead) -> Self {
        let mode = if head.life.is_some() { "agent" } else { "call" };
        Self {
            parent_trace_id: head.parent,
            spawned_by_tool: head.spawned_by_tool,
            agent: head.agent,
            agent_type: head.agent_type,
            mode: mode.to_owned(),
            life: head.life,
            in_background: head.in_background,
            task: head.task,
            context: Context { parent_task: head.parent_task, description: head.description },
        }
    }
}

impl From<Head> for TraceHead {
    fn from(head: Head) -> Self {
        Self {
            agent: head.agent,
            agent_type: head.agent_type,
            life: head.life,
            parent: head.parent_trace_id,
            spawned_by_tool: head.spawned_by_tool,
            task: head.task,
            parent_task: head.context.parent_task,
            description: head.context.description,
            in_background: head.in_background,
        }
    }
}

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TraceEvent {
    /// The run began.
    Started {
        /// Its own id.
        trace_id: RunId,
        /// Who and what.
        #[serde(flatten)]
        head: TraceHead,
    },
    /// The run goes on after it had ended or was cut off.
    Resumed {
        /// The text of the work that it goes on with.
        #[serde(skip_serializing_if = "Option::is_none")]
        task: Option<String>,
    },
    /// A message came in.
    Message {
        /// Its id.
        id: MessageId,
        /// Who sent it.
        from: AgentName,
        /// Of which kind it is.
        kind: Kind,
        /// What it says.
        content: String,
    },
    /// The model is asked.
    ModelCallStarted,
    /// The model has answered.
    ModelCall {
        /// Tokens that it was given.
        tokens_in: u64,
        /// Tokens that it gave.
        tokens_out: u64,
        /// How long it took.
        milliseconds: u64,
        /// What it said.
        text: String,
    },
    /// The conversation was shortened.
    Compaction {
        /// About how many tokens it was.
        tokens_before: u64,
        /// About how many it is.
        tokens_after: u64,
    },
    /// A tool was called.
    ToolCall {
        /// Which, with its input.
        call: ToolCall,
        /// What the guard said.
        verdict: String,
        /// How long it took.
        milliseconds: u64,
        /// Whether it failed.
        is_error: bool,
        /// What it gave.
        output: String,
    },
    /// A run below this one was started, or sent to again.
    SubagentStarted {
        /// Its trace.
        id: RunId,
        /// The call that did it.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// What it is.
        agent_type: TypeName,
        /// What it shall do.
        task: String,
        /// Whether nobody waits for it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        in_background: bool,
    },
    /// A run below this one has ended.
    SubagentCompleted {
        /// Its trace.
        id: RunId,
        /// How.
        status: Status,
        /// With which words.
        text: String,
        /// All that it and the runs below it have done.
        #[serde(default)]
        with_children: Totals,
    },
    /// Something went wrong that the model does not hear of.
    Error {
        /// What.
        text: String,
    },
    /// A piece of work ended.
    Conclusion {
        /// The message that it was about.
        message: MessageId,
        /// How.
        status: Status,
        /// With which words.
        text: String,
    },
    /// The run ended.
    Ended {
        /// `completed` or `failed`.
        status: String,
        /// Why.
        reason: String,
        /// What it has done itself.
        #[serde(default)]
        totals: Totals,
        /// The same with all that the runs below it have done.
        #[serde(default)]
        with_children: Totals,
    },
    /// What this postroom does not know.
    #[serde(other)]
    Unknown,
}

/// An event and when it happened.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceLine {
    /// As far as the line says.
    pub at: Option<Timestamp>,
    /// What.
    pub event: TraceEvent,
}

#[derive(Serialize, Deserialize)]
struct Written<E> {
    #[serde(default)]
    timestamp: String,
    #[serde(flatten)]
    event: E,
}

impl TraceLine {
    /// The line as it is written.
    pub fn to_text(at: Timestamp, event: &TraceEvent) -> String {
        serde_json::to_string(&Written { timestamp: at.to_string(), event })
            .unwrap_or_else(|_| crate::base::broken("an event has a JSON form"))
    }

    /// Reads a line; none where it is nothing that this postroom writes.
    pub fn read(text: &str) -> Option<Self> {
        let line: Written<TraceEvent> = serde_json::from_str(text).ok()?;
        Some(Self { at: Timestamp::parse(&line.timestamp), event: line.event })
    }
}
