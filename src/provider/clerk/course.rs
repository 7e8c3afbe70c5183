//! How far a program has come, found by going through it along what its calls came to.
//!
//! It keeps nothing between two turns, and never goes past a failed line that has no `-`.

use serde_json::Value;

use super::{
    history::Outcome,
    line::{Deed, Line},
    program::Program,
    template::Values,
};
use crate::model::{Mail, Status};

/// Where a program stands.
pub enum Course<'p> {
    /// These calls come next, in one turn.
    Due(Vec<Due<'p>>),
    /// Nothing comes any more.
    Ended(Ended<'p>),
}

/// A call to make.
pub struct Due<'p> {
    /// Its line.
    pub line: &'p Line,
    /// The tool's name.
    pub tool: String,
    /// The tool's input.
    pub input: Value,
}

/// A program that has ended.
pub struct Ended<'p> {
    /// What was done, in order.
    pub steps: Vec<Step<'p>>,
    /// What a failure left undone.
    pub not_run: Vec<&'p Line>,
}

/// One line that was carried out.
pub enum Step<'p> {
    /// A call, and what it gave.
    Called {
        /// Its line.
        line: &'p Line,
        /// What it gave.
        output: &'p str,
        /// What it means for the program.
        mark: Mark,
    },
    /// An `answer:` line, filled in.
    Answered(String),
}

/// What a line's end means for the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// It worked.
    Worked,
    /// It failed, and its `-` lets the program go on.
    Excused,
    /// It failed and ends the program.
    Fatal,
}

/// Goes through `program`, which is carried out for `mail`, along the rounds that were made.
pub fn follow<'p>(program: &'p Program, mail: &Mail, rounds: &'p [Vec<Outcome<'p>>]) -> Course<'p> {
    let mut rounds = rounds.iter();
    let mut turns = program.turns();
    let mut steps = Vec::new();
    let mut values =
        Values { content: &mail.text, from: &mail.from, output: String::new(), status: Status::Ok };
    while let Some(lines) = turns.next() {
        if let [Line { deed: Deed::Answer(text), .. }] = lines {
            steps.push(Step::Answered(text.filled(&values)));
            values.output.clear();
            continue;
        }
        let Some(outcomes) = rounds.next() else { return Course::Due(due(lines, &values)) };
        values.status = Status::Ok;
        let mut fatal = false;
        for (line, outcome) in lines.iter().zip(outcomes) {
            let mark = mark(line, *outcome);
            values.take(*outcome);
            fatal |= mark == Mark::Fatal;
            steps.push(Step::Called { line, output: outcome.text, mark });
        }
        if fatal {
            return Course::Ended(Ended { steps, not_run: turns.flatten().collect() });
        }
    }
    Course::Ended(Ended { steps, not_run: Vec::new() })
}

fn mark(line: &Line, outcome: Outcome<'_>) -> Mark {
    match (outcome.failed, line.prefix.goes_on) {
        (false, _) => Mark::Worked,
        (true, true) => Mark::Excused,
        (true, false) => Mark::Fatal,
    }
}

fn due<'p>(lines: &'p [Line], values: &Values<'_>) -> Vec<Due<'p>> {
    let due = |line: &'p Line| {
        let (tool, input) = line.deed.call(values)?;
        Some(Due { line, tool, input })
    };
    lines.iter().filter_map(due).collect()
}
