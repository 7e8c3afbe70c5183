//! `stop`: a SHUTDOWN in the teammate's mailbox, and a wait until it says that it has stopped.
//! Without a daemon the life is changed.

use std::time::Duration;

use super::{
    args::Stop,
    client::{Asked, Client},
    context::Context,
    failure::{Code, Failure},
    render::Printer,
    start::{change_life, teammate},
};
use crate::{
    model::{AgentName, Desired, Envelope, Protocol, Status},
    store::{Activity, TeamStatus},
};

/// How long past the grace an acknowledgement may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Stops a teammate.
pub fn stop(context: &Context, args: &Stop, printer: &mut Printer) -> Result<Code, Failure> {
    let client = Client::new(context, AgentName::user())?;
    let name = teammate(&client, &args.name)?;
    if !context.is_up() {
        change_life(context, &client, &name, |life| life.desired = Desired::Stopped)?;
        printer.note(&format!("no daemon is up: {name} stays stopped at the next `postroom up`"));
        return Ok(Code::Ok);
    }
    if client.store.lives().open(&name)?.life().desired == Desired::Stopped {
        printer.note(&format!("{name} is stopped"));
        return Ok(Code::Ok);
    }
    if let Some(why) = why_nobody_obeys(&client, &name)? {
        return Err(Failure::failed(format!("{name} does not run, so it can't be stopped: {why}")));
    }
    let request = client.request(name, "");
    let order = Envelope { protocol: Some(Protocol::Shutdown), drain: args.drain, ..request };
    let asked = Asked::from(&order);
    let place = client.send(order)?;
    let limits = client.team.as_ref().map(|file| file.team.limits).unwrap_or_default();
    let patience = if args.drain { None } else { Some(limits.grace + PATIENCE) };
    let answers = client.await_answers(&[asked], place, patience, |_| {})?;
    let mut code = Code::Ok;
    for answer in answers.values() {
        printer.note(&format!("{}: {}", answer.envelope.from, answer.envelope.content));
        if answer.envelope.status != Some(Status::Stopped) {
            code = Code::Failed;
        }
    }
    Ok(code)
}

/// Why there is no thread that could obey, where there is none.
fn why_nobody_obeys(client: &Client<'_>, name: &AgentName) -> Result<Option<String>, Failure> {
    let status = TeamStatus::read(&client.store)?;
    let doing = status.and_then(|status| status.teammates.get(name).cloned());
    Ok(doing.filter(|it| it.state == Activity::Failed).map(|it| it.about))
}
