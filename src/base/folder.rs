//! Folders held open, and the private files in them: opened without following links, checked,
//! replaced durably.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat, statat,
};

/// Why a file or folder can't be used. Reads well behind "failed to" or alone.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system said no.
    #[error("{doing} {}: {why}", path.display())]
    Io {
        /// What was tried, such as `open`.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's word.
        #[source]
        why: io::Error,
    },
    /// What is there is not what may be used; the reason names the mend.
    #[error("{} is refused: {why}", path.display())]
    Refused {
        /// What is refused.
        path: PathBuf,
        /// The reason and the mend.
        why: String,
    },
}

impl FileError {
    /// Whether it may pass by itself or by somebody making room: no space, descriptors or memory.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Refused { .. } => false,
            Self::Io { why, .. } => is_passing(why),
        }
    }
}

/// Whether an error is about space, quota, descriptors, memory or rights, all of which can be mended
/// while the program runs.
pub fn is_passing(why: &io::Error) -> bool {
    use rustix::io::Errno;
    let passing = [
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::ACCESS,
        Errno::PERM,
        Errno::ROFS,
        Errno::FBIG,
    ];
    Errno::from_io_error(why).is_some_and(|errno| passing.contains(&errno))
}

/// A folder of this user's alone, held open: what is opened in it is opened in this very folder,
/// whatever becomes of its path.
#[derive(Debug, Clone)]
pub struct Folder(Arc<Held>);

#[derive(Debug)]
struct Held {
    fd: OwnedFd,
    path: PathBuf,
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Nothing is followed, no terminal becomes ours, and a FIFO does not make us wait.
const SAFELY: OFlags =
    OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);
const OTHERS_READ: u32 = 0o055;
const OTHERS_WRITE: u32 = 0o022;
const EVERYBODY_WRITES: u32 = 0o002;

