//! The folder a team works in: every path a tool is given is opened by the kernel below it.
//!
//! Here a path is only read as text: `~` and `$HOME` are not expanded, and an absolute path is taken
//! for one below the root when it begins with it. No file tool opens a path elsewhere.

use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::base::{Below, FileError, below::Opened, target::Target, text::shorten};

/// Longest path in bytes; the kernel takes no longer one.
const LONGEST: usize = 4095;

/// The folder a team works in, held open; clones hold the same one.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: Below,
    named: Arc<Path>,
}

impl Workspace {
    /// Opens the folder `root`, following links, and holds it.
    pub fn open(root: &Path) -> Result<Self, FileError> {
        Ok(Self { root: Below::open(root)?, named: root.into() })
    }

    /// Its absolute path without links.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Whether that path still leads to this very folder.
    pub fn is_in_place(&self) -> bool {
        self.root.is_in_place()
    }

    /// Opens a file for reading.
    pub fn file(&self, path: &str) -> Result<Opened, FileError> {
        self.root.file(&self.inside(path)?)
    }

    /// Opens a folder for listing.
    pub fn folder(&self, path: &str) -> Result<Opened, FileError> {
        self.root.folder(&self.inside(path)?)
    }

    /// Opens a file or a folder for reading.
    pub fn find(&self, path: &str) -> Result<Opened, FileError> {
        self.root.find(&self.inside(path)?)
    }

    /// Opens a file for reading whose path below the root is known, such as one from a walk.
    pub fn below(&self, path: &Path) -> Result<Opened, FileError> {
        self.root.file(path)
    }

    /// Finds the place that a write goes to; makes nothing.
    pub fn target(&self, path: &str) -> Result<Target, FileError> {
        self.root.target(&self.inside(path)?)
    }

    /// The path as the kernel shall resolve it below the root.
    fn inside(&self, path: &str) -> Result<PathBuf, FileError> {
        let refused = |why: String| {
            let path = shorten(path, 200).replace('\0', "\\0");
            Err(FileError::Refused { path: path.into(), why })
        };
        if path.is_empty() {
            return refused("the path is empty; `.` is the workspace".to_owned());
        }
        if path.contains('\0') {
            return refused("a path holds no NUL".to_owned());
        }
        if path.len() > LONGEST {
            return refused(format!("it is {} bytes long, at most {LONGEST} fit", path.len()));
        }
        if path.contains("://") {
            return refused("it is a URL; give a path".to_owned());
        }
        if path.starts_with(['~', '$']) {
            return refused(
                "nothing is expanded here; for a name like that write `./` before it".to_owned(),
            );
        }
        if !path.starts_with('/') {
            return Ok(path.into());
        }
        match [self.root.path(), &*self.named].into_iter().find_map(|root| under(path, root)) {
            Some(rest) => Ok(rest.into()),
            None => refused(format!("it lies outside {}", self.root.path().display())),
        }
    }
}

