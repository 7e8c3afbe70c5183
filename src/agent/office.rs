//! What a team shares: resolved once from its file, with all faults at once.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::asks::Asks;
use crate::{
    base::FileError,
    guard::Rights,
    model::{
        AgentName, Claims, Desired, Hold, Place, Placed, Task, TaskState, Team, TeamFault,
        Teammate, ToolCall,
    },
    provider::{Clerk, Provider},
    store::{DeadLetters, Inbox, MessageBus, Rebirth, Statuses, Store, StoreError, TaskBoard},
    tools::{Kit, Post, Tool, ToolSet, Workspace, set},
};

/// Variables of the daemon's environment that commands of the team get, too: what a toolchain needs
/// to run. Keys are none of them.
const PASSED_ON: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TMPDIR",
    "TZ",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOCACHE",
    "GOROOT",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_HOME",
    "NVM_DIR",
    "NODE_PATH",
    "PNPM_HOME",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "CONDA_PREFIX",
    "GEM_HOME",
    "DOTNET_ROOT",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

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
    /// What everybody is doing.
    pub statuses: Statuses,
    /// Who waits for whom.
    pub(super) asks: Asks,
    unattended: AtomicBool,
    refused: AtomicBool,
    folder: PathBuf,
    desks: BTreeMap<AgentName, Arc<Desk>>,
}

/// What one teammate works with.
pub struct Desk {
    /// What it is told about itself.
    pub system: String,
    /// Who thinks for it.
    pub provider: Arc<dyn Provider>,
    /// What it can do.
    pub tools: ToolSet,
    /// What its tools work on.
    pub kit: Kit,
    /// What it may do.
    pub rights: Rights,
    /// Whether it may change nothing before a plan is approved.
    pub plan_required: bool,
    /// The most turns of a model for one piece of work.
    pub most_turns: usize,
}

/// The most turns of a model for one piece of work.
const MOST_TURNS: usize = 200;

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
        let team = Arc::new(team);
        let bus = store.bus(Arc::new((&*team).into()));
        let statuses = Statuses::new(&store, changed);
        let post = Post::new(&store, Arc::clone(&team), bus.clone(), statuses.clone());
        let board = TaskBoard::open(&store)?;
        let workspace = Workspace::open(store.workspace())?;
        let outputs = store.outputs()?;
        let folder = store.root().path().to_path_buf();
        let mut desks = BTreeMap::new();
        for (name, teammate) in &team.teammates {
            let kit = Kit {
                workspace: workspace.clone(),
                outputs: outputs.clone(),
                env: Arc::new(environment(name)),
                command_timeout: team.limits.tool_timeout,
            };
            let of_board = set::of_board(&board, &post);
            let tools = ToolSet::new([set::built_in(), set::of_team(&post), of_board].concat());
            desks.insert(name.clone(), Arc::new(Desk::new(&team, name, teammate, kit, tools)?));
        }
        let dead = DeadLetters::open(&store)?;
        let asks = Asks::default();
        let (unattended, refused) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Arc::new(Self {
            store,
            team,
            bus,
            board,
            dead,
            statuses,
            asks,
            unattended,
            refused,
            folder,
            desks,
        }))
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
        let provider = &self.desk(name).provider;
        let can_do = |task: &Task| provider.can_do(task.work());
        let found = self.board.look(|board| {
            let mine = claims != Claims::None && board.ready(Some(name)).any(can_do);
            let unknown = board.in_hand().any(|task| is_held_by(task, name));
            mine || unknown || (claims == Claims::Any && board.ready(None).any(can_do))
        });
        found.unwrap_or_default()
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

impl Desk {
    /// Whether a call that was cut off may simply be made again.
    pub fn is_repeatable(&self, call: &ToolCall) -> bool {
        self.tools.find(&call.tool).is_ok_and(Tool::is_repeatable)
    }

    fn new(
        team: &Team,
        name: &AgentName,
        teammate: &Teammate,
        kit: Kit,
        tools: ToolSet,
    ) -> Result<Self, OfficeError> {
        let script = teammate.script.as_ref().map(|script| script.value.clone());
        let clerk = Clerk::new(name.clone(), script)
            .map_err(|why| OfficeError::Faults(vec![fault(name, teammate, &why.to_string())]))?;
        Ok(Self {
            system: system_prompt(team, name, teammate),
            provider: Arc::new(clerk),
            tools,
            kit,
            rights: Rights { mode: teammate.permission_mode, rules: team.rules.clone() },
            plan_required: teammate.plan_required,
            most_turns: MOST_TURNS,
        })
    }
}

/// Whether a task is in the hands of a run of `name`.
fn is_held_by(task: &Task, name: &AgentName) -> bool {
    matches!(&task.state, TaskState::InProgress { owner, hold: Hold::Run(_) } if owner == name)
}

/// Whether anybody of a team, or outside it, could take a task: it is theirs to take, and a clerk
/// understands it.
pub fn can_be_taken(team: &Team, task: &Task) -> bool {
    let is_outside = |name: &AgentName| !team.teammates.contains_key(name);
    let takes = |name: &AgentName| match (&task.assignee, team.claims(name)) {
        (_, Claims::None) => false,
        (Some(assignee), _) => assignee == name,
        (None, claims) => claims == Claims::Any,
    };
    let understands = |name: &AgentName, teammate: &Teammate| {
        let script = teammate.script.as_ref().map(|script| script.value.clone());
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

fn system_prompt(team: &Team, name: &AgentName, teammate: &Teammate) -> String {
    let mut prompt = format!("You are {name}, a teammate of the team {}.", team.name);
    for part in [&teammate.role, &teammate.system_prompt] {
        if !part.is_empty() {
            prompt.push_str("\n\n");
            prompt.push_str(part);
        }
    }
    prompt
}

/// The whole environment of `name`'s commands.
fn environment(name: &AgentName) -> BTreeMap<OsString, OsString> {
    let passed = PASSED_ON.iter().filter_map(|key| Some(((*key).into(), env::var_os(key)?)));
    passed.chain([("POSTROOM_TEAMMATE".into(), name.as_str().into())]).collect()
}