impl Folder {
    /// Opens `path`, which must be a folder of this user's that nobody else may write; takes from
    /// others the right to read it.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let fd = openat(rustix::fs::CWD, path, FOLDER | OFlags::RDONLY, Mode::empty())
            .map_err(|why| refused_or("open", path, why, "folder"))?;
        Self::checked(fd, path.to_path_buf())
    }

    /// Opens `path` after making it, with mode 0700, where it is missing.
    pub fn make(path: &Path) -> Result<Self, FileError> {
        make_folder(rustix::fs::CWD, path, path)?;
        Self::open(path)
    }

    /// Takes from others all rights to the folder `path` of this user's, which holds nothing of worth
    /// yet: a clone made with a wide umask.
    pub fn make_private(path: &Path) -> Result<(), FileError> {
        let fd = openat(rustix::fs::CWD, path, FOLDER | OFlags::RDONLY, Mode::empty())
            .map_err(|why| refused_or("open", path, why, "folder"))?;
        let stat = fstat(&fd).map_err(|why| io_error("look at", path, why))?;
        check_owner(&stat, path)?;
        if stat.st_mode & EVERYBODY_WRITES != 0 {
            return Ok(());
        }
        fchmod(&fd, Mode::RWXU).map_err(|why| io_error("narrow", path, why))
    }

    /// Opens the folder `name` in this one after making it where it is missing.
    pub fn inside(&self, name: &str) -> Result<Self, FileError> {
        let path = self.0.path.join(name);
        make_folder(self.0.fd.as_fd(), Path::new(name), &path)?;
        let fd = openat(&self.0.fd, name, FOLDER | OFlags::RDONLY, Mode::empty())
            .map_err(|why| refused_or("open", &path, why, "folder"))?;
        Self::checked(fd, path)
    }

    fn checked(fd: OwnedFd, path: PathBuf) -> Result<Self, FileError> {
        let stat = fstat(&fd).map_err(|why| io_error("look at", &path, why))?;
        check_owner(&stat, &path)?;
        narrow(fd.as_fd(), &stat, Mode::RWXU, &path)?;
        Ok(Self(Arc::new(Held { fd, path })))
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Whether its path still leads to this very folder.
    pub fn is_in_place(&self) -> bool {
        let there = statat(rustix::fs::CWD, &self.0.path, AtFlags::SYMLINK_NOFOLLOW);
        match (there, fstat(&self.0.fd)) {
            (Ok(there), Ok(here)) => same(&there, &here),
            _ => false,
        }
    }

    /// Opens the file `name` for reading and appending; `None` where there is none.
    pub fn open_file(&self, name: &str) -> Result<Option<File>, FileError> {
        self.open_with(name, OFlags::RDWR | OFlags::APPEND)
    }

    /// Opens the file `name` for reading and appending, after making it with mode 0600 where it is
    /// missing.
    pub fn make_file(&self, name: &str) -> Result<File, FileError> {
        let made = self.open_with(name, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)?;
        made.ok_or_else(|| io_error("make", &self.0.path.join(name), rustix::io::Errno::NOENT))
    }

    fn open_with(&self, name: &str, flags: OFlags) -> Result<Option<File>, FileError> {
        let path = self.0.path.join(name);
        let fd = match openat(&self.0.fd, name, flags | SAFELY, PRIVATE_FILE) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(why) => return Err(refused_or("open", &path, why, "regular file")),
        };
        let stat = fstat(&fd).map_err(|why| io_error("look at", &path, why))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(refused(&path, "it is no regular file; move it away"));
        }
        if stat.st_nlink > 1 {
            return Err(refused(&path, "it has a second name (hard link); remove one of the two"));
        }
        check_owner(&stat, &path)?;
        narrow(fd.as_fd(), &stat, PRIVATE_FILE, &path)?;
        Ok(Some(File::from(fd)))
    }

    /// Whether `file`, opened from `name` earlier, is still what `name` leads to.
    pub fn is_still(&self, name: &str, file: &File) -> bool {
        match (statat(&self.0.fd, name, AtFlags::SYMLINK_NOFOLLOW), fstat(file)) {
            (Ok(there), Ok(here)) => same(&there, &here),
            _ => false,
        }
    }

    /// The whole content of `name`; `None` where there is none.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, FileError> {
        let Some(mut file) = self.open_file(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        match file.read_to_end(&mut bytes) {
            Ok(_) => Ok(Some(bytes)),
            Err(why) => Err(FileError::Io { doing: "read", path: self.0.path.join(name), why }),
        }
    }

    /// Makes `bytes` the content of `name`, so that a reader or a power cut sees the old content or
    /// the new and nothing between.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        let fresh = self.write_beside(name, bytes, File::sync_all)?;
        rustix::fs::renameat(&self.0.fd, &fresh, &self.0.fd, name)
            .and_then(|()| rustix::fs::fsync(&self.0.fd))
            .map_err(|why| io_error("replace", &self.0.path.join(name), why))
    }

    /// Replaces as [`Folder::replace`] does, but for content that a power cut may take.
    pub fn replace_loosely(&self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        let fresh = self.write_beside(name, bytes, |_| Ok(()))?;
        rustix::fs::renameat(&self.0.fd, &fresh, &self.0.fd, name)
            .map_err(|why| io_error("replace", &self.0.path.join(name), why))
    }

    /// Makes the file `name` with `bytes` in it, durably, unless there is one: then that stays.
    pub fn create(&self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        let fresh = self.write_beside(name, bytes, File::sync_all)?;
        let linked = rustix::fs::linkat(&self.0.fd, &fresh, &self.0.fd, name, AtFlags::empty());
        self.remove(&fresh)?;
        match linked {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(why) => Err(io_error("make", &self.0.path.join(name), why)),
        }
    }

    /// Writes `bytes` into a new file beside `name`, and gives its name. It is this process's own,
    /// since another may be replacing the same file.
    fn write_beside(
        &self,
        name: &str,
        bytes: &[u8],
        sync: impl FnOnce(&File) -> io::Result<()>,
    ) -> Result<String, FileError> {
        let fresh = format!(".{name}.{}.new", super::hash::random_id());
        let mut file = self.make_file(&fresh)?;
        let written = file.write_all(bytes).and_then(|()| sync(&file));
        written.map(|()| fresh.clone()).map_err(|why| {
            let _ = rustix::fs::unlinkat(&self.0.fd, &fresh, AtFlags::empty());
            FileError::Io { doing: "write", path: self.0.path.join(name), why }
        })
    }

    /// Removes the file `name`, durably; one that is missing is no error.
    pub fn remove(&self, name: &str) -> Result<(), FileError> {
        match rustix::fs::unlinkat(&self.0.fd, name, AtFlags::empty()) {
            Ok(()) => {
                rustix::fs::fsync(&self.0.fd).map_err(|why| io_error("sync", &self.0.path, why))
            }
            Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(why) => Err(io_error("remove", &self.0.path.join(name), why)),
        }
    }

    /// The names in it, sorted, without those that begin with a dot.
    pub fn names(&self) -> Result<Vec<OsString>, FileError> {
        use std::os::unix::ffi::OsStrExt;
        let list = || -> Result<Vec<OsString>, rustix::io::Errno> {
            let mut names = Vec::new();
            for entry in Dir::read_from(&self.0.fd)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if !name.starts_with(b".") {
                    names.push(OsStr::from_bytes(name).to_owned());
                }
            }
            names.sort();
            Ok(names)
        };
        list().map_err(|why| io_error("list", &self.0.path, why))
    }
}

