//! What a team shares: resolved once from its file, with all faults at once.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    Desk,
    asks::Asks,
    desk::{Told, environment},
    prompt,
    secrets::Secrets,
    thinkers::{Thinker, Thinkers},
};
use crate::{
    base::FileError,
    model::{
        AgentName, AgentType, Claims, Desired, Hold, PathRule, Place, Placed, ProviderKind, Task,
        TaskState, Team, TeamFault, Teammate, TypeName,
    },
    provider::Clerk,
    store::{
        Costs, DeadLetters, Inbox, MessageBus, Rebirth, Statuses, Store, StoreError, TaskBoard,
    },
    tools::{Kit, Post, ToolSet, Workspace, set},
};

/// Why a team can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum OfficeError {
    /// Its file is wrong.
    #[error("the team file has faults")]
    Faults(Vec<TeamFault>),
    /// A file or folder can't be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Something was not stored or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nobody can think for a teammate.
    #[error("{name} has nobody to think for it: {why}")]
    Provider {
        /// The teammate.
        name: AgentName,
        /// Why, and the mend.
        why: String,
    },
}

/// What a team shares.
pub struct Office {
    /// All that is on disk.
    pub store: Store,
    /// Who is in the team.
    pub team: Arc<Team>,
    /// The way to their mailboxes.
    pub bus: MessageBus,
    /// The tasks.
    pub board: TaskBoard,
    /// Lines that are no message.
    pub dead: DeadLetters,
    /// What the calls of models have cost.
    pub costs: Costs,
    /// What everybody is doing.
    pub statuses: Statuses,
    /// The way in which its teammates write to each other.
    pub(super) post: Post,
    /// Who waits for whom.
    pub(super) asks: Asks,
    /// The keys that nobody is told.
    pub(super) secrets: Secrets,
    unattended: AtomicBool,
    refused: AtomicBool,
    folder: PathBuf,
    pub(super) desks: BTreeMap<AgentName, Arc<Desk>>,
    thinkers: Thinkers,
}

impl Office {
    /// Sets the team up. `changed` is called when somebody's status changes and must only notify.
    pub fn open(
        store: Store,
        team: Team,
        changed: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<Arc<Self>, OfficeError> {
        let faults = check_scripts(&team);
        if !faults.is_empty() {
            return Err(OfficeError::Faults(faults));
        }
        let mut team = team;
        let home = std::env::var("HOME").ok();
        for it in team.types.values_mut() {
            localise(&mut it.paths, store.workspace(), home.as_deref());
        }
        let team = Arc::new(team);
        let bus = store.bus(Arc::new((&*team).into()));
        let statuses = Statuses::new(&store, changed);
        let post = Post::new(&store, Arc::clone(&team), bus.clone(), statuses.clone());
        let board = TaskBoard::open(&store)?;
        let workspace = Workspace::open(store.workspace())?;
        let outputs = store.outputs()?;
        let folder = store.root().path().to_path_buf();
        let parts = [
            set::built_in(),
            set::of_subagents(&team),
            set::of_team(&post),
            set::of_board(&board, &post),
        ];
        let tools = ToolSet::new(parts.concat());
        let thinkers = Thinkers::new(
            &team,
            store.clock().clone(),
            store.workspace().to_path_buf(),
            folder.clone(),
            environment(&team.lead),
        );
        let notes = prompt::notes(&workspace);
        let mut desks = BTreeMap::new();
        for (name, teammate) in &team.teammates {
            let kit = Kit {
                workspace: workspace.clone(),
                outputs: outputs.clone(),
                env: Arc::new(environment(name)),
                command_timeout: team.limits.tool_timeout,
                hidden: Arc::default(),
                max_file_size: None,
            };
            let thinker = thinkers
                .of_teammate(name, teammate)
                .map_err(|why| OfficeError::Provider { name: name.clone(), why })?;
            let system = prompt::system_prompt(&team, name, teammate, &notes);
            let told = Told { system, thinker };
            let desk = Desk::of_teammate(&team, name, teammate, kit, &tools, told);
            desks.insert(name.clone(), Arc::new(desk));
        }
        let dead = DeadLetters::open(&store)?;
        let costs = Costs::open(&store, Arc::clone(&team))?;
        let (asks, secrets) = (Asks::default(), Secrets::of(&team));
        let (unattended, refused) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Arc::new(Self {
            store,
            team,
            bus,
            board,
            dead,
            costs,
            statuses,
            post,
            asks,
            secrets,
            unattended,
            refused,
            folder,
            desks,
            thinkers,
        }))
    }

