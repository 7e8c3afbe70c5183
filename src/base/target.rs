//! A place for a file in a folder that is held open: read, and replaced whole.
//!
//! It never writes through a link, and never to a folder that was moved since it was looked up.

use std::{
    ffi::OsString,
    fs::File,
    io::Write,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, ResolveFlags, fchmod, fstat, mkdirat, openat, renameat,
        statat, unlinkat,
    },
    io::Errno,
};

use super::{
    Below, FileError,
    below::{BENEATH, MOVED, PLACE, READ, io_error, kind_name, open_below, refused},
    hash::random_id,
};

const STRICTLY: ResolveFlags = BENEATH.union(ResolveFlags::NO_SYMLINKS);
const PERMISSIONS: u32 = 0o777;
const OWNER_WRITES: u32 = 0o200;

/// A place that a file can be written to, in a folder that is held open.
#[derive(Debug)]
pub struct Target {
    pub(super) root: Below,
    pub(super) held: OwnedFd,
    pub(super) held_path: PathBuf,
    pub(super) missing: Vec<OsString>,
    pub(super) name: OsString,
    pub(super) path: PathBuf,
    pub(super) exists: bool,
}

impl Target {
    /// Where it lies, without links, relative to the held folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there was a file when the place was looked up.
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// Opens what lies there now, for reading; `None` where there is nothing.
    pub fn read(&self) -> Result<Option<File>, FileError> {
        if !self.missing.is_empty() {
            return Ok(None);
        }
        let fd = match open_below(&self.held, Path::new(&self.name), READ, STRICTLY) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(why) => return Err(self.root.explain("open", &self.path, why)),
        };
        let stat = fstat(&fd).map_err(|why| io_error("look at", &self.path, why))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Some(File::from(fd))),
            other => Err(refused(&self.path, &format!("it is {}", kind_name(other)))),
        }
    }

    /// Makes `bytes` the content of the file, so that a reader sees the old content or the new and
    /// nothing between. Makes the folders that are missing; an existing file keeps its permissions.
    pub fn replace(&self, bytes: &[u8]) -> Result<(), FileError> {
        let failed = |why: Errno| self.root.explain("write", &self.path, why);
        let folder = self.make_folders()?;
        let mode = match statat(&folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => None,
            Err(why) => return Err(failed(why)),
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => {
                return Err(refused(&self.path, MOVED));
            }
            Ok(stat) if stat.st_mode & OWNER_WRITES == 0 => {
                return Err(refused(&self.path, "it is read-only; `chmod u+w` allows writing"));
            }
            Ok(stat) => Some(Mode::from_raw_mode(stat.st_mode & PERMISSIONS)),
        };
        let fresh = format!(".{}.new", random_id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let everybody = Mode::from_raw_mode(0o666);
        let file = openat(&folder, &fresh, flags, everybody).map_err(failed)?;
        let done = fill(File::from(file), bytes, mode)
            .and_then(|()| Ok(renameat(&folder, &fresh, &folder, &self.name)?));
        done.map_err(|why| {
            let _ = unlinkat(&folder, &fresh, AtFlags::empty());
            FileError::Io { doing: "write", path: self.path.clone(), why }
        })
    }

    /// Opens the folder the file lies in, making what is missing, and sees to it that it is still
    /// where it was when it was judged.
    fn make_folders(&self) -> Result<OwnedFd, FileError> {
        let failed = |why: Errno| self.root.explain("make the folder of", &self.path, why);
        let mut folder = open_below(&self.held, Path::new(""), PLACE, STRICTLY).map_err(failed)?;
        if self.root.place(&folder, &self.path)? != self.held_path {
            return Err(refused(&self.path, MOVED));
        }
        for name in &self.missing {
            match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(why) => return Err(failed(why)),
            }
            folder = open_below(&folder, Path::new(name), PLACE, STRICTLY).map_err(failed)?;
        }
        Ok(folder)
    }
}

fn fill(mut file: File, bytes: &[u8], mode: Option<Mode>) -> std::io::Result<()> {
    file.write_all(bytes)?;
    if let Some(mode) = mode {
        fchmod(&file, mode)?;
    }
    file.sync_all()
}
