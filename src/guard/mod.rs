//! Pure policy over declared accesses: what may happen, what must be asked, what never happens.
//!
//! It opens nothing and runs nothing; it judges what a tool has prepared.

mod decide;
mod paths;
mod protected;
mod rights;
mod rules;

use std::path::PathBuf;

pub use decide::decide;
pub use paths::Hidden;
pub use protected::{kept_from_reading, kept_from_writing};
pub use rights::Rights;
pub use rules::exactly;

/// One thing a prepared call will touch. Paths are those of the opened object, relative to the
/// workspace, not as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Reads a path.
    Read(PathBuf),
    /// Creates, changes or removes a path.
    Write(PathBuf),
    /// Runs a command line.
    Run(String),
    /// Starts or stops a teammate.
    Team(String),
}

/// What becomes of a call, from the mildest to the strictest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// Somebody has to say yes; the text says to what.
    Ask(String),
    /// It does not run; the text says why and what would allow it.
    Deny(String),
}
