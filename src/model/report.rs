//! What was left out of the definitions of types, and about which type that is.

use std::fmt;

use super::TypeName;

/// What of a definition could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The Markdown file, as its path is shown; absent for the team file.
    pub file: Option<String>,
    /// The type: as the definition calls it, else as its file is called.
    pub of: Option<TypeName>,
    /// What, and why.
    pub text: String,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, &self.of) {
            (Some(file), _) => write!(out, "{file}: {}", self.text),
            (None, Some(name)) => write!(out, "type {name}: {}", self.text),
            (None, None) => out.write_str(&self.text),
        }
    }
}
