//! The board of a mailbox folder: one fold a process, shared by all who look at it.
//!
//! To claim is to append and to read as far as one's own line. Nobody acts on a line of their own
//! before that.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{DeadLine, Store, StoreError, layout};
use crate::{
    base::{Wake, crash},
    journal::{AppendError, Journal, Line, Position, ReadError, Subscription},
    model::{
        AgentName, Board, Change, Hold, MessageId, RunId, StateWord, Task, TaskId, TaskState,
        TypeName, Void, read_task_line,
    },
};

/// How many lines are read at a time.
const BATCH: usize = 1024;
/// The snapshot's file: a cache that may be deleted.
const SNAPSHOT: &str = "board.json";
/// The fold that made a snapshot; one of another fold is not gone on from.
const FOLD: u32 = 2;

/// A line for the board, in the order in which it is written.
#[derive(Debug, Clone, Default, Serialize)]
pub struct BoardLine {
    /// `create` or `update`.
    pub op: &'static str,
    /// Which task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<TaskId>,
    /// A new task's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A new task's work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What a new task waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<TaskId>,
    /// Who shall do a new task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<AgentName>,
    /// As what a new task is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<TypeName>,
    /// How the task has to stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_status: Option<&'static str>,
    /// How it shall stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// The attempt it speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
    /// Who claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<AgentName>,
    /// The run that claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// How long a claim holds, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_s: Option<u64>,
    /// What came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why it is given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The trace that tells how it came about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<RunId>,
    /// Who says so.
    pub by: Option<AgentName>,
    /// The line's own id: a repetition does not count.
    pub event: Option<MessageId>,
}

/// What became of a line: the change and the task as it then was, or why it changed nothing.
pub type Folded = Result<(Change, Task), Void>;

/// A change of the board, for whoever tells others of it.
#[derive(Debug, Clone)]
pub struct BoardNews {
    /// What has changed.
    pub change: Change,
    /// The task as it was just after.
    pub task: Task,
    /// Just behind the line.
    pub after: Position,
}

/// The right to end a task; only a won claim makes one.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The task as it was claimed.
    pub task: Task,
    /// The run it is worked on in.
    pub run: RunId,
    owner: AgentName,
}

impl Claim {
    /// Who has it.
    pub fn owner(&self) -> &AgentName {
        &self.owner
    }
}

/// How a claim ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimEnd {
    /// The work is done.
    Done(String),
    /// It did not work.
    Failed(String),
    /// It goes back, for this reason if there is one.
    Released(Option<&'static str>),
}

/// The board.
#[derive(Clone)]
pub struct TaskBoard {
    store: Store,
    journal: Arc<dyn Journal>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    board: Board,
    place: Option<Position>,
    /// What has changed behind the consumer's cursor, where there is a consumer.
    news: Option<Vec<BoardNews>>,
    /// Lines that are none, for the consumer.
    dead: Vec<DeadLine>,
    takers: BTreeMap<AgentName, Taker>,
}

/// Somebody who takes tasks.
struct Taker {
    wake: Wake,
    /// The names for which a task is meant for them.
    names: Vec<AgentName>,
    takes_any: bool,
}

#[derive(Serialize, Deserialize)]
struct Snapshot {
    fold: u32,
    place: Position,
    board: Board,
}

impl TaskBoard {
    /// Opens the board for whoever looks and claims.
    pub fn open(store: &Store) -> Result<Self, StoreError> {
        let journal = store.journals.open(&layout::tasks())?;
        let state = Arc::new(Mutex::new(State::default()));
        Ok(Self { store: store.clone(), journal, state })
    }

    /// From now on collects what changes behind `cursor`, for the one consumer of a daemon.
    pub fn collect_news(&self, cursor: Position) -> Result<(), StoreError> {
        // What was cut or replaced while nobody looked is another generation, all of which is news.
        self.journal.anchor(cursor)?;
        let mut state = self.state.lock();
        state.news = Some(Vec::new());
        self.read_on(&mut state)?;
        if let Some(news) = &mut state.news {
            news.retain(|it| it.after > cursor);
        }
        state.dead.retain(|it| it.after > cursor);
        Ok(())
    }

