//! Who thinks. A provider gets a conversation and gives the next turn of the model.
//!
//! It runs no tool, keeps no state between calls and knows no file of ours.

mod anthropic;
pub mod clerk;
mod cli;
mod command;
mod config;
mod events;
mod fault;
mod frame;
mod http;
mod lanes;
mod limiter;
mod openai;
mod program;
mod proxy;
mod retry;
mod rounds;
mod secret;
mod ways;
mod wire;

#[cfg(test)]
mod bench;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use crate::{
    base::Cancel,
    model::{Cost, PermissionMode, Preset, Status, Tokens, ToolCall, ToolSpec, Turn},
};

pub use clerk::Clerk;
pub use cli::{PROGRAMS_EXPLAINED, is_there};
pub use config::{CommandIo, ProviderConfig, Settings, Thinking, open, open_on};
pub use frame::{FRAMES_EXPLAINED, framed};
pub use limiter::Limiter;
pub use retry::{Patience, Retrying};
pub use secret::Secret;
pub use ways::Ways;

/// What a model is asked with.
pub struct Request<'a> {
    /// Who it is and how to behave.
    pub system: &'a str,
    /// All turns so far.
    pub turns: &'a [Turn],
    /// Where the piece of work in hand begins in `turns`.
    pub in_hand: usize,
    /// What it may call.
    pub tools: &'a [ToolSpec],
    /// Who is told how the call goes on.
    pub told: &'a Told<'a>,
    /// Whether the same may have been asked before, by a daemon that died then.
    pub may_be_again: bool,
    /// How its side effects are judged; heeded by programs that judge by themselves.
    pub mode: PermissionMode,
}

/// Is told how a call goes on while it is under way.
pub type Told<'a> = dyn Fn(Course<'_>) + Sync + 'a;

/// How a call goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Course<'a> {
    /// It waits before it is made, or made again; for what, in words.
    Waits(String),
    /// It is under way.
    Goes,
    /// A try of this model has ended, well or not, and took these tokens, as far as it has counted.
    Took(&'a str, Tokens),
}

/// The model's turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What it says; with calls, beside them.
    pub text: String,
    /// What it wants done; empty when the work is finished.
    pub calls: Vec<ToolCall>,
    /// How the work ended, where it ended.
    pub status: Status,
    /// The verdict, where the work was a question of yes or no.
    pub decision: Option<bool>,
    /// Tokens read and written: of this answer alone, not of tries before it.
    pub tokens: Tokens,
    /// What it has cost, where whoever answered says so.
    pub cost: Option<Cost>,
    /// The vendor's own blocks, to be handed back as they came.
    pub vendor: Option<serde_json::Value>,
}

/// Why there is no turn.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// It may go better later.
    #[error("no answer for now: {why}")]
    Passing {
        /// What went wrong.
        why: String,
        /// How long the vendor asks to wait.
        after: Option<Duration>,
        /// Whether the vendor has too much to do for everybody.
        is_overload: bool,
    },
    /// The conversation is longer than the model can read.
    #[error("the conversation is too long for the model")]
    TooLong,
    /// It will not go better.
    #[error("{0}")]
    Final(String),
}

impl ProviderError {
    /// What may go better when it is tried again.
    pub fn passing(why: impl Into<String>) -> Self {
        Self::Passing { why: why.into(), after: None, is_overload: false }
    }

    /// The same in other words.
    #[must_use]
    pub fn with_words(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Passing { why, after, is_overload } => {
                Self::Passing { why: change(why), after, is_overload }
            }
            Self::TooLong => Self::TooLong,
            Self::Final(why) => Self::Final(change(why)),
        }
    }
}

/// How much of a conversation a provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// What is long past is nothing to it, and it can't sum it up.
    Recent,
    /// Everything, up to about so many tokens; then it is asked to sum up the older part.
    Tokens(u64),
}

/// A source of turns.
pub trait Provider: Send + Sync {
    /// Blocks until the model's turn is there; ends soon after `cancel` fires.
    fn complete(&self, request: &Request<'_>, cancel: &Cancel) -> Result<Reply, ProviderError>;

    /// The model that answers, by the name that prices know it by.
    fn model(&self) -> &str;

    /// All models that may answer, each by the name that prices know it by.
    fn models(&self) -> Vec<&str> {
        vec![self.model()]
    }

    /// How much of a conversation it takes.
    fn reads(&self) -> Reads;

    /// Who thinks for the subagents of whoever this one thinks for, where that is another.
    fn for_subagents(&self) -> Option<Arc<dyn Provider>> {
        None
    }

    /// The program that judges by itself what it may do, with tools of its own, where it is one.
    fn holds_rights(&self) -> Option<Preset> {
        None
    }

    /// Whether its answers say what they have cost, so that no price need be known.
    fn states_cost(&self) -> bool {
        false
    }

    /// Whether it is worth giving it work with this text: a model takes what it is given.
    fn can_do(&self, text: &str) -> bool {
        let _ = text;
        true
    }
}
