//! The board as the fold of its lines in file order. Pure: the file's order decides every race, and
//! every process that reads the same lines has the same board.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    AgentName, MessageId,
    task::{
        Create, DEFAULT_LEASE_S, Hold, StateWord, Task, TaskEvent, TaskId, TaskState, Update,
        Worker,
    },
};

/// How often a task is given back for one reason before it has failed.
const MOST_RELEASES: u32 = 3;

/// All tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Board {
    tasks: BTreeMap<TaskId, Task>,
    /// The order in which tasks were added.
    places: BTreeMap<TaskId, u64>,
    creates: u64,
    /// The event ids of all lines so far, with the task that each is about.
    events: BTreeMap<MessageId, Option<TaskId>>,
    /// How many dependencies of a task are not done.
    #[serde(skip)]
    open: BTreeMap<TaskId, usize>,
    #[serde(skip)]
    dependents: BTreeMap<TaskId, Vec<TaskId>>,
    /// The tasks that somebody has.
    #[serde(skip)]
    in_hand: BTreeSet<TaskId>,
    /// Pending with all dependencies done, by assignee and in the order they were added, so that
    /// finding one costs the same on a board of any size.
    #[serde(skip)]
    ready: BTreeMap<Option<AgentName>, BTreeMap<u64, TaskId>>,
}

/// What a line has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// There is a new task.
    Created(TaskId),
    /// Somebody has taken it.
    Claimed(TaskId),
    /// Its lease begins anew.
    Renewed(TaskId),
    /// It has ended: done, failed or cancelled.
    Ended(TaskId),
    /// It can be taken again.
    Released(TaskId),
}

impl Change {
    /// Which task it is about.
    pub fn task(&self) -> &TaskId {
        match self {
            Self::Created(id)
            | Self::Claimed(id)
            | Self::Renewed(id)
            | Self::Ended(id)
            | Self::Released(id) => id,
        }
    }
}

/// Why a line has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Void {
    /// Its event id was used before, on a line about this task.
    Repeated(Option<TaskId>),
    /// It is no line of a board.
    NoLine(String),
    /// There is no such task.
    Unknown(TaskId),
    /// There is one with that id.
    Exists(TaskId),
    /// It depends on a task that does not exist.
    UnknownDependency(TaskId),
    /// It does not say how the task has to stand.
    NoExpectation,
    /// The task stands otherwise.
    IsNow(StateWord, Option<AgentName>),
    /// There is no way from the one state to the other.
    NoSuchChange(StateWord, Option<StateWord>),
    /// Not everything that it depends on is done.
    NotReady(Vec<TaskId>),
    /// It speaks of another attempt than the present one.
    OtherAttempt(u64),
    /// Only the owner may.
    NotTheOwner(AgentName),
}

impl std::fmt::Display for Void {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Repeated(_) => write!(out, "the same line was there before"),
            Self::NoLine(why) => write!(out, "{why}"),
            Self::Unknown(id) => write!(out, "there is no task {id}"),
            Self::Exists(id) => write!(out, "there is a task {id} already"),
            Self::UnknownDependency(id) => {
                write!(out, "it depends on {id}, and there is no such task")
            }
            Self::NoExpectation => {
                write!(out, "it does not say what status it expects (expected_status)")
            }
            Self::IsNow(state, Some(owner)) => {
                write!(out, "the task is {} and belongs to {owner}", state.as_str())
            }
            Self::IsNow(state, None) => write!(out, "the task is {}", state.as_str()),
            Self::NoSuchChange(from, Some(to)) => {
                write!(out, "a task that is {} can't become {}", from.as_str(), to.as_str())
            }
            Self::NoSuchChange(from, None) => {
                write!(out, "a task that is {} has no claim to renew", from.as_str())
            }
            Self::NotReady(ids) => {
                write!(out, "it waits for {}", crate::base::text::listed(ids))
            }
            Self::OtherAttempt(attempt) => {
                write!(out, "its present attempt is {attempt}, which the line has to state")
            }
            Self::NotTheOwner(owner) => write!(out, "it belongs to {owner}"),
        }
    }
}

impl Board {
    /// Takes the next line of the file.
    pub fn apply(&mut self, event: &TaskEvent) -> Result<Change, Void> {
        let id = match event {
            TaskEvent::Create(create) => &create.event,
            TaskEvent::Update(update) => &update.event,
        };
        if let Some(known) = id.as_ref().and_then(|id| self.events.get(id)) {
            return Err(Void::Repeated(known.clone()));
        }
        let result = match event {
            TaskEvent::Create(it) => self.create(it),
            TaskEvent::Update(it) => self.update(it),
        };
        if let Some(id) = id {
            let about = result.as_ref().ok().map(|change| change.task().clone());
            self.events.insert(id.clone(), about);
        }
        result
    }

    /// The task with this id.
    pub fn get(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.get(id)
    }

    /// All tasks in the order in which they were added.
    pub fn all(&self) -> Vec<&Task> {
        let mut placed: Vec<_> =
            self.tasks.values().map(|task| (self.places.get(&task.id), task)).collect();
        placed.sort_by_key(|(place, _)| *place);
        placed.into_iter().map(|(_, task)| task).collect()
    }

