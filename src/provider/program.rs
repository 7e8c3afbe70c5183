//! One run of a program: started with what it reads, watched, and ended with all that it started.
//!
//! It has a deadline, and what it prints has a limit. What it prints to standard error is kept apart.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::PathBuf,
    process::ExitStatus,
    time::Duration,
};

use serde_json::{Value, json};

use super::ProviderError;
use crate::base::{
    Cancel, Child, Clock, Haste, Interrupted, Launch, Scope, child::unnamed_file, hash::random_id,
    left_overs::Mark, text::shorten,
};

/// The most bytes of an answer; then the program is killed.
const MOST_OUTPUT: u64 = 64 << 20;
/// How often the length of the answer is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How much of standard error is kept, in characters.
const MOST_ERRORS: usize = 4_000;

/// A program that is started for each turn.
#[derive(Clone)]
pub struct Program {
    /// The program and its first arguments.
    pub argv: Vec<OsString>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: BTreeMap<OsString, OsString>,
    /// How long it may take.
    pub timeout: Duration,
    /// The mailbox folder, by which its left-overs are found.
    pub folder: PathBuf,
    /// Gives the deadline.
    pub clock: Clock,
}

/// How a program ended, and what it printed.
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// Its standard output.
    pub output: String,
    /// The beginning and end of its standard error.
    pub errors: String,
}

impl Program {
    /// What it is called.
    pub fn name(&self) -> String {
        self.argv.first().map_or(String::new(), |it| it.to_string_lossy().into_owned())
    }

    fn failed(&self, what: &str, why: &io::Error) -> ProviderError {
        ProviderError::Final(format!("{what} {}: {why}", self.name()))
    }

    /// Runs it on `input` to its end, or to that of the call.
    pub fn run(&self, input: &str, cancel: &Cancel) -> Result<Ended, ProviderError> {
        let scope = Scope::plain(self.clock.clone());
        let stop = scope.stop.clone();
        cancel.arm(move || stop.request(Haste::Now));
        let failed = |why: io::Error| self.failed("start", &why);
        let (output, errors) = (unnamed_file("output"), unnamed_file("errors"));
        let (output, errors) = (output.map_err(failed)?, errors.map_err(failed)?);
        let launch = self.launch(input, &output, &errors).map_err(failed)?;
        let child = Child::start(launch, &scope).map_err(failed)?;
        let status = self.wait(&child, &scope, [&output, &errors]);
        // Whatever it has left behind must not write on.
        drop(child);
        let status = status.map_err(|why| with_errors(why, &errors))?;
        Ok(Ended {
            status,
            output: content(&output).map_err(|why| self.failed("read the answer of", &why))?,
            errors: shown_errors(&errors),
        })
    }

    fn launch(&self, input: &str, output: &File, errors: &File) -> io::Result<Launch> {
        let mut file = unnamed_file("input")?;
        file.write_all(input.as_bytes())?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Launch {
            argv: self.argv.clone(),
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            input: Some(file),
            output: output.try_clone()?,
            errors: Some(errors.try_clone()?),
            mark: Mark { folder: self.folder.clone(), run: format!("turn-{}", random_id()) },
        })
    }

    fn wait(
        &self,
        child: &Child,
        scope: &Scope,
        printed: [&File; 2],
    ) -> Result<ExitStatus, ProviderError> {
        let deadline = scope.clock.now().after(self.timeout);
        loop {
            let next = scope.clock.now().after(LOOK).min(deadline);
            let why = match child.watch(scope, Some(next)) {
                Ok(status) => return status.map_err(|why| self.failed("wait for", &why)),
                Err(Interrupted::Late) if printed.into_iter().any(is_too_long) => {
                    format!("printed more than {} MiB and was killed", MOST_OUTPUT >> 20)
                }
                Err(Interrupted::Late) if next >= deadline => {
                    let seconds = self.timeout.as_secs_f32();
                    format!("timed out after {seconds} s and was killed")
                }
                Err(Interrupted::Late) => continue,
                Err(_) => return Err(ProviderError::passing("the program was ended")),
            };
            return Err(ProviderError::Final(format!("{} {why}", self.name())));
        }
    }
}

/// What is kept beside an answer for its trace.
pub fn beside(errors: &str) -> Option<Value> {
    (!errors.is_empty()).then(|| json!({ "command": { "stderr": errors } }))
}

fn with_errors(error: ProviderError, errors: &File) -> ProviderError {
    let errors = shown_errors(errors);
    match error {
        ProviderError::Final(why) if !errors.is_empty() => {
            ProviderError::Final(format!("{why}\n{errors}"))
        }
        other => other,
    }
}

fn shown_errors(errors: &File) -> String {
    shorten(content(errors).unwrap_or_default().trim_end(), MOST_ERRORS)
}

fn is_too_long(file: &File) -> bool {
    file.metadata().is_ok_and(|it| it.len() > MOST_OUTPUT)
}

fn content(mut file: &File) -> io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.take(MOST_OUTPUT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
