//! What a definition or a rule says of a tool, held against the tools that there are.

use super::{Pattern, Ruling, TOOL_NAMES, TOOLS_TO_COME, likely_tool};
use crate::base::text::headline;

/// Tools of which a part can be named: they declare what they touch.
const DIVISIBLE: &[&str] = &[
    "bash",
    "background_run",
    "read_file",
    "write_file",
    "edit_file",
    "list_files",
    "glob",
    "grep",
    "team_shutdown",
    "task_update",
];

/// Why what was written about a tool can't be taken as it stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Slip {
    /// It is no pattern.
    #[error("{0}")]
    NoPattern(String),
    /// It is a tool of a server of another system.
    #[error("tool {0} is missing: this version has no MCP servers")]
    OfServer(String),
    /// No tool is so called.
    #[error("no tool is called {shown}{}", hint(*.likely))]
    Unknown {
        /// What was written.
        shown: String,
        /// The tool that was likely meant.
        likely: Option<&'static str>,
    },
    /// It is a part of a tool that has no parts.
    #[error("what is said of {tool} is said of all of it: write \"{tool}\"")]
    InPart {
        /// The tool.
        tool: String,
    },
}

/// A tool that there is, or will be, or a part of one that has parts.
pub fn tool_pattern(text: &str) -> Result<Pattern, Slip> {
    if text.starts_with("mcp__") {
        return Err(Slip::OfServer(headline(text, 80)));
    }
    let pattern = Pattern::parse(text).map_err(Slip::NoPattern)?;
    let tool = pattern.tool.as_str();
    if TOOLS_TO_COME.contains(&tool) {
        return Ok(pattern);
    }
    if !TOOL_NAMES.contains(&tool) {
        return Err(Slip::Unknown { shown: headline(text, 80), likely: likely_tool(tool) });
    }
    if pattern.of.is_some() && !DIVISIBLE.contains(&tool) {
        return Err(Slip::InPart { tool: pattern.tool });
    }
    Ok(pattern)
}

impl Slip {
    /// Whether to leave it out would give what it was meant to take away. What is none of our tools is
    /// not had anyway.
    pub fn loosens(&self, ruling: Ruling) -> bool {
        let is_ours = match self {
            Self::NoPattern(_) | Self::InPart { .. } => true,
            Self::Unknown { likely, .. } => likely.is_some(),
            Self::OfServer(_) => false,
        };
        is_ours && ruling != Ruling::Allow
    }
}

fn hint(likely: Option<&str>) -> String {
    likely.map(|it| format!("; did you mean {it}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_says_what_is_wrong_and_whether_it_would_give_more() {
        let rows = [
            ("bash(rm", "\"bash(rm\" has no `)` at its end", true),
            (
                "mcp__git__push",
                "tool mcp__git__push is missing: this version has no MCP servers",
                false,
            ),
            ("bsh", "no tool is called bsh; did you mean bash?", true),
            ("Writ(src/**)", "no tool is called Writ(src/**); did you mean write_file?", true),
            ("LSP", "no tool is called LSP", false),
            ("NotebookEdit", "no tool is called NotebookEdit", false),
            (
                "Agent(worker)",
                "what is said of subagent is said of all of it: write \"subagent\"",
                true,
            ),
        ];
        for (text, why, loosens) in rows {
            let slip = tool_pattern(text).unwrap_err();
            assert_eq!(slip.to_string(), why);
            assert_eq!(slip.loosens(Ruling::Deny), loosens, "{text}");
            assert_eq!(slip.loosens(Ruling::Ask), loosens, "{text}");
            assert!(!slip.loosens(Ruling::Allow), "{text}");
        }
        for fine in ["Bash(rm:*)", "team_send", "fetch_url(domain:a.b)", "team_shutdown(bob)"] {
            assert!(tool_pattern(fine).is_ok(), "{fine}");
        }
    }
}