fn make_folder(at: BorrowedFd<'_>, name: &Path, path: &Path) -> Result<(), FileError> {
    match mkdirat(at, name, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(why) => Err(io_error("make", path, why)),
    }
}

fn same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn check_owner(stat: &Stat, path: &Path) -> Result<(), FileError> {
    if stat.st_uid == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(refused(path, "it belongs to another user; `chown` it to yourself or move it away"))
}

/// Refuses what others may write; takes from others the right to read.
fn narrow(fd: BorrowedFd<'_>, stat: &Stat, to: Mode, path: &Path) -> Result<(), FileError> {
    if stat.st_mode & OTHERS_WRITE != 0 {
        let mend = format!("others may write it; `chmod go-rwx '{}'`", path.display());
        return Err(refused(path, &mend));
    }
    if stat.st_mode & OTHERS_READ != 0 {
        fchmod(fd, to).map_err(|why| io_error("narrow", path, why))?;
    }
    Ok(())
}

fn refused_or(doing: &'static str, path: &Path, why: rustix::io::Errno, wanted: &str) -> FileError {
    use rustix::io::Errno;
    match why {
        Errno::LOOP | Errno::MLINK => refused(path, "it is a link; put a real one in its place"),
        Errno::NOTDIR | Errno::ISDIR | Errno::NXIO | Errno::NODEV => {
            refused(path, &format!("it is no {wanted}; move it away"))
        }
        other => io_error(doing, path, other),
    }
}

fn refused(path: &Path, why: &str) -> FileError {
    FileError::Refused { path: path.to_path_buf(), why: why.to_owned() }
}

fn io_error(doing: &'static str, path: &Path, why: rustix::io::Errno) -> FileError {
    FileError::Io { doing, path: path.to_path_buf(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::make(&temp.path().join("box")).unwrap();
        (temp, folder)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_made_is_private() {
        let (_temp, folder) = folder();
        drop(folder.make_file("a.jsonl").unwrap());
        folder.replace("b.json", b"{}").unwrap();
        assert_eq!(mode(folder.path()), 0o700);
        assert_eq!(mode(&folder.path().join("a.jsonl")), 0o600);
        assert_eq!(mode(&folder.path().join("b.json")), 0o600);
        assert_eq!(folder.read("b.json").unwrap().unwrap(), b"{}");
        assert_eq!(folder.names().unwrap(), ["a.jsonl", "b.json"]);
    }

    #[test]
    fn what_others_may_read_is_narrowed_and_what_they_may_write_is_refused() {
        let (_temp, folder) = folder();
        let path = folder.path().join("a.jsonl");
        drop(folder.make_file("a.jsonl").unwrap());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(folder.open_file("a.jsonl").unwrap().is_some());
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let why = folder.open_file("a.jsonl").unwrap_err().to_string();
        assert!(why.contains("chmod go-rwx"), "{why}");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Folder::open(folder.path()).unwrap_err().to_string().contains("chmod go-rwx"));
    }

    #[test]
    fn what_is_no_file_of_its_own_is_refused() {
        let (temp, folder) = folder();
        let at = |name: &str| folder.path().join(name);
        fs::write(temp.path().join("elsewhere"), "secret").unwrap();
        std::os::unix::fs::symlink(temp.path().join("elsewhere"), at("link")).unwrap();
        std::os::unix::fs::symlink(temp.path().join("nowhere"), at("dangling")).unwrap();
        fs::hard_link(temp.path().join("elsewhere"), at("second")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        drop(std::os::unix::net::UnixListener::bind(at("socket")).unwrap());
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), FileType::Fifo, PRIVATE_FILE, 0).unwrap();
        for name in ["link", "dangling", "second", "folder", "socket", "fifo"] {
            let opened = folder.open_file(name).unwrap_err().to_string();
            let made = folder.make_file(name).unwrap_err().to_string();
            assert!(opened.contains("refused") && made.contains("refused"), "{opened}; {made}");
        }
        assert!(!temp.path().join("nowhere").exists());
        std::os::unix::fs::symlink(folder.path(), temp.path().join("alias")).unwrap();
        assert!(Folder::open(&temp.path().join("alias")).is_err());
    }

    #[test]
    fn a_folder_that_went_away_is_noticed() {
        let (temp, folder) = folder();
        let file = folder.make_file("a.jsonl").unwrap();
        assert!(folder.is_in_place() && folder.is_still("a.jsonl", &file));
        folder.remove("a.jsonl").unwrap();
        assert!(!folder.is_still("a.jsonl", &file));
        fs::rename(folder.path(), temp.path().join("other")).unwrap();
        assert!(!folder.is_in_place());
    }
}
