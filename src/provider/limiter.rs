//! What a team may ask of one vendor at a time: learned from the vendor's own headers, and shared by
//! all calls to it, so that one caller's refusal holds back the others.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp as Wall;
use parking_lot::Mutex;

use super::{Course, ProviderError, Told};
use crate::base::{Cancel, Clock, Moment, Wake};

/// The longest time for which calls are held back. Vendors' windows are minutes; whoever is asked to
/// wait longer is told so instead.
const LONGEST_HOLD: Duration = Duration::from_mins(10);
/// The longest time for which a header is believed, whatever clock it was written by.
const LONGEST_WINDOW: Duration = Duration::from_mins(1);

/// Lets calls through one by one.
#[derive(Clone)]
pub struct Limiter {
    clock: Clock,
    wake: Wake,
    state: Arc<Mutex<State>>,
}

/// A call that was let through; its end makes room for another.
pub struct Pass<'a>(&'a Limiter);

/// What is known of the limits.
#[derive(Debug)]
struct State {
    in_flight: usize,
    most: usize,
    held_until: Option<Moment>,
    requests: Option<Window>,
    tokens: Option<Window>,
}

/// What is left of a limit until it is whole again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    left: u64,
    until: Moment,
}

/// Whether a call may go.
#[derive(Debug, PartialEq, Eq)]
enum Admission {
    Go,
    /// Not before this moment.
    At(Moment),
    /// When another call ends.
    Later,
}

impl State {
    /// Whether a call of about `tokens` may go now.
    fn admit(&self, now: Moment, tokens: u64) -> Admission {
        let closed = |window: Option<Window>, need: u64| {
            window.filter(|it| it.until > now && it.left < need).map(|it| it.until)
        };
        let held = self.held_until.filter(|until| *until > now);
        // More than a whole window can never be left: such a call goes when the window is new.
        let ends = [held, closed(self.requests, 1), closed(self.tokens, tokens)];
        match ends.into_iter().flatten().max() {
            Some(until) => Admission::At(until),
            None if self.in_flight >= self.most => Admission::Later,
            None => Admission::Go,
        }
    }

    fn take(&mut self, tokens: u64) {
        self.in_flight += 1;
        for (window, need) in [(&mut self.requests, 1), (&mut self.tokens, tokens)] {
            if let Some(window) = window {
                window.left = window.left.saturating_sub(need);
            }
        }
    }
}

impl Limiter {
    /// At most `most` calls at a time.
    pub fn new(clock: Clock, most: usize) -> Self {
        let state = State {
            in_flight: 0,
            most: most.max(1),
            held_until: None,
            requests: None,
            tokens: None,
        };
        Self { clock, wake: Wake::default(), state: Arc::new(Mutex::new(state)) }
    }

    /// Waits until a call of about `tokens` may go, or `cancel` fires; says for what.
    pub(super) fn enter(
        &self,
        tokens: u64,
        told: &Told<'_>,
        cancel: &Cancel,
    ) -> Result<Pass<'_>, ProviderError> {
        let wake = self.wake.clone();
        cancel.arm(move || wake.notify());
        loop {
            let seen = self.wake.seen();
            if cancel.fired() {
                return Err(ProviderError::passing("the call was ended before it began"));
            }
            let admission = {
                let mut state = self.state.lock();
                let admission = state.admit(self.clock.now(), tokens);
                if admission == Admission::Go {
                    state.take(tokens);
                }
                admission
            };
            match admission {
                Admission::Go => {
                    told(Course::Goes);
                    return Ok(Pass(self));
                }
                Admission::At(moment) => {
                    told(Course::Waits(rate_limited(&self.clock, moment)));
                    self.wake.wait(&self.clock, seen, Some(moment));
                }
                Admission::Later => {
                    told(Course::Waits("waits for other calls of its model to end".to_owned()));
                    self.wake.wait(&self.clock, seen, None);
                }
            }
        }
    }

    /// Holds back all calls for `span`.
    pub(super) fn hold(&self, span: Duration) {
        if span > LONGEST_HOLD {
            return;
        }
        let until = self.clock.now().after(span);
        let mut state = self.state.lock();
        state.held_until = state.held_until.max(Some(until));
    }

    /// Learns from the headers of an answer, of which `header` gives one by its name.
    pub(super) fn learn<'h>(&self, header: impl Fn(&str) -> Option<&'h str>) {
        let now = self.clock.now();
        let window = |left: &str, reset: &str| {
            let left = header(left)?.trim().parse().ok()?;
            let span = until_reset(header(reset)?, self.clock.wall().0)?;
            Some(Window { left, until: now.after(span.min(LONGEST_WINDOW)) })
        };
        let anthropic = |what: &str| {
            let name = |end| format!("anthropic-ratelimit-{what}-{end}");
            window(&name("remaining"), &name("reset"))
        };
        let openai = |what: &str| {
            let name = |middle| format!("x-ratelimit-{middle}-{what}");
            window(&name("remaining"), &name("reset"))
        };
        let tightest = |windows: [Option<Window>; 3]| {
            windows.into_iter().flatten().min_by_key(|window| window.left)
        };
        let requests = tightest([anthropic("requests"), openai("requests"), None]);
        let tokens = tightest([anthropic("tokens"), anthropic("input-tokens"), openai("tokens")]);
        let mut state = self.state.lock();
        state.requests = requests.or(state.requests);
        state.tokens = tokens.or(state.tokens);
    }
}

