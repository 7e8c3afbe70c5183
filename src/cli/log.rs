//! `log`: all mail in the order of time, and on as it comes.

use super::{
    args::Log,
    context::Context,
    failure::{Code, Failure},
    follow::Follower,
    render::{MessageView, Printer, line_of},
};
use crate::{
    base::{Clock, Scope, Timestamp, text::listed},
    model::{AgentName, Message},
    store::MessageBus,
};

/// How much of a message is shown on its line.
const WIDTH: usize = 120;
/// How often to look for new mailboxes and for what no event tells of.
const LOOK: std::time::Duration = std::time::Duration::from_secs(2);

/// Shows the log.
pub fn log(context: &Context, args: &Log, printer: &mut Printer) -> Result<Code, Failure> {
    let store = context.store()?;
    let (bus, _) = context.bus(&store)?;
    let wanted = Wanted::new(args, &bus, context.clock())?;
    let lines = if args.since.is_some() { None } else { Some(args.lines) };
    let mut follower = Follower::new(&store, &bus, lines)?;
    let scope = Scope::plain(context.clock().clone());
    let wake = scope.wake.clone();
    let _watch = store.journals().watch(Box::new(move || wake.notify()))?;
    let mut first: Vec<Message> =
        follower.more().into_iter().filter(|it| wanted.takes(it)).collect();
    if let Some(most) = lines {
        first.drain(..first.len().saturating_sub(most));
    }
    print(&first, args.json, printer);
    if first.is_empty() && !args.json && !args.follow {
        printer.note(&wanted.nothing(&bus));
    }
    while args.follow && !printer.is_closed() {
        follower.look_for_new(&store, &bus)?;
        follower.subscribe(&scope.wake);
        let again = context.clock().now().after(LOOK);
        // Whatever ends the wait, what has come is shown.
        let _ = scope.wait(Some(again), || follower.has_more().then_some(()));
        let more: Vec<Message> =
            follower.more().into_iter().filter(|it| wanted.takes(it)).collect();
        print(&more, args.json, printer);
    }
    Ok(Code::Ok)
}

fn print(messages: &[Message], json: bool, printer: &mut Printer) {
    for message in messages {
        if json {
            printer.say_json(&MessageView::from(message));
        } else {
            printer.say(&line_of(message, WIDTH));
        }
    }
}

struct Wanted {
    names: Vec<AgentName>,
    since: Option<Timestamp>,
}

impl Wanted {
    fn new(args: &Log, bus: &MessageBus, clock: &Clock) -> Result<Self, Failure> {
        let mut names = Vec::new();
        for name in &args.names {
            names.push(bus.roster().resolve(AgentName::new(name.as_str())?));
        }
        let since = args.since.as_deref().map(|text| since(text, clock.wall())).transpose()?;
        Ok(Self { names, since })
    }

    /// Says that there is nothing, and who there could be mail of.
    fn nothing(&self, bus: &MessageBus) -> String {
        if self.names.is_empty() {
            return "no mail".to_owned();
        }
        let (names, known) = (listed(&self.names), listed(&bus.roster().members));
        format!("no mail from or to {names}; there are {known}")
    }

    fn takes(&self, message: &Message) -> bool {
        let said = &message.envelope;
        let is_named = self.names.is_empty()
            || self.names.contains(&said.from)
            || self.names.contains(&said.to);
        // A line that does not say when it was written may be new.
        let is_new = match (self.since, message.timestamp) {
            (Some(since), Some(time)) => time >= since,
            (Some(_), None) | (None, _) => true,
        };
        is_named && is_new
    }
}

/// `90s`, `10m`, `2h`, `1d` before now, or a time.
pub fn since(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    let units = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];
    let unit = units.iter().find(|(letter, _)| text.ends_with(*letter));
    if let Some((letter, seconds)) = unit
        && let Ok(count) = text.trim_end_matches(*letter).parse::<i64>()
    {
        let back = count.saturating_mul(*seconds).saturating_mul(1000);
        return Ok(Timestamp(now.0.saturating_sub(back)));
    }
    Timestamp::parse(text).ok_or_else(|| {
        Failure::usage(format!("{text:?} is no time: use 90s, 10m, 2h, 1d or 2026-11-30T19:19:42Z"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spans_or_points() {
        let now = Timestamp(1_000_000_000_000);
        assert_eq!(since("10m", now).unwrap(), Timestamp(1_000_000_000_000 - 600_000));
        assert_eq!(since("1d", now).unwrap(), Timestamp(1_000_000_000_000 - 86_400_000));
        assert_eq!(since("1970-01-01T00:00:01Z", now).unwrap(), Timestamp(1000));
        for odd in ["", "m", "yesterday", "10 minutes"] {
            assert!(since(odd, now).is_err(), "{odd}");
        }
    }
}
