//! `task`: the board from the command line. It appends the same lines as everybody else.

use serde::Serialize;

use super::{
    args::{Task as Args, TaskVerb},
    context::Context,
    failure::{Code, Failure},
    render::{Printer, SCHEMA},
};
use crate::{
    model::{
        AgentName, Board, Hold, MessageId, StateWord, Task, TaskId, TaskState, Team, TypeName,
        Void, state_word, task_line, task_text,
    },
    store::{BoardLine, TaskBoard},
};

/// A task as it is printed in JSON.
#[derive(Debug, Serialize)]
pub struct TaskView {
    schema: u32,
    id: String,
    title: String,
    description: String,
    status: &'static str,
    owner: Option<String>,
    attempt: u64,
    /// Who claimed it last, as what, and the trace of that.
    worker: Option<String>,
    worked_as: Option<String>,
    trace_id: Option<String>,
    assignee: Option<String>,
    agent_type: Option<String>,
    added_by: String,
    depends_on: Vec<String>,
    waits_for: Vec<String>,
    /// What it wants that the team has not.
    fault: Option<String>,
    result: Option<String>,
    lease_s: Option<u64>,
}

impl TaskView {
    /// The view of a task on its board, as far as its team is known.
    pub fn new(board: &Board, team: Option<&Team>, task: &Task) -> Self {
        let (owner, lease_s) = match &task.state {
            TaskState::InProgress { owner, hold: Hold::Lease(lease) } => {
                (Some(owner.to_string()), Some(*lease))
            }
            TaskState::InProgress { owner, hold: Hold::Run(_) } => (Some(owner.to_string()), None),
            _ => (None, None),
        };
        let result = match &task.state {
            TaskState::Done(text) | TaskState::Failed(text) => Some(text.clone()),
            TaskState::Pending | TaskState::InProgress { .. } | TaskState::Cancelled => None,
        };
        let texts = |ids: &[TaskId]| ids.iter().map(ToString::to_string).collect();
        Self {
            schema: SCHEMA,
            id: task.id.to_string(),
            title: task.title.clone(),
            description: task.description.clone(),
            status: task.state.as_str(),
            owner,
            attempt: task.attempt,
            worker: task.worker.as_ref().map(|it| it.name.to_string()),
            worked_as: team.and_then(|it| it.worked_as(task)).map(ToString::to_string),
            trace_id: task
                .worker
                .as_ref()
                .and_then(|it| it.trace.as_ref())
                .map(ToString::to_string),
            assignee: task.assignee.as_ref().map(ToString::to_string),
            agent_type: task.agent_type.as_ref().map(ToString::to_string),
            added_by: task.added_by.to_string(),
            depends_on: texts(&task.depends_on),
            waits_for: texts(&board.waits_for(task)),
            fault: team.and_then(|team| team.fault_of(task)),
            result,
            lease_s,
        }
    }
}

/// Looks at the board, or changes it.
pub fn task(context: &Context, args: &Args, printer: &mut Printer) -> Result<Code, Failure> {
    let store = context.store()?;
    let (board, file) = (TaskBoard::open(&store)?, context.known_team(&store)?);
    let board = Table { board, team: file.map(|file| file.team) };
    match &args.verb {
        TaskVerb::Add { title, description, assignee, agent_type, depends_on, id, json } => {
            let mut line = created(context, title, assignee.as_deref(), depends_on)?;
            line.description.clone_from(description);
            line.agent_type =
                agent_type.as_deref().map(|it| known_type(context, it)).transpose()?;
            line.id = id.as_deref().map(TaskId::new).transpose()?;
            let task = board.record(line)?;
            board.print(&task, *json, printer, task.id.as_str())
        }
        TaskVerb::List { status, json } => {
            let wanted = status.as_deref().map(state_word).transpose().map_err(Failure::usage)?;
            board.list(wanted, *json, printer)
        }
        TaskVerb::Show { id, json } => board.show(&TaskId::new(id.as_str())?, *json, printer),
        TaskVerb::Claim { id, by, lease, json } => {
            let name = context.sender(by.as_deref())?;
            let line = BoardLine {
                owner: Some(name.clone()),
                lease_s: *lease,
                ..update(id, StateWord::Pending, StateWord::InProgress, name)?
            };
            let task = board.record(line)?;
            board.print(&task, *json, printer, &task.attempt.to_string())
        }
        TaskVerb::Update(it) => {
            let expected = state_word(&it.expected_status).map_err(Failure::usage)?;
            let status = state_word(&it.status).map_err(Failure::usage)?;
            let line = BoardLine {
                attempt: it.attempt,
                result: it.result.clone(),
                lease_s: it.lease,
                ..update(&it.id, expected, status, context.sender(it.by.as_deref())?)?
            };
            let task = board.record(line)?;
            board.print(&task, it.json, printer, task.state.as_str())
        }
        TaskVerb::Retry { id } => {
            let line = update(id, StateWord::Failed, StateWord::Pending, context.sender(None)?)?;
            let task = board.record(line)?;
            board.print(&task, false, printer, task.state.as_str())
        }
        TaskVerb::Cancel { id } => cancel(context, &board, id, printer),
    }
}

