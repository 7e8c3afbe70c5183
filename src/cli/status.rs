//! `status`: what everybody is doing, whether all is well, and what to type next.

use serde::Serialize;

use super::{
    approvals::{OpenQuestion, open_questions},
    args::Status,
    context::Context,
    failure::{Code, Failure},
    render::{Printer, SCHEMA, word_for},
};
use crate::{
    agent::can_be_taken,
    base::text::headline,
    journal::{Line, Position, ReadError},
    model::{AgentName, Board, Desired, Task, TaskId, TaskState},
    store::{
        Activity, DeadLetters, MessageBus, Store, StoreError, TaskBoard, TeamFile, TeamStatus,
        TeammateStatus,
    },
};

/// How the team is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Fine,
    Stuck,
    Down,
    NeedsYou,
}

#[derive(Serialize)]
struct View {
    schema: u32,
    team: Option<String>,
    health: Health,
    why: Vec<String>,
    next: Vec<String>,
    up: bool,
    pid: Option<u32>,
    since: Option<String>,
    dead_letters: usize,
    questions: usize,
    tasks: TaskCounts,
    /// Ready tasks that nobody here can do, of those that were looked at.
    #[serde(skip)]
    orphans: usize,
    notes: Vec<String>,
    teammates: Vec<TeammateView>,
}

/// How many tasks stand how.
#[derive(Default, Serialize)]
struct TaskCounts {
    ready: usize,
    blocked: usize,
    in_progress: usize,
    done: usize,
    failed: usize,
    cancelled: usize,
}

impl TaskCounts {
    fn of(board: &Board) -> Self {
        let mut counts = Self::default();
        for task in board.all() {
            let count = match &task.state {
                TaskState::Pending if board.waits_for(task).is_empty() => &mut counts.ready,
                TaskState::Pending => &mut counts.blocked,
                TaskState::InProgress { .. } => &mut counts.in_progress,
                TaskState::Done(_) => &mut counts.done,
                TaskState::Failed(_) => &mut counts.failed,
                TaskState::Cancelled => &mut counts.cancelled,
            };
            *count += 1;
        }
        counts
    }

    fn line(&self) -> Option<String> {
        let counts = [
            (self.in_progress, "in progress"),
            (self.ready, "ready"),
            (self.blocked, "blocked"),
            (self.done, "done"),
            (self.failed, "failed"),
            (self.cancelled, "cancelled"),
        ];
        let parts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        (!parts.is_empty()).then(|| format!("tasks: {}", parts.join(", ")))
    }
}

/// What a teammate is doing, or that nobody is there to do anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum State {
    Is(Activity),
    Down(&'static str),
}

impl State {
    const DOWN: Self = Self::Down("down");

    fn as_str(self) -> &'static str {
        match self {
            Self::Is(activity) => activity.as_str(),
            Self::Down(word) => word,
        }
    }
}

#[derive(Serialize)]
struct TeammateView {
    name: String,
    state: State,
    since: Option<String>,
    about: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<String>,
    message: Option<String>,
    unread: usize,
    last: Option<&'static str>,
    answered: u64,
    tokens_in: u64,
    tokens_out: u64,
    in_background: usize,
    cost_usd: String,
    unknown_costs: u64,
}

/// Shows the status.
pub fn status(context: &Context, args: &Status, printer: &mut Printer) -> Result<Code, Failure> {
    let store = context.store()?;
    let view = look(context, &store)?;
    if args.json {
        printer.say_json(&view);
    } else {
        print(&view, printer);
    }
    Ok(match (view.health, args.check) {
        (Health::Down, _) => Code::NoDaemon,
        (Health::Stuck, true) => Code::Failed,
        (Health::NeedsYou, true) => Code::Needed,
        (Health::Fine | Health::Stuck | Health::NeedsYou, _) => Code::Ok,
    })
}

