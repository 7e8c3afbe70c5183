//! Finds the processes that a run has started, also those that left its process group.
//!
//! Every child carries the mailbox folder and its run in its environment, which children inherit
//! and /proc shows. So a start after `kill -9` finds what is left without any record of it.

use std::{
    fmt, fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal},
};

/// Whose a child is: the folder its daemon holds, and the run that started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The mailbox folder, as an absolute path without links.
    pub folder: PathBuf,
    /// The run; empty for every run of the folder.
    pub run: String,
}

impl Mark {
    /// The environment variable that carries it.
    pub const VARIABLE: &'static str = "POSTROOM_MARK";

    /// The mark of all runs of `folder`.
    pub fn of_folder(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf(), run: String::new() }
    }

    /// Kills all processes that carry this mark, waits until they are gone and says how many there
    /// were. Looks again until it finds none, since a process may be starting another while it is
    /// looked at.
    pub fn kill_all(&self) -> io::Result<usize> {
        let mut killed = 0;
        for _ in 0..LOOKS {
            let found = self.find()?;
            if found.is_empty() {
                break;
            }
            for pid in &found {
                kill(*pid);
            }
            killed = killed.max(found.len());
        }
        Ok(killed)
    }

    /// The living processes that carry this mark.
    pub fn find(&self) -> io::Result<Vec<Pid>> {
        let wanted = self.to_string().into_bytes();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")?.flatten() {
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(pid) = pid.and_then(Pid::from_raw) else { continue };
            let carries = fs::read(entry.path().join("environ")).is_ok_and(|environ| {
                environ.split(|byte| *byte == 0).any(|it| self.is(it, &wanted))
            });
            if carries && pid != rustix::process::getpid() {
                found.push(pid);
            }
        }
        Ok(found)
    }

    fn is(&self, variable: &[u8], wanted: &[u8]) -> bool {
        let value = variable.strip_prefix(Self::VARIABLE.as_bytes());
        let Some(value) = value.and_then(|it| it.strip_prefix(b"=")) else { return false };
        if self.run.is_empty() { value.starts_with(wanted) } else { value == wanted }
    }
}

/// Kills a process and waits until it is dead, on a busy machine too. One that is stuck in the kernel
/// is not waited for any longer than [`PATIENCE`].
fn kill(pid: Pid) {
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
        // It is gone already, or the system has no such handles.
        let _ = kill_process(pid, Signal::KILL);
        return;
    };
    let _ = pidfd_send_signal(&handle, Signal::KILL);
    let _ = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&PATIENCE));
}

/// How long a killed process may take to die.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// How often to look again for processes that were born while others were killed.
const LOOKS: usize = 100;

impl fmt::Display for Mark {
    /// `FOLDER//RUN`: no path holds an empty part, so no folder's mark begins another's.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder.as_os_str().as_bytes();
        write!(out, "{}//{}", String::from_utf8_lossy(folder), self.run)
    }
}
