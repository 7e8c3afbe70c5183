//! Everything that can happen to the supervisor, and the ways to tell it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc::{Receiver, Sender, channel},
};

use super::{Death, orders::DownHow};
use crate::model::AgentName;

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// Some journal has changed.
    Changed,
    /// Somebody's status has changed.
    Status,
    /// A teammate's thread has ended.
    Ended(AgentName, Death),
    /// The process got this signal.
    Signal(i32),
    /// The daemon shall end: from this process.
    Down(DownHow),
}

/// The sending side. What can only be a hint is told once until it is taken.
#[derive(Clone)]
pub struct Events {
    sender: Sender<Event>,
    changed: Arc<AtomicBool>,
    status: Arc<AtomicBool>,
}

impl Events {
    /// Both sides.
    pub fn new() -> (Self, Receiver<Event>) {
        let (sender, receiver) = channel();
        (Self { sender, changed: Arc::default(), status: Arc::default() }, receiver)
    }

    /// Some journal has changed.
    pub fn changed(&self) {
        if !self.changed.swap(true, Ordering::SeqCst) {
            self.tell(Event::Changed);
        }
    }

    /// Somebody's status has changed.
    pub fn status(&self) {
        if !self.status.swap(true, Ordering::SeqCst) {
            self.tell(Event::Status);
        }
    }

    /// A teammate's thread has ended.
    pub fn ended(&self, name: AgentName, how: Death) {
        self.tell(Event::Ended(name, how));
    }

    /// The process got a signal.
    pub fn signal(&self, number: i32) {
        self.tell(Event::Signal(number));
    }

    /// The daemon shall end.
    pub fn down(&self, how: DownHow) {
        self.tell(Event::Down(how));
    }

    /// Has to be called for each event before it is dealt with, so that what comes then is told.
    pub fn take(&self, event: &Event) {
        match event {
            Event::Changed => self.changed.store(false, Ordering::SeqCst),
            Event::Status => self.status.store(false, Ordering::SeqCst),
            Event::Ended(..) | Event::Signal(_) | Event::Down(_) => {}
        }
    }

    /// Nobody listens any more once the supervisor has ended; then there is nothing to tell.
    fn tell(&self, event: Event) {
        drop(self.sender.send(event));
    }
}