/// Whether nobody has anything to do: no unread mail, no task that somebody has or could take.
pub fn is_idle(context: &Context, store: &Store) -> Result<bool, Failure> {
    let view = look(context, store)?;
    let rests = |it: &TeammateView| {
        it.unread == 0
            && matches!(it.state, State::Is(Activity::Idle | Activity::Stopped | Activity::Failed))
    };
    if !view.up {
        return Err(Failure::no_daemon("no daemon is up; `postroom up` starts one"));
    }
    if view.questions > 0 {
        let text = format!("somebody waits for you: {}", view.why.join("; "));
        return Err(Failure { code: Code::Needed, text });
    }
    let nobody_works = view.teammates.iter().all(rests) && view.tasks.in_progress == 0;
    if nobody_works && view.tasks.ready > 0 && view.orphans == view.tasks.ready.min(LOOKED_AT) {
        let text = format!("nobody works, and {}", view.why.join("; "));
        return Err(Failure { code: Code::Failed, text });
    }
    Ok(nobody_works && view.tasks.ready == 0)
}

/// Whether nobody of the team could take this task, which is ready.
pub fn is_undoable(context: &Context, board: &TaskBoard, id: &TaskId) -> Result<bool, Failure> {
    let (_, file) = context.bus(&context.store()?)?;
    Ok(orphans(board, file.as_ref())?.iter().any(|it| it.id == *id))
}

fn look(context: &Context, store: &Store) -> Result<View, Failure> {
    let up = context.is_up();
    let status = TeamStatus::read(store)?;
    let dead_letters = DeadLetters::list(store)?.len();
    let board = TaskBoard::open(store)?;
    let tasks = board.look(TaskCounts::of)?;
    let (bus, file) = context.bus(store)?;
    let names = names(store, status.as_ref(), file.as_ref())?;
    let mut teammates = Vec::new();
    for name in names {
        let doing = status.as_ref().and_then(|it| it.teammates.get(&name)).filter(|_| up);
        teammates.push(teammate(store, &bus, &name, doing)?);
    }
    let questions = open_questions(store, &bus, file.as_ref())?;
    let orphans = orphans(&board, file.as_ref())?;
    let open = Open { dead_letters, questions: &questions, tasks: &tasks, orphans: &orphans };
    let (health, why, next) = judge(up, &open, &teammates);
    let orphans = orphans.len();
    let status = status.filter(|_| up);
    Ok(View {
        schema: SCHEMA,
        team: file.map(|file| file.team.name.to_string()),
        health,
        why,
        next,
        up,
        pid: status.as_ref().map(|it| it.pid),
        since: status.as_ref().map(|it| it.since.clone()),
        dead_letters,
        questions: questions.len(),
        tasks,
        orphans,
        notes: status.map(notes_of).unwrap_or_default(),
        teammates,
    })
}

fn names(
    store: &Store,
    status: Option<&TeamStatus>,
    file: Option<&TeamFile>,
) -> Result<Vec<AgentName>, Failure> {
    match (file, status) {
        (Some(file), _) => Ok(file.team.teammates.keys().cloned().collect()),
        (None, Some(status)) => Ok(status.teammates.keys().cloned().collect()),
        (None, None) => Ok(store.lives().names()?),
    }
}

fn teammate(
    store: &Store,
    bus: &MessageBus,
    name: &AgentName,
    doing: Option<&TeammateStatus>,
) -> Result<TeammateView, Failure> {
    let mut view = TeammateView {
        name: name.to_string(),
        state: State::DOWN,
        since: None,
        about: String::new(),
        held: None,
        message: None,
        unread: 0,
        last: None,
        answered: 0,
        tokens_in: 0,
        tokens_out: 0,
        in_background: 0,
        cost_usd: "0".to_owned(),
        unknown_costs: 0,
    };
    if let Some(doing) = doing {
        view.state = State::Is(doing.state);
        view.since = Some(doing.since.clone());
        view.about.clone_from(&doing.about);
        view.held.clone_from(&doing.held);
        view.message = doing.message.as_ref().map(ToString::to_string);
        view.last = doing.last.map(word_for);
        (view.answered, view.tokens_in) = (doing.answered, doing.tokens_in);
        view.tokens_out = doing.tokens_out;
        view.in_background = doing.in_background;
        view.cost_usd = doing.cost.exact();
        view.unknown_costs = doing.unknown_costs;
    }
    match unread(store, bus, name) {
        Ok((unread, desired)) => {
            view.unread = unread;
            if desired == Desired::Stopped {
                view.state = State::Is(Activity::Stopped);
                view.about = format!("by a SHUTDOWN; `postroom start {name}` starts it");
            }
        }
        // One damaged life is told of and does not hide the others.
        Err(why) => {
            view.state = State::Is(Activity::Failed);
            view.about = why.to_string();
        }
    }
    Ok(view)
}

