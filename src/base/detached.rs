//! A process that goes on after its starter has ended.

use std::{
    ffi::OsString,
    fs::File,
    io,
    path::Path,
    process::{Child, Command, Stdio},
};

/// A started process. Dropping this leaves it running.
pub struct Detached(Child);

impl Detached {
    /// Starts this program again with other arguments; what it prints goes to `output`. The new
    /// process has to call [`leave_terminal`].
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn start(arguments: &[OsString], cwd: &Path, output: File) -> io::Result<Self> {
        Command::new(std::env::current_exe()?)
            .args(arguments)
            .current_dir(cwd)
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output)
            .spawn()
            .map(Self)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Its exit code, once it has ended; -1 where a signal ended it.
    pub fn ended(&mut self) -> io::Result<Option<i32>> {
        Ok(self.0.try_wait()?.map(|status| status.code().unwrap_or(-1)))
    }
}

/// Makes this process the first of a session of its own, so that the terminal's end is not its.
pub fn leave_terminal() {
    // It fails where it has been done; then there is nothing to do.
    let _ = rustix::process::setsid();
}
