//! `run`: sends, waits, prints the answer. Where no daemon is up it hosts the team meanwhile.

use std::{path::Path, time::Duration};

use super::{
    args::Run,
    client::{Answers, Client},
    context::Context,
    failure::{Code, Failure},
    host::Host,
    progress::Progress,
    render::{MessageView, Printer},
    up::is_same_file,
};
use crate::{
    model::{AgentName, Desired, Errand, MessageId, Status},
    store::{TeamFile, TeamStatus},
};

/// Runs a message, or what the team begins with.
pub fn run(context: &Context, args: &Run, printer: &mut Printer) -> Result<Code, Failure> {
    let (team, message) = what_is_meant(context, &args.words)?;
    let file = context.team(team)?;
    let errands = errands(&file, message)?;
    context.make_folder()?;
    if context.is_up() {
        refuse_other_team(context, &file)?;
        let client = Client::for_team(context, AgentName::user(), file)?;
        let _progress = Progress::start(context, &client.store, &client.bus)?;
        return work(&client, args, &errands, printer);
    }
    let (host, notes) = Host::new(context, file.clone())?;
    for note in notes {
        printer.note(&note);
    }
    let client = Client::for_team(context, AgentName::user(), file)?;
    let beside = {
        let _progress = Progress::start(context, &client.store, &client.bus)?;
        let beside = host.run_beside(client.scope().stop.clone())?;
        let worked = work(&client, args, &errands, printer);
        (beside, worked)
    };
    let (beside, worked) = beside;
    match beside.end()? {
        Code::Interrupted => Err(Failure {
            code: Code::Interrupted,
            text: "interrupted; what was begun goes on at the next `run` or `up`".to_owned(),
        }),
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

fn errands(file: &TeamFile, message: Option<&str>) -> Result<Vec<Errand>, Failure> {
    let team = &file.team;
    if let Some(message) = message {
        return Ok(vec![Errand { to: team.lead.clone(), content: message.to_owned() }]);
    }
    let errands: Vec<Errand> = team.start.iter().chain(&team.tasks).cloned().collect();
    if errands.is_empty() {
        return Err(Failure::usage(format!(
            "nothing to do: give a message, as in `postroom run {} 'read README.md'`, or put \
             \"start\" or \"tasks\" into {}",
            team.name,
            file.path.display()
        )));
    }
    Ok(errands)
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

/// Sends all errands, waits for all answers, prints the lead's.
fn work(
    client: &Client<'_>,
    args: &Run,
    errands: &[Errand],
    printer: &mut Printer,
) -> Result<Code, Failure> {
    refuse_stopped(client, errands)?;
    let requests: Vec<_> =
        errands.iter().map(|it| client.request(it.to.clone(), it.content.clone())).collect();
    let ids: Vec<MessageId> = requests.iter().map(|request| request.id.clone()).collect();
    let place = client.bus.end_of(&AgentName::user())?;
    for request in requests {
        client.send(request)?;
    }
    let timeout = args.timeout.map(Duration::from_secs);
    let answers = client.await_answers(&ids, place, timeout, |_| {})?;
    print(client, args, &ids, &answers, printer);
    let is_ok = |id: &MessageId| {
        answers.get(id).is_some_and(|it| it.envelope.status.is_none_or(|it| it == Status::Ok))
    };
    Ok(if ids.iter().all(is_ok) { Code::Ok } else { Code::Failed })
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
