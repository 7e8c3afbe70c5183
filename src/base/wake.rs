//! A generation count and a condition variable: what a waiting thread is told by.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::{Clock, Moment};

/// One for each thread that waits. Mail, a decision, a child's exit, a model's answer and a stop
/// all notify the same wake, so a thread has one place to block and misses nothing.
#[derive(Clone, Default)]
pub struct Wake(Arc<(Mutex<u64>, Condvar)>);

/// How often a wake had been notified when a waiter looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen(u64);

impl Wake {
    /// To be read before looking at what there is to do.
    pub fn seen(&self) -> Seen {
        Seen(*self.0.0.lock())
    }

    /// Wakes whoever waits, or will wait with an older `Seen`.
    pub fn notify(&self) {
        *self.0.0.lock() += 1;
        self.0.1.notify_all();
    }

    /// Returns when there was a notification after `seen`, or at `until`; now and then for nothing.
    pub fn wait(&self, clock: &Clock, seen: Seen, until: Option<Moment>) {
        let mut now = self.0.0.lock();
        if *now != seen.0 {
            return;
        }
        let Some(until) = until else { return self.0.1.wait(&mut now) };
        if clock.jump(until) {
            return;
        }
        match clock.left(until) {
            Some(left) => drop(self.0.1.wait_for(&mut now, left)),
            None => self.0.1.wait(&mut now),
        }
    }
}
