//! A conversation: turns in order, in which each call has exactly one result, and what comes next.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentName, Kind, MessageId, Protocol, Status, Tokens, ToolCall, ToolResult};
use crate::journal::Position;

/// One turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// A message, which stays typed: a model sees it framed as data with its origin.
    Mail(Mail),
    /// The model's turn.
    Model {
        /// What it said.
        text: String,
        /// What it wants done; none when the work is finished.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// How the work ended, where it ended.
        status: Status,
        /// The verdict, where the work was a question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision: Option<bool>,
        /// What the turn has cost.
        #[serde(default, skip_serializing_if = "Tokens::is_nothing")]
        tokens: Tokens,
        /// The vendor's own blocks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vendor: Option<Value>,
    },
    /// What came of a call.
    Result(ToolResult),
    /// The end of a piece of work.
    Final(Final),
}

/// A message in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// Its id.
    pub id: MessageId,
    /// Its sender as shown: who wrote a line can't be known from the line.
    pub from: AgentName,
    /// A request is worked on; everything else is context.
    pub kind: Kind,
    /// The protocol it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// What it says.
    pub text: String,
    /// How many messages of agents led to it.
    #[serde(default)]
    pub hops: u8,
}

/// How a piece of work ended: written before anybody is told, so that a restart tells the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Final {
    /// How it ended.
    pub status: Status,
    /// What is told.
    pub text: String,
    /// The verdict, where the work was a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<bool>,
    /// Where the mailboxes of those who are told ended at that time: their replies lie behind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<AgentName, Position>,
}

impl Final {
    /// An end of which no mailbox is told.
    pub fn told(status: Status, text: String) -> Self {
        Self { status, text, decision: None, places: BTreeMap::new() }
    }
}

/// What turns have cost, with all that was delegated in them.
pub fn spent(turns: &[Turn]) -> Tokens {
    let of_turn = |turn: &Turn| match turn {
        Turn::Model { tokens, .. } => *tokens,
        Turn::Result(result) => result.spent,
        Turn::Mail(_) | Turn::Final(_) => Tokens::default(),
    };
    turns.iter().map(of_turn).fold(Tokens::default(), Tokens::plus)
}

/// The tools that were called in turns, each with how often, in order of their first call.
pub fn tools_called(turns: &[Turn]) -> Vec<(&str, usize)> {
    let mut called: Vec<(&str, usize)> = Vec::new();
    for turn in turns {
        let Turn::Model { calls, .. } = turn else { continue };
        for call in calls {
            match called.iter_mut().find(|(name, _)| *name == call.tool) {
                Some((_, count)) => *count += 1,
                None => called.push((&call.tool, 1)),
            }
        }
    }
    called
}

/// Turns in order.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    turns: Vec<Turn>,
    in_hand: usize,
}

/// What a run does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// The model has to say how it goes on.
    AskModel,
    /// This call has no result yet.
    RunTool(&'a ToolCall),
    /// The model has finished; the end is not written yet.
    Conclude {
        /// How the work ended.
        status: Status,
        /// What the model said last.
        text: &'a str,
        /// Its verdict.
        decision: Option<bool>,
    },
}

impl Conversation {
    /// Takes the next turn.
    pub fn push(&mut self, turn: Turn) {
        let ends = matches!(turn, Turn::Final(_));
        self.turns.push(turn);
        if ends {
            self.in_hand = self.turns.len();
        }
    }

    /// All turns.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Where the turns since the last end begin.
    pub fn in_hand_from(&self) -> usize {
        self.in_hand
    }

    /// The turns since the last end.
    pub fn in_hand(&self) -> &[Turn] {
        self.turns.get(self.in_hand..).unwrap_or_default()
    }

    /// The whole loop's logic: the first call without a result, else the model, else the end. So a
    /// restart in the middle of a round goes on with the next call.
    pub fn next(&self) -> Next<'_> {
        let in_hand = self.in_hand();
        let last = in_hand.iter().rposition(|turn| matches!(turn, Turn::Model { .. }));
        let Some(last) = last else { return Next::AskModel };
        let Some((Turn::Model { text, calls, status, decision, .. }, behind)) =
            in_hand.get(last..).and_then(<[Turn]>::split_first)
        else {
            return Next::AskModel;
        };
        if calls.is_empty() {
            // Mail that joined behind the last word wants to be heard.
            let joined = behind.iter().any(|turn| matches!(turn, Turn::Mail(_)));
            let concluded = Next::Conclude { status: *status, text, decision: *decision };
            return if joined { Next::AskModel } else { concluded };
        }
        let has_result = |call: &&ToolCall| {
            behind.iter().any(|turn| matches!(turn, Turn::Result(it) if it.call == call.id))
        };
        calls.iter().find(|call| !has_result(call)).map_or(Next::AskModel, Next::RunTool)
    }

    /// The work that the mail of `from` with `id` was part of, once it has ended: its turns and
    /// its end.
    pub fn concluded(&self, from: &AgentName, id: &MessageId) -> Option<(&[Turn], &Final)> {
        let is_it =
            |turn: &Turn| matches!(turn, Turn::Mail(it) if it.from == *from && it.id == *id);
        let begins = self.turns.iter().rposition(is_it)?;
        let ends = self.turns.iter().skip(begins).position(|it| matches!(it, Turn::Final(_)))?;
        let (before, behind) = self.turns.split_at_checked(begins + ends)?;
        let Some(Turn::Final(end)) = behind.first() else { return None };
        let start = before.iter().rposition(|turn| matches!(turn, Turn::Final(_)));
        Some((before.get(start.map_or(0, |start| start + 1)..)?, end))
    }

    /// What the model has said last in the work in hand.
    pub fn last_words(&self) -> Option<&str> {
        self.in_hand().iter().rev().find_map(|turn| match turn {
            Turn::Model { text, .. } if !text.trim().is_empty() => Some(text.as_str()),
            _ => None,
        })
    }

    /// How many turns the model has had in the work in hand.
    pub fn model_turns(&self) -> usize {
        self.in_hand().iter().filter(|turn| matches!(turn, Turn::Model { .. })).count()
    }
}
