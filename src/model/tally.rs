//! What turns came to, counted: what stays of them when their words are summed up.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{AgentName, Kind, MessageId, Tokens, Turn};

/// What turns came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// How many turns the model has had.
    pub turns: usize,
    /// What these have taken, with all that was delegated in them.
    pub tokens: Tokens,
    /// The tools that were called, each with how often, in order of their first call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<(String, usize)>,
    /// What was decided about the plans that were submitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<bool>,
    /// What was decided last about the plan that the work asks about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decides: Option<bool>,
    /// The mail that the turns have taken up: as such, or as the answer that a call waited for.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub mail: BTreeSet<(AgentName, MessageId)>,
}

impl Tally {
    /// Counts `turns`.
    pub fn of(turns: &[Turn]) -> Self {
        let mut tally = Self::default();
        for turn in turns {
            tally.count(turn);
        }
        tally
    }

    fn count(&mut self, turn: &Turn) {
        match turn {
            Turn::Mail(mail) => drop(self.mail.insert((mail.from.clone(), mail.id.clone()))),
            Turn::Model { calls, tokens, .. } => {
                self.turns += 1;
                self.tokens += *tokens;
                for call in calls {
                    self.count_tool(&call.tool, 1);
                }
            }
            Turn::Result(result) => {
                self.tokens += result.spent;
                self.plans.extend(result.plan);
                self.decides = result.decides.or(self.decides);
                self.mail.extend(result.answer.clone());
            }
            Turn::Summary(summary) => self.add(&summary.tally),
            Turn::Final(_) | Turn::Shrunk { .. } => {}
        }
    }

    fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.tokens += other.tokens;
        for (tool, times) in &other.tools {
            self.count_tool(tool, *times);
        }
        self.plans.extend(&other.plans);
        self.decides = other.decides.or(self.decides);
        self.mail.extend(other.mail.iter().cloned());
    }

    fn count_tool(&mut self, tool: &str, times: usize) {
        match self.tools.iter_mut().find(|(known, _)| known == tool) {
            Some((_, count)) => *count += times,
            None => self.tools.push((tool.to_owned(), times)),
        }
    }
}

/// What stands for the first turns of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// In words, for the model.
    pub text: String,
    /// How many turns it stands for, from the first on. The requests among them that belong to the
    /// work in hand stay behind it, word by word.
    pub stands_for: usize,
    /// The mail that the work in hand began with, where that is no request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<(AgentName, MessageId)>,
    /// What those of them came to that belong to the work in hand.
    #[serde(default)]
    pub tally: Tally,
}

impl Summary {
    /// Whether a turn that it stands for stays all the same.
    pub fn keeps(&self, turn: &Turn) -> bool {
        let Turn::Mail(mail) = turn else { return false };
        let is_work = |(from, id): &(AgentName, MessageId)| mail.from == *from && mail.id == *id;
        mail.kind == Kind::Request || self.work.as_ref().is_some_and(is_work)
    }
}