    /// What a task still waits for; empty when it is ready or past that.
    pub fn waits_for(&self, task: &Task) -> Vec<TaskId> {
        let is_done = |id: &&TaskId| {
            self.tasks.get(*id).is_some_and(|it| matches!(it.state, TaskState::Done(_)))
        };
        task.depends_on.iter().filter(|id| !is_done(id)).cloned().collect()
    }

    /// The ready tasks that are meant for `assignee`, or for nobody, in the order they were added.
    pub fn ready(&self, assignee: Option<&AgentName>) -> impl Iterator<Item = &Task> {
        let found = self.ready.get(&assignee.cloned());
        found.into_iter().flat_map(BTreeMap::values).filter_map(|id| self.tasks.get(id))
    }

    /// The tasks that somebody has.
    pub fn in_hand(&self) -> impl Iterator<Item = &Task> {
        self.in_hand.iter().filter_map(|id| self.tasks.get(id))
    }

    /// How many ready tasks are meant for `assignee`, or for nobody.
    pub fn count_ready(&self, assignee: Option<&AgentName>) -> usize {
        self.ready.get(&assignee.cloned()).map_or(0, BTreeMap::len)
    }

    /// Tasks that can never become ready by themselves: something they wait for has failed or was
    /// cancelled.
    pub fn blocked_by(&self, id: &TaskId) -> Vec<TaskId> {
        let dependents = self.dependents.get(id).cloned().unwrap_or_default();
        let is_pending =
            |it: &TaskId| self.tasks.get(it).is_some_and(|it| it.state == TaskState::Pending);
        dependents.into_iter().filter(is_pending).collect()
    }

    fn create(&mut self, it: &Create) -> Result<Change, Void> {
        self.creates += 1;
        let id = it.id.clone().unwrap_or_else(|| TaskId::numbered(self.creates));
        if self.tasks.contains_key(&id) {
            return Err(Void::Exists(id));
        }
        if let Some(unknown) = it.depends_on.iter().find(|it| !self.tasks.contains_key(*it)) {
            return Err(Void::UnknownDependency(unknown.clone()));
        }
        let depends_on: BTreeSet<TaskId> = it.depends_on.iter().cloned().collect();
        let task = Task {
            id: id.clone(),
            title: it.title.clone(),
            description: it.description.clone(),
            depends_on: depends_on.into_iter().collect(),
            assignee: it.assignee.clone(),
            agent_type: it.agent_type.clone(),
            added_by: it.by.clone(),
            attempt: 0,
            released: BTreeMap::new(),
            worker: None,
            state: TaskState::Pending,
        };
        self.places.insert(id.clone(), self.creates);
        self.tasks.insert(id.clone(), task);
        self.count_open(&id);
        self.index(&id);
        Ok(Change::Created(id))
    }

    /// Makes the indexes of a board that was read from a snapshot, which leaves them out.
    #[must_use]
    pub fn indexed(mut self) -> Self {
        let ids: Vec<TaskId> = self.tasks.keys().cloned().collect();
        for id in &ids {
            self.count_open(id);
            self.index(id);
        }
        self
    }

    fn count_open(&mut self, id: &TaskId) {
        let open = self.tasks.get(id).map(|task| self.waits_for(task)).unwrap_or_default();
        for dependency in &open {
            self.dependents.entry(dependency.clone()).or_default().push(id.clone());
        }
        if !open.is_empty() {
            self.open.insert(id.clone(), open.len());
        }
    }

    fn update(&mut self, it: &Update) -> Result<Change, Void> {
        let Some(task) = self.tasks.get(&it.id) else { return Err(Void::Unknown(it.id.clone())) };
        let Some(expected) = it.expected else { return Err(Void::NoExpectation) };
        let (present, owner) = (StateWord::from(&task.state), owner_of(task));
        if present != expected {
            return Err(Void::IsNow(present, owner.cloned()));
        }
        let (state, change) = match (present, it.to) {
            (StateWord::Pending, Some(StateWord::InProgress)) => self.claimed(task, it)?,
            (StateWord::Pending | StateWord::InProgress, Some(StateWord::Cancelled)) => {
                (TaskState::Cancelled, Change::Ended(task.id.clone()))
            }
            (StateWord::InProgress, None | Some(StateWord::InProgress)) => {
                check_attempt(task, it)?;
                check_owner(task, it)?;
                (renewed(&task.state, it), Change::Renewed(task.id.clone()))
            }
            (StateWord::InProgress, Some(StateWord::Done)) => {
                check_attempt(task, it)?;
                check_owner(task, it)?;
                let result = it.result.clone().unwrap_or_default();
                (TaskState::Done(result), Change::Ended(task.id.clone()))
            }
            (StateWord::InProgress, Some(StateWord::Failed)) => {
                check_attempt(task, it)?;
                check_owner(task, it)?;
                let why = it.result.clone().or(it.reason.clone()).unwrap_or_default();
                (TaskState::Failed(why), Change::Ended(task.id.clone()))
            }
            (StateWord::InProgress, Some(StateWord::Pending)) => {
                check_attempt(task, it)?;
                released(task, it)
            }
            (StateWord::Failed, Some(StateWord::Pending)) => {
                (TaskState::Pending, Change::Released(task.id.clone()))
            }
            (from, to) => return Err(Void::NoSuchChange(from, to)),
        };
        self.put(it, state, &change);
        Ok(change)
    }

