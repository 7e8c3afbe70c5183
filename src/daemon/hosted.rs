//! A teammate's thread: started, its end told, its deaths counted.

use std::{collections::VecDeque, io, sync::Arc};

use super::{Death, Restart, events::Events, restart};
use crate::{
    agent::{AutonomousAgent, Ending, Office},
    base::{FileError, Moment, Stop, thread, thread::Thread},
    journal::{AppendError, ReadError},
    model::AgentName,
    store::{Rebirth, StoreError},
};

/// A teammate that this daemon hosts.
#[derive(Default)]
pub struct Hosted {
    thread: Option<Thread<()>>,
    deaths: VecDeque<Moment>,
    restart_at: Option<Moment>,
}

/// How many deaths are remembered.
const REMEMBERED: usize = 16;

impl Hosted {
    /// Starts the teammate's thread; its end comes as an event.
    pub fn start(
        &mut self,
        office: &Arc<Office>,
        name: &AgentName,
        stop: &Stop,
        events: &Events,
    ) -> io::Result<()> {
        let rebirth = if self.deaths.is_empty() { Rebirth::Process } else { Rebirth::Thread };
        let (office, stop, events) = (Arc::clone(office), stop.clone(), events.clone());
        let owner = name.clone();
        let body = move || {
            let lived = thread::caught(|| {
                AutonomousAgent::open(office, owner.clone(), &stop, rebirth)?.run()
            });
            events.ended(owner, death(lived));
        };
        self.restart_at = None;
        self.thread = Some(Thread::start(&format!("agent:{name}"), body)?);
        Ok(())
    }

    /// Whether it has a thread.
    pub fn is_running(&self) -> bool {
        self.thread.is_some()
    }

    /// When it is started again.
    pub fn restart_at(&self) -> Option<Moment> {
        self.restart_at
    }

    /// Its thread has ended; says what is to be done.
    pub fn ended(&mut self, how: &Death, now: Moment) -> Restart {
        self.thread = None;
        let verdict = restart(how, &self.deaths, now);
        match verdict {
            Restart::After(pause) => {
                if !matches!(how, Death::NoRoom(_)) {
                    self.deaths.push_back(now);
                }
                if self.deaths.len() > REMEMBERED {
                    self.deaths.pop_front();
                }
                self.restart_at = Some(now.after(pause));
            }
            Restart::GiveUp | Restart::Never => self.restart_at = None,
        }
        verdict
    }

    /// An explicit start begins with a clean record.
    pub fn forgive(&mut self) {
        self.deaths.clear();
        self.restart_at = None;
    }

    /// No longer waits for its end: the process ends without it.
    pub fn leave(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.leave();
        }
    }
}

fn death(lived: Result<Result<Ending, StoreError>, String>) -> Death {
    match lived {
        Ok(Ok(Ending::Stopped)) => Death::Stopped,
        Ok(Ok(Ending::WithDaemon)) => Death::WithDaemon,
        Ok(Err(why)) if why.is_passing() => Death::NoRoom(why.to_string()),
        Ok(Err(why)) if is_refusal(&why) => Death::Refused(why.to_string()),
        Ok(Err(why)) => Death::Failed(why.to_string()),
        Err(panic) => Death::Panicked(panic),
    }
}

/// Whether somebody has to mend a file before it can go on.
fn is_refusal(why: &StoreError) -> bool {
    match why {
        StoreError::Damaged { .. } => true,
        StoreError::File(why)
        | StoreError::Read(ReadError::Failed(why))
        | StoreError::Append(AppendError::NotAppended(why) | AppendError::Unknown(why)) => {
            matches!(why, FileError::Refused { .. })
        }
        StoreError::Read(ReadError::Lost { .. }) | StoreError::Append(AppendError::Invalid(_)) => {
            false
        }
    }
}