    /// Whether the daemon was given a key.
    pub fn has_secrets(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// From now on a question that only the user could decide is refused at once: nobody is here.
    pub fn leave_unattended(&self) {
        self.unattended.store(true, Ordering::SeqCst);
    }

    /// Whether nobody is here to decide.
    pub fn is_unattended(&self) -> bool {
        self.unattended.load(Ordering::SeqCst)
    }

    /// Remembers that something was refused because nobody was here.
    pub(super) fn note_refusal(&self) {
        self.refused.store(true, Ordering::SeqCst);
    }

    /// Whether something was refused because nobody was here.
    pub fn has_refused(&self) -> bool {
        self.refused.load(Ordering::SeqCst)
    }

    /// What `name` works with.
    pub fn desk(&self, name: &AgentName) -> Arc<Desk> {
        let desk = self.desks.get(name);
        Arc::clone(desk.unwrap_or_else(|| crate::base::broken("every teammate has a desk")))
    }

    /// Whether there is a task that `name` could take. What can't be read now is not there.
    pub fn may_claim(&self, name: &AgentName) -> bool {
        let claims = self.team.claims(name);
        let can_do = |task: &Task| self.can_do(name, task);
        let names = self.team.names_of(name);
        let found = self.board.look(|board| {
            let mut meant = names.iter().flat_map(|name| board.ready(Some(name)));
            let mine = claims != Claims::None && meant.any(can_do);
            let unknown = board.in_hand().any(|task| is_held_by(task, name));
            mine || unknown || (claims == Claims::Any && board.ready(None).any(can_do))
        });
        found.unwrap_or_default()
    }

    /// Whether `name` could do a task, as what the task says.
    pub fn can_do(&self, name: &AgentName, task: &Task) -> bool {
        let desk = self.desk(name);
        match &task.agent_type {
            None => desk.provider.can_do(task.work()),
            Some(as_what) => {
                let thinker = self.type_of_task(as_what).and_then(|it| self.thinker_of(it, &desk));
                thinker.is_ok_and(|it| it.provider.can_do(task.work()))
            }
        }
    }

    /// Who thinks for a subagent of type `it` that is called from `desk`.
    pub fn thinker_of(&self, it: &AgentType, desk: &Desk) -> Result<Thinker, String> {
        let thinker = self.thinkers.of_subagent(it, desk);
        thinker.map_err(|why| format!("nobody can think for {}: {why}", it.name))
    }

    /// What `name` works on a task with; the error says why it can't be done as what the task says.
    pub fn desk_for(&self, name: &AgentName, task: &Task) -> Result<Arc<Desk>, String> {
        let desk = self.desk(name);
        let Some(as_what) = &task.agent_type else { return Ok(desk) };
        let it = self.type_of_task(as_what)?;
        let narrowed = desk.narrowed(it, &desk.rights, self.thinker_of(it, &desk)?);
        // The teammate's own plan gate holds for all that it does.
        let plan_required = narrowed.plan_required || desk.plan_required;
        Ok(Arc::new(Desk { plan_required, ..narrowed }))
    }

    fn type_of_task(&self, as_what: &TypeName) -> Result<&AgentType, String> {
        self.team.spawnable(as_what.as_str()).map_err(|why| why.to_string())
    }

    /// What people have to know of types: for which nobody can think when the lead calls them.
    pub fn notes_on_types(&self) -> Vec<String> {
        let lead = self.desk(&self.team.lead);
        let all = self.team.types.values().filter(|it| it.may_be_spawned());
        all.filter_map(|it| self.thinker_of(it, &lead).err()).collect()
    }

    /// Whether a SHUTDOWN lies unread that a teammate without a thread has to obey.
    pub fn is_told_to_stop(&self, name: &AgentName) -> Result<bool, StoreError> {
        let log = self.store.lives().open(name)?;
        let is_behind = log.life().cursor < self.bus.end_of(name)?;
        if log.life().desired == Desired::Stopped || !is_behind {
            return Ok(false);
        }
        let (team, dead) = (Arc::clone(&self.team), self.dead.clone());
        let inbox = Inbox::open(&self.store, &self.bus, team, dead, name, Rebirth::Process)?;
        inbox.pull()?;
        Ok(!inbox.all_shutdowns().is_empty())
    }

    /// The mailbox folder, which marks the processes of this team.
    pub fn folder(&self) -> &PathBuf {
        &self.folder
    }
}

/// Path rules as they are judged by: relative to the workspace where they lie in it.
fn localise(rules: &mut [PathRule], workspace: &Path, home: Option<&str>) {
    for rule in rules {
        let below = rule.path.strip_prefix('~').filter(|it| it.is_empty() || it.starts_with('/'));
        if let (Some(below), Some(home)) = (below, home) {
            rule.path = format!("{home}{below}");
        }
        if let Ok(inside) = Path::new(&rule.path).strip_prefix(workspace) {
            rule.path = inside.to_string_lossy().into_owned();
        } else if workspace.starts_with(&rule.path) {
            // A subtree that holds the workspace holds all of it.
            rule.path = String::new();
        }
    }
}

/// Whether a task is in the hands of a run of `name`.
fn is_held_by(task: &Task, name: &AgentName) -> bool {
    matches!(&task.state, TaskState::InProgress { owner, hold: Hold::Run(_) } if owner == name)
}

/// Whether anybody of a team, or outside it, could take a task: it is theirs to take, and a clerk
/// understands it.
pub fn can_be_taken(team: &Team, task: &Task) -> bool {
    let is_outside = |name: &AgentName| team.outside.contains(name);
    let takes = |name: &AgentName| match (&task.assignee, team.claims(name)) {
        (_, Claims::None) => false,
        (Some(assignee), _) => team.names_of(name).contains(assignee),
        (None, claims) => claims == Claims::Any,
    };
    let as_what = task.agent_type.as_ref().map(|it| team.spawnable(it.as_str()));
    let Ok(as_what) = as_what.transpose() else { return false };
    let of_type = as_what.and_then(|it| it.provider.as_deref());
    let understands = |name: &AgentName, teammate: &Teammate| {
        let provider = team.providers.get(of_type.unwrap_or_else(|| team.provider_of(name)));
        if provider.is_none_or(|it| it.kind != ProviderKind::Clerk) {
            return true;
        }
        let own = teammate.script.as_ref().filter(|_| as_what.is_none());
        let script = own.map(|script| script.value.clone());
        Clerk::new(name.clone(), script).is_ok_and(|clerk| clerk.can_do(task.work()))
    };
    task.assignee.as_ref().map_or(!team.outside.is_empty(), is_outside)
        || team.teammates.iter().any(|(name, it)| takes(name) && understands(name, it))
}

/// The faults of all scripts of a team.
pub fn check_scripts(team: &Team) -> Vec<TeamFault> {
    let mut faults = Vec::new();
    for (name, teammate) in &team.teammates {
        let Some(script) = &teammate.script else { continue };
        if let Err(why) = Clerk::new(name.clone(), Some(script.value.clone())) {
            faults.push(fault(name, teammate, &why.to_string()));
        }
    }
    faults
}

fn fault(name: &AgentName, teammate: &Teammate, why: &str) -> TeamFault {
    let nowhere = Place { line: 1, column: 1 };
    let place = teammate.script.as_ref().map_or(nowhere, |Placed { place, .. }| *place);
    TeamFault { place, why: format!("the script of {name}: {why}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PathGrant;

    #[test]
    fn path_rules_are_judged_by_where_they_lie_in_the_workspace() {
        let rule = |path: &str| PathRule { path: path.to_owned(), grant: PathGrant::Deny };
        let paths =
            ["docs", "", "~/.ssh", "~/app/secrets", "~", "/home/u/app/x", "/etc", "/home/u/ap"];
        let mut rules = paths.map(rule);
        localise(&mut rules, Path::new("/home/u/app"), Some("/home/u"));
        let told: Vec<&str> = rules.iter().map(|rule| rule.path.as_str()).collect();
        assert_eq!(told, ["docs", "", "/home/u/.ssh", "secrets", "", "x", "/etc", "/home/u/ap"]);
    }
}
