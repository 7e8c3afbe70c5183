//! `run`: sends, waits, prints the answer. Where no daemon is up it hosts the team meanwhile.

use std::{path::Path, time::Duration};

use super::{
    args::Run,
    attach::{Desk, is_attended},
    client::{Answers, Asked, Client},
    context::Context,
    failure::{Code, Failure},
    host::{Host, let_think},
    progress::Progress,
    render::{MessageView, Printer},
    task::TaskView,
    up::is_same_file,
};
use crate::{
    model::{AgentName, Desired, Errand, MessageId, Status, TaskId, TaskState, TeamTask},
    store::{BoardLine, TaskBoard, TeamFile, TeamStatus},
};

/// Runs a message, or what the team begins with.
pub fn run(context: &Context, args: &Run, printer: &mut Printer) -> Result<Code, Failure> {
    let (team, message) = what_is_meant(context, &args.words)?;
    let file = let_think(context.team(team)?, args.provider.as_deref())?;
    let work = what_to_do(&file, message)?;
    context.make_folder()?;
    if context.is_up() {
        refuse_other_team(context, &file)?;
        if args.provider.is_some() {
            let why = "the team is up with its own providers; `postroom down` ends it, then \
                       --provider counts";
            return Err(Failure::usage(why));
        }
        let client = Client::for_team(context, AgentName::user(), file)?;
        let _progress = Progress::start(context, &client.store, &client.bus)?;
        return do_it(&client, args, &work, printer);
    }
    let (host, notes) = Host::new(context, file.clone())?;
    if !args.wait_approvals && !is_attended() {
        host.office().leave_unattended();
    }
    let _desk = Desk::start(context, &file)?;
    for note in notes {
        printer.note(&note);
    }
    let client = Client::for_team(context, AgentName::user(), file)?;
    let beside = {
        let _progress = Progress::start(context, &client.store, &client.bus)?;
        let beside = host.run_beside(client.scope().stop.clone())?;
        let worked = do_it(&client, args, &work, printer);
        (beside, worked)
    };
    let (beside, worked) = beside;
    match beside.end()? {
        Code::Interrupted => Err(Failure {
            code: Code::Interrupted,
            text: "interrupted; what was begun goes on at the next `run` or `up`".to_owned(),
        }),
        Code::Needed => {
            printer.note(
                "something was refused because nobody was here to be asked: run it at a terminal, \
                 with --wait-approvals, or allow it by a rule in the team file",
            );
            worked.map(|_| Code::Needed)
        }
        _ => worked,
    }
}

/// One word is a team if it names a file, else a message; two are both.
fn what_is_meant<'a>(
    context: &Context,
    words: &'a [String],
) -> Result<(Option<&'a str>, Option<&'a str>), Failure> {
    match words {
        [] => Ok((None, None)),
        [only] if is_team(context, only) => Ok((Some(only), None)),
        [only] => Ok((None, Some(only))),
        [team, message] => Ok((Some(team), Some(message))),
        _ => Err(Failure::usage("give a team, a message, or a team and a message in quotes")),
    }
}

/// A path, or the name of a file in `teams/`. A message may hold a path, but a path that is no file
/// holds no blank.
fn is_team(context: &Context, word: &str) -> bool {
    let is_json = Path::new(word).extension().is_some_and(|it| it == "json");
    let looks_so = (word.contains('/') || is_json) && !word.contains([' ', '\n']);
    let named = context.workspace().join("teams").join(format!("{word}.json"));
    looks_so || Path::new(word).is_file() || (!word.contains('/') && named.is_file())
}

/// What a run sends and puts on the board.
struct Work {
    errands: Vec<Errand>,
    tasks: Vec<TeamTask>,
}

fn what_to_do(file: &TeamFile, message: Option<&str>) -> Result<Work, Failure> {
    let team = &file.team;
    if let Some(message) = message {
        let errand = Errand { to: team.lead.clone(), content: message.to_owned() };
        return Ok(Work { errands: vec![errand], tasks: Vec::new() });
    }
    let errands = team.start.clone();
    if errands.is_empty() && team.tasks.is_empty() {
        return Err(Failure::usage(format!(
            "nothing to do: give a message, as in `postroom run {} 'read README.md'`, or put \
             \"start\" or \"tasks\" into {}",
            team.name,
            file.path.display()
        )));
    }
    Ok(Work { errands, tasks: team.tasks.clone() })
}

fn refuse_other_team(context: &Context, file: &TeamFile) -> Result<(), Failure> {
    let Some(status) = TeamStatus::read(&context.store()?)? else { return Ok(()) };
    if is_same_file(&file.path, &status.file) {
        return Ok(());
    }
    Err(Failure {
        code: Code::Held,
        text: format!(
            "another team holds the folder: {} from {}; `postroom down` ends it",
            status.team, status.file
        ),
    })
}

