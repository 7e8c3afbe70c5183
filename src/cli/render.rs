//! The only printer: data to standard output, everything else to standard error. A pipe that its
//! reader has closed is no reason to panic.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use super::failure::Code;
use crate::{
    base::text::{for_terminal, headline},
    model::{Kind, Message, MessageId, Protocol, Status},
};

/// The version of everything that is printed as JSON.
pub const SCHEMA: u32 = 1;

/// Prints.
pub struct Printer {
    colour: bool,
    closed: bool,
}

impl Printer {
    /// Colours only for a person at a terminal who has not set `NO_COLOR`.
    pub fn new() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
        Self { colour: wanted && io::stdout().is_terminal(), closed: false }
    }

    /// Prints a line, or several, of data.
    pub fn say(&mut self, text: &str) {
        if self.closed {
            return;
        }
        let mut out = io::stdout().lock();
        let text = if io::stdout().is_terminal() { for_terminal(text) } else { text.to_owned() };
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        self.closed = write!(out, "{text}{newline}").and_then(|()| out.flush()).is_err();
    }

    /// Prints a line with its first word set off.
    pub fn say_titled(&mut self, title: &str, text: &str) {
        if !self.colour || self.closed {
            return self.say(&format!("{title} {text}"));
        }
        let mut out = io::stdout().lock();
        let (title, text) = (for_terminal(title), for_terminal(text));
        let line = writeln!(out, "\u{1b}[1m{title}\u{1b}[0m {text}");
        self.closed = line.and_then(|()| out.flush()).is_err();
    }

    /// Prints data as JSON.
    pub fn say_json<T: Serialize>(&mut self, data: &T) {
        let text = serde_json::to_string(data)
            .unwrap_or_else(|_| crate::base::broken("what is printed has a JSON form"));
        self.say(&text);
    }

    /// Whether nobody reads any more.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Tells of progress.
    #[expect(clippy::unused_self, reason = "whoever may print has a printer")]
    pub fn note(&mut self, text: &str) {
        let mut out = io::stderr().lock();
        drop(writeln!(out, "{}", for_terminal(text)));
    }

    /// Says what is wrong.
    pub fn complain(&mut self, text: &str) {
        self.note(&format!("postroom: {text}"));
    }
}

/// A text under a title.
pub fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

/// Prints an answer; the code that it means.
pub fn say_answer(answer: &Message, json: bool, printer: &mut Printer) -> Code {
    if json {
        printer.say_json(&MessageView::from(answer));
    } else {
        printer.say(&answer.envelope.content);
    }
    let is_ok = answer.envelope.status.is_none_or(|status| status == Status::Ok);
    if is_ok { Code::Ok } else { Code::Failed }
}

/// A message on one line: time, who to whom, what.
pub fn line_of(message: &Message, width: usize) -> String {
    let said = &message.envelope;
    let time = time_of(message);
    let what = match (said.kind, said.status) {
        (Kind::Response, Some(status)) => word_for(status).to_owned(),
        (kind, _) => word_of(kind).to_owned(),
    };
    let protocol = said.protocol.map_or("", protocol_word);
    let text = headline(&said.content, width);
    format!("{time}  {} → {}  {what}{protocol}  {text}", said.from, said.to)
}

/// When a message was written, as far as it says.
pub fn time_of(message: &Message) -> String {
    message.timestamp.map_or_else(|| "unknown time            ".to_owned(), |it| it.to_string())
}

/// The word for a kind.
pub fn word_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Request => "request",
        Kind::Response => "response",
        Kind::Broadcast => "broadcast",
        Kind::Event => "event",
    }
}

/// The word for a status.
pub fn word_for(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Failed => "failed",
        Status::Denied => "denied",
        Status::Stopped => "stopped",
    }
}

fn protocol_word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::PlanApproval => " PLAN_APPROVAL",
        Protocol::Shutdown => " SHUTDOWN",
        Protocol::Permission => " PERMISSION",
    }
}

/// A message as it is printed in JSON.
#[derive(Debug, Serialize)]
pub struct MessageView<'a> {
    schema: u32,
    id: &'a str,
    from: &'a str,
    to: &'a str,
    msg_type: &'static str,
    timestamp: Option<String>,
    status: Option<&'static str>,
    decision: Option<bool>,
    protocol: Option<Protocol>,
    in_reply_to: Option<&'a str>,
    content: &'a str,
    sealed: bool,
}

impl<'a> From<&'a Message> for MessageView<'a> {
    fn from(message: &'a Message) -> Self {
        let said = &message.envelope;
        Self {
            schema: SCHEMA,
            id: said.id.as_str(),
            from: said.from.as_str(),
            to: said.to.as_str(),
            msg_type: word_of(said.kind),
            timestamp: message.timestamp.map(|time| time.to_string()),
            status: said.status.map(word_for),
            decision: said.decision,
            protocol: said.protocol,
            in_reply_to: said.in_reply_to.as_ref().map(MessageId::as_str),
            content: &said.content,
            sealed: message.sealed,
        }
    }
}
