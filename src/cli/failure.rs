//! How a verb ends when it does not do what was asked: an exit code, what is wrong, and the mend.

use std::{fmt, process::ExitCode};

use crate::{
    base::FileError,
    daemon::StartError,
    model::BadName,
    store::{SendError, StoreError, TeamFileError},
};

/// The exit codes, which scripts rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// As asked.
    Ok,
    /// The work failed.
    Failed,
    /// Wrong use, or a bad team file.
    Usage,
    /// There is no daemon.
    NoDaemon,
    /// Another team holds the folder.
    Held,
    /// Somebody is needed.
    Needed,
    /// Time is out.
    TimedOut,
    /// A signal came.
    Interrupted,
}

impl Code {
    /// This, or `other` where this is fine.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self == Self::Ok { other } else { self }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(match code {
            Code::Ok => 0,
            Code::Failed => 1,
            Code::Usage => 2,
            Code::NoDaemon => 3,
            Code::Held => 4,
            Code::Needed => 5,
            Code::TimedOut => 124,
            Code::Interrupted => 130,
        })
    }
}

/// Why a verb did not do what was asked.
#[derive(Debug)]
pub struct Failure {
    /// For scripts.
    pub code: Code,
    /// For people: what, where, why, and the mend.
    pub text: String,
}

impl Failure {
    /// Wrong use.
    pub fn usage(text: impl Into<String>) -> Self {
        Self { code: Code::Usage, text: text.into() }
    }

    /// It was tried and did not work.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { code: Code::Failed, text: text.into() }
    }

    /// There is no daemon to do it.
    pub fn no_daemon(text: impl Into<String>) -> Self {
        Self { code: Code::NoDaemon, text: text.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl From<FileError> for Failure {
    fn from(why: FileError) -> Self {
        Self::failed(why.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(why: StoreError) -> Self {
        Self::failed(why.to_string())
    }
}

impl From<SendError> for Failure {
    fn from(why: SendError) -> Self {
        match why {
            SendError::Unknown { .. } => Self::usage(why.to_string()),
            SendError::Store(why) => why.into(),
        }
    }
}

impl From<TeamFileError> for Failure {
    fn from(why: TeamFileError) -> Self {
        Self::usage(why.to_string())
    }
}

impl From<BadName> for Failure {
    fn from(why: BadName) -> Self {
        Self::usage(why.to_string())
    }
}

impl From<StartError> for Failure {
    fn from(why: StartError) -> Self {
        match why {
            StartError::Held { .. } => Self { code: Code::Held, text: why.to_string() },
            StartError::Faults(faults) => {
                let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
                Self::usage(lines.join("\n"))
            }
            StartError::Provider(why) => Self::usage(why),
            StartError::File(why) => why.into(),
            StartError::Store(why) => why.into(),
        }
    }
}