    /// What has changed since the last call, and what was no line; the place behind all of it.
    pub fn take_news(&self) -> Result<(Vec<BoardNews>, Vec<DeadLine>, Position), StoreError> {
        let mut state = self.state.lock();
        self.read_on(&mut state)?;
        let news = state.news.as_mut().map(std::mem::take).unwrap_or_default();
        let place = state.place.unwrap_or(Position::ZERO);
        Ok((news, std::mem::take(&mut state.dead), place))
    }

    /// Notifies `wake` at every change of the file.
    pub fn subscribe(&self, wake: &Wake) -> Subscription {
        self.journal.subscribe(wake)
    }

    /// From now on wakes `name` when a task becomes ready that it may take.
    pub fn wake_on_ready(
        &self,
        name: &AgentName,
        names: Vec<AgentName>,
        wake: &Wake,
        takes_any: bool,
    ) {
        let taker = Taker { wake: wake.clone(), names, takes_any };
        self.state.lock().takers.insert(name.clone(), taker);
    }

    /// Asks something of the present board.
    pub fn look<T>(&self, ask: impl FnOnce(&Board) -> T) -> Result<T, StoreError> {
        let mut state = self.state.lock();
        self.read_on(&mut state)?;
        Ok(ask(&state.board))
    }

    /// Appends a line and reads as far as it: what it has changed, or why nothing. Gives the task as
    /// it then is.
    pub fn record(&self, mut line: BoardLine) -> Result<Folded, StoreError> {
        let event = line.event.get_or_insert_with(MessageId::random).clone();
        let body = serde_json::to_string(&line)
            .unwrap_or_else(|_| crate::base::broken("a line of the board has a JSON form"));
        let fields = body.strip_prefix('{').unwrap_or(&body);
        let text = format!("{{\"timestamp\":\"{}\",{fields}", self.store.now());
        if let Err(why) = read_task_line(&text) {
            return Ok(Err(Void::NoLine(why)));
        }
        let mut state = self.state.lock();
        self.read_on(&mut state)?;
        crash::point("board-before-append");
        let unknown = match self.journal.append(&text) {
            Ok(_) => None,
            Err(AppendError::Unknown(why)) => Some(why),
            Err(why) => return Err(why.into()),
        };
        crash::point("board-after-append");
        match (self.read_to(&mut state, &event)?, unknown) {
            (Some(result), _) => Ok(result),
            // It may land later; then the fold decides, and whoever owns by it is told so.
            (None, Some(why)) => Err(AppendError::Unknown(why).into()),
            (None, None) => Err(StoreError::Damaged {
                path: ".mailbox/tasks.jsonl".to_owned(),
                why: "it was cut or replaced while a line was written; leave it to grow".to_owned(),
            }),
        }
    }

    /// The task that is in the hands of `name` although it does not know: its claim has landed after an
    /// error was told. For a teammate that has no task in hand.
    pub fn adopt(&self, name: &AgentName) -> Result<Option<Claim>, StoreError> {
        self.look(|board| {
            let mine = board.in_hand().find_map(|task| match &task.state {
                TaskState::InProgress { owner, hold: Hold::Run(run) } if owner == name => {
                    Some((task.clone(), run.clone()))
                }
                _ => None,
            });
            mine.map(|(task, run)| Claim { task, run, owner: name.clone() })
        })
    }