/// How many whole lines lie unread, and whether the teammate shall run.
fn unread(
    store: &Store,
    bus: &MessageBus,
    name: &AgentName,
) -> Result<(usize, Desired), StoreError> {
    let log = store.lives().open(name)?;
    let life = log.life();
    let reader = bus.reader(name, life.cursor)?;
    let journal = reader.journal();
    journal.anchor(life.cursor)?;
    let mut place = if journal.start()?.generation == life.cursor.generation {
        life.cursor
    } else {
        Position { ..journal.start()? }
    };
    let mut count = 0;
    loop {
        let batch = match journal.read(place, 4096) {
            // The mailbox was cut or replaced meanwhile.
            Err(ReadError::Lost { resume, .. }) => {
                (place, count) = (resume, 0);
                continue;
            }
            batch => batch?,
        };
        if batch.lines.is_empty() {
            return Ok((count, life.desired));
        }
        // A line of a question's life is no mail.
        let is_mail =
            |line: &&Line| line.body.as_ref().is_ok_and(|body| !body.contains("\"question\":\""));
        let whole = batch.lines.iter().filter(is_mail);
        count += whole.filter(|line| !life.has_consumed(line.at)).count();
        place = batch.next;
    }
}

/// What waits for somebody.
struct Open<'a> {
    dead_letters: usize,
    questions: &'a [OpenQuestion],
    tasks: &'a TaskCounts,
    orphans: &'a [Orphan],
}

/// A ready task that nobody here can do.
struct Orphan {
    id: TaskId,
    /// Why, as far as can be said.
    why: Option<String>,
}

/// How many ready tasks are looked at for whether anybody can do them.
const LOOKED_AT: usize = 20;

/// Ready tasks that nobody of the team could take.
fn orphans(board: &TaskBoard, file: Option<&TeamFile>) -> Result<Vec<Orphan>, StoreError> {
    let Some(file) = file else { return Ok(Vec::new()) };
    board.look(|board| {
        let is_ready =
            |task: &&&Task| task.state == TaskState::Pending && board.waits_for(task).is_empty();
        let all = board.all();
        let ready = all.iter().filter(is_ready).take(LOOKED_AT);
        let orphans = ready.filter(|task| !can_be_taken(&file.team, task));
        let told =
            orphans.map(|task| Orphan { id: task.id.clone(), why: file.team.fault_of(task) });
        told.collect()
    })
}