/// What follows `root` in `path`, kept as typed so that a final `/` is not lost; `.` where nothing
/// does.
fn under<'a>(path: &'a str, root: &Path) -> Option<&'a str> {
    let root = root.as_os_str().as_bytes();
    let root = root.strip_suffix(b"/").unwrap_or(root);
    let rest = path.strip_prefix(str::from_utf8(root).ok()?)?;
    if rest.is_empty() {
        return Some(".");
    }
    let rest = rest.strip_prefix('/')?.trim_start_matches('/');
    Some(if rest.is_empty() { "." } else { rest })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::net::UnixListener};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;
    use crate::{
        guard::{Access, Rights, Verdict, decide},
        model::PermissionMode,
        tools::bench::Bench,
    };

    /// What lies where the rows of the table below lead.
    fn bench() -> Bench {
        let bench = Bench::new();
        bench.put("sub/in", "in");
        bench.put("ok", "ok");
        bench.put("../app-evil/x", "evil");
        bench.put(".git/hooks/keep", "");
        bench.put("vendor/sub/.git/config", "");
        bench.put(".claude/settings.json", "{}");
        bench.link("etc", "/etc");
        bench.link("up", "..");
        bench.link("dangling", "sub/nowhere");
        bench.link("dangling-out", "../nowhere");
        bench.link("dangling-folder", "nowhere");
        bench.link("loop", "loop");
        bench.link("magic", "/proc/self/root");
        bench.link("mail", ".mailbox");
        bench.link("hooks", ".git/hooks");
        bench.link("sub/in-link", "../ok");
        bench.link("sub/root", "..");
        mknodat(CWD, bench.at("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        drop(UnixListener::bind(bench.at("socket")).unwrap());
        bench
    }

    /// Whether a path may be used after the kernel and the mildest mode have had their say.
    fn judged(access: Result<Access, FileError>) -> Result<Access, String> {
        let access = access.map_err(|why| why.to_string())?;
        let rights = Rights::new(PermissionMode::Bypass, Vec::new());
        match decide(&rights, "tool", std::slice::from_ref(&access)) {
            Verdict::Allow => Ok(access),
            Verdict::Ask(why) | Verdict::Deny(why) => Err(why),
        }
    }

    fn read(bench: &Bench, path: &str) -> Result<Access, String> {
        judged(bench.kit.workspace.file(path).map(|opened| Access::Read(opened.path)))
    }

    fn write(bench: &Bench, path: &str) -> Result<Access, String> {
        judged(bench.kit.workspace.target(path).map(|to| Access::Write(to.path().to_path_buf())))
    }

    #[test]
    fn no_path_leads_out_for_reading_or_writing() {
        let bench = bench();
        let root = bench.at("").display().to_string();
        let long = "a/".repeat(2_048) + "b";
        let name = "a".repeat(256);
        let rows = [
            "../../etc/passwd",
            "/etc/passwd",
            &format!("{root}../app-evil/x"),
            &format!("{}-evil/x", root.trim_end_matches('/')),
            "sub/../../x",
            "etc/passwd",
            "up/app/ok",
            "up/app-evil/x",
            "sub/root/../x",
            "dangling",
            "dangling-out",
            "dangling-folder/x",
            "loop",
            "magic/etc/passwd",
            "/proc/self/root/etc/passwd",
            "/proc/self/fd/3",
            "file:///etc/passwd",
            "fifo",
            "socket",
            "sub",
            "sub/",
            ".",
            "..",
            "",
            "a\0b",
            &long,
            &name,
            ".mailbox/lead.jsonl",
            "mail/lead.jsonl",
            "missing/../ok",
            "ok/x",
            "~/.ssh/id_rsa",
            "$HOME/x",
        ];
        for path in rows {
            let short: String = path.chars().take(40).collect();
            assert!(read(&bench, path).is_err(), "read {short:?}");
            assert!(write(&bench, path).is_err(), "write {short:?}");
        }
        assert!(!bench.at("sub/nowhere").exists() && !bench.temp.path().join("nowhere").exists());
    }

    #[test]
    fn what_steers_git_or_agents_is_not_written_by_whatever_way() {
        let bench = bench();
        let rows = [
            ".git/hooks/pre-commit",
            "hooks/pre-commit",
            "vendor/sub/.git/config",
            "sub/../.git/config",
            "new/.git/hooks/x",
            ".claude/settings.json",
            "teams/dev.json",
        ];
        for path in rows {
            let why = write(&bench, path).unwrap_err();
            assert!(why.contains("no `permission_mode` allows it"), "{path}: {why}");
        }
        assert!(read(&bench, "vendor/sub/.git/config").is_ok());
    }

    #[test]
    fn what_is_inside_is_found_where_it_really_lies() {
        let bench = bench();
        let absolute = bench.at("sub/in").display().to_string();
        for (typed, real) in [
            ("sub/../ok", "ok"),
            ("./sub//in", "sub/in"),
            ("sub/in-link", "ok"),
            ("sub/root/sub/in", "sub/in"),
            (absolute.as_str(), "sub/in"),
        ] {
            assert_eq!(read(&bench, typed), Ok(Access::Read(real.into())), "{typed}");
            assert_eq!(write(&bench, typed), Ok(Access::Write(real.into())), "{typed}");
        }
        for (typed, real) in [
            ("./~/.ssh/id_rsa", "~/.ssh/id_rsa"),
            ("./$HOME/x", "$HOME/x"),
            ("sub/root/new/x", "new/x"),
        ] {
            assert!(read(&bench, typed).unwrap_err().contains("No such file"), "{typed}");
            assert_eq!(write(&bench, typed), Ok(Access::Write(real.into())), "{typed}");
        }
    }

    #[test]
    fn a_write_through_a_link_changes_what_it_leads_to() {
        let bench = bench();
        let target = bench.kit.workspace.target("sub/in-link").unwrap();
        target.replace(b"new").unwrap();
        assert_eq!(bench.get("ok"), "new");
        assert!(fs::symlink_metadata(bench.at("sub/in-link")).unwrap().is_symlink());
    }

    #[test]
    fn the_workspace_may_be_named_by_a_link() {
        let bench = bench();
        let alias = bench.temp.path().join("alias");
        std::os::unix::fs::symlink("app", &alias).unwrap();
        let workspace = Workspace::open(&alias).unwrap();
        for path in [alias.join("ok"), bench.at("ok")] {
            assert_eq!(workspace.file(path.to_str().unwrap()).unwrap().path, Path::new("ok"));
        }
        assert!(workspace.is_in_place());
        fs::rename(bench.at(""), bench.temp.path().join("moved")).unwrap();
        assert!(!workspace.is_in_place());
        assert!(workspace.file("ok").is_ok(), "it is held, wherever it lies");
        let nowhere = Workspace::open(&bench.temp.path().join("none")).unwrap_err().to_string();
        assert!(nowhere.starts_with("open "), "{nowhere}");
    }
}