    /// Claims the next ready task that `name` may take and `can_do`: first those meant for one of
    /// `names`, then, if it `takes_any`, those meant for nobody. A lost race goes on with the next.
    pub fn claim_next(
        &self,
        name: &AgentName,
        names: &[AgentName],
        takes_any: bool,
        can_do: impl Fn(&Task) -> bool,
    ) -> Result<Option<Claim>, StoreError> {
        loop {
            let found = self.look(|board| {
                let mut meant = names.iter().flat_map(|name| board.ready(Some(name)));
                let mine = meant.find(|task| can_do(task)).cloned();
                mine.or_else(|| free(board, name, takes_any, &can_do))
            })?;
            let Some(task) = found else { return Ok(None) };
            let attempt = task.attempt + 1;
            // Another for every claim, also where a board was emptied and its numbers come again.
            let event = MessageId::random();
            let run = RunId::derived(&["task", task.id.as_str(), event.as_str()]);
            let line = BoardLine {
                op: "update",
                id: Some(task.id.clone()),
                expected_status: Some(StateWord::Pending.as_str()),
                status: Some(StateWord::InProgress.as_str()),
                attempt: Some(attempt),
                owner: Some(name.clone()),
                run: Some(run.clone()),
                by: Some(name.clone()),
                event: Some(event),
                ..BoardLine::default()
            };
            if let Ok((_, task)) = self.record(line)? {
                return Ok(Some(Claim { task, run, owner: name.clone() }));
            }
        }
    }

    /// Ends a claim. A void line means that the claim was no longer ours.
    pub fn end(&self, claim: &Claim, end: ClaimEnd, trace: &RunId) -> Result<bool, StoreError> {
        let (status, result, reason) = match end {
            ClaimEnd::Done(text) => (StateWord::Done, Some(text), None),
            ClaimEnd::Failed(text) => (StateWord::Failed, Some(text), None),
            ClaimEnd::Released(reason) => (StateWord::Pending, None, reason.map(str::to_owned)),
        };
        let line = BoardLine {
            result,
            reason,
            trace_id: Some(trace.clone()),
            by: Some(claim.owner.clone()),
            ..ending(&claim.task, status)
        };
        Ok(self.record(line)?.is_ok())
    }

    /// Whether the claim still holds.
    pub fn is_ours(&self, claim: &Claim) -> Result<bool, StoreError> {
        self.look(|board| {
            board.get(&claim.task.id).is_some_and(|task| {
                task.attempt == claim.task.attempt
                    && matches!(&task.state, TaskState::InProgress { owner, .. } if *owner == claim.owner)
            })
        })
    }

    /// Gives a task back in the daemon's name: its owner's run is dead, or its lease has ended.
    pub fn give_back(&self, task: &Task, reason: Option<&str>) -> Result<(), StoreError> {
        let line = BoardLine {
            reason: reason.map(str::to_owned),
            by: Some(AgentName::daemon()),
            ..ending(task, StateWord::Pending)
        };
        // Where it is void somebody else was faster, and all is well.
        let _ = self.record(line)?;
        Ok(())
    }

    /// Writes the snapshot, from which the next process folds on.
    pub fn save_snapshot(&self) -> Result<(), StoreError> {
        let state = self.state.lock();
        let Some(place) = state.place else { return Ok(()) };
        let snapshot = Snapshot { fold: FOLD, place, board: state.board.clone() };
        let bytes = serde_json::to_vec(&snapshot)
            .unwrap_or_else(|_| crate::base::broken("a board has a JSON form"));
        Ok(self.store.state.replace_loosely(SNAPSHOT, &bytes)?)
    }

    fn read_on(&self, state: &mut State) -> Result<(), StoreError> {
        self.read_until(state, |_| false).map(drop)
    }

    fn read_to(&self, state: &mut State, event: &MessageId) -> Result<Option<Folded>, StoreError> {
        let wanted = event.as_str();
        let is_it = |line: &Line| line.body.as_ref().is_ok_and(|body| body.contains(wanted));
        self.read_until(state, is_it)
    }

    /// Folds all that is there; gives what became of the line that `is_it`.
    fn read_until(
        &self,
        state: &mut State,
        is_it: impl Fn(&Line) -> bool,
    ) -> Result<Option<Folded>, StoreError> {
        let mut place = match state.place {
            Some(place) => place,
            None => self.begin(state)?,
        };
        let mut found = None;
        loop {
            let batch = match self.journal.read(place, BATCH) {
                Ok(batch) => batch,
                Err(ReadError::Lost { resume, .. }) => {
                    // The board is what its file says, also when somebody has emptied it.
                    state.board = Board::default();
                    place = resume;
                    continue;
                }
                Err(why) => return Err(why.into()),
            };
            state.place = Some(batch.next);
            if batch.lines.is_empty() {
                return Ok(found);
            }
            place = batch.next;
            for line in &batch.lines {
                let result = state.take(line);
                if is_it(line) && found.is_none() {
                    found = result;
                }
            }
        }
    }