fn judge(
    up: bool,
    open: &Open<'_>,
    teammates: &[TeammateView],
) -> (Health, Vec<String>, Vec<String>) {
    let (mut why, mut next) = (Vec::new(), Vec::new());
    if !up {
        let unread: usize = teammates.iter().map(|it| it.unread).sum();
        why.push(format!("no daemon is up, and unread: {}", counted(unread, "message")));
        next.push("postroom up".to_owned());
        return (Health::Down, why, next);
    }
    for it in teammates.iter().filter(|it| it.state == State::Is(Activity::Failed)) {
        why.push(format!("{} has failed: {}", it.name, it.about));
        next.push(format!("postroom start {}", it.name));
    }
    for it in teammates.iter().filter(|it| it.state == State::Is(Activity::Retrying)) {
        why.push(format!("{} can't go on for now: {}", it.name, it.about));
    }
    for OpenQuestion { by, message } in open.questions {
        let said = &message.envelope;
        why.push(format!("{by} asks: {}", headline(&said.content, 100)));
        next.push(format!("postroom approve {}", said.id));
    }
    if open.dead_letters > 0 {
        why.push(counted(open.dead_letters, "dead letter"));
        next.push("postroom dead list".to_owned());
    }
    let needs_you = !why.is_empty();
    for Orphan { id, why: reason } in open.orphans {
        let reason = reason.as_ref().map_or_else(String::new, |it| format!(": {it}"));
        why.push(format!("nobody here can do task {id}{reason}"));
        next.push(format!("postroom task show {id}"));
    }
    if needs_you {
        return (Health::NeedsYou, why, next);
    }
    let runs = |it: &&TeammateView| it.state != State::Is(Activity::Stopped);
    let waiting: Vec<&TeammateView> =
        teammates.iter().filter(|it| it.unread > 0 && !runs(it)).collect();
    for it in &waiting {
        why.push(format!("{} is stopped and has {} unread", it.name, it.unread));
        next.push(format!("postroom start {}", it.name));
    }
    let works =
        |it: &TeammateView| matches!(it.state, State::Is(Activity::Working | Activity::Waiting));
    let nobody_works = !teammates.iter().any(works);
    let none_is_open = open.tasks.ready + open.tasks.in_progress == 0;
    if nobody_works && none_is_open && open.tasks.blocked > 0 {
        why.push(format!("{} tasks wait for others that will not be done", open.tasks.blocked));
        next.push("postroom task list --status failed".to_owned());
        next.push("postroom task retry ID".to_owned());
    }
    let is_stuck = nobody_works && !why.is_empty();
    (if is_stuck { Health::Stuck } else { Health::Fine }, why, next)
}

/// What holds for the whole team, and which budgets are used up.
fn notes_of(status: TeamStatus) -> Vec<String> {
    let used_up = status.used_up.into_iter().map(|it| format!("{}; `postroom cost`", it.text));
    status.notes.into_iter().chain(used_up).collect()
}

fn print(view: &View, printer: &mut Printer) {
    let team = view.team.as_deref().unwrap_or("(no team)");
    let health = match view.health {
        Health::Fine => "fine",
        Health::Stuck => "STUCK",
        Health::Down => "down",
        Health::NeedsYou => "NEEDS YOU",
    };
    let since = view.since.as_ref().map_or(String::new(), |since| format!(", up since {since}"));
    printer.say_titled(&format!("team {team}:"), &format!("{health}{since}"));
    for why in view.why.iter().chain(&view.notes) {
        printer.say(&format!("  {why}"));
    }
    if let Some(line) = view.tasks.line() {
        printer.say(&format!("  {line}"));
    }
    let width = view.teammates.iter().map(|it| it.name.len()).max().unwrap_or_default();
    for it in &view.teammates {
        let state = it.state.as_str();
        let unread = if it.unread > 0 { format!("  {} unread", it.unread) } else { String::new() };
        let last = it.last.map_or(String::new(), |last| format!("  last {last}"));
        let tokens = match it.tokens_in + it.tokens_out {
            0 => String::new(),
            _ => format!("  tokens {} in, {} out", it.tokens_in, it.tokens_out),
        };
        let cost = match (it.cost_usd.as_str(), it.unknown_costs) {
            ("0", 0) => String::new(),
            (cost, 0) => format!("  ${cost}"),
            ("0", _) => "  cost unknown".to_owned(),
            (cost, _) => format!("  ${cost} and unknown"),
        };
        let beside = match it.in_background {
            0 => String::new(),
            count => format!("  {count} in the background"),
        };
        let about = [it.held.as_deref().unwrap_or_default(), it.about.as_str()];
        let about: Vec<&str> = about.into_iter().filter(|text| !text.is_empty()).collect();
        let about: Vec<String> = about.iter().map(|text| format!("  {text}")).collect();
        let about = about.concat();
        let answered = format!("  {} answered", it.answered);
        let name = format!("{:width$}", it.name);
        printer.say_titled(
            &format!("  {name}"),
            &format!(" {state:8}{unread}{answered}{last}{tokens}{cost}{beside}{about}"),
        );
    }
    for next in &view.next {
        printer.say(&format!("next: {next}"));
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
