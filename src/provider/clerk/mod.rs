//! The embedded provider: a clerk, which carries out lines. It is no language model and says so.
//!
//! Its next turn follows from its script, its name and the turns in hand alone, so that a restart
//! goes on where it was. It must never run a part of a text that it did not understand whole, take
//! instructions from anything but a request, or put a message's words into a shell command.

mod answer;
mod course;
mod help;
mod history;
mod installed;
mod keyword;
mod line;
mod program;
mod shell;
mod statement;
mod template;
mod word;

#[cfg(test)]
mod desk;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod grammar;
#[cfg(test)]
mod laws;

use std::sync::Arc;

use crate::{
    base::Cancel,
    model::{AgentName, CLERK_MODEL, Mail, Protocol, Status, ToolCall},
    provider::{Provider, ProviderError, Reads, Reply, Request, Tokens},
};

pub use help::help;
pub use program::Complaint;

use answer::Answer;
use course::{Course, Due};
use history::History;
use program::{Program, Script, Voice};
use shell::IsProgram;

/// A teammate without a language model.
#[derive(Debug, Clone)]
pub struct Clerk {
    name: AgentName,
    script: Script,
    is_program: IsProgram,
}

/// Why a script can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the script is not understood: {0}")]
pub struct ScriptFault(pub Complaint);

/// Whether a clerk without a script understands `text` as a program. Which tools the clerk may call
/// is not looked at.
pub fn can_do(text: &str) -> bool {
    Program::parse(text, installed::on_path).is_ok()
}

impl Clerk {
    /// Reads the script, where there is one: once for all its requests.
    pub fn new(name: AgentName, script: Option<String>) -> Result<Self, ScriptFault> {
        Self::knowing(name, script, installed::on_path)
    }

    /// Whether it would take a request with this text for work that it can do: with a program in
    /// its script any, else those that are a program.
    pub fn can_do(&self, text: &str) -> bool {
        self.script.program.is_some() || Program::parse(text, self.is_program).is_ok()
    }

    fn knowing(
        name: AgentName,
        script: Option<String>,
        is_program: IsProgram,
    ) -> Result<Self, ScriptFault> {
        let script = Script::parse(&script.unwrap_or_default(), Voice::Script, is_program);
        Ok(Self { name, script: script.map_err(ScriptFault)?, is_program })
    }

    /// How far one request in hand has come.
    fn attend(&self, mail: &Mail, history: &History<'_>, request: &Request<'_>) -> Attended {
        match mail.protocol {
            Some(Protocol::PlanApproval) => return Attended::Answer(self.judge(mail)),
            Some(Protocol::Shutdown | Protocol::Permission) => {
                return Attended::Answer(answer::no_judge(&self.name));
            }
            None => {}
        }
        let rounds = history.rounds_of(mail);
        // What was begun had been understood and its tools were there: a program that has been
        // uninstalled since then is a failed line, no longer a text that nothing of was run.
        let begun = !rounds.is_empty();
        let is_program: IsProgram = if begun { |_| true } else { self.is_program };
        let from_mail;
        let program = if let Some(program) = &self.script.program {
            program
        } else {
            from_mail = match Program::parse(&mail.text, is_program) {
                Ok(program) => program,
                Err(why) => return Attended::Answer(answer::not_understood(&self.name, &why)),
            };
            &from_mail
        };
        let offered: Vec<&str> = request.tools.iter().map(|tool| tool.name).collect();
        if !begun && let Some(line) = program.first_line_without_tool(&offered) {
            return Attended::Answer(answer::tool_missing(line, &offered));
        }
        match course::follow(program, mail, &rounds) {
            Course::Due(due) => Attended::Reply(calling(due, mail, history)),
            Course::Ended(ended) => Attended::Answer(answer::of_course(&ended)),
        }
    }

    fn judge(&self, mail: &Mail) -> Answer {
        match &self.script.on_plan {
            Some(verdict) => answer::of_verdict(verdict, mail),
            None => answer::no_verdict(&self.name),
        }
    }
}

impl Provider for Clerk {
    fn model(&self) -> &str {
        CLERK_MODEL
    }

    fn reads(&self) -> Reads {
        Reads::Recent
    }

    /// A subagent carries out the lines it is given: the script is its caller's.
    fn for_subagents(&self) -> Option<Arc<dyn Provider>> {
        let (name, is_program) = (self.name.clone(), self.is_program);
        Some(Arc::new(Self { name, script: Script::default(), is_program }))
    }

    fn can_do(&self, text: &str) -> bool {
        Self::can_do(self, text)
    }

    fn complete(&self, request: &Request<'_>, _cancel: &Cancel) -> Result<Reply, ProviderError> {
        let history = History::of(request.turns.get(request.in_hand..).unwrap_or_default());
        let mut answers = Vec::new();
        for mail in history.requests() {
            match self.attend(mail, &history, request) {
                Attended::Reply(reply) => return Ok(reply),
                Attended::Answer(answer) => answers.push((mail, answer)),
            }
        }
        let Answer { status, text, decision } = answer::joined(answers);
        let calls = Vec::new();
        Ok(Reply {
            text,
            calls,
            status,
            decision,
            tokens: Tokens::default(),
            cost: None,
            vendor: None,
        })
    }
}

/// What a request comes to for now.
enum Attended {
    /// There is something to call first.
    Reply(Reply),
    /// It is done with.
    Answer(Answer),
}

/// The turn that makes the calls which are due.
fn calling(due: Vec<Due<'_>>, mail: &Mail, history: &History<'_>) -> Reply {
    let sources: Vec<String> = due.iter().map(|due| due.line.headline()).collect();
    let calls = due.into_iter().enumerate().map(|(index, due)| {
        let id = history::call_id(mail, history.model_turns(), index);
        ToolCall { id, tool: due.tool, input: due.input }
    });
    Reply {
        text: sources.join("\n"),
        calls: calls.collect(),
        status: Status::Ok,
        decision: None,
        tokens: Tokens::default(),
        cost: None,
        vendor: None,
    }
}