    /// Begins with the snapshot where its place still holds, else with the file's start.
    fn begin(&self, state: &mut State) -> Result<Position, StoreError> {
        let start = self.journal.start()?;
        // A consumer needs all that has changed behind its cursor, so it folds from the start.
        if state.news.is_some() {
            return Ok(start);
        }
        let bytes = self.store.state.read(SNAPSHOT)?;
        let snapshot = bytes.and_then(|it| serde_json::from_slice::<Snapshot>(&it).ok());
        let Some(snapshot) = snapshot.filter(|it| it.fold == FOLD) else { return Ok(start) };
        match self.journal.read(snapshot.place, 1) {
            Ok(_) => {
                state.board = snapshot.board.indexed();
                Ok(snapshot.place)
            }
            Err(ReadError::Lost { .. }) => Ok(self.journal.start()?),
            Err(why) => Err(why.into()),
        }
    }
}

impl State {
    /// Takes a line; `None` where it is none.
    fn take(&mut self, line: &Line) -> Option<Folded> {
        let read = line.body.as_ref().map_err(|dead| dead.reason.clone());
        let event = match read.and_then(|body| read_task_line(body)) {
            Ok(event) => event,
            Err(reason) => {
                self.bury(line, reason);
                return None;
            }
        };
        let change = match self.board.apply(&event) {
            Ok(change) => change,
            Err(void) => return Some(Err(void)),
        };
        let task = self.board.get(change.task())?.clone();
        if let Some(news) = &mut self.news {
            news.push(BoardNews { change: change.clone(), task: task.clone(), after: line.after });
        }
        self.wake_takers(&change, &task);
        Some(Ok((change, task)))
    }

    fn bury(&mut self, line: &Line, reason: String) {
        if self.news.is_some() {
            self.dead.push(DeadLine::of_line(line.clone(), reason));
        }
    }

    /// A claim makes nothing ready, but its owner may not know of it; everything else may.
    fn wake_takers(&self, change: &Change, task: &Task) {
        if matches!(change, Change::Claimed(_) | Change::Renewed(_)) {
            if let TaskState::InProgress { owner, .. } = &task.state
                && let Some(taker) = self.takers.get(owner)
            {
                taker.wake.notify();
            }
            return;
        }
        for taker in self.takers.values() {
            let is_meant = |name| self.board.count_ready(Some(name)) > 0;
            let is_there = taker.names.iter().any(is_meant)
                || (taker.takes_any && self.board.count_ready(None) > 0);
            if is_there {
                taker.wake.notify();
            }
        }
    }
}

/// A free task. Teammates begin their search at different places, so that not all race for one.
fn free(
    board: &Board,
    name: &AgentName,
    takes_any: bool,
    can_do: &impl Fn(&Task) -> bool,
) -> Option<Task> {
    let count = board.count_ready(None);
    if !takes_any || count == 0 {
        return None;
    }
    let letters: usize = name.as_str().bytes().map(usize::from).sum();
    let start = letters % count.min(SPREAD);
    let late = board.ready(None).skip(start).find(|task| can_do(task));
    late.or_else(|| board.ready(None).take(start).find(|task| can_do(task))).cloned()
}

/// Over how many ready tasks the beginnings of searches are spread.
const SPREAD: usize = 16;

fn ending(task: &Task, status: StateWord) -> BoardLine {
    BoardLine {
        op: "update",
        id: Some(task.id.clone()),
        expected_status: Some(StateWord::InProgress.as_str()),
        status: Some(status.as_str()),
        attempt: Some(task.attempt),
        ..BoardLine::default()
    }
}
