//! A folder held open, below which the kernel opens paths: no `..`, absolute path or link leads
//! out of it, whatever changes on the disk meanwhile.
//!
//! Nothing here resolves a path by its text alone or waits for the other end of a FIFO, and
//! nothing is made or changed: a [`Target`] does that.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2,
        readlinkat, statat,
    },
    io::Errno,
};

use super::{FileError, target::Target};

/// A folder held open; clones hold the same one.
#[derive(Debug, Clone)]
pub struct Below(Arc<Root>);

#[derive(Debug)]
struct Root {
    fd: OwnedFd,
    path: PathBuf,
}

pub(super) const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
/// No terminal becomes ours, and a FIFO or device does not make us wait.
pub(super) const READ: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);
pub(super) const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
/// How often an opening is tried again while somebody renames folders under it.
const TRIES: usize = 100;

impl Below {
    /// Opens the folder `path`, following links, and holds it.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let failed = |why: Errno| io_error("open", path, why);
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(CWD, path, flags, Mode::empty()).map_err(failed)?;
        let path = real_path(&fd).map_err(failed)?;
        Ok(Self(Arc::new(Root { fd, path })))
    }

    /// Its absolute path without links, as it was when it was opened.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Whether that path still leads to this very folder.
    pub fn is_in_place(&self) -> bool {
        let there = statat(CWD, &self.0.path, AtFlags::SYMLINK_NOFOLLOW);
        match (there, fstat(&self.0.fd)) {
            (Ok(there), Ok(here)) => (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino),
            _ => false,
        }
    }

    /// Opens the regular file or folder that the relative `path` leads to, for reading.
    pub fn find(&self, path: &Path) -> Result<Opened, FileError> {
        let fd = self.resolve(path, READ).map_err(|why| self.explain("open", path, why))?;
        let stat = fstat(&fd).map_err(|why| io_error("look at", path, why))?;
        let is_folder = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => false,
            FileType::Directory => true,
            other => return Err(refused(path, &format!("it is {}", kind_name(other)))),
        };
        let path = shown(self.place(&fd, path)?);
        Ok(Opened { file: File::from(fd), path, is_folder })
    }

    /// Opens the regular file that the relative `path` leads to, for reading.
    pub fn file(&self, path: &Path) -> Result<Opened, FileError> {
        let found = self.find(path)?;
        if found.is_folder { Err(refused(path, "it is a folder")) } else { Ok(found) }
    }

    /// Opens the folder that the relative `path` leads to, for listing.
    pub fn folder(&self, path: &Path) -> Result<Opened, FileError> {
        let found = self.find(path)?;
        if found.is_folder { Ok(found) } else { Err(refused(path, "it is no folder")) }
    }

    /// Finds the place to which a write of the relative `path` goes, and holds the folder it lies
    /// in, or the deepest one that exists. Makes nothing.
    pub fn target(&self, path: &Path) -> Result<Target, FileError> {
        let last = path.as_os_str().as_bytes().rsplit(|byte| *byte == b'/').next();
        if matches!(last, None | Some(b"" | b"." | b"..")) {
            return Err(refused(path, "it names a folder; give the path of a file"));
        }
        match self.resolve(path, OFlags::PATH) {
            Ok(fd) => self.existing(path, &fd),
            Err(Errno::NOENT) => self.missing(path),
            Err(why) => Err(self.explain("open", path, why)),
        }
    }

    fn existing(&self, path: &Path, fd: &OwnedFd) -> Result<Target, FileError> {
        let stat = fstat(fd).map_err(|why| io_error("look at", path, why))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::RegularFile {
            return Err(refused(path, &format!("it is {}", kind_name(kind))));
        }
        let real = self.place(fd, path)?;
        let (Some(folder), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(refused(path, MOVED));
        };
        let held =
            self.resolve_plain(folder, PLACE).map_err(|why| self.explain("open", folder, why))?;
        let there = statat(&held, name, AtFlags::SYMLINK_NOFOLLOW);
        if !there.is_ok_and(|it| (it.st_dev, it.st_ino) == (stat.st_dev, stat.st_ino)) {
            return Err(refused(path, MOVED));
        }
        let (held_path, name) = (folder.to_path_buf(), name.to_owned());
        let root = self.clone();
        Ok(Target { root, held, held_path, missing: Vec::new(), name, path: real, exists: true })
    }

    fn missing(&self, path: &Path) -> Result<Target, FileError> {
        let (mut folder, mut rest) = (path, Vec::new());
        let held = loop {
            let Some(name) = folder.file_name() else {
                return Err(refused(path, "a folder before its `..` does not exist"));
            };
            rest.push(name.to_owned());
            folder = folder.parent().unwrap_or(Path::new(""));
            match self.resolve(folder, PLACE) {
                Ok(fd) => break fd,
                Err(Errno::NOENT) => {}
                Err(why) => return Err(self.explain("open", path, why)),
            }
        };
        let first = rest.last().map_or(OsStr::new(""), OsString::as_os_str);
        if statat(&held, first, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Err(refused(path, "it goes through a link that leads nowhere"));
        }
        let held_path = self.place(&held, path)?;
        rest.reverse();
        let mut real = held_path.clone();
        real.extend(&rest);
        let name = rest.pop().unwrap_or_default();
        let root = self.clone();
        Ok(Target { root, held, held_path, missing: rest, name, path: real, exists: false })
    }

    fn resolve(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        open_below(&self.0.fd, path, flags, BENEATH)
    }

    /// Opens a path that is known to hold no link.
    fn resolve_plain(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        open_below(&self.0.fd, path, flags, BENEATH | ResolveFlags::NO_SYMLINKS)
    }

    /// Where the opened object lies, relative to this folder; empty for the folder itself.
    pub(super) fn place(&self, fd: &OwnedFd, typed: &Path) -> Result<PathBuf, FileError> {
        let failed = |why| io_error("look up where it leads:", typed, why);
        let (root, real) = (real_path(&self.0.fd).map_err(failed)?, real_path(fd).map_err(failed)?);
        real.strip_prefix(&root)
            .map(Path::to_path_buf)
            .map_err(|_| self.explain("open", typed, Errno::XDEV))
    }

    pub(super) fn explain(&self, doing: &'static str, path: &Path, why: Errno) -> FileError {
        match why {
            Errno::XDEV => refused(
                path,
                &format!(
                    "it leads out of {}; give a path inside it (a link in it must be relative and \
                     stay inside)",
                    self.0.path.display()
                ),
            ),
            Errno::LOOP => refused(path, "it goes through a link that can't be followed"),
            Errno::NOTDIR => refused(path, "a part of it before the last is no folder"),
            Errno::NXIO | Errno::NODEV => refused(path, "it is no regular file"),
            Errno::NAMETOOLONG => refused(path, "it is too long"),
            Errno::NOSYS => refused(
                path,
                "this kernel can't keep paths inside a folder (openat2, Linux 5.6 or later)",
            ),
            other => io_error(doing, path, other),
        }
    }
}

