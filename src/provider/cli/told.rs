//! What an agent program is told: all that is new to its session, as text.

use crate::{
    model::{Kind, Protocol, Turn},
    provider::{Request, framed},
};

/// The first line of an answer that is a plan to be approved.
pub const PLAN: &str = "PLAN";
/// The first line of an answer that approves a plan.
pub const APPROVE: &str = "APPROVE";
/// The first line of an answer that rejects a plan.
pub const REJECT: &str = "REJECT";

/// What a program with tools of its own is told of how it works in a team.
pub const PROGRAMS_EXPLAINED: &str = "You work with your own tools; whatever is said elsewhere of \
    tools such as team_send, team_ask, task_create, submit_plan, decide_plan or subagent, you have \
    none of them. Nobody can answer a question while you work: what you may not do is refused at \
    once. What you say last is the answer to whoever asked. Where a plan has to be approved before \
    you change anything, or you want that, answer with the line PLAN and the plan below it; the \
    decision is told to you, and you go on. Who asks for a plan to be approved is answered with the \
    line APPROVE or the line REJECT, and why below it.";

/// The most of a conversation that a new session is told, in bytes.
const MOST: usize = 200 * 1024;
/// Stands for what is older than that.
const LEFT_OUT: &str = "(What was said before is left out.)";
/// What is told where nothing is new.
const GO_ON: &str = "(Go on.)";

/// What goes before work that may have been done in part already.
const AGAIN: &str = "(An earlier run for this was cut off, and what it did until then stands. Look at \
    what is there before you do anything again that changes something.)";

/// `turns` as text, the newest ones whole. They `may_be_again` what was told to a run that was cut off.
pub fn told(turns: &[Turn], may_be_again: bool) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut length = 0;
    for part in turns.iter().rev().filter_map(as_text) {
        length += part.len();
        if length > MOST && !parts.is_empty() {
            parts.push(LEFT_OUT.to_owned());
            break;
        }
        parts.push(part);
    }
    parts.reverse();
    if parts.is_empty() {
        parts.push(GO_ON.to_owned());
    }
    parts.extend(may_be_again.then(|| AGAIN.to_owned()));
    parts.join("\n\n")
}

fn as_text(turn: &Turn) -> Option<String> {
    match turn {
        Turn::Mail(mail) => Some(framed(mail)),
        Turn::Model { text, calls, .. } => {
            let plans = calls.iter().filter_map(|call| call.input.get("plan")?.as_str());
            let said: Vec<&str> = [text.as_str()].into_iter().chain(plans).collect();
            let said = said.join("\n");
            let said = said.trim();
            (!said.is_empty()).then(|| format!("(You answered:)\n{said}"))
        }
        Turn::Result(result) => Some(format!("(What came of it:)\n{}", result.text)),
        Turn::Summary(summary) => Some(summary.text.clone()),
        Turn::Final(_) | Turn::Shrunk { .. } => None,
    }
}

/// Whether the work in hand asks for a plan to be approved.
pub fn is_asked_to_decide(request: &Request<'_>) -> bool {
    let in_hand = request.turns.get(request.in_hand..).unwrap_or_default();
    in_hand.iter().any(|turn| {
        matches!(turn, Turn::Mail(it) if it.kind == Kind::Request
            && it.protocol == Some(Protocol::PlanApproval))
    })
}
