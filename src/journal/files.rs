//! Journals in files below one folder: who has one open, what lies there, and who is told when
//! another process appends.
//!
//! Journals of the root itself are few and stay open; those below are many and are closed by their
//! last user. It never tells by an event what happened, only that somebody should look.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::Path,
    sync::{Arc, Weak},
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher, event::ModifyKind};
use parking_lot::Mutex;

use super::{
    Journal, JournalName, Journals, Listing, Tick, Watch,
    file::{FileJournal, Place},
};
use crate::base::{FileError, Folder, Moment};

const ENDING: &str = "jsonl";

/// The journals below a folder.
pub struct FileJournals {
    root: Folder,
    open: Arc<Open>,
}

#[derive(Default)]
struct Open {
    of_root: Mutex<BTreeMap<String, Arc<FileJournal>>>,
    below: Mutex<BTreeMap<String, Weak<FileJournal>>>,
}

impl FileJournals {
    /// The journals below `root`.
    pub fn new(root: Folder) -> Self {
        Self { root, open: Arc::default() }
    }

    fn place(&self, name: &JournalName) -> Result<Place, FileError> {
        let mut parts: Vec<String> = name.0.split('/').map(str::to_owned).collect();
        let odd = parts.iter().any(|part| part.is_empty() || part.starts_with('.'));
        let leaf = parts.pop().filter(|_| !odd).ok_or_else(|| FileError::Refused {
            path: self.root.path().join(&name.0),
            why: "no journal has such a name".to_owned(),
        })?;
        Ok(Place { root: self.root.clone(), folders: parts, name: format!("{leaf}.{ENDING}") })
    }

    fn journal(&self, name: &JournalName) -> Result<Arc<FileJournal>, FileError> {
        let place = self.place(name)?;
        let fresh = || Arc::new(FileJournal::new(place.clone()));
        if place.folders.is_empty() {
            let mut of_root = self.open.of_root.lock();
            return Ok(Arc::clone(of_root.entry(name.0.clone()).or_insert_with(fresh)));
        }
        let mut below = self.open.below.lock();
        if let Some(journal) = below.get(&name.0).and_then(Weak::upgrade) {
            return Ok(journal);
        }
        below.retain(|_, journal| journal.strong_count() > 0);
        let journal = fresh();
        below.insert(name.0.clone(), Arc::downgrade(&journal));
        Ok(journal)
    }

    /// The root's journals that are open, and all others there as well.
    fn all_of_root(&self) -> Vec<Arc<FileJournal>> {
        let listed = self.list("").unwrap_or_default().journals;
        // Nobody needs one that is no longer there, unless it is in use.
        self.open.of_root.lock().retain(|name, journal| {
            Arc::strong_count(journal) > 1 || listed.iter().any(|listed| listed.0 == *name)
        });
        // What can't be opened is told to whoever asks for it by name.
        drop(listed.iter().map(|name| self.journal(name)).collect::<Vec<_>>());
        self.open.all_of_root()
    }
}

impl Open {
    fn all_of_root(&self) -> Vec<Arc<FileJournal>> {
        self.of_root.lock().values().cloned().collect()
    }

    /// Tells those that `event` is about; says whether it is about any change at all.
    fn tell(&self, event: &notify::Result<Event>) -> bool {
        let event = match event {
            Ok(event) if !event.need_rescan() => event,
            // Events were lost, so anything may have changed.
            Ok(_) | Err(_) => {
                self.all_of_root().iter().for_each(|journal| journal.notify());
                return true;
            }
        };
        if !is_change(event.kind) {
            return false;
        }
        for name in event.paths.iter().filter_map(|path| journal_name(path.file_name()?)) {
            let journal = self.of_root.lock().get(&name).cloned();
            if let Some(journal) = journal {
                journal.notify();
            }
        }
        true
    }
}

/// Whether bytes or names changed. Opening and closing does not count, for our own reads do it too,
/// and each write is told of by itself; nor do rights, which we narrow.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)) => false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    }
}

/// The journal whose file is called `file`.
fn journal_name(file: &OsStr) -> Option<String> {
    let path = Path::new(file);
    let is_journal = path.extension() == Some(OsStr::new(ENDING));
    path.file_stem().filter(|_| is_journal)?.to_str().map(str::to_owned)
}

impl Journals for FileJournals {
    fn open(&self, name: &JournalName) -> Result<Arc<dyn Journal>, FileError> {
        Ok(self.journal(name)?)
    }

    fn list(&self, folder: &str) -> Result<Listing, FileError> {
        let path = self.root.path().join(folder);
        let mut there = self.root.clone();
        if !folder.is_empty() {
            if !path.is_dir() {
                return Ok(Listing::default());
            }
            there = folder.split('/').try_fold(there, |there, part| there.inside(part))?;
        }
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut listing = Listing::default();
        for name in there.names()? {
            if let Some(stem) = journal_name(&name) {
                listing.journals.push(JournalName(format!("{prefix}{stem}")));
            } else if !is_folder(&path, &name) {
                listing.strays.push(name.to_string_lossy().into_owned());
            }
        }
        listing.journals.sort();
        Ok(listing)
    }

    fn watch(&self, changed: Box<dyn Fn() + Send + Sync>) -> Result<Watch, FileError> {
        let open = Arc::clone(&self.open);
        let watcher = notify::recommended_watcher(move |event| {
            if open.tell(&event) {
                changed();
            }
        });
        Ok(watch(watcher, self.root.path()))
    }

    fn watch_folder(
        &self,
        folder: &str,
        changed: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Watch, FileError> {
        let there = folder.split('/').try_fold(self.root.clone(), |it, part| it.inside(part))?;
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.map_or(true, |event| is_change(event.kind)) {
                changed();
            }
        });
        Ok(watch(watcher, there.path()))
    }

    fn tick(&self, now: Moment, what: Tick) -> Option<Moment> {
        let journals = match what {
            Tick::All => self.all_of_root(),
            Tick::Changed => self.open.all_of_root(),
        };
        // What can't be read now is told to its readers, and is looked at again at the next tick.
        journals.iter().filter_map(|journal| journal.tend(now, what).ok().flatten()).min()
    }
}

/// Where the system gives no watcher, ticks find out the same, only later.
fn watch(watcher: notify::Result<RecommendedWatcher>, folder: &Path) -> Watch {
    let started = watcher.and_then(|mut watcher| {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    Watch { watcher: started.ok() }
}

fn is_folder(folder: &Path, name: &OsString) -> bool {
    folder.join(name).symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

#[cfg(test)]
mod tests;
