//! The lock on a folder that makes one process its master. The only place of fs2.

use std::{fs::File, io, path::Path, time::Duration};

use super::{Clock, Wake};

/// How long to try to get the lock.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long to wait between two tries.
const AGAIN: Duration = Duration::from_millis(10);

/// Held for the life of the value, released by the kernel at the process's end however it comes.
///
/// The lock lies on the folder itself: a lock file could be deleted under its holder.
pub struct FolderLock(File);

impl FolderLock {
    /// Takes the lock, or gives `None` where another process or handle has it and keeps it: one that
    /// only asks whether it is held has it for a moment, too, so a refusal is tried again.
    pub fn take(folder: &Path, clock: &Clock) -> io::Result<Option<Self>> {
        let file = File::open(folder)?;
        let until = clock.now().after(PATIENCE);
        loop {
            match fs2::FileExt::try_lock_exclusive(&file) {
                Ok(()) => return Ok(Some(Self(file))),
                Err(why) if why.raw_os_error() != fs2::lock_contended_error().raw_os_error() => {
                    return Err(why);
                }
                Err(_) if clock.now() >= until => return Ok(None),
                Err(_) => {
                    let wake = Wake::default();
                    wake.wait(clock, wake.seen(), Some(clock.now().after(AGAIN)));
                }
            }
        }
    }

    /// Whether some process holds the lock.
    pub fn is_held(folder: &Path) -> io::Result<bool> {
        let file = File::open(folder)?;
        match fs2::FileExt::try_lock_shared(&file) {
            Ok(()) => Ok(false),
            Err(why) if why.raw_os_error() == fs2::lock_contended_error().raw_os_error() => {
                Ok(true)
            }
            Err(why) => Err(why),
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        drop(fs2::FileExt::unlock(&self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!FolderLock::is_held(folder.path()).unwrap());
        let lock = FolderLock::take(folder.path(), &Clock::real()).unwrap();
        assert!(lock.is_some() && FolderLock::is_held(folder.path()).unwrap());
        assert!(FolderLock::take(folder.path(), &Clock::real()).unwrap().is_none());
        drop(lock);
        assert!(FolderLock::take(folder.path(), &Clock::real()).unwrap().is_some());
    }
}