fn created(
    context: &Context,
    title: &str,
    assignee: Option<&str>,
    depends_on: &[String],
) -> Result<BoardLine, Failure> {
    let store = context.store()?;
    let (bus, team) = context.bus(&store)?;
    let assignee = assignee.map(AgentName::new).transpose()?.map(|it| bus.roster().resolve(it));
    let is_known = |name: &&AgentName| match &team {
        Some(file) => file.team.is_assignable(name),
        None => bus.roster().members.contains(*name),
    };
    if let Some(name) = assignee.as_ref().filter(|it| !is_known(it)) {
        let known = crate::base::text::listed(&bus.roster().members);
        return Err(Failure::usage(format!(
            "nobody is called {name}, and no type; there are {known}"
        )));
    }
    let depends_on: Result<Vec<TaskId>, _> =
        depends_on.iter().map(|id| TaskId::new(id.as_str())).collect();
    Ok(BoardLine {
        op: "create",
        title: Some(title.to_owned()),
        depends_on: depends_on?,
        assignee,
        by: Some(context.sender(None)?),
        event: Some(MessageId::random()),
        ..BoardLine::default()
    })
}

/// The agent type that is meant; without a team nobody can know.
fn known_type(context: &Context, given: &str) -> Result<TypeName, Failure> {
    match context.known_team(&context.store()?)? {
        Some(file) => match file.team.spawnable(given) {
            Ok(it) => Ok(it.name.clone()),
            Err(why) => Err(Failure::usage(why.to_string())),
        },
        None => Ok(TypeName::new(given)?),
    }
}

fn update(
    id: &str,
    expected: StateWord,
    status: StateWord,
    by: AgentName,
) -> Result<BoardLine, Failure> {
    Ok(BoardLine {
        op: "update",
        id: Some(TaskId::new(id)?),
        expected_status: Some(expected.as_str()),
        status: Some(status.as_str()),
        by: Some(by),
        event: Some(MessageId::random()),
        ..BoardLine::default()
    })
}

fn cancel(
    context: &Context,
    board: &Table,
    id: &str,
    printer: &mut Printer,
) -> Result<Code, Failure> {
    let wanted = TaskId::new(id)?;
    let present =
        board.board.look(|it| it.get(&wanted).map(|task| StateWord::from(&task.state)))?;
    let present = present.ok_or_else(|| Failure::failed(format!("there is no task {id}")))?;
    if !matches!(present, StateWord::Pending | StateWord::InProgress) {
        return Err(Failure::failed(format!(
            "nothing is changed: task {id} has ended, it is {}",
            present.as_str()
        )));
    }
    let task = board.record(update(id, present, StateWord::Cancelled, context.sender(None)?)?)?;
    board.print(&task, false, printer, task.state.as_str())
}

/// A board, and the team whose it is.
struct Table {
    board: TaskBoard,
    team: Option<Team>,
}

impl Table {
    /// Appends, and reads what became of it. A lost race names how the task stands.
    fn record(&self, line: BoardLine) -> Result<Task, Failure> {
        match self.board.record(line)? {
            Ok((_, task)) => Ok(task),
            Err(void @ (Void::UnknownDependency(_) | Void::NoLine(_))) => {
                Err(Failure::usage(void.to_string()))
            }
            Err(void) => Err(Failure::failed(format!("nothing is changed: {void}"))),
        }
    }

    fn list(
        &self,
        wanted: Option<StateWord>,
        json: bool,
        printer: &mut Printer,
    ) -> Result<Code, Failure> {
        let is_wanted = |it: &&Task| wanted.is_none_or(|to| StateWord::from(&it.state) == to);
        self.board.look(|board| {
            let chosen: Vec<&Task> = board.all().into_iter().filter(is_wanted).collect();
            for task in &chosen {
                if json {
                    printer.say_json(&TaskView::new(board, self.team.as_ref(), task));
                } else {
                    printer.say(&task_line(board, self.team.as_ref(), task));
                }
            }
            if chosen.is_empty() && !json {
                printer.note("no tasks; `postroom task add TITLE` adds one");
            }
        })?;
        Ok(Code::Ok)
    }

    fn show(&self, id: &TaskId, json: bool, printer: &mut Printer) -> Result<Code, Failure> {
        self.board.look(|board| {
            let Some(task) = board.get(id) else {
                return Err(Failure::failed(format!(
                    "there is no task {id}; `postroom task list` lists them"
                )));
            };
            if json {
                printer.say_json(&TaskView::new(board, self.team.as_ref(), task));
            } else {
                printer.say(&task_text(board, self.team.as_ref(), task));
            }
            Ok(Code::Ok)
        })?
    }

    fn print(
        &self,
        task: &Task,
        json: bool,
        printer: &mut Printer,
        plain: &str,
    ) -> Result<Code, Failure> {
        if json {
            let view = self.board.look(|board| TaskView::new(board, self.team.as_ref(), task))?;
            printer.say_json(&view);
        } else {
            printer.say(plain);
        }
        Ok(Code::Ok)
    }
}
