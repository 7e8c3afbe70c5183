//! The team's post as tools see it: who there is, what they do, and a way to write to them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;

use super::{Attempt, Caller, ToolError};
use crate::{
    base::{Clock, Moment, Scope},
    model::{AgentName, Envelope, Kind, MOST_HOPS, MessageId, Team},
    store::{MessageBus, SendError, Statuses, Store, StoreError},
};

/// The way to the other teammates.
#[derive(Clone)]
pub struct Post {
    team: Arc<Team>,
    bus: MessageBus,
    statuses: Statuses,
    clock: Clock,
    sent: Arc<Mutex<BTreeMap<AgentName, VecDeque<Moment>>>>,
}

/// A message of an agent that is to be sent once, however often its call runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// What is sent.
    pub envelope: Envelope,
    attempt: Attempt,
}

/// The span over which an agent's mail is counted.
const WINDOW: Duration = Duration::from_mins(1);

impl Post {
    /// The post of a team.
    pub fn new(store: &Store, team: Arc<Team>, bus: MessageBus, statuses: Statuses) -> Self {
        Self { team, bus, statuses, clock: store.clock().clone(), sent: Arc::default() }
    }

    /// Who is in the team.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// What everybody is doing.
    pub fn statuses(&self) -> &Statuses {
        &self.statuses
    }

    /// Reads a receiver's name: a teammate, an outsider or `user`, and not the caller.
    pub fn receiver(&self, caller: &Caller, text: &str) -> Result<AgentName, String> {
        let name = AgentName::new(text).map_err(|why| why.to_string())?;
        let name = self.bus.roster().resolve(name);
        if name == caller.agent {
            return Err(format!("{name} is you; there are {}", self.others(caller)));
        }
        if !self.bus.roster().members.contains(&name) {
            return Err(format!("nobody is called {name}; there are {}", self.others(caller)));
        }
        Ok(name)
    }

    /// A message from the caller, with an id that is the same when the call is repeated.
    pub fn letter(
        &self,
        caller: &Caller,
        to: &AgentName,
        kind: Kind,
        content: String,
    ) -> Result<Letter, String> {
        if caller.hops >= MOST_HOPS {
            return Err(format!(
                "refused: {MOST_HOPS} messages of agents have led to this one, and the chain ends \
                 here; answer instead of sending on"
            ));
        }
        let id = MessageId::derived(&["sent", caller.call.as_str(), to.as_str()]);
        let from = caller.agent.clone();
        let envelope = Envelope::new(id, from, to.clone(), kind, content);
        let envelope = Envelope { hops: caller.hops + 1, ..envelope };
        Ok(Letter { envelope, attempt: caller.attempt })
    }

    /// Sends a letter, after a wait where the caller has sent too much within a minute.
    pub fn send(&self, scope: &Scope, letter: Letter) -> Result<MessageId, ToolError> {
        let id = letter.envelope.id.clone();
        let not_sent = |why: SendError| ToolError::Failed(format!("not sent: {why}"));
        if self.is_out(&letter).map_err(|why| not_sent(why.into()))? {
            return Ok(id);
        }
        self.wait_for_turn(scope, &letter.envelope.from)?;
        self.bus.send(letter.envelope).map_err(not_sent)?;
        Ok(id)
    }

    /// Whether a call that was cut off had sent the letter already. There is no record of where to
    /// look from, so it looks through the whole mailbox.
    fn is_out(&self, letter: &Letter) -> Result<bool, StoreError> {
        let said = &letter.envelope;
        match letter.attempt {
            Attempt::First => Ok(false),
            Attempt::Again => {
                let start = self.bus.start_of(&said.to)?;
                self.bus.has(&said.to, &said.from, &said.id, start)
            }
        }
    }

    fn wait_for_turn(&self, scope: &Scope, sender: &AgentName) -> Result<(), ToolError> {
        let most = self.team.limits.mail_per_minute.max(1) as usize;
        let turn = || {
            let now = self.clock.now();
            let mut sent = self.sent.lock();
            let times = sent.entry(sender.clone()).or_default();
            while times.front().is_some_and(|time| now.since(*time) >= WINDOW) {
                times.pop_front();
            }
            if times.len() < most {
                times.push_back(now);
                return None;
            }
            times.front().map(|oldest| oldest.after(WINDOW))
        };
        while let Some(free) = turn() {
            match scope.wait_lightly::<()>(Some(free), || None) {
                Ok(()) | Err(crate::base::Interrupted::Late) => {}
                Err(why) => return Err(ToolError::Interrupted(why)),
            }
        }
        Ok(())
    }

    /// All who can be written to, as a list for a sentence.
    pub fn others(&self, caller: &Caller) -> String {
        let members = &self.bus.roster().members;
        crate::base::text::listed(members.iter().filter(|name| **name != caller.agent))
    }
}
