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
        AgentName, Board, Hold, MessageId, StateWord, Task, TaskId, TaskState, TypeName, Void,
        state_word, task_line, task_text,
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
    assignee: Option<String>,
    agent_type: Option<String>,
    added_by: String,
    depends_on: Vec<String>,
    waits_for: Vec<String>,
    result: Option<String>,
    lease_s: Option<u64>,
}

impl TaskView {
    /// The view of a task on its board.
    pub fn new(board: &Board, task: &Task) -> Self {
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
            assignee: task.assignee.as_ref().map(ToString::to_string),
            agent_type: task.agent_type.as_ref().map(ToString::to_string),
            added_by: task.added_by.to_string(),
            depends_on: texts(&task.depends_on),
            waits_for: texts(&board.waits_for(task)),
            result,
            lease_s,
        }
    }
}

/// Looks at the board, or changes it.
pub fn task(context: &Context, args: &Args, printer: &mut Printer) -> Result<Code, Failure> {
    let store = context.store()?;
    let board = TaskBoard::open(&store)?;
    match &args.verb {
        TaskVerb::Add { title, description, assignee, agent_type, depends_on, id, json } => {
            let mut line = created(context, title, assignee.as_deref(), depends_on)?;
            line.description.clone_from(description);
            line.agent_type =
                agent_type.as_deref().map(|it| known_type(context, it)).transpose()?;
            line.id = id.as_deref().map(TaskId::new).transpose()?;
            let task = record(&board, line)?;
            print(&board, &task, *json, printer, task.id.as_str())
        }
        TaskVerb::List { status, json } => {
            let wanted = status.as_deref().map(state_word).transpose().map_err(Failure::usage)?;
            list(&board, wanted, *json, printer)
        }
        TaskVerb::Show { id, json } => {
            let id = TaskId::new(id.as_str())?;
            board.look(|board| show(board, &id, *json, printer))?
        }
        TaskVerb::Claim { id, by, lease, json } => {
            let name = context.sender(by.as_deref())?;
            let line = BoardLine {
                owner: Some(name.clone()),
                lease_s: *lease,
                ..update(id, StateWord::Pending, StateWord::InProgress, name)?
            };
            let task = record(&board, line)?;
            print(&board, &task, *json, printer, &task.attempt.to_string())
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
            let task = record(&board, line)?;
            print(&board, &task, it.json, printer, task.state.as_str())
        }
        TaskVerb::Retry { id } => {
            let line = update(id, StateWord::Failed, StateWord::Pending, context.sender(None)?)?;
            let task = record(&board, line)?;
            print(&board, &task, false, printer, task.state.as_str())
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

/// Appends, and reads what became of it. A lost race names how the task stands.
fn record(board: &TaskBoard, line: BoardLine) -> Result<Task, Failure> {
    match board.record(line)? {
        Ok((_, task)) => Ok(task),
        Err(void @ (Void::UnknownDependency(_) | Void::NoLine(_))) => {
            Err(Failure::usage(void.to_string()))
        }
        Err(void) => Err(Failure::failed(format!("nothing is changed: {void}"))),
    }
}

fn cancel(
    context: &Context,
    board: &TaskBoard,
    id: &str,
    printer: &mut Printer,
) -> Result<Code, Failure> {
    let wanted = TaskId::new(id)?;
    let present = board.look(|it| it.get(&wanted).map(|task| StateWord::from(&task.state)))?;
    let present = present.ok_or_else(|| Failure::failed(format!("there is no task {id}")))?;
    if !matches!(present, StateWord::Pending | StateWord::InProgress) {
        return Err(Failure::failed(format!(
            "nothing is changed: task {id} has ended, it is {}",
            present.as_str()
        )));
    }
    let task = record(board, update(id, present, StateWord::Cancelled, context.sender(None)?)?)?;
    print(board, &task, false, printer, task.state.as_str())
}

fn list(
    board: &TaskBoard,
    wanted: Option<StateWord>,
    json: bool,
    printer: &mut Printer,
) -> Result<Code, Failure> {
    board.look(|board| {
        let chosen = board.all().into_iter();
        let chosen = chosen.filter(|it| wanted.is_none_or(|to| StateWord::from(&it.state) == to));
        let mut count = 0;
        for task in chosen {
            count += 1;
            if json {
                printer.say_json(&TaskView::new(board, task));
            } else {
                printer.say(&task_line(board, task));
            }
        }
        if count == 0 && !json {
            printer.note("no tasks; `postroom task add TITLE` adds one");
        }
    })?;
    Ok(Code::Ok)
}

fn show(board: &Board, id: &TaskId, json: bool, printer: &mut Printer) -> Result<Code, Failure> {
    let Some(task) = board.get(id) else {
        return Err(Failure::failed(format!(
            "there is no task {id}; `postroom task list` lists them"
        )));
    };
    if json {
        printer.say_json(&TaskView::new(board, task));
    } else {
        printer.say(&task_text(board, task));
    }
    Ok(Code::Ok)
}

fn print(
    board: &TaskBoard,
    task: &Task,
    json: bool,
    printer: &mut Printer,
    plain: &str,
) -> Result<Code, Failure> {
    if json {
        let view = board.look(|board| TaskView::new(board, task))?;
        printer.say_json(&view);
    } else {
        printer.say(plain);
    }
    Ok(Code::Ok)
}