    fn claimed(&self, task: &Task, it: &Update) -> Result<(TaskState, Change), Void> {
        if it.attempt.is_some_and(|stated| stated != task.attempt + 1) {
            return Err(Void::OtherAttempt(task.attempt + 1));
        }
        let open = self.waits_for(task);
        if !open.is_empty() {
            return Err(Void::NotReady(open));
        }
        let owner = it.owner.clone().unwrap_or_else(|| it.by.clone());
        let hold = match &it.run {
            Some(run) => Hold::Run(run.clone()),
            None => Hold::Lease(it.lease_s.unwrap_or(DEFAULT_LEASE_S)),
        };
        Ok((TaskState::InProgress { owner, hold }, Change::Claimed(task.id.clone())))
    }

    /// Puts a task into its new state and keeps the indexes.
    fn put(&mut self, it: &Update, state: TaskState, change: &Change) {
        let Some(task) = self.tasks.get_mut(&it.id) else { return };
        let was_failed = matches!(task.state, TaskState::Failed(_));
        match change {
            Change::Claimed(_) => {
                task.attempt += 1;
                task.worker = worker_of(&state);
            }
            Change::Released(_) if was_failed => task.released.clear(),
            Change::Released(_) | Change::Ended(_) => {
                if let Some(reason) = it.reason.as_ref().filter(|_| is_release(it)) {
                    *task.released.entry(reason.clone()).or_default() += 1;
                }
            }
            Change::Created(_) | Change::Renewed(_) => {}
        }
        let is_done = matches!(state, TaskState::Done(_));
        if let (Some(worker), Some(trace)) = (&mut task.worker, &it.trace) {
            worker.trace = Some(trace.clone());
        }
        task.state = state;
        self.index(&it.id);
        if is_done {
            for dependent in self.dependents.remove(&it.id).unwrap_or_default() {
                if let Some(open) = self.open.get_mut(&dependent) {
                    *open = open.saturating_sub(1);
                }
                self.index(&dependent);
            }
        }
    }

    /// Puts a task among the ready ones, or takes it from there.
    fn index(&mut self, id: &TaskId) {
        let (Some(task), Some(place)) = (self.tasks.get(id), self.places.get(id)) else { return };
        let is_ready =
            task.state == TaskState::Pending && self.open.get(id).is_none_or(|it| *it == 0);
        if matches!(task.state, TaskState::InProgress { .. }) {
            self.in_hand.insert(id.clone());
        } else {
            self.in_hand.remove(id);
        }
        let queue = self.ready.entry(task.assignee.clone()).or_default();
        if is_ready {
            queue.insert(*place, id.clone());
        } else {
            queue.remove(place);
        }
    }
}

fn owner_of(task: &Task) -> Option<&AgentName> {
    match &task.state {
        TaskState::InProgress { owner, .. } => Some(owner),
        _ => None,
    }
}

fn worker_of(state: &TaskState) -> Option<Worker> {
    let TaskState::InProgress { owner, hold } = state else { return None };
    let trace = match hold {
        Hold::Run(run) => Some(run.clone()),
        Hold::Lease(_) => None,
    };
    Some(Worker { name: owner.clone(), trace })
}

fn is_release(it: &Update) -> bool {
    it.expected == Some(StateWord::InProgress) && it.to == Some(StateWord::Pending)
}

fn check_attempt(task: &Task, it: &Update) -> Result<(), Void> {
    if it.attempt == Some(task.attempt) { Ok(()) } else { Err(Void::OtherAttempt(task.attempt)) }
}

fn check_owner(task: &Task, it: &Update) -> Result<(), Void> {
    match owner_of(task) {
        Some(owner) if *owner != it.by => Err(Void::NotTheOwner(owner.clone())),
        Some(_) | None => Ok(()),
    }
}

fn renewed(state: &TaskState, it: &Update) -> TaskState {
    match state {
        TaskState::InProgress { owner, hold: Hold::Lease(lease) } => TaskState::InProgress {
            owner: owner.clone(),
            hold: Hold::Lease(it.lease_s.unwrap_or(*lease)),
        },
        other => other.clone(),
    }
}

/// A task that is given back too often for one reason has failed.
fn released(task: &Task, it: &Update) -> (TaskState, Change) {
    let times = it.reason.as_ref().map_or(0, |it| task.released.get(it).copied().unwrap_or(0) + 1);
    match &it.reason {
        Some(reason) if times >= MOST_RELEASES => {
            let why = format!("given back {times} times: {reason}");
            (TaskState::Failed(why), Change::Ended(task.id.clone()))
        }
        Some(_) | None => (TaskState::Pending, Change::Released(task.id.clone())),
    }
}

#[cfg(test)]
mod tests;
