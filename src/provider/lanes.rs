//! Connections that are kept for the next call. Each serves one call at a time, so that a call that is
//! ended takes no other with it.
//!
//! Ureq can only end all that goes on in an agent, so each connection has an agent of its own: what is
//! kept is the agent, its connection within. It makes a new one where the server has closed the old
//! one meanwhile or it has been idle for long. One that is closed just as it is used again breaks that
//! try, as any other trouble on the way does.

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use ureq::Agent;

/// How many connections are kept, and of how many the answer's end is waited for.
const MOST: usize = 8;

/// The connections of one provider that serve no call now.
#[derive(Clone, Default)]
pub struct Lanes(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    idle: Vec<Agent>,
    ending: VecDeque<Ender>,
}

impl Drop for State {
    fn drop(&mut self) {
        self.ending.iter().for_each(Ender::end);
    }
}

impl Lanes {
    /// Lends a connection to a call; `make` makes one where none is kept.
    pub fn lend(&self, make: impl FnOnce() -> Agent) -> Lease {
        let kept = self.0.lock().idle.pop();
        let agent = kept.unwrap_or_else(make);
        Lease { state: Arc::downgrade(&self.0), slot: Arc::new(Mutex::new(Some(agent))) }
    }

    /// How many are kept.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.0.lock().idle.len()
    }
}

/// A connection that is lent to one call; it goes back when the lease is dropped.
pub struct Lease {
    state: Weak<Mutex<State>>,
    slot: Slot,
}

/// Holds the agent until it has gone back or was ended.
type Slot = Arc<Mutex<Option<Agent>>>;

/// Ends a call from outside. Once the call is over it ends nothing, whoever has the connection then.
#[derive(Clone)]
pub struct Ender(Slot);

impl Lease {
    /// What makes the call; none where it was ended.
    pub fn agent(&self) -> Option<Agent> {
        self.slot.lock().clone()
    }

    /// What ends the call.
    pub fn ender(&self) -> Ender {
        Ender(Arc::clone(&self.slot))
    }

    /// Its answer is whole and only the end of it is still to come. A server that lets it wait can
    /// hold on to no more than a few connections.
    pub fn is_ending(&self) {
        let Some(state) = self.state.upgrade() else { return };
        let oldest = {
            let mut state = state.lock();
            state.ending.push_back(self.ender());
            if state.ending.len() > MOST { state.ending.pop_front() } else { None }
        };
        if let Some(oldest) = oldest {
            oldest.end();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let agent = self.slot.lock().take();
        let (Some(agent), Some(state)) = (agent, self.state.upgrade()) else { return };
        let mut state = state.lock();
        if state.idle.len() < MOST {
            state.idle.push(agent);
        }
    }
}

impl Ender {
    /// Ends the call and closes its connection.
    pub fn end(&self) {
        let agent = self.0.lock().take();
        if let Some(agent) = agent {
            agent.shutdown();
        }
    }
}
