//! The last word of a piece of work: what is told of a program that has ended, or of a text that
//! was not carried out.
//!
//! It never tells more than what happened, and never hides that a line failed.

use super::{
    course::{Ended, Mark, Step},
    help,
    line::Line,
    program::{Complaint, Verdict},
    template::Values,
};
use crate::{
    base::text,
    model::{AgentName, Mail, Status},
};

/// The most characters of an answer.
const SHOWN: usize = 50_000;
/// The least that a line's output is shortened to, however many lines there are.
const LEAST_SHOWN: usize = 400;

/// How a piece of work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// As wished or not.
    pub status: Status,
    /// What is told.
    pub text: String,
    /// The verdict, where a plan was judged.
    pub decision: Option<bool>,
}

impl Answer {
    fn ok(text: String) -> Self {
        Self { status: Status::Ok, text, decision: None }
    }

    fn failed(text: String) -> Self {
        Self { status: Status::Failed, text, decision: None }
    }
}

/// What came of a program.
pub fn of_course(ended: &Ended<'_>) -> Answer {
    let most = (SHOWN / ended.steps.len().max(1)).max(LEAST_SHOWN);
    let is_fatal = |step: &Step<'_>| matches!(step, Step::Called { mark: Mark::Fatal, .. });
    let (fatal, others): (Vec<_>, Vec<_>) = ended.steps.iter().partition(|step| is_fatal(step));
    if fatal.is_empty() {
        return Answer::ok(text::shorten(&good_end(&ended.steps, most), SHOWN));
    }
    let mut parts: Vec<String> = others.into_iter().chain(fatal).map(|it| told(it, most)).collect();
    if !ended.not_run.is_empty() {
        let lines = ended.not_run.iter().map(|line| format!("  {}", line.headline()));
        parts.push(format!("Not run:\n{}", lines.collect::<Vec<_>>().join("\n")));
    }
    Answer::failed(text::shorten(&parts.join("\n\n"), SHOWN))
}

/// Nothing but the answers, where the program gives some; nothing but the output of a single line.
fn good_end(steps: &[Step<'_>], most: usize) -> String {
    let answers: Vec<&str> = steps.iter().filter_map(answered).collect();
    if !answers.is_empty() {
        return answers.join("\n");
    }
    if let [Step::Called { output, mark: Mark::Worked, .. }] = steps {
        return output_or_none(output).to_owned();
    }
    steps.iter().map(|step| told(step, most)).collect::<Vec<_>>().join("\n\n")
}

fn answered<'a>(step: &'a Step<'_>) -> Option<&'a str> {
    match step {
        Step::Answered(text) => Some(text),
        Step::Called { .. } => None,
    }
}

fn told(step: &Step<'_>, most: usize) -> String {
    match step {
        Step::Answered(text) => text::shorten(text, most),
        Step::Called { line, output, mark } => {
            let output = text::shorten(output_or_none(output), most);
            let line = line.headline();
            match mark {
                Mark::Worked => format!("$ {line}\n{output}"),
                Mark::Excused => format!("$ {line}\nfailed, and passed over: {output}"),
                Mark::Fatal => format!("FAILED: {line}\n{output}"),
            }
        }
    }
}

fn output_or_none(output: &str) -> &str {
    let output = output.trim_end();
    if output.is_empty() { "(no output)" } else { output }
}

/// A text that is no program.
pub fn not_understood(name: &AgentName, why: &Complaint) -> Answer {
    let forms = help::forms();
    Answer::failed(format!(
        "I am {name}, a clerk and no language model: I carry out lines, and do not understand this \
         one, so nothing was run.\n\n{why}\n\nThe lines that I know, each with an example:\n\n{forms}"
    ))
}

/// A program whose tool is not there.
pub fn tool_missing(line: &Line, offered: &[&str]) -> Answer {
    let (tool, line) = (line.deed.tool().unwrap_or_default(), line.headline());
    let offered = text::listed(offered);
    Answer::failed(format!(
        "`{line}` needs the tool `{tool}`, which I do not have, so nothing was run. My tools: {offered}."
    ))
}

/// A plan that is judged.
pub fn of_verdict(verdict: &Verdict, mail: &Mail) -> Answer {
    let values =
        Values { content: &mail.text, from: &mail.from, output: String::new(), status: Status::Ok };
    let (text, decision) = match verdict {
        Verdict::Approve => ("approved".to_owned(), true),
        Verdict::Reject(why) => (text::shorten(&why.filled(&values), SHOWN), false),
    };
    Answer { status: Status::Ok, text, decision: Some(decision) }
}

/// A plan that can't be judged.
pub fn no_verdict(name: &AgentName) -> Answer {
    Answer::failed(format!(
        "I am {name}, a clerk and no language model, and judge no plan: my script has no line \
         `on plan: approve` or `on plan: reject WHY`."
    ))
}

/// Another question of yes or no.
pub fn no_judge(name: &AgentName) -> Answer {
    Answer::failed(format!(
        "I am {name}, a clerk and no language model: I decide nothing but plans, by `on plan:`."
    ))
}

/// One answer for all requests in hand: each of them gets it.
pub fn joined(mut answers: Vec<(&Mail, Answer)>) -> Answer {
    if answers.len() == 1
        && let Some((_, answer)) = answers.pop()
    {
        return answer;
    }
    if answers.is_empty() {
        return Answer::ok("Noted: a clerk acts on requests only.".to_owned());
    }
    let failed = answers.iter().any(|(_, answer)| answer.status != Status::Ok);
    let status = if failed { Status::Failed } else { Status::Ok };
    let decision = answers.iter().filter_map(|(_, answer)| answer.decision).reduce(|a, b| a && b);
    let told = answers.iter().map(|(mail, Answer { text, .. })| {
        format!("To the request {} from {}:\n{text}", mail.id, mail.from)
    });
    let text = told.collect::<Vec<_>>().join("\n\n");
    Answer { status, text: text::shorten(&text, SHOWN), decision }
}
