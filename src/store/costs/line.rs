//! The lines of the journal of costs, and what they come to: calls of which is known how they ended.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::{
    base::Timestamp,
    model::{AgentName, CLERK_MODEL, CallId, Cost, MessageId, RunId, Tokens, TypeName},
};

/// How many calls that have ended are remembered, so that a line that was appended twice counts once.
const REMEMBERED: usize = 256;

/// A call of a model: whose it is and what for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Its id.
    pub call: CallId,
    /// The teammate in whose name it was made.
    pub teammate: AgentName,
    /// As what: that of a subagent is its own.
    pub agent_type: TypeName,
    /// The conversation.
    pub run: RunId,
    /// The trace in which it stands.
    pub trace: RunId,
    /// The task of the board that it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The message that was worked on.
    pub message: MessageId,
    /// The model.
    pub model: String,
}

/// Who says what a call has cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PricedBy {
    /// The prices of the models that may answer.
    Prices(Vec<String>),
    /// Whoever answers.
    Answer,
}

/// What a call has taken, as far as that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// None where the call was cut off or has failed.
    pub tokens: Option<Tokens>,
    /// None where the tokens or the price are not known.
    #[serde(rename = "cost_usd")]
    pub cost: Option<Cost>,
}

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum CostLine {
    /// A daemon came up: the calls that were open have been cut off.
    Opened,
    /// A model is going to be asked.
    Started(Call),
    /// It has answered, or will not any more.
    Ended {
        /// Which call.
        #[serde(flatten)]
        call: Call,
        /// What it has taken.
        #[serde(flatten)]
        charge: Charge,
    },
}

#[derive(Serialize, Deserialize)]
struct Written<L> {
    #[serde(default)]
    timestamp: String,
    #[serde(flatten)]
    line: L,
}

impl CostLine {
    /// The line as it is written.
    pub fn to_text(&self, at: Timestamp) -> String {
        serde_json::to_string(&Written { timestamp: at.to_string(), line: self })
            .unwrap_or_else(|_| crate::base::broken("a cost has a JSON form"))
    }

    /// Reads a line, and when it was written; none where it is nothing that this postroom writes.
    pub fn read(text: &str) -> Option<(Option<Timestamp>, Self)> {
        let read: Written<Self> = serde_json::from_str(text).ok()?;
        Some((Timestamp::parse(&read.timestamp), read.line))
    }
}

/// A call of which is known how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Which.
    pub call: Call,
    /// When it ended, or when it began where it was cut off; as far as the line says.
    pub at: Option<Timestamp>,
    /// What it has taken.
    pub charge: Charge,
}

/// The calls that are open while lines are read in order.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    open: BTreeMap<CallId, (Option<Timestamp>, Call)>,
    ended: VecDeque<CallId>,
}

impl Ledger {
    /// Takes the next line; gives the calls of which is now known how they ended.
    pub fn take(&mut self, at: Option<Timestamp>, line: CostLine) -> Vec<Settled> {
        match line {
            CostLine::Opened => self.cut_off(|_| true),
            CostLine::Started(call) => {
                // A conversation has one call at a time, so one before it was cut off.
                let cut = self.cut_off(|it| it.run == call.run && it.call != call.call);
                if !self.ended.contains(&call.call) {
                    self.open.insert(call.call.clone(), (at, call));
                }
                cut
            }
            CostLine::Ended { call, .. } if self.ended.contains(&call.call) => Vec::new(),
            CostLine::Ended { call, charge } => {
                self.open.remove(&call.call);
                if self.ended.len() >= REMEMBERED {
                    self.ended.pop_front();
                }
                self.ended.push_back(call.call.clone());
                vec![Settled { call, at, charge }]
            }
        }
    }

    /// Whether calls are under way, or were when their daemon died.
    pub fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// How many calls of `teammate` are open.
    pub fn open_of(&self, teammate: &AgentName) -> usize {
        self.open.values().filter(|(_, call)| call.teammate == *teammate).count()
    }

    fn cut_off(&mut self, which: impl Fn(&Call) -> bool) -> Vec<Settled> {
        let cut = self.open.extract_if(.., |_, (_, call)| which(call));
        cut.map(|(_, (at, call))| Settled { charge: call.unknown(), call, at }).collect()
    }
}

impl Call {
    /// What it has taken where it has no end: that is not known, but of a clerk's, which takes
    /// nothing.
    pub fn unknown(&self) -> Charge {
        let nothing = Charge { tokens: Some(Tokens::default()), cost: Some(Cost::default()) };
        if self.model == CLERK_MODEL { nothing } else { Charge::default() }
    }
}
