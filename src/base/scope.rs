//! The one place in which an agent's thread blocks.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use super::{Clock, Haste, Moment, Stop, Wake, thread};

/// Why a wait ended without what it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupted {
    /// The thread shall end.
    Stopping,
    /// Somebody who may wants this piece of work ended, and the thread to go on.
    Interrupt,
    /// The deadline passed.
    Late,
}

/// Runs at every wake-up of a wait: there the agent above reads its mail and obeys SHUTDOWN.
/// Nothing below knows what it does. `true` ends the piece of work in hand.
pub type Look = Arc<dyn Fn() -> bool + Send + Sync>;

/// What a run waits with.
#[derive(Clone)]
pub struct Scope {
    /// Gives the deadlines.
    pub clock: Clock,
    /// Is notified by all that the run may wait for.
    pub wake: Wake,
    /// Ends the run.
    pub stop: Stop,
    /// Runs at each wake-up.
    pub look: Look,
    /// When the run's time is over: then every wait in it ends as if it were stopped.
    pub deadline: Option<Moment>,
}

/// What a wait does once a stop with grace is wished for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnGrace {
    /// It goes on until the grace ends: a tool may end by itself.
    WaitItOut,
    /// It ends at once: a model's answer is not worth the wait.
    End,
}

impl Scope {
    /// A scope that looks at nothing: for waits outside an agent.
    pub fn plain(clock: Clock) -> Self {
        let wake = Wake::default();
        let stop = Stop::root().child(&wake);
        Self { clock, wake, stop, look: Arc::new(|| false), deadline: None }
    }

    /// The same with at most `limit` from now on, where there is one.
    #[must_use]
    pub fn within(&self, limit: Option<Duration>) -> Self {
        let own = limit.map(|limit| self.clock.now().after(limit));
        let deadline = [self.deadline, own].into_iter().flatten().min();
        Self { deadline, ..self.clone() }
    }

    /// Whether the run's time is over.
    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= self.clock.now())
    }

    /// Whether somebody wants the run ended before its work is.
    pub fn is_stopped(&self) -> bool {
        matches!(self.stop.requested(), Some(Haste::Grace(_) | Haste::Now))
    }

    /// Whether whatever waits here shall end before it begins anything more.
    pub fn has_to_stop(&self) -> bool {
        self.is_stopped() || self.is_late()
    }

    /// Waits for `ready` to give something, until `until`; a stop with grace lets it go on for the
    /// grace.
    pub fn wait<T>(
        &self,
        until: Option<Moment>,
        ready: impl FnMut() -> Option<T>,
    ) -> Result<T, Interrupted> {
        self.wait_as(OnGrace::WaitItOut, until, ready)
    }

    /// Waits as [`Scope::wait`] does, but ends at once at any stop other than a drain.
    pub fn wait_lightly<T>(
        &self,
        until: Option<Moment>,
        ready: impl FnMut() -> Option<T>,
    ) -> Result<T, Interrupted> {
        self.wait_as(OnGrace::End, until, ready)
    }

    fn wait_as<T>(
        &self,
        on_grace: OnGrace,
        until: Option<Moment>,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Result<T, Interrupted> {
        loop {
            let seen = self.wake.seen();
            let interrupt = (self.look)();
            if let Some(found) = ready() {
                return Ok(found);
            }
            let now = self.clock.now();
            let end = match self.stop.requested() {
                Some(Haste::Now) => return Err(Interrupted::Stopping),
                Some(Haste::Grace(_)) if on_grace == OnGrace::End => {
                    return Err(Interrupted::Stopping);
                }
                Some(Haste::Grace(end)) if end <= now => return Err(Interrupted::Stopping),
                Some(Haste::Grace(end)) => Some(end),
                Some(Haste::Drain) | None => None,
            };
            if self.deadline.is_some_and(|deadline| deadline <= now) {
                return Err(Interrupted::Stopping);
            }
            if interrupt {
                return Err(Interrupted::Interrupt);
            }
            if until.is_some_and(|until| until <= now) {
                return Err(Interrupted::Late);
            }
            let next = [until, end, self.deadline].into_iter().flatten().min();
            self.wake.wait(&self.clock, seen, next);
        }
    }

    /// Runs a blocking call on a thread of its own and waits for it here. When the wait ends first
    /// the call is cancelled and joined, so it must end soon after its [`Cancel`] fires.
    pub fn call<T: Send>(
        &self,
        name: &str,
        call: impl FnOnce(&Cancel) -> T + Send,
    ) -> Result<T, Interrupted> {
        let (cancel, answer) = (Cancel::default(), Mutex::new(None));
        let _alive = self.clock.hold();
        let aside = || {
            let result = thread::caught(|| call(&cancel));
            *answer.lock() = Some(result);
            self.wake.notify();
        };
        let ended = thread::beside(name, aside, || {
            let ended = self.wait_lightly(None, || answer.lock().take());
            if ended.is_err() {
                cancel.fire();
            }
            ended
        });
        ended.map(|result| result.unwrap_or_else(|panic| panic!("{name}: {panic}")))
    }
}

