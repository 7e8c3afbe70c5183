//! A question's life: the fold of the lines that bear on it in its asker's mailbox. Pure; every cell
//! of state and event is decided.

use serde::{Deserialize, Serialize};

use super::{AgentName, MessageId, Protocol};

/// A line of a question's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionStep {
    /// It is asked.
    Asked,
    /// It is decided.
    Decided,
    /// Nobody has decided it in time.
    Expired,
    /// Whoever asked no longer wants to know.
    Withdrawn,
}

/// How a question stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// It waits for a decision.
    Open,
    /// Yes, and what was said.
    Approved(String),
    /// No, and why.
    Rejected(String),
    /// Nobody has decided it in time.
    Expired,
    /// Whoever asked no longer wants to know.
    Withdrawn,
}

/// What may happen to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProtocolEvent {
    /// Somebody says yes or no.
    Decision {
        /// Who, as far as the seal shows.
        by: AgentName,
        /// Yes or no.
        yes: bool,
        /// What is said.
        reason: String,
    },
    /// Its time is over.
    Deadline,
    /// Whoever asked no longer wants to know.
    Withdrawal,
}

/// What becomes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It has decided the question.
    Taken,
    /// The question was closed before.
    TooLate,
    /// Whoever decided was not asked.
    NotYours,
}

/// A question and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolFsm {
    /// Its id.
    pub id: MessageId,
    /// Who asks.
    pub asker: AgentName,
    /// Who is asked.
    pub approver: AgentName,
    /// What it is about: a plan, or leave for a call.
    pub protocol: Protocol,
    /// How it stands.
    pub state: Asked,
}

impl ProtocolFsm {
    /// A question that has just been asked.
    pub fn new(id: MessageId, asker: AgentName, approver: AgentName, protocol: Protocol) -> Self {
        Self { id, asker, approver, protocol, state: Asked::Open }
    }

    /// Takes the next line that bears on it.
    pub fn on(&mut self, event: ProtocolEvent) -> Told {
        let next = match (&self.state, event) {
            (Asked::Open, ProtocolEvent::Decision { by, .. }) if !self.may_decide(&by) => {
                return Told::NotYours;
            }
            (Asked::Open, ProtocolEvent::Decision { yes: true, reason, .. }) => {
                Asked::Approved(reason)
            }
            (Asked::Open, ProtocolEvent::Decision { yes: false, reason, .. }) => {
                Asked::Rejected(reason)
            }
            (Asked::Open, ProtocolEvent::Deadline) => Asked::Expired,
            (Asked::Open, ProtocolEvent::Withdrawal) => Asked::Withdrawn,
            (
                Asked::Approved(_) | Asked::Rejected(_) | Asked::Expired | Asked::Withdrawn,
                ProtocolEvent::Decision { .. }
                | ProtocolEvent::Deadline
                | ProtocolEvent::Withdrawal,
            ) => return Told::TooLate,
        };
        self.state = next;
        Told::Taken
    }

    /// The user decides anything; whoever was asked decides plans, which lifts the gate of a plan and
    /// nothing else. Nobody decides what they have asked.
    fn may_decide(&self, by: &AgentName) -> bool {
        if *by == self.asker {
            return false;
        }
        let is_plan = self.protocol == Protocol::PlanApproval;
        *by == AgentName::user() || (is_plan && *by == self.approver)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[test]
    fn every_cell_is_decided() {
        let name = AgentName::named;
        let states = [
            Asked::Open,
            Asked::Approved("ok".to_owned()),
            Asked::Rejected("no".to_owned()),
            Asked::Expired,
            Asked::Withdrawn,
        ];
        let decision =
            |by, yes| ProtocolEvent::Decision { by: name(by), yes, reason: "because".to_owned() };
        let events = [
            decision("user", true),
            decision("user", false),
            decision("boss", true),
            decision("boss", false),
            decision("impl", true),
            decision("other", true),
            ProtocolEvent::Deadline,
            ProtocolEvent::Withdrawal,
        ];
        let mut table = String::new();
        for protocol in [Protocol::PlanApproval, Protocol::Permission] {
            for state in &states {
                for event in &events {
                    let id = MessageId::derived(&["q"]);
                    let mut fsm = ProtocolFsm::new(id, name("impl"), name("boss"), protocol);
                    fsm.state = state.clone();
                    let told = fsm.on(event.clone());
                    let _ = writeln!(
                        table,
                        "{protocol:?} {state:?} × {event:?} → {told:?} {:?}",
                        fsm.state
                    );
                }
            }
        }
        expect_test::expect_file!["../../tests/golden/question-table.txt"].assert_eq(&table);
    }
}
