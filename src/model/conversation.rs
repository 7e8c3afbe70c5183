//! A conversation: turns in order, in which each call has exactly one result, and what comes next.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    AgentName, Kind, MessageId, Protocol, Status, Summary, Tally, Tokens, ToolCall, ToolResult,
    guessed_tokens,
};
use crate::{base::text::shorten, journal::Position};

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
    /// What stands for the turns before it.
    Summary(Summary),
    /// The results among the first turns are shown in short from here on.
    Shrunk {
        /// How many turns.
        before: usize,
    },
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

/// About how much of a result stays when it is shrunk, in bytes.
const SHRUNK: usize = 400;

/// About how much stands round a turn, in bytes.
const FRAME: usize = 60;

/// Turns in order.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    turns: Vec<Turn>,
    in_hand: usize,
    /// What the model read of turns before this one was more than is shown of them now.
    reshaped: usize,
}

/// Whether a result is long enough for a short form of it.
fn can_shrink(result: &ToolResult) -> bool {
    result.text.len() > 2 * SHRUNK
}

/// About how many tokens `turns` are.
pub fn sizes(turns: &[Turn]) -> u64 {
    turns.iter().map(size_of).fold(0, u64::saturating_add)
}

/// About how many tokens a turn is.
fn size_of(turn: &Turn) -> u64 {
    let bytes = match turn {
        Turn::Mail(mail) => mail.text.len(),
        Turn::Result(result) => result.text.len(),
        Turn::Summary(summary) => summary.text.len(),
        Turn::Model { text, calls, vendor, .. } => {
            let inputs: usize = calls.iter().map(|call| call.input.to_string().len()).sum();
            let blocks = vendor.as_ref().map_or(0, |blocks| blocks.to_string().len());
            (text.len() + inputs).max(blocks)
        }
        Turn::Final(_) | Turn::Shrunk { .. } => return 0,
    };
    guessed_tokens(bytes + FRAME)
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
        match turn {
            Turn::Summary(summary) => self.sum_up(summary),
            Turn::Shrunk { before } => self.shrink(before),
            Turn::Final(_) => {
                self.turns.push(turn);
                self.in_hand = self.turns.len();
            }
            Turn::Mail(_) | Turn::Model { .. } | Turn::Result(_) => self.turns.push(turn),
        }
    }

    fn sum_up(&mut self, summary: Summary) {
        let count = summary.stands_for.min(self.turns.len());
        let behind = self.turns.split_off(count);
        let older = std::mem::take(&mut self.turns);
        let of_work = older.into_iter().skip(self.in_hand).filter(|turn| summary.keeps(turn));
        let of_work: Vec<Turn> = of_work.collect();
        // A summary of turns of the work in hand is one of them.
        self.in_hand = if count > self.in_hand { 0 } else { self.in_hand - count + 1 };
        self.turns.push(Turn::Summary(summary));
        self.turns.extend(of_work);
        self.turns.extend(behind);
        self.reshaped = self.turns.len();
    }

    fn shrink(&mut self, before: usize) {
        for turn in self.turns.iter_mut().take(before) {
            if let Turn::Result(result) = turn
                && can_shrink(result)
            {
                result.text = shorten(&result.text, SHRUNK);
            }
        }
        self.reshaped = self.turns.len();
    }

    /// About how many tokens a model reads when it is asked to go on; `beside` are those of what it
    /// is told beside the turns. What it has counted itself goes before what is guessed.
    pub fn size(&self, beside: u64) -> u64 {
        let counted = self.turns.iter().enumerate().skip(self.reshaped).rev();
        let mut counted = counted.filter_map(|(at, turn)| match turn {
            Turn::Model { tokens, .. } if tokens.read() > 0 => Some((at + 1, tokens.total())),
            _ => None,
        });
        let (from, size) = counted.next().unwrap_or((0, beside));
        size.saturating_add(sizes(self.turns.get(from..).unwrap_or_default()))
    }

    /// The results that can be shrunk when the last `stay` of them stay: how many of the first turns
    /// hold all of them. None where that frees less than about `worth` tokens, or nothing.
    pub fn shrinkable(&self, stay: usize, worth: u64) -> Option<usize> {
        let results = self.turns.iter().enumerate().rev();
        let results = results.filter_map(|(at, turn)| match turn {
            Turn::Result(result) => Some((at, result)),
            _ => None,
        });
        let long: Vec<_> = results.skip(stay).filter(|(_, result)| can_shrink(result)).collect();
        let freed = long.iter().map(|(_, result)| result.text.len().saturating_sub(SHRUNK)).sum();
        let last = long.first().map(|(at, _)| at + 1);
        last.filter(|_| guessed_tokens(freed) >= worth)
    }

    /// How many of the first turns can be summed up so that about `keep` tokens of the newest stay.
    /// A call is never parted from its result, and what the model has said last is not summed up
    /// while its work is in hand. None where that frees nothing.
    pub fn older(&self, keep: u64) -> Option<usize> {
        let last = self.in_hand().iter().rposition(|turn| matches!(turn, Turn::Model { .. }));
        let most = last.map_or(self.turns.len().saturating_sub(1), |last| self.in_hand + last);
        let (mut kept, mut older) = (sizes(self.turns.get(most..).unwrap_or_default()), None);
        for at in (1..=most).rev() {
            if older.is_some() && kept > keep {
                break;
            }
            if self.is_border(at) {
                older = Some(at);
            }
            kept = kept.saturating_add(self.turns.get(at - 1).map_or(0, size_of));
        }
        older.filter(|count| {
            self.turns.iter().take(*count).enumerate().any(|(at, turn)| match turn {
                Turn::Summary(_) => false,
                Turn::Mail(mail) => at < self.in_hand || mail.kind != Kind::Request,
                _ => true,
            })
        })
    }

    /// Whether all calls before turn `at` have their results before it, too.
    fn is_border(&self, at: usize) -> bool {
        let (before, behind) = self.turns.split_at(at);
        let last = before.iter().rposition(|turn| matches!(turn, Turn::Model { .. }));
        let round = last.and_then(|last| before.get(last..)).unwrap_or_default();
        let open = round.first().map(|turn| match turn {
            Turn::Model { calls, .. } => calls.as_slice(),
            _ => &[],
        });
        let has_result = |call: &ToolCall| {
            round.iter().any(|turn| matches!(turn, Turn::Result(it) if it.call == call.id))
        };
        !matches!(behind.first(), Some(Turn::Result(_)))
            && open.unwrap_or_default().iter().all(has_result)
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

    /// What the work in hand has come to.
    pub fn tally(&self) -> Tally {
        Tally::of(self.in_hand())
    }
}

#[cfg(test)]
mod tests;
