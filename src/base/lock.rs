//! The lock on a folder that makes one process its master. The only place of fs2.

use std::{fs::File, io, path::Path};

/// Held for the life of the value, released by the kernel at the process's end however it comes.
///
/// The lock lies on the folder itself: a lock file could be deleted under its holder.
pub struct FolderLock(File);

impl FolderLock {
    /// Takes the lock, or gives `None` where another process or handle has it.
    pub fn take(folder: &Path) -> io::Result<Option<Self>> {
        let file = File::open(folder)?;
        match fs2::FileExt::try_lock_exclusive(&file) {
            Ok(()) => Ok(Some(Self(file))),
            Err(why) if why.raw_os_error() == fs2::lock_contended_error().raw_os_error() => {
                Ok(None)
            }
            Err(why) => Err(why),
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
        let lock = FolderLock::take(folder.path()).unwrap();
        assert!(lock.is_some() && FolderLock::is_held(folder.path()).unwrap());
        assert!(FolderLock::take(folder.path()).unwrap().is_none());
        drop(lock);
        assert!(FolderLock::take(folder.path()).unwrap().is_some());
    }
}
