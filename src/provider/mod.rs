//! Who thinks. A provider gets a conversation and gives the next turn of the model.
//!
//! It runs no tool, keeps no state between calls and knows no file of ours.

pub mod clerk;

use std::sync::Arc;

use crate::{
    base::Cancel,
    model::{Status, Tokens, ToolCall, ToolSpec, Turn},
};

pub use clerk::Clerk;

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
    /// Tokens read and written.
    pub tokens: Tokens,
    /// The vendor's own blocks, to be handed back as they came.
    pub vendor: Option<serde_json::Value>,
}

/// Why there is no turn.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// It may go better later.
    #[error("for now: {0}")]
    Passing(String),
    /// The conversation is longer than the model can read.
    #[error("the conversation is too long for the model")]
    TooLong,
    /// It will not go better.
    #[error("{0}")]
    Final(String),
}

/// A source of turns.
pub trait Provider: Send + Sync {
    /// Blocks until the model's turn is there; ends soon after `cancel` fires.
    fn complete(&self, request: &Request<'_>, cancel: &Cancel) -> Result<Reply, ProviderError>;

    /// Who thinks for the subagents of whoever this one thinks for.
    fn for_subagents(self: Arc<Self>) -> Arc<dyn Provider>;

    /// Whether it is worth giving it work with this text: a model takes what it is given.
    fn can_do(&self, text: &str) -> bool {
        let _ = text;
        true
    }
}
