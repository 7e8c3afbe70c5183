//! Rules of a team: `tool` or `tool(pattern)`, allowed, asked for or denied.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::tool::canonical;

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ruling {
    /// It happens.
    Allow,
    /// It is asked for.
    Ask,
    /// It does not happen.
    Deny,
}

/// The tools whose patterns are of paths.
const OF_PATHS: [&str; 6] = ["read_file", "write_file", "edit_file", "grep", "glob", "list_files"];

/// What a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    /// The tool's name.
    pub tool: String,
    /// What of it: a path with wildcards, a command, or the beginning of one; absent for all.
    pub of: Option<String>,
}

impl Pattern {
    /// Reads `tool` or `tool(pattern)`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (tool, of) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => {
                let of = rest.strip_suffix(')');
                (tool, Some(of.ok_or_else(|| format!("{text:?} has no `)` at its end"))?))
            }
        };
        let plain = |it: char| it.is_ascii_alphanumeric() || it == '_';
        if tool.is_empty() || !tool.chars().all(plain) {
            return Err(format!("{text:?} is no rule: write `tool` or `tool(pattern)`"));
        }
        if of.is_some_and(|of| of.trim().is_empty()) {
            return Err(format!("{text:?} names nothing between its brackets"));
        }
        let tool = canonical(tool);
        let of = of.map(str::trim);
        // A path from here on is what a path is anyway.
        let of =
            of.map(|of| if OF_PATHS.contains(&tool) { of.trim_start_matches("./") } else { of });
        Ok(Self { tool: tool.to_owned(), of: of.map(str::to_owned) })
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}
impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}
impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.of {
            Some(of) => write!(out, "{}({of})", self.tool),
            None => out.write_str(&self.tool),
        }
    }
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What it says.
    pub ruling: Ruling,
    /// About what.
    pub pattern: Pattern,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_in_their_usual_spellings() {
        let read = |text| Pattern::parse(text).map(|it| it.to_string());
        assert_eq!(read("edit_file").unwrap(), "edit_file");
        assert_eq!(read("Bash(cargo test:*)").unwrap(), "bash(cargo test:*)");
        assert_eq!(read("write_file( src/** )").unwrap(), "write_file(src/**)");
        for odd in ["", "(x)", "bash(", "bash()", "a b", "bash(x) y"] {
            assert!(read(odd).is_err(), "{odd}");
        }
    }
}
