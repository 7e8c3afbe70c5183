//! `stop`: a SHUTDOWN in the teammate's mailbox, and a wait until it says that it has stopped.
//! Without a daemon the life is changed.

use super::{
    args::Stop,
    client::Client,
    context::Context,
    failure::{Code, Failure},
    render::Printer,
    start::{change_life, teammate},
};
use crate::{
    model::{AgentName, Desired, Envelope, Protocol, Status},
    store::{Activity, TeamStatus},
};

/// Why a teammate that has failed does not run: nobody would answer for it.
fn failure(client: &Client<'_>, name: &AgentName) -> Result<Option<String>, Failure> {
    let status = TeamStatus::read(&client.store)?;
    let status = status.and_then(|mut status| status.teammates.remove(name));
    Ok(status.filter(|status| status.state == Activity::Failed).map(|status| status.about))
}

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
    if let Some(why) = failure(&client, &name)? {
        return Err(Failure::failed(format!("{name} does not run, so it can't be stopped: {why}")));
    }
    let request = client.request(name, "");
    let order = Envelope { protocol: Some(Protocol::Shutdown), drain: args.drain, ..request };
    let id = order.id.clone();
    let place = client.send(order)?;
    let answers = client.await_answers(&[id], place, None, |_| {})?;
    let mut code = Code::Ok;
    for answer in answers.values() {
        printer.note(&format!("{}: {}", answer.envelope.from, answer.envelope.content));
        if answer.envelope.status != Some(Status::Stopped) {
            code = Code::Failed;
        }
    }
    Ok(code)
}
