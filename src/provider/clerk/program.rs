//! A text understood whole: a program, and the verdict that a script has for plans.
//!
//! It never gives a part: one line that is not understood, and there is no program.

use super::{
    line::{self, Deed, Line, Read},
    shell::IsProgram,
    statement,
    template::Template,
};
use crate::base::text;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// The teammate's script, in which places are filled in.
    Script,
    /// A message, which means what it says.
    Message,
}

/// A line that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, `{}`: {why}", text::headline(.text, 120))]
pub struct Complaint {
    /// Its number, from 1.
    pub line: usize,
    /// The line.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

/// What a clerk does at each request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// For a request that asks for work; without one, the request brings its own.
    pub program: Option<Program>,
    /// For a request that asks whether a plan is good.
    pub on_plan: Option<Verdict>,
}

/// What a clerk says to a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Approve,
    /// No, and why.
    Reject(Template),
}

/// Lines to carry out. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(Vec<Line>);

impl Script {
    /// Understands `text`, or names the first line that it does not understand.
    pub fn parse(text: &str, voice: Voice, is_program: IsProgram) -> Result<Self, Complaint> {
        let mut lines: Vec<Line> = Vec::new();
        let mut on_plan = None;
        for statement in statement::split(text)? {
            let (number, source) = (statement.number, statement.source.clone());
            let complaint = |why| Complaint { line: number, text: source, why };
            match line::read(statement, voice, is_program) {
                Ok(Read::Line(line)) => match joint(lines.last(), &line) {
                    Ok(()) => lines.push(line),
                    Err(why) => return Err(complaint(why)),
                },
                Ok(Read::OnPlan(verdict)) if on_plan.is_none() => on_plan = Some(verdict),
                Ok(Read::OnPlan(_)) => {
                    return Err(complaint("there is an `on plan:` line already".to_owned()));
                }
                Err(why) => return Err(complaint(why)),
            }
        }
        Ok(Self { program: (!lines.is_empty()).then_some(Program(lines)), on_plan })
    }
}

impl Program {
    /// Understands what a message says, or names the first line that is not understood.
    pub fn parse(text: &str, is_program: IsProgram) -> Result<Self, Complaint> {
        let script = Script::parse(text, Voice::Message, is_program)?;
        let why = "there is no line in it".to_owned();
        script.program.ok_or_else(|| Complaint { line: 1, text: text.trim().to_owned(), why })
    }

    /// The lines, turn by turn. An `answer:` line is alone.
    pub fn turns(&self) -> impl Iterator<Item = &[Line]> {
        self.0.chunk_by(|_, next| next.prefix.joins)
    }

    /// The first line whose tool is not among `offered`.
    pub fn first_line_without_tool(&self, offered: &[&str]) -> Option<&Line> {
        let missing = |line: &&Line| line.deed.tool().is_some_and(|tool| !offered.contains(&tool));
        self.0.iter().find(missing)
    }
}

/// Whether `line` may stand behind `before`.
fn joint(before: Option<&Line>, line: &Line) -> Result<(), String> {
    let is_call = |line: &Line| !matches!(line.deed, Deed::Answer(_));
    if line.prefix.joins && !before.is_some_and(is_call) {
        return Err("`&` joins the call just before it, and there is none".to_owned());
    }
    Ok(())
}
