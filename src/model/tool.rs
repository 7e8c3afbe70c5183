//! A tool as a model sees it: its specification, a call, a result.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentName, CallId, MessageId, Tokens};
use crate::base::text::nearest;

/// All tools, in the order in which a model is told of them.
pub const TOOL_NAMES: &[&str] = &[
    "read_file",
    "write_file",
    "edit_file",
    "list_files",
    "glob",
    "grep",
    "bash",
    "background_run",
    "background_check",
    "todo_write",
    "submit_plan",
    "decide_plan",
    "subagent",
    "subagent_send",
    "team_list",
    "team_send",
    "team_broadcast",
    "team_ask",
    "team_shutdown",
    "task_create",
    "task_list",
    "task_get",
    "task_update",
];

/// Tools that types may name and that are not there yet.
pub const TOOLS_TO_COME: &[&str] = &["web_search", "fetch_url"];

/// Other names for tools, as definitions and rules written for other systems have them.
const TOOL_ALIASES: &[(&str, &str)] = &[
    ("Bash", "bash"),
    ("execute_bash", "bash"),
    ("Read", "read_file"),
    ("Write", "write_file"),
    ("Edit", "edit_file"),
    ("LS", "list_files"),
    ("Glob", "glob"),
    ("search_files", "glob"),
    ("Grep", "grep"),
    ("search_code", "grep"),
    ("TodoWrite", "todo_write"),
    ("task", "subagent"),
    ("Task", "subagent"),
    ("Agent", "subagent"),
    ("WebFetch", "fetch_url"),
    ("WebSearch", "web_search"),
];

/// The name of the tool that `name` means; `name` itself where it is no other tool's alias.
pub fn canonical(name: &str) -> &str {
    TOOL_ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, tool)| tool)
}

/// The tool that was likely meant by a name that is none, under whichever of its names.
pub fn likely_tool(given: &str) -> Option<&'static str> {
    let aliases = TOOL_ALIASES.iter().map(|(alias, tool)| (alias.to_lowercase(), *tool));
    let own = TOOL_NAMES.iter().map(|tool| ((*tool).to_owned(), *tool));
    // `LS` is too near to anything that is short.
    let known: BTreeMap<String, &str> = own.chain(aliases.filter(|(it, _)| it.len() > 2)).collect();
    let meant = nearest(&given.to_lowercase(), known.keys().map(String::as_str))?;
    known.get(meant).copied()
}

/// The tool as which another counts for types, rules and modes: what does the same in another way is
/// no way around them.
pub fn counts_as(tool: &str) -> &str {
    match tool {
        "background_run" | "background_check" => "bash",
        "subagent_send" => "subagent",
        own => own,
    }
}

/// Opens what stands behind the last words of a subagent: what it took.
pub const METADATA_OPENS: &str = "<task_metadata>";
/// Closes it.
pub const METADATA_CLOSES: &str = "</task_metadata>";

/// The last words of a subagent without what stands behind them.
pub fn without_metadata(text: &str) -> &str {
    let (words, behind) = text.rsplit_once(METADATA_OPENS).unwrap_or((text, ""));
    if behind.ends_with(METADATA_CLOSES) { words.trim_end() } else { text }
}

/// What a model is told of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// What it is called by.
    pub name: &'static str,
    /// What it does and when to use it.
    pub description: Cow<'static, str>,
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
        Self {
            call,
            text,
            is_error,
            answer: None,
            plan: None,
            decides: None,
            sent: None,
            spent: Tokens::default(),
        }
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
    /// What a subagent has cost that the call has waited for, with all below it.
    #[serde(default, skip_serializing_if = "Tokens::is_nothing")]
    pub spent: Tokens,
}
