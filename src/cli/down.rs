//! `down`: an order to the daemon, and a wait until it is gone.

use std::time::Duration;

use super::{
    args::Down,
    client::Client,
    context::Context,
    failure::{Code, Failure},
    render::Printer,
};
use crate::{base::Interrupted, model::AgentName};

/// How often to look whether the lock is free.
const LOOK: Duration = Duration::from_millis(50);

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
    client.send(client.request(AgentName::daemon(), text))?;
    // The lock is free when the process is gone; no event tells of that.
    let clock = context.clock();
    while context.is_up() {
        let again = clock.now().after(LOOK);
        if let Err(Interrupted::Stopping) = client.scope().wait::<()>(Some(again), || None) {
            break;
        }
    }
    printer.note("down; `postroom up` goes on where it left off");
    Ok(Code::Ok)
}