/// Ends a call that blocks elsewhere: the callee arms it, the waiter fires it.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Mutex<Ends>>);

type End = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Ends {
    fired: bool,
    armed: Vec<End>,
}

impl Cancel {
    /// Says what ends the call; runs it at once where the cancel was fired before.
    pub fn arm(&self, end: impl FnOnce() + Send + 'static) {
        let mut ends = self.0.lock();
        if ends.fired {
            drop(ends);
            end();
        } else {
            ends.armed.push(Box::new(end));
        }
    }

    /// Ends the call.
    pub fn fire(&self) {
        let armed = {
            let mut ends = self.0.lock();
            ends.fired = true;
            std::mem::take(&mut ends.armed)
        };
        for end in armed {
            end();
        }
    }

    /// Whether the call shall end; for callees that can only look now and then.
    pub fn fired(&self) -> bool {
        self.0.lock().fired
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Timestamp;

    fn fake() -> Scope {
        Scope::plain(Clock::fake(Timestamp(0)))
    }

    #[test]
    fn a_deadline_on_a_fake_clock_needs_no_second_thread() {
        let scope = fake();
        let until = scope.clock.now().after(Duration::from_mins(30));
        assert_eq!(scope.wait::<()>(Some(until), || None), Err(Interrupted::Late));
        assert_eq!(scope.clock.now(), until);
    }

    #[test]
    fn a_grace_is_waited_out_by_tools_and_not_by_models() {
        let scope = fake();
        let grace = scope.clock.now().after(Duration::from_secs(10));
        scope.stop.request(Haste::Grace(grace));
        assert_eq!(scope.wait_lightly::<()>(None, || None), Err(Interrupted::Stopping));
        assert_ne!(scope.clock.now(), grace);
        assert_eq!(scope.wait::<()>(None, || None), Err(Interrupted::Stopping));
        assert_eq!(scope.clock.now(), grace);
    }

    #[test]
    fn when_the_time_of_a_run_is_over_all_its_waits_end() {
        let scope = fake().within(Some(Duration::from_mins(1)));
        let until = scope.clock.now().after(Duration::from_secs(90));
        let nested = scope.within(Some(Duration::from_mins(10))).within(None);
        assert!(!nested.has_to_stop());
        assert_eq!(nested.wait::<()>(Some(until), || None), Err(Interrupted::Stopping));
        assert!(nested.is_late() && nested.has_to_stop());
        assert_eq!(scope.stop.requested(), None);
    }

    #[test]
    fn what_is_ready_comes_before_the_stop() {
        let scope = fake();
        scope.stop.request(Haste::Now);
        assert_eq!(scope.wait(None, || Some(1)), Ok(1));
    }

    #[test]
    fn a_call_is_cancelled_and_joined() {
        let scope = Scope::plain(Clock::real());
        let (stop, wake) = (scope.stop.clone(), Wake::default());
        let ended = scope.call("blocked", |cancel| {
            let inner = wake.clone();
            cancel.arm(move || inner.notify());
            let seen = wake.seen();
            stop.request(Haste::Now);
            wake.wait(&Clock::real(), seen, None);
        });
        assert_eq!(ended, Err(Interrupted::Stopping));
        assert_eq!(fake().call("quick", |_| 7), Ok(7));
    }

    #[test]
    #[should_panic(expected = "model trouble")]
    fn a_panic_in_a_call_is_the_callers() {
        let _ = fake().call("panics", |_| panic!("model trouble"));
    }
}
