//! `attach`: decides questions at the terminal as they come; `run` and `up` do it beside their work.

use std::{
    collections::BTreeSet,
    io::{self, BufRead, IsTerminal},
    time::Duration,
};

use super::{
    approvals::{OpenQuestion, decide, open_questions, what},
    client::Client,
    context::Context,
    failure::{Code, Failure},
    render::Printer,
};
use crate::{
    base::{Stop, text::shorten, thread::Thread},
    model::{AgentName, MessageId},
    store::TeamFile,
};

/// How often to look for questions that no event told of.
const LOOK: Duration = Duration::from_secs(1);
/// How much of a question is shown before somebody asks for all of it.
const SHOWN: usize = 600;

/// Whether somebody sits at a terminal and can be asked.
pub fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks until there is no daemon any more, or nobody answers.
pub fn attach(context: &Context, printer: &mut Printer) -> Result<Code, Failure> {
    if !is_attended() {
        return Err(Failure::usage(
            "attach asks at a terminal; elsewhere use `postroom approvals` and `postroom approve ID`",
        ));
    }
    let client = Client::new(context, AgentName::user())?;
    if !context.is_up() {
        return Err(Failure::no_daemon("no daemon is up; `postroom up` starts one"));
    }
    printer.note("attached: questions come as they are asked; Ctrl-C leaves");
    ask_on(&client, printer, || !context.is_up())?;
    Ok(Code::Ok)
}

/// Asks on a thread of its own while something else is under way. The thread may be waiting for
/// somebody to type, so nobody waits for it.
pub struct Desk {
    stop: Stop,
    thread: Option<Thread<()>>,
}

impl Desk {
    /// Begins to ask, where somebody is there.
    pub fn start(context: &Context, team: &TeamFile) -> Result<Option<Self>, Failure> {
        if !is_attended() {
            return Ok(None);
        }
        let context = context.clone();
        let team = team.clone();
        let (sender, receiver) = std::sync::mpsc::channel();
        let body = move || {
            let Ok(client) = Client::for_team(&context, AgentName::user(), team) else { return };
            drop(sender.send(client.scope().stop.clone()));
            // What goes wrong here is seen by `approvals`; the work goes on.
            drop(ask_on(&client, &mut Printer::new(), || false));
        };
        let thread = Thread::start("questions", body)
            .map_err(|why| Failure::failed(format!("start a thread: {why}")))?;
        let stop = receiver.recv().unwrap_or_else(|_| Stop::root());
        Ok(Some(Self { stop, thread: Some(thread) }))
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.stop.request(crate::base::Haste::Now);
        if let Some(thread) = self.thread.take() {
            thread.leave();
        }
    }
}

fn ask_on(
    client: &Client<'_>,
    printer: &mut Printer,
    is_over: impl Fn() -> bool,
) -> Result<(), Failure> {
    let mut asked: BTreeSet<MessageId> = BTreeSet::new();
    while !is_over() {
        for question in open_questions(&client.store, &client.bus, client.team.as_ref())? {
            if asked.insert(question.message.envelope.id.clone())
                && !ask(client, &question, printer)?
            {
                return Ok(());
            }
        }
        let again = client.clock().now().after(LOOK);
        let mut is_first = true;
        let woken =
            client.scope().wait(Some(again), || (!std::mem::take(&mut is_first)).then_some(()));
        if woken == Err(crate::base::Interrupted::Stopping) {
            return Ok(());
        }
    }
    Ok(())
}

/// Asks one question; whether somebody is still there.
fn ask(client: &Client<'_>, asked: &OpenQuestion, printer: &mut Printer) -> Result<bool, Failure> {
    let OpenQuestion { by, message: question } = asked;
    let said = &question.envelope;
    let mut text = shorten(&said.content, SHOWN);
    loop {
        printer.note(&format!("\n{by} asks about {}:\n{text}", what(question)));
        printer.note("[y]es, [a]lways, [n]o, [d]etails?");
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line).unwrap_or(0) == 0 {
            return Ok(false);
        }
        let answer = line.trim();
        let (word, reason) = answer.split_once(' ').unwrap_or((answer, ""));
        match word {
            "y" | "yes" => decide(client, question, true, false, reason)?,
            "a" | "always" => decide(client, question, true, true, reason)?,
            "n" | "no" => decide(client, question, false, false, reason)?,
            "d" | "details" => {
                text.clone_from(&said.content);
                continue;
            }
            _ => {
                printer.note("type y, a, n (with a reason behind it, if you like) or d");
                continue;
            }
        }
        return Ok(true);
    }
}
