//! The right to be this folder's daemon: the lock, what a start after a clean end or a crash does,
//! and the mark of a clean end.

use std::{path::Path, sync::Arc};

use crate::{
    agent::{Office, OfficeError, notes_on_programs},
    base::{Clock, FileError, Folder, Moment, left_overs::Mark, lock::FolderLock, privacy},
    model::{AgentName, Desired, MessageId, PermissionMode, Rule, Ruling, Team, TeamFault},
    store::{Activity, Store, StoreError, TeamFile, TeamStatus},
};

const CLEAN: &str = "clean";
/// Said at every start of a team that may run commands.
const UNSANDBOXED: &str = "commands are not sandboxed: they can act as you";

/// Why the daemon does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another daemon holds the folder.
    #[error("another team holds {folder}: {holder}")]
    Held {
        /// Which folder.
        folder: String,
        /// Who holds it, as far as is known, and what to do.
        holder: String,
    },
    /// The team file is wrong.
    #[error("the team file has faults")]
    Faults(Vec<TeamFault>),
    /// Nobody can think for a teammate; who, why, and the mend.
    #[error("{0}")]
    Provider(String),
    /// A file or folder can't be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Something was not stored or read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<OfficeError> for StartError {
    fn from(why: OfficeError) -> Self {
        match why {
            OfficeError::Faults(faults) => Self::Faults(faults),
            OfficeError::File(why) => Self::File(why),
            OfficeError::Store(why) => Self::Store(why),
            why @ OfficeError::Provider { .. } => Self::Provider(why.to_string()),
        }
    }
}

/// The daemon of a folder, which holds its lock for life.
pub struct Instance {
    /// What the team shares.
    pub office: Arc<Office>,
    /// The team and its file.
    pub team: TeamFile,
    /// This life of the daemon.
    pub life: MessageId,
    /// Who shall run, and who is left stopped.
    pub start: Vec<AgentName>,
    /// What a person should know about this start.
    pub notes: Vec<String>,
    _lock: FolderLock,
}

impl Instance {
    /// Takes the folder and makes it ready: kills what an earlier life has left running, records
    /// the births of those that start anew, removes the mark of the last clean end.
    pub fn take(
        folder: Folder,
        team: TeamFile,
        clock: Clock,
        changed: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<Self, StartError> {
        let lock = lock(&folder, &clock)?;
        let store = Store::open(folder, clock)?;
        let mut notes = Vec::new();
        let killed = Mark::of_folder(store.root().path()).kill_all().unwrap_or_default();
        if killed > 0 {
            notes.push(format!("{killed} processes that an earlier life had left were ended"));
        }
        let office = Office::open(store, team.team.clone(), changed)?;
        if office.has_secrets() {
            privacy::forbid_looking_in();
        }
        office.store.make_mailboxes(&office.bus.roster().members);
        let mut instance =
            Self { office, team, life: MessageId::random(), start: Vec::new(), notes, _lock: lock };
        instance.record_births()?;
        instance.notes.extend(notes_on_programs(&instance.office.team));
        instance.notes.extend(instance.office.notes_on_types());
        if may_run_commands(&instance.office.team) {
            instance.notes.push(UNSANDBOXED.to_owned());
        }
        Ok(instance)
    }

    /// The store of the folder.
    pub fn store(&self) -> &Store {
        &self.office.store
    }

    /// After a clean end this is an explicit start: whoever shall run is born now, so that a
    /// SHUTDOWN from before is stale. After a crash the births stay: a SHUTDOWN that nobody could
    /// obey is obeyed. The mark goes away last, so a kill in between repeats the explicit start.
    fn record_births(&mut self) -> Result<(), StartError> {
        let store = self.store().clone();
        let is_clean = store.state().read(CLEAN)?.is_some();
        let names: Vec<AgentName> = self.office.team.teammates.keys().cloned().collect();
        for name in names {
            match self.record_birth(&store, &name, is_clean) {
                Ok(Desired::Running) => self.start.push(name),
                Ok(Desired::Stopped) => {
                    self.office.statuses.set(&name, Activity::Stopped, "since an earlier life");
                    self.notes.push(format!(
                        "{name} stays stopped, as it was; `postroom start {name}` starts it"
                    ));
                }
                // One damaged life must not keep the others from running.
                Err(why) => {
                    self.office.statuses.set(&name, Activity::Failed, why.to_string());
                    self.notes.push(format!("{name} does not run: {why}"));
                }
            }
        }
        store.state().remove(CLEAN)?;
        Ok(())
    }

    fn record_birth(
        &self,
        store: &Store,
        name: &AgentName,
        is_clean: bool,
    ) -> Result<Desired, StoreError> {
        let mut log = store.lives().open(name)?;
        let desired = log.life().desired;
        if log.is_new() || (is_clean && desired == Desired::Running) {
            let end = self.office.bus.end_of(name)?;
            log.record(|life| life.be_born(end))?;
        }
        Ok(desired)
    }

    /// Marks the end as a clean one.
    pub fn mark_clean(&self) -> Result<(), FileError> {
        self.store().state().replace(CLEAN, b"ended in order\n")
    }
}

/// Whether some teammate may run a command without being asked about it.
fn may_run_commands(team: &Team) -> bool {
    let modes = team.teammates.values().map(|teammate| teammate.permission_mode);
    let is_free = |mode| matches!(mode, PermissionMode::Auto | PermissionMode::Bypass);
    let allows = |rule: &Rule| rule.ruling == Ruling::Allow && rule.pattern.tool == "bash";
    modes.into_iter().any(is_free) || team.rules.iter().any(allows)
}

fn lock(folder: &Folder, clock: &Clock) -> Result<FolderLock, StartError> {
    let failed = |why| FileError::Io { doing: "lock", path: folder.path().to_path_buf(), why };
    if let Some(lock) = FolderLock::take(folder.path(), clock).map_err(failed)? {
        return Ok(lock);
    }
    let status = Store::open(folder.clone(), clock.clone())
        .ok()
        .and_then(|store| TeamStatus::read(&store).ok().flatten());
    let holder = status.map_or_else(
        || "it is just starting; try `postroom status`".to_owned(),
        |it| {
            format!(
                "team {} from {}, process {}; `postroom down` ends it",
                it.team, it.file, it.pid
            )
        },
    );
    Err(StartError::Held { folder: folder.path().display().to_string(), holder })
}

/// Whether a daemon holds the folder.
pub fn is_up(folder: &Path) -> bool {
    FolderLock::is_held(folder).unwrap_or_default()
}

/// A deadline that is not set.
pub fn earliest(deadlines: impl IntoIterator<Item = Option<Moment>>) -> Option<Moment> {
    deadlines.into_iter().flatten().min()
}
