//! The walk over all files below a folder, for the tools that search.
//!
//! It honours `.gitignore`, follows no link, and stays out of `.git` and of what no file tool may
//! read. It is rooted at the descriptor of a folder that is held open, so it can't be led away by a
//! rename of that folder. It gives paths; a searcher opens them below the workspace again.

use std::{
    convert::Infallible,
    ops::ControlFlow,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use ignore::{DirEntry, WalkBuilder};

use super::{Kit, ToolError, Workspace};
use crate::{
    base::{Interrupted, Scope, below::Opened},
    guard::{Hidden, kept_from_reading},
};

/// How many entries are walked over between two looks at the scope.
const STRIDE: usize = 64;

/// What a walk calls with each path, relative to the workspace; `Break` ends the walk.
pub type Each<'a> = dyn FnMut(&Path) -> Result<ControlFlow<()>, ToolError> + 'a;

/// Calls `each` for the regular files and links below the folder `start`, sorted by name in each
/// folder.
///
/// The walk begins at the root of the workspace, so that every `.gitignore` on the way counts, and
/// enters only what leads to `start`. Where `start` itself is ignored, it was named on purpose and
/// is walked alone.
pub fn files(
    place: &Searched,
    start: &Opened,
    scope: &Scope,
    each: &mut Each<'_>,
) -> Result<(), ToolError> {
    let root = place.workspace.folder(".")?;
    let mut each = |path: &Path| {
        if place.hidden.has(path) { Ok(ControlFlow::Continue(())) } else { each(path) }
    };
    match walk(&root, &start.path, scope, &mut each)? {
        Reached::Start => Ok(()),
        Reached::Nothing => walk(start, &start.path, scope, &mut each).map(drop),
    }
}

/// Where a search goes, and what it leaves out there.
#[derive(Clone)]
pub struct Searched {
    /// The files.
    pub workspace: Workspace,
    /// What is left out.
    pub hidden: Arc<Hidden>,
}

impl Searched {
    /// What the bearer of `kit` searches.
    pub fn by(kit: &Kit) -> Self {
        Self { workspace: kit.workspace.clone(), hidden: Arc::clone(&kit.hidden) }
    }
}

/// Fails where the work in hand shall end; called now and then by what does not wait.
pub fn check(scope: &Scope) -> Result<(), ToolError> {
    match scope.wait(Some(scope.clock.now()), || None::<Infallible>) {
        Err(Interrupted::Late) => Ok(()),
        Err(why) => Err(ToolError::Interrupted(why)),
        Ok(never) => match never {},
    }
}

#[derive(PartialEq)]
enum Reached {
    Start,
    Nothing,
}

fn walk(
    from: &Opened,
    start: &Path,
    scope: &Scope,
    each: &mut Each<'_>,
) -> Result<Reached, ToolError> {
    let root = PathBuf::from(format!("/proc/self/fd/{}", from.file.as_raw_fd()));
    let (start, place) = (plain(start), Place { root: root.clone(), path: plain(&from.path) });
    let mut reached = Reached::Nothing;
    for (count, entry) in builder(&root, &start, &place).build().enumerate() {
        if count % STRIDE == 0 {
            check(scope)?;
        }
        // What can't be listed is left out, as the rest may hold what is looked for.
        let Ok(entry) = entry else { continue };
        let path = place.of(&entry);
        if path == start {
            reached = Reached::Start;
        }
        let is_leaf = entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink());
        if entry.depth() > 0 && is_leaf && path.starts_with(&start) && each(&path)?.is_break() {
            return Ok(Reached::Start);
        }
    }
    Ok(reached)
}

fn builder(root: &Path, start: &Path, place: &Place) -> WalkBuilder {
    let (start, place) = (start.to_path_buf(), place.clone());
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(false)
        .parents(false)
        .git_global(false)
        .require_git(false)
        .follow_links(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(move |entry| {
            let path = place.of(entry);
            let is_wanted = path.starts_with(&start) || start.starts_with(&path);
            let is_git = entry.depth() > 0 && entry.file_name() == ".git";
            is_wanted && !is_git && kept_from_reading(&path).is_none()
        });
    builder
}

/// Where a walk is rooted: by the path it walks, and in the workspace.
#[derive(Clone)]
struct Place {
    root: PathBuf,
    path: PathBuf,
}

impl Place {
    /// The path of an entry, relative to the workspace.
    fn of(&self, entry: &DirEntry) -> PathBuf {
        let below = entry.path().strip_prefix(&self.root).unwrap_or(Path::new(""));
        if below.as_os_str().is_empty() { self.path.clone() } else { self.path.join(below) }
    }
}

/// A path without the `.` that stands for the workspace itself.
fn plain(path: &Path) -> PathBuf {
    path.strip_prefix(".").unwrap_or(path).to_path_buf()
}
