//! `start`: a teammate that was stopped runs again. With a daemon it is an order, whose answer is
//! waited for; without one the life is changed, and the next `up` starts it.

use std::time::Duration;

use super::{
    client::{Asked, Client},
    context::Context,
    failure::{Code, Failure},
    render::Printer,
};
use crate::{
    base::lock::FolderLock,
    model::{AgentName, Desired, Status},
};

/// How long an acknowledgement may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a teammate.
pub fn start(context: &Context, name: &str, printer: &mut Printer) -> Result<Code, Failure> {
    let client = Client::new(context, AgentName::user())?;
    let name = teammate(&client, name)?;
    if !context.is_up() {
        let end = client.bus.end_of(&name)?;
        return change_life(context, &client, &name, |life| {
            life.desired = Desired::Running;
            life.be_born(end);
        })
        .map(|()| {
            printer.note(&format!("no daemon is up: {name} runs from the next `postroom up` on"));
            Code::Ok
        });
    }
    let order = client.request(AgentName::daemon(), format!("start {name}"));
    let asked = Asked::from(&order);
    let place = client.send(order)?;
    let answers = client.await_answers(&[asked], place, Some(PATIENCE), |_| {})?;
    let mut code = Code::Ok;
    for answer in answers.values() {
        printer.note(&answer.envelope.content);
        if answer.envelope.status != Some(Status::Ok) {
            code = Code::Failed;
        }
    }
    Ok(code)
}

/// The teammate that `text` means.
pub fn teammate(client: &Client<'_>, text: &str) -> Result<AgentName, Failure> {
    let name = client.bus.roster().resolve(AgentName::new(text)?);
    let Some(file) = &client.team else {
        return Err(Failure::usage("no team is known here; name its file once with `postroom up`"));
    };
    if file.team.teammates.contains_key(&name) {
        return Ok(name);
    }
    let known = crate::base::text::listed(file.team.teammates.keys());
    Err(Failure::usage(format!("no teammate is called {name}; there are {known}")))
}

/// Changes a life while no daemon can: under its lock.
pub fn change_life(
    context: &Context,
    client: &Client<'_>,
    name: &AgentName,
    change: impl FnOnce(&mut crate::model::Life),
) -> Result<(), Failure> {
    let lock = FolderLock::take(&context.folder(), context.clock())
        .map_err(|why| Failure::failed(format!("lock {}: {why}", context.folder().display())))?;
    let Some(_lock) = lock else {
        return Err(Failure::failed("a daemon has just started; try again"));
    };
    client.store.lives().open(name)?.record(change)?;
    Ok(())
}
