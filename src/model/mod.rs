//! The words: plain data and pure rules. No file, no clock, no thread.

mod agent_type;
mod board;
mod budget;
mod budget_file;
mod conversation;
mod fields;
mod front_matter;
mod jsonc;
mod life;
mod message;
mod mode;
mod name;
mod preset;
mod price;
mod provider_entry;
mod shutdown;
mod question;
mod report;
mod rule;
mod tally;
mod team;
mod task;
mod task_text;
mod team_file;
mod team_types;
mod team_work;
mod tokens;
mod tool;
mod tool_pattern;
mod type_fields;
mod type_file;
mod type_words;
mod unknown_type;

pub use agent_type::{
    AgentType, MOST_TURNS, Origin, PathGrant, PathRule, TypeLimits, TypeMode, built_in_types,
};
pub use board::{Board, Change, Void};
pub use budget::{Budget, Per, Window};
pub use budget_file::{BUDGET_KEYS, PRICE_KEYS};
pub use conversation::{Conversation, Final, Mail, Next, Turn, sizes};
pub use life::{Desired, InBackground, LIFE_VERSION, Life, Span, Taken, Tries};
pub use message::{Envelope, MOST_CONTENT, MOST_HOPS, Mailbox, Message, TOO_LONG, resolve_lead};
pub use mode::PermissionMode;
pub use name::{AgentName, BadName, CallId, MessageId, RunId, TypeName};
pub use preset::Preset;
pub use price::{CLERK_MODEL, Cost, PRICES_OF, Price, Prices};
pub use provider_entry::{PROVIDER_KEYS, ProviderEntry, ProviderKind};
pub use question::{Asked, ProtocolEvent, ProtocolFsm, QuestionStep, Told};
pub use report::Report;
pub use rule::{Pattern, Rule, Ruling};
pub use shutdown::{Obedience, may_stop, obey};
pub use tally::{Summary, Tally};
pub use task::{
    Create, Hold, StateWord, Task, TaskEvent, TaskId, TaskState, Update, Worker, read_task_line,
};
pub use task_text::{state_word, task_line, task_text, way_out, worker};
pub use team::{
    Claims, Durability, Errand, Limits, OnUnknownType, Place, Placed, Team, TeamFault, TeamTask,
    Teammate,
};
pub use team_file::{TEAM_KEYS, TEAM_LIMIT_KEYS, TEAMMATE_KEYS, read_team};
pub use team_types::{AGENT_FOLDER, AgentFile, AgentFolders};
pub use team_work::TASK_KEYS;
pub use tokens::{Tokens, guessed_tokens};
pub use tool::{
    METADATA_CLOSES, METADATA_OPENS, TOOL_NAMES, TOOLS_TO_COME, ToolCall, ToolResult, ToolSpec,
    canonical, counts_as, likely_tool, without_metadata,
};
pub use type_fields::{LIMIT_FIELDS, NETWORK_FIELDS, PERMISSION_FIELDS, type_keys};
pub use unknown_type::{UnknownType, find_type};

use serde::{Deserialize, Serialize};

/// What kind of message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Worked on; gets exactly one response.
    Request,
    /// For whoever waits for it; else context for the next turn.
    Response,
    /// Context; no reply.
    Broadcast,
    /// Something happened; no reply.
    Event,
}

/// A protocol that a message takes part in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// A plan that somebody shall approve.
    PlanApproval,
    /// The owner of the mailbox shall end.
    Shutdown,
    /// A call that somebody shall allow.
    Permission,
}

/// How a piece of work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As wished.
    Ok,
    /// It was tried and did not work.
    Failed,
    /// It was not allowed.
    Denied,
    /// Its teammate ended.
    Stopped,
}
