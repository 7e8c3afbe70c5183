//! Tells on standard error what mail comes and goes, while something else is under way.

use super::{context::Context, failure::Failure, follow::Follower, render};
use crate::{
    base::{Haste, Scope, Stop, thread::Thread},
    store::{MessageBus, Store},
};

/// How much of a message is shown on its line.
const WIDTH: usize = 100;

/// Tells of mail until it is dropped.
pub struct Progress {
    stop: Stop,
    thread: Option<Thread<()>>,
}

impl Progress {
    /// Begins behind all mail that is there.
    pub fn start(context: &Context, store: &Store, bus: &MessageBus) -> Result<Self, Failure> {
        let mut follower = Follower::new(store, bus, Some(0))?;
        let scope = Scope::plain(context.clock().clone());
        follower.subscribe(&scope.wake);
        let wake = scope.wake.clone();
        let watch = store.journals().watch(Box::new(move || wake.notify()))?;
        let stop = scope.stop.clone();
        let body = move || {
            let _watch = watch;
            let mut printer = render::Printer::new();
            loop {
                let _ = scope.wait(None, || follower.has_more().then_some(()));
                // Looked at first, so that what came before the end is told and nothing holds it up.
                let has_ended = scope.stop.requested().is_some();
                for message in follower.more() {
                    printer.note(&render::line_of(&message, WIDTH));
                }
                if has_ended {
                    return;
                }
            }
        };
        let thread = Thread::start("progress", body)
            .map_err(|why| Failure::failed(format!("start a thread: {why}")))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop.request(Haste::Now);
        drop(self.thread.take());
    }
}
