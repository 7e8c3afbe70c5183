//! A tool as a model sees it: its specification, a call, a result.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::CallId;

/// What a model is told of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// What it is called by.
    pub name: &'static str,
    /// What it does and when to use it.
    pub description: &'static str,
    /// JSON Schema of its input.
    pub schema: Value,
}

/// A model wants a tool run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique in its conversation.
    pub id: CallId,
    /// The tool's name as the model wrote it, which may be none of ours.
    pub tool: String,
    /// Its input as the model wrote it.
    pub input: Value,
}

/// What came of a call. Each call has exactly one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call it belongs to.
    pub call: CallId,
    /// For the model.
    pub text: String,
    /// Whether it did not work.
    pub is_error: bool,
}
