//! `wait`: the answers to messages that were sent before, the end of tasks, or that nobody has
//! anything to do.

use std::{collections::BTreeMap, time::Duration};

use super::{
    args::Wait,
    client::{Asked, Client},
    context::Context,
    failure::{Code, Failure},
    render::{Printer, say_answer},
    show::find_message,
    status,
    task::TaskView,
};
use crate::{
    model::{AgentName, Kind, TaskId, TaskState},
    store::TaskBoard,
};

/// Waits.
pub fn wait(context: &Context, args: &Wait, printer: &mut Printer) -> Result<Code, Failure> {
    let timeout = args.timeout.map(Duration::from_secs);
    let mut code = wait_for_answers(context, args, timeout, printer)?;
    if !args.task.is_empty() {
        code = code.or(wait_for_tasks(context, args, timeout, printer)?);
    }
    if args.idle {
        let client = Client::new(context, AgentName::user())?;
        client.await_idle(timeout, || status::is_idle(context, &client.store))?;
    }
    Ok(code)
}

fn wait_for_answers(
    context: &Context,
    args: &Wait,
    timeout: Option<Duration>,
    printer: &mut Printer,
) -> Result<Code, Failure> {
    let mut by_sender: BTreeMap<AgentName, Vec<Asked>> = BTreeMap::new();
    let store = context.store()?;
    let (bus, _) = context.bus(&store)?;
    for id in &args.ids {
        let message = find_message(&store, &bus, id)?;
        if message.envelope.kind != Kind::Request {
            return Err(Failure::usage(format!("{id} is no request, so nothing answers it")));
        }
        let mailbox = bus.mailbox_of(&message.envelope.from);
        by_sender.entry(mailbox).or_default().push(Asked::from(&message.envelope));
    }
    let mut code = Code::Ok;
    for (sender, asked) in by_sender {
        let client = Client::new(context, sender.clone())?;
        let start = bus.start_of(&sender)?;
        client.await_answers(&asked, start, timeout, |answer| {
            code = code.or(say_answer(answer, args.json, printer));
        })?;
    }
    Ok(code)
}

fn wait_for_tasks(
    context: &Context,
    args: &Wait,
    timeout: Option<Duration>,
    printer: &mut Printer,
) -> Result<Code, Failure> {
    let client = Client::new(context, AgentName::user())?;
    let board = TaskBoard::open(&client.store)?;
    let ids: Result<Vec<TaskId>, _> = args.task.iter().map(|id| TaskId::new(id.as_str())).collect();
    let ids = ids?;
    for id in &ids {
        if board.look(|board| board.get(id).is_none())? {
            return Err(Failure::usage(format!(
                "there is no task {id}; `postroom task list` lists them"
            )));
        }
    }
    client.await_tasks(&ids, timeout)?;
    let mut code = Code::Ok;
    for id in &ids {
        let team = client.team.as_ref().map(|file| &file.team);
        let ended = board
            .look(|it| it.get(id).map(|task| (task.clone(), TaskView::new(it, team, task))))?;
        let Some((task, view)) = ended else { continue };
        match &task.state {
            _ if args.json => printer.say_json(&view),
            TaskState::Done(text) => printer.say(text),
            TaskState::Failed(why) => printer.note(&format!("task {id} has failed: {why}")),
            TaskState::Cancelled => printer.note(&format!("task {id} was cancelled")),
            TaskState::Pending | TaskState::InProgress { .. } => {}
        }
        if !matches!(task.state, TaskState::Done(_)) {
            code = Code::Failed;
        }
    }
    Ok(code)
}
