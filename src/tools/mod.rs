//! What an agent can do: a tool prepares, the gate judges, the prepared call runs.
//!
//! No tool knows a run, a provider or an approver: a wish that only the runtime can carry out is an
//! [`Outcome`].

pub mod background;
pub mod bash;
mod content;
pub mod edit_file;
mod excerpt;
mod found;
pub mod glob;
pub mod grep;
mod input;
pub mod list_files;
mod post;
pub mod read_file;
pub mod set;
pub mod subagent;
pub mod submit_plan;
pub mod task_create;
pub mod task_list;
pub mod task_update;
pub mod team_ask;
pub mod team_broadcast;
pub mod team_list;
pub mod team_send;
pub mod team_shutdown;
pub mod todo_write;
mod walk;
pub mod workspace;
pub mod write_file;

#[cfg(test)]
mod bench;

use std::{collections::BTreeMap, ffi::OsString, path::Path, sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    base::{FileError, Folder, Interrupted, Scope, left_overs::Mark},
    guard::{Access, Hidden},
    model::{AgentName, CallId, MessageId, ToolSpec, TypeName},
};

pub use post::{Letter, Post};
pub use set::ToolSet;
pub use workspace::Workspace;

/// The most characters of a result that a model is shown; the rest is in a file that is named.
pub const SHOWN: usize = 50_000;

/// What all tools of a team share.
#[derive(Clone)]
pub struct Kit {
    /// The files the team works on.
    pub workspace: Workspace,
    /// Takes whole outputs, one file a call.
    pub outputs: Folder,
    /// The whole environment of a command.
    pub env: Arc<BTreeMap<OsString, OsString>>,
    /// How long a command may run.
    pub command_timeout: Duration,
    /// What searches leave out.
    pub hidden: Arc<Hidden>,
    /// The largest file that is read or written, in bytes.
    pub max_file_size: Option<u64>,
}

impl Kit {
    /// Refuses a file of `length` bytes where the caller's limit is lower.
    pub fn check_size(&self, path: &Path, length: u64) -> Result<(), String> {
        match self.max_file_size {
            Some(most) if length > most => Err(format!(
                "`{}` has {length} bytes; `max_file_size` of its type allows {most}",
                path.display()
            )),
            _ => Ok(()),
        }
    }
}

/// In whose name a call is made.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Who calls.
    pub agent: AgentName,
    /// Found again at every process of this run.
    pub mark: Mark,
    /// Unique among all calls of the team, and the same when the call is repeated after a crash.
    pub call: CallId,
    /// How many messages of agents led to the call.
    pub hops: u8,
    /// Whether it may have run before.
    pub attempt: Attempt,
}

/// Whether a call may have run before: then its traces may be there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// It has never been begun.
    First,
    /// It was begun, and ended without a result that was kept.
    Again,
}

/// Something an agent can do.
pub trait Tool: Send + Sync {
    /// Name, description and the schema of its input.
    fn spec(&self) -> ToolSpec;
    /// Whether a call that a crash cut off may simply run again: it only reads, or a repetition
    /// has no second effect.
    fn is_repeatable(&self) -> bool;
    /// Parses once, opens what it will touch and declares it. Nothing has happened yet. An error
    /// says what is wrong and what is valid.
    fn prepare(&self, kit: &Kit, caller: &Caller, input: &Value) -> Result<Prepared, String>;
}

/// A call that is ready to run. The gate judges the very objects that `run` holds open.
pub struct Prepared {
    /// All that it will touch.
    pub accesses: Vec<Access>,
    /// What somebody who is asked sees: a few lines.
    pub preview: String,
    /// Does it.
    pub run: Act,
}

/// Does a prepared call; blocks in the scope alone.
pub type Act = Box<dyn FnOnce(&Scope) -> Result<Outcome, ToolError> + Send>;

/// What a call gives: text, or a wish that only the runtime can carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The result.
    Text(String),
    /// A request was sent; its response will start a turn.
    Sent {
        /// The request.
        id: MessageId,
        /// The result.
        text: String,
    },
    /// A new agent shall do something.
    Delegate {
        /// What.
        task: String,
        /// What it shall be.
        agent_type: TypeName,
        /// The task in a few words, for people.
        description: Option<String>,
        /// Whether to go on at once.
        in_background: bool,
    },
    /// A subagent that has finished shall do more.
    SendToSubagent {
        /// What the caller calls it by.
        id: String,
        /// What it shall do.
        message: String,
    },
    /// A call of `bash` that has been judged shall run beside the work.
    RunInBackground {
        /// Its input.
        input: Value,
        /// What people see of it.
        command: String,
    },
    /// What runs in the background shall be told: this one, or all.
    CheckBackground(Option<String>),
    /// A plan shall be approved.
    SubmitPlan(String),
    /// The plan that the work asks about is decided.
    DecidePlan {
        /// Yes or no.
        approve: bool,
        /// Why.
        reason: String,
    },
    /// A request shall be sent and its response waited for; that is the result.
    Ask {
        /// The request.
        letter: Letter,
        /// How long to wait.
        at_most: Duration,
    },
}

/// Why a call has no result.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// It did not work; the text is for the model.
    #[error("{0}")]
    Failed(String),
    /// It was ended.
    #[error("interrupted")]
    Interrupted(Interrupted),
}

impl From<FileError> for ToolError {
    fn from(why: FileError) -> Self {
        Self::Failed(why.to_string())
    }
}
