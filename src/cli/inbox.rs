//! `inbox`: somebody's latest mail. Looking consumes nothing.

use super::{
    args::Inbox,
    client::{go_before_last, read_on},
    context::Context,
    failure::{Code, Failure},
    render::{MessageView, Printer, indented, time_of, word_for, word_of},
};
use crate::{journal::Position, model::AgentName};

/// Shows mail.
pub fn inbox(context: &Context, args: &Inbox, printer: &mut Printer) -> Result<Code, Failure> {
    let store = context.store()?;
    let (bus, _) = context.bus(&store)?;
    let name = bus.roster().resolve(AgentName::new(args.name.as_str())?);
    let is_there = store.journals().list("")?.journals.iter().any(|it| it.0 == name.as_str());
    if !is_there && !bus.roster().members.contains(&name) {
        let known = crate::base::text::listed(&bus.roster().members);
        return Err(Failure::usage(format!("nobody is called {name}; there are {known}")));
    }
    let mut reader = bus.reader(&name, Position::ZERO)?;
    go_before_last(&mut reader, args.lines)?;
    let messages = read_on(&mut reader)?;
    let skipped = messages.len().saturating_sub(args.lines);
    for message in messages.iter().skip(skipped) {
        if args.json {
            printer.say_json(&MessageView::from(message));
            continue;
        }
        let said = &message.envelope;
        let what = said.status.map_or(word_of(said.kind), word_for);
        let about = said.in_reply_to.as_ref().map_or(String::new(), |id| format!(" to {id}"));
        let title = format!("{} from {}", time_of(message), said.from);
        printer.say_titled(&title, &format!("{what}{about} ({})", said.id));
        printer.say(&indented(&said.content));
    }
    if messages.is_empty() && !args.json {
        printer.note(&format!("no mail for {name}"));
    }
    Ok(Code::Ok)
}