/// What is told of a call that a vendor wants later.
pub fn rate_limited(clock: &Clock, until: Moment) -> String {
    format!("rate-limited until {}", clock.wall_of(until).time_of_day())
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.state.lock().in_flight -= 1;
        self.0.wake.notify();
    }
}

/// How long until a limit is whole again: by a time (`2026-01-27T12:00:30Z`), or a span (`6m0s`,
/// `1.5s`, `12ms`, `30`).
fn until_reset(text: &str, now: i64) -> Option<Duration> {
    let text = text.trim();
    if let Ok(at) = text.parse::<Wall>() {
        return Some(Duration::from_millis(u64::try_from(at.as_millisecond() - now).unwrap_or(0)));
    }
    let (mut total, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let digits = rest.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at_checked(digits)?;
        let letters = behind.find(|it: char| !it.is_alphabetic()).unwrap_or(behind.len());
        let (unit, next) = behind.split_at_checked(letters)?;
        let seconds = match unit {
            "ms" => 0.001,
            "s" | "" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * seconds;
        rest = next;
    }
    if text.is_empty() { None } else { Duration::try_from_secs_f64(total).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Timestamp, thread::Thread};

    fn limiter(most: usize) -> Limiter {
        Limiter::new(Clock::fake(Timestamp(1_769_515_200_000)), most)
    }

    fn learn(limiter: &Limiter, headers: &[(&str, &'static str)]) {
        limiter.learn(|name| headers.iter().find(|(key, _)| *key == name).map(|(_, it)| *it));
    }

    /// How many seconds a call has to wait.
    fn waits(limiter: &Limiter, tokens: u64) -> u64 {
        let before = limiter.clock.now();
        drop(limiter.enter(tokens, &|_| {}, &Cancel::default()).unwrap());
        limiter.clock.now().since(before).as_secs()
    }

    #[test]
    fn headers_hold_calls_back_until_the_limit_is_whole_again() {
        let limiter = limiter(4);
        assert_eq!(waits(&limiter, 1_000_000), 0);
        learn(
            &limiter,
            &[
                ("anthropic-ratelimit-requests-remaining", "2"),
                ("anthropic-ratelimit-requests-reset", "2026-01-27T12:00:30Z"),
                ("anthropic-ratelimit-tokens-remaining", "900"),
                ("anthropic-ratelimit-tokens-reset", "2026-01-27T12:00:10Z"),
            ],
        );
        assert_eq!(waits(&limiter, 500), 0);
        assert_eq!(waits(&limiter, 500), 10);
        assert_eq!(waits(&limiter, 500), 20);
        assert_eq!(waits(&limiter, 500), 0);
        learn(
            &limiter,
            &[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "7h")],
        );
        assert_eq!(waits(&limiter, 1), LONGEST_WINDOW.as_secs());
    }

    #[test]
    fn a_refusal_of_one_holds_back_all() {
        let limiter = limiter(4);
        limiter.hold(Duration::from_secs(40));
        limiter.hold(Duration::from_secs(20));
        limiter.hold(LONGEST_HOLD + Duration::from_secs(1));
        assert_eq!(waits(&limiter.clone(), 1), 40);
    }

    #[test]
    fn no_more_calls_than_allowed_are_under_way() {
        let limiter = limiter(1);
        let first = limiter.enter(1, &|_| {}, &Cancel::default()).unwrap();
        let (other, cancel) = (limiter.clone(), Cancel::default());
        let waits = {
            let cancel = cancel.clone();
            Thread::start("waits", move || other.enter(1, &|_| {}, &cancel).is_err()).unwrap()
        };
        cancel.fire();
        assert!(waits.join().unwrap());
        let other = limiter.clone();
        let waits =
            Thread::start("waits", move || other.enter(1, &|_| {}, &Cancel::default()).is_ok());
        drop(first);
        assert!(waits.unwrap().join().unwrap());
    }

    #[test]
    fn resets_are_read_in_all_spellings() {
        let read = |text| until_reset(text, 1_769_515_200_000).map(|it| it.as_millis());
        assert_eq!(read("2026-01-27T12:00:30Z"), Some(30_000));
        assert_eq!(read("2026-01-27T11:00:30Z"), Some(0));
        assert_eq!(read("6m0s"), Some(360_000));
        assert_eq!(read("1.5s"), Some(1_500));
        assert_eq!(read("12ms"), Some(12));
        assert_eq!(read("30"), Some(30_000));
        assert_eq!(read("1d2h"), Some(93_600_000));
        for odd in ["", "soon", "5x", "s", "1..2s", "6m0", "ü"] {
            let expected = (odd == "6m0").then_some(360_000);
            assert_eq!(read(odd), expected, "{odd}");
        }
    }
}
