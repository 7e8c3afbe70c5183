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
use crate::model::{AgentName, Desired, Envelope, Protocol, Status};

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