pub(super) const MOVED: &str = "it was moved while it was looked at; try again";

/// A regular file or folder, open for reading.
#[derive(Debug)]
pub struct Opened {
    /// The open file or folder.
    pub file: File,
    /// Where it lies, without links, relative to the held folder; `.` for that folder itself.
    pub path: PathBuf,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// Something in a folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// What it is called.
    pub name: OsString,
    /// What it is.
    pub kind: EntryKind,
}

/// What an entry of a folder is.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A regular file of this many bytes.
    File(u64),
    /// A folder.
    Folder,
    /// A link that holds this path.
    Link(PathBuf),
    /// A FIFO, socket or device, or something that went away.
    Other,
}

impl Opened {
    /// What a folder holds, sorted by name.
    pub fn entries(&self) -> Result<Vec<Entry>, FileError> {
        let list = || -> Result<Vec<Entry>, Errno> {
            let mut entries = Vec::new();
            for entry in Dir::read_from(&self.file)? {
                let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
                if name != "." && name != ".." {
                    entries.push(Entry { kind: self.kind(&name), name });
                }
            }
            entries.sort();
            Ok(entries)
        };
        list().map_err(|why| io_error("list", &self.path, why))
    }

    fn kind(&self, name: &OsStr) -> EntryKind {
        let Ok(stat) = statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return EntryKind::Other;
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File(u64::try_from(stat.st_size).unwrap_or(0)),
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => readlinkat(&self.file, name, Vec::new())
                .map_or(EntryKind::Other, |to| {
                    EntryKind::Link(OsString::from_vec(to.into_bytes()).into())
                }),
            _ => EntryKind::Other,
        }
    }
}

pub(super) fn open_below(
    folder: impl AsFd,
    path: &Path,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let mut tries = 0..TRIES;
    loop {
        match openat2(&folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries.next().is_some() => {}
            done => return done,
        }
    }
}

/// Where an opened object lies, as the kernel has it.
fn real_path(fd: &OwnedFd) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let path = readlinkat(CWD, link, Vec::new())?;
    Ok(OsString::from_vec(path.into_bytes()).into())
}

fn shown(path: PathBuf) -> PathBuf {
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
}

pub(super) fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a folder",
        FileType::Symlink => "a link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "no regular file",
    }
}

pub(super) fn refused(path: &Path, why: &str) -> FileError {
    FileError::Refused { path: path.to_path_buf(), why: why.to_owned() }
}

pub(super) fn io_error(doing: &'static str, path: &Path, why: Errno) -> FileError {
    FileError::Io { doing, path: path.to_path_buf(), why: why.into() }
}