/// Sends all errands and adds all tasks, waits for all of them, prints the lead's answers.
fn do_it(
    client: &Client<'_>,
    args: &Run,
    work: &Work,
    printer: &mut Printer,
) -> Result<Code, Failure> {
    let errands = &work.errands;
    refuse_stopped(client, errands)?;
    let tasks = add_tasks(client, &work.tasks)?;
    let requests: Vec<_> =
        errands.iter().map(|it| client.request(it.to.clone(), it.content.clone())).collect();
    let asked: Vec<Asked> = requests.iter().map(Asked::from).collect();
    let ids: Vec<MessageId> = asked.iter().map(|it| it.id.clone()).collect();
    let place = client.bus.end_of(&AgentName::user())?;
    for request in requests {
        client.send(request)?;
    }
    let timeout = args.timeout.map(Duration::from_secs);
    let answers = client.await_answers(&asked, place, timeout, |_| {})?;
    let ended = client.await_tasks(&tasks, timeout);
    print(client, args, &ids, &answers, printer);
    ended?;
    let tasks_are_done = report_tasks(client, &tasks, args.json, printer)?;
    let is_ok = |id: &MessageId| {
        answers.get(id).is_some_and(|it| it.envelope.status.is_none_or(|it| it == Status::Ok))
    };
    Ok(if tasks_are_done && ids.iter().all(is_ok) { Code::Ok } else { Code::Failed })
}

/// Puts the team file's tasks on the board; gives their ids.
fn add_tasks(client: &Client<'_>, tasks: &[TeamTask]) -> Result<Vec<TaskId>, Failure> {
    let board = TaskBoard::open(&client.store)?;
    let mut ids: Vec<TaskId> = Vec::new();
    for task in tasks {
        let depends_on = task.depends_on.iter().filter_map(|place| ids.get(*place).cloned());
        let line = BoardLine {
            op: "create",
            title: Some(task.title.clone()),
            description: Some(task.description.clone()).filter(|it| !it.is_empty()),
            depends_on: depends_on.collect(),
            assignee: task.assignee.clone(),
            agent_type: task.agent_type.clone(),
            by: Some(AgentName::user()),
            ..BoardLine::default()
        };
        match board.record(line)? {
            Ok((_, task)) => ids.push(task.id),
            Err(void) => return Err(Failure::failed(format!("a task was not added: {void}"))),
        }
    }
    Ok(ids)
}

/// Says how each task has ended, and what came of it; whether all are done.
fn report_tasks(
    client: &Client<'_>,
    ids: &[TaskId],
    json: bool,
    printer: &mut Printer,
) -> Result<bool, Failure> {
    let board = TaskBoard::open(&client.store)?;
    let mut all_done = true;
    for id in ids {
        let Some(task) = board.look(|board| board.get(id).cloned())? else { continue };
        all_done &= matches!(task.state, TaskState::Done(_));
        let why = match &task.state {
            TaskState::Failed(why) => format!(": {why}"),
            _ => String::new(),
        };
        printer.note(&format!("task {id} ({}): {}{why}", task.title, task.state.as_str()));
        if json {
            let team = client.team.as_ref().map(|file| &file.team);
            printer.say_json(&board.look(|board| TaskView::new(board, team, &task))?);
        } else if let TaskState::Done(result) = &task.state {
            printer.say(result);
        }
    }
    Ok(all_done)
}

fn print(
    client: &Client<'_>,
    args: &Run,
    ids: &[MessageId],
    answers: &Answers,
    printer: &mut Printer,
) {
    let lead = client.team.as_ref().map(|file| &file.team.lead);
    for answer in ids.iter().filter_map(|id| answers.get(id)) {
        let said = &answer.envelope;
        if args.json {
            printer.say_json(&MessageView::from(answer));
        } else if Some(&said.from) == lead {
            printer.say(&said.content);
        } else if said.status.is_some_and(|status| status != Status::Ok) {
            printer.note(&format!("{} did not do it: {}", said.from, said.content));
        }
    }
}

/// Mail to a teammate that was stopped would wait for ever.
fn refuse_stopped(client: &Client<'_>, errands: &[Errand]) -> Result<(), Failure> {
    for errand in errands {
        if client.store.lives().open(&errand.to)?.life().desired == Desired::Stopped {
            let name = &errand.to;
            return Err(Failure::failed(format!(
                "{name} is stopped, so nothing was sent; `postroom start {name}` starts it"
            )));
        }
    }
    Ok(())
}
