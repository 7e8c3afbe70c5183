//! A tool as a model sees it: its specification, a call, a result.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentName, CallId, MessageId};

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

impl ToolResult {
    /// A result that is text and nothing else.
    pub fn new(call: CallId, text: Result<String, String>) -> Self {
        let is_error = text.is_err();
        let (Ok(text) | Err(text)) = text;
        Self { call, text, is_error, answer: None, plan: None, decides: None, sent: None }
    }
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
    /// The message whose text this is: it was waited for, and needs no turn of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<(AgentName, MessageId)>,
    /// What was decided about the plan that the call submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<bool>,
    /// What the call has decided about the plan that the work asks about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decides: Option<bool>,
    /// The request that the call sent and did not wait for: its response starts a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<MessageId>,
}
