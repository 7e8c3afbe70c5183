//! What a clerk reads off the turns in hand: its requests, and which of its calls came to what.
//!
//! A call's id tells whose request it was made for, so it never counts a call that another model
//! made in the same work.

use crate::{
    base::{broken, hash},
    model::{CallId, Kind, Mail, ToolCall, ToolResult, Turn, counts_as, without_metadata},
};

/// The turns in hand.
pub struct History<'a> {
    turns: &'a [Turn],
}

/// What came of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// What it gave.
    pub text: &'a str,
    /// Whether it did not work.
    pub failed: bool,
}

/// The id of a call: its request, which turn of the model in the work in hand, and which call there.
pub fn call_id(mail: &Mail, turn: usize, index: usize) -> CallId {
    let (turn, index) = (turn.to_string(), index.to_string());
    let parts = [mail.from.as_str(), mail.id.as_str(), &turn, &index];
    let id = hash::derived_id(&parts.map(str::as_bytes));
    CallId::new(id).unwrap_or_else(|_| broken("a derived id is an id"))
}

impl<'a> History<'a> {
    /// Looks at the turns of the work in hand.
    pub fn of(turns: &'a [Turn]) -> Self {
        Self { turns }
    }

    /// The requests, in the order in which they came.
    pub fn requests(&self) -> impl Iterator<Item = &'a Mail> {
        self.turns.iter().filter_map(|turn| match turn {
            Turn::Mail(mail) if mail.kind == Kind::Request => Some(mail),
            _ => None,
        })
    }

    /// How many turns the model has had.
    pub fn model_turns(&self) -> usize {
        self.calls_by_turn().count()
    }

    /// What the calls made for `mail` came to, turn by turn.
    pub fn rounds_of(&self, mail: &Mail) -> Vec<Vec<Outcome<'a>>> {
        let ours = |turn, calls: &[ToolCall]| {
            calls.first().is_some_and(|call| call.id == call_id(mail, turn, 0))
        };
        let rounds = self.calls_by_turn().enumerate().filter(|(turn, calls)| ours(*turn, calls));
        rounds.map(|(_, calls)| calls.iter().map(|call| self.outcome(call)).collect()).collect()
    }

    fn calls_by_turn(&self) -> impl Iterator<Item = &'a [ToolCall]> {
        self.turns.iter().filter_map(|turn| match turn {
            Turn::Model { calls, .. } => Some(calls.as_slice()),
            _ => None,
        })
    }

    fn outcome(&self, call: &ToolCall) -> Outcome<'a> {
        let result = self.turns.iter().find_map(|turn| match turn {
            Turn::Result(result) if result.call == call.id => Some(result),
            _ => None,
        });
        match result {
            // What a subagent took is for models that choose by it.
            Some(ToolResult { text, is_error, .. }) => {
                let text = match counts_as(&call.tool) {
                    "subagent" => without_metadata(text),
                    _ => text,
                };
                Outcome { text, failed: *is_error }
            }
            None => Outcome { text: "the call has no result", failed: true },
        }
    }
}
