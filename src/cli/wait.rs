//! `wait`: the answers to messages that were sent before.

use std::{collections::BTreeMap, time::Duration};

use super::{
    args::Wait,
    client::Client,
    context::Context,
    failure::{Code, Failure},
    render::{MessageView, Printer},
    show::find_message,
};
use crate::model::{AgentName, Kind, MessageId, Status};

/// Waits.
pub fn wait(context: &Context, args: &Wait, printer: &mut Printer) -> Result<Code, Failure> {
    let mut by_sender: BTreeMap<AgentName, Vec<MessageId>> = BTreeMap::new();
    let store = context.store()?;
    let (bus, _) = context.bus(&store)?;
    for id in &args.ids {
        let message = find_message(&store, &bus, id)?;
        if message.envelope.kind != Kind::Request {
            return Err(Failure::usage(format!("{id} is no request, so nothing answers it")));
        }
        let mailbox = bus.mailbox_of(&message.envelope.from);
        by_sender.entry(mailbox).or_default().push(message.envelope.id);
    }
    let timeout = args.timeout.map(Duration::from_secs);
    let mut code = Code::Ok;
    for (sender, ids) in by_sender {
        let client = Client::new(context, sender.clone())?;
        let start = bus.start_of(&sender)?;
        client.await_answers(&ids, start, timeout, |answer| {
            if args.json {
                printer.say_json(&MessageView::from(answer));
            } else {
                printer.say(&answer.envelope.content);
            }
            if answer.envelope.status.is_some_and(|status| status != Status::Ok) {
                code = Code::Failed;
            }
        })?;
    }
    Ok(code)
}
