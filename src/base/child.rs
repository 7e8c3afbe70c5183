//! Child processes: a group of their own, output straight to a file, killed whole when dropped.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
    sync::Arc,
};

use parking_lot::Mutex;
use rustix::{
    fs::{MemfdFlags, memfd_create},
    process::{Pid, Signal, kill_process_group},
};

use super::{Interrupted, Moment, Scope, broken, clock::Alive, left_overs::Mark, thread::Thread};

/// What to start. Output goes to a file: no pipe, so no grandchild can hold one open.
pub struct Launch {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// The whole environment; the mark is added.
    pub env: BTreeMap<OsString, OsString>,
    /// What it reads; nothing where there is none.
    pub input: Option<File>,
    /// Takes standard output, and standard error where that has no file of its own.
    pub output: File,
    /// Takes standard error.
    pub errors: Option<File>,
    /// Names the folder and the run, so that left-overs are found without a record.
    pub mark: Mark,
}

/// A file in memory, which ends with its last handle: for what goes into and comes out of a child
/// and nobody looks at later.
pub fn unnamed_file(name: &str) -> io::Result<File> {
    Ok(File::from(memfd_create(name, MemfdFlags::CLOEXEC)?))
}

/// A running child and its group.
pub struct Child {
    group: Pid,
    mark: Mark,
    exit: Arc<Mutex<Option<io::Result<ExitStatus>>>>,
    reaper: Option<Thread<()>>,
    _alive: Alive,
}

impl Child {
    /// Starts it; its end notifies the scope's wake.
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn start(launch: Launch, scope: &Scope) -> io::Result<Self> {
        let [program, arguments @ ..] = launch.argv.as_slice() else {
            broken("a launch names a program")
        };
        let errors = launch.errors.map_or_else(|| launch.output.try_clone(), Ok)?;
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(&launch.cwd)
            .env_clear()
            .envs(&launch.env)
            .env(Mark::VARIABLE, launch.mark.to_string())
            .stdin(launch.input.map_or_else(Stdio::null, Stdio::from))
            .stderr(errors)
            .stdout(launch.output)
            .process_group(0)
            .spawn()?;
        let (group, exit) = (Pid::from_child(&child), Arc::new(Mutex::new(None)));
        let (slot, wake) = (Arc::clone(&exit), scope.wake.clone());
        let reaper = Thread::start("reaper", move || {
            let status = child.wait();
            *slot.lock() = Some(status);
            wake.notify();
        });
        let mut started =
            Self { group, mark: launch.mark, exit, reaper: None, _alive: scope.clock.hold() };
        started.reaper = Some(reaper?);
        Ok(started)
    }

    /// Waits for its end; whatever ends the wait, nothing of the group is left behind.
    pub fn wait(
        self,
        scope: &Scope,
        until: Option<Moment>,
    ) -> Result<io::Result<ExitStatus>, Interrupted> {
        self.watch(scope, until)
    }

    /// Waits for its end until `until`, and leaves it running where the wait ends first.
    pub fn watch(
        &self,
        scope: &Scope,
        until: Option<Moment>,
    ) -> Result<io::Result<ExitStatus>, Interrupted> {
        scope.wait(until, || self.exit.lock().take())
    }
}

impl Drop for Child {
    /// Kills the group, and what left the group but carries the mark of this run.
    fn drop(&mut self) {
        let _ = kill_process_group(self.group, Signal::KILL);
        drop(self.mark.kill_all());
        drop(self.reaper.take());
    }
}
