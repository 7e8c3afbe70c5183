//! `down`: an order to the daemon, and a wait until it is gone.

use std::time::Duration;

use super::{
    args::Down,
    client::{Asked, Client},
    context::Context,
    failure::{Code, Failure},
    render::Printer,
};
use crate::{
    base::Interrupted,
    model::{AgentName, Status},
};

/// How often to look whether the lock is free.
const LOOK: Duration = Duration::from_millis(50);
/// How long a daemon that has said goodbye may take to leave. Afterwards it is another one that holds
/// the folder.
const LEAVING: Duration = Duration::from_secs(5);

/// Ends the daemon.
pub fn down(context: &Context, args: &Down, printer: &mut Printer) -> Result<Code, Failure> {
    let client = Client::new(context, AgentName::user())?;
    if !context.is_up() {
        printer.note("no daemon is up");
        return Ok(Code::Ok);
    }
    let text = match (args.drain, args.force) {
        (true, _) => "down drain",
        (_, true) => "down force",
        _ => "down",
    };
    let order = client.request(AgentName::daemon(), text);
    let asked = Asked::from(&order);
    let place = client.send(order)?;
    match client.await_answers(&[asked], place, None, |_| {}) {
        Ok(answers) => {
            let is_no = |status| status != Some(Status::Ok);
            if let Some(no) = answers.values().find(|it| is_no(it.envelope.status)) {
                return Err(Failure::failed(no.envelope.content.clone()));
            }
            await_exit(context, &client);
        }
        // It is gone without an answer.
        Err(why) if why.code == Code::NoDaemon => {}
        Err(why) => return Err(why),
    }
    printer.note("down; `postroom up` goes on where it left off");
    Ok(Code::Ok)
}

/// The lock is free when the process is gone; no event tells of that.
fn await_exit(context: &Context, client: &Client<'_>) {
    let clock = context.clock();
    let until = clock.now().after(LEAVING);
    while context.is_up() && clock.now() < until {
        let again = clock.now().after(LOOK);
        if let Err(Interrupted::Stopping) = client.scope().wait::<()>(Some(again), || None) {
            return;
        }
    }
}
