//! Where a verb stands: the mailbox folder, the team, and in whose name it speaks.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    args::{DeadVerb, Verb},
    failure::Failure,
};
use crate::{
    base::{Clock, Folder, text::listed},
    daemon::is_up,
    model::AgentName,
    store::{
        MAILBOX_FOLDER, MessageBus, Roster, Store, TeamFile, TeamStatus, find_root, find_team,
        read_team_file, team_files,
    },
};

/// Where a verb stands.
#[derive(Clone)]
pub struct Context {
    workspace: PathBuf,
    is_found: bool,
    /// The teammate in whose command this process runs, where it does.
    teammate: Option<AgentName>,
    clock: Clock,
}

impl Context {
    /// Finds the mailbox folder: as given, else the nearest upwards.
    pub fn new(given: Option<PathBuf>) -> Result<Self, Failure> {
        let here = env::current_dir()
            .map_err(|why| Failure::failed(format!("no current folder: {why}")))?;
        let (workspace, is_found) = match given {
            Some(folder) => (parent_of_mailbox(&here.join(folder))?, true),
            None => match find_root(&here) {
                Some(root) => (root, true),
                None => (here, false),
            },
        };
        let workspace = workspace
            .canonicalize()
            .map_err(|why| Failure::usage(format!("no folder {}: {why}", workspace.display())))?;
        let teammate = env::var("POSTROOM_TEAMMATE").ok().filter(|it| !it.is_empty());
        let teammate = teammate.map(AgentName::new).transpose()?;
        Ok(Self { workspace, is_found, teammate, clock: Clock::real() })
    }

    /// The folder the team works on.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// The mailbox folder.
    pub fn folder(&self) -> PathBuf {
        self.workspace.join(MAILBOX_FOLDER)
    }

    /// The clocks.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What runs inside a command of a teammate must not do what only people may.
    pub fn refuse_to_teammates(&self, verb: &Verb) -> Result<(), Failure> {
        let Some(teammate) = &self.teammate else { return Ok(()) };
        let what = match verb {
            Verb::Run(_) | Verb::Up(_) => "host a team",
            Verb::Down(_) | Verb::Start(_) | Verb::Stop(_) | Verb::Restart(_) => {
                "start or stop anybody"
            }
            Verb::Approve(_) | Verb::Reject(_) | Verb::Attach => "decide questions",
            Verb::Dead(it) if !matches!(it.verb, DeadVerb::List { .. } | DeadVerb::Show { .. }) => {
                "retry or drop dead letters"
            }
            Verb::Send(it) if it.from.as_ref().is_some_and(|from| from != teammate.as_str()) => {
                "send in somebody else's name"
            }
            Verb::Task(it) if it.is_for_other_than(teammate) => "act in somebody else's name",
            Verb::Send(it) if it.interrupt => "interrupt anybody",
            _ => return Ok(()),
        };
        Err(Failure::usage(format!("{teammate} is a teammate, and its commands can't {what}")))
    }

    /// In whose name messages are sent.
    pub fn sender(&self, given: Option<&str>) -> Result<AgentName, Failure> {
        match (given, &self.teammate) {
            (Some(name), _) => Ok(AgentName::new(name)?),
            (None, Some(teammate)) => Ok(teammate.clone()),
            (None, None) => Ok(AgentName::user()),
        }
    }

    /// Whether a daemon holds the folder.
    pub fn is_up(&self) -> bool {
        is_up(&self.folder())
    }

    /// The store, where there is a mailbox folder.
    pub fn store(&self) -> Result<Store, Failure> {
        if !self.is_found {
            return Err(Failure::usage(format!(
                "no {MAILBOX_FOLDER} here or above ({}); `postroom init` or `postroom up` makes one",
                self.workspace.display()
            )));
        }
        self.store_of(Folder::open(&self.folder())?)
    }

    /// The store in `folder`.
    pub fn store_of(&self, folder: Folder) -> Result<Store, Failure> {
        Ok(Store::open(folder, self.clock.clone())?)
    }

    /// The mailbox folder, after making it where it is missing.
    pub fn make_folder(&self) -> Result<Folder, Failure> {
        let path = self.folder();
        // A clone made with umask 002 lets the group write the folder, in which nothing lies yet.
        if path.is_dir() && !path.join("state").exists() {
            Folder::make_private(&path)?;
        }
        let folder = Folder::make(&path)?;
        if !path.join(".gitignore").exists() {
            folder.create(".gitignore", b"*\n!.gitignore\n")?;
        }
        Ok(folder)
    }

    /// The team file that `given` means; without one, the only one there is.
    pub fn team_path(&self, given: Option<&str>) -> Result<PathBuf, Failure> {
        if let Some(given) = given {
            return find_team(&self.workspace, given).ok_or_else(|| {
                let known = self.team_names();
                Failure::usage(format!("no team file teams/{given}.json; there are {known}"))
            });
        }
        let files = team_files(&self.workspace);
        match files.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(Failure::usage(format!(
                "no team file in {}; `postroom init` writes one",
                self.workspace.join("teams").display()
            ))),
            _ => Err(Failure::usage(format!(
                "which team? there are {}; name one, as in `postroom up NAME`",
                self.team_names()
            ))),
        }
    }

    /// The team that `given` means.
    pub fn team(&self, given: Option<&str>) -> Result<TeamFile, Failure> {
        Ok(read_team_file(&self.team_path(given)?)?)
    }

    fn team_names(&self) -> String {
        let files = team_files(&self.workspace);
        listed(files.iter().filter_map(|file| file.file_stem()).map(|it| it.to_string_lossy()))
    }

    /// The team that runs in the folder or ran last, else the only one there is.
    pub fn known_team(&self, store: &Store) -> Result<Option<TeamFile>, Failure> {
        let last = TeamStatus::read(store)?.map(|status| PathBuf::from(status.file));
        let last = last.and_then(|file| read_team_file(&file).ok());
        Ok(last.or_else(|| self.team(None).ok()))
    }

    /// The bus, and the team whose members it knows. Without a team everybody is known who has ever
    /// had a life.
    pub fn bus(&self, store: &Store) -> Result<(MessageBus, Option<TeamFile>), Failure> {
        let team = self.known_team(store)?;
        let roster = match &team {
            Some(file) => Roster::from(&file.team),
            None => {
                let members = store.lives().names()?.into_iter().chain([AgentName::user()]);
                Roster { members: members.collect(), lead: None }
            }
        };
        Ok((store.unsealed_bus(Arc::new(roster)), team))
    }
}

fn parent_of_mailbox(folder: &Path) -> Result<PathBuf, Failure> {
    let is_named_so = folder.file_name().is_some_and(|name| name == MAILBOX_FOLDER);
    match folder.parent() {
        Some(parent) if is_named_so => Ok(parent.to_path_buf()),
        _ => Err(Failure::usage(format!(
            "{} is no mailbox folder: its name has to be {MAILBOX_FOLDER}",
            folder.display()
        ))),
    }
}
