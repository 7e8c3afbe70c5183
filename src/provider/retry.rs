//! Asks again where it may go better later: with growing waits, a budget of tries and of time, and
//! another model where the first has too much to do.

use std::{sync::Arc, time::Duration};

use super::{Course, Provider, ProviderError, Reads, Reply, Request, limiter::rate_limited};
use crate::{
    base::{Cancel, Clock, Moment, Wake, hash::random_key, text::headline},
    model::Preset,
};

/// After how many overloads in a row the other model is asked.
const OVERLOADS: u32 = 3;

/// How often and how long to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How many tries in all.
    pub tries: u32,
    /// How long in all.
    pub time: Duration,
    /// The longest wait before the second try; it doubles with each.
    pub first: Duration,
    /// The longest wait that grows so.
    pub longest: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            tries: 6,
            time: Duration::from_mins(10),
            first: Duration::from_secs(1),
            longest: Duration::from_mins(1),
        }
    }
}

impl Patience {
    /// How long to wait before the next try, when try number `attempt` (from 1) ended with `error`
    /// and `elapsed` has passed since the first began; `None` where there is none. `random` is from 0
    /// to 1: all of a wait is left to chance, so that callers who failed together come back apart. A
    /// wait that the vendor asks for is never cut short.
    pub fn next(
        &self,
        attempt: u32,
        error: &ProviderError,
        elapsed: Duration,
        random: f64,
    ) -> Option<Duration> {
        let ProviderError::Passing { after, .. } = error else { return None };
        if attempt >= self.tries {
            return None;
        }
        let doublings = attempt.saturating_sub(1).min(31);
        let most = self.first.saturating_mul(1 << doublings).min(self.longest);
        let jitter = most.mul_f64(random.clamp(0.0, 1.0));
        let wait = after.map_or(jitter, |after| after.saturating_add(jitter.min(self.first)));
        (elapsed.saturating_add(wait) <= self.time).then_some(wait)
    }
}

/// A provider that is asked again.
pub struct Retrying<P> {
    inner: P,
    fallback: Option<P>,
    patience: Patience,
    clock: Clock,
}

impl<P: Provider> Retrying<P> {
    /// Asks `inner`, and `fallback` for the rest of a call in which `inner` was overloaded
    /// three times in a row.
    pub fn new(inner: P, fallback: Option<P>, patience: Patience, clock: Clock) -> Self {
        Self { inner, fallback, patience, clock }
    }
}

impl<P: Provider> Provider for Retrying<P> {
    fn model(&self) -> &str {
        self.inner.model()
    }

    fn models(&self) -> Vec<&str> {
        self.inner.models().into_iter().chain(self.fallback.iter().flat_map(P::models)).collect()
    }

    fn reads(&self) -> Reads {
        self.inner.reads()
    }

    fn for_subagents(&self) -> Option<Arc<dyn Provider>> {
        self.inner.for_subagents()
    }

    fn holds_rights(&self) -> Option<Preset> {
        self.inner.holds_rights()
    }

    fn states_cost(&self) -> bool {
        self.inner.states_cost()
    }

    fn complete(&self, request: &Request<'_>, cancel: &Cancel) -> Result<Reply, ProviderError> {
        let begun = self.clock.now();
        let (mut attempt, mut overloads) = (0, 0);
        loop {
            let fallback = self.fallback.as_ref().filter(|_| overloads >= OVERLOADS);
            let error = match fallback.unwrap_or(&self.inner).complete(request, cancel) {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            attempt += 1;
            overloads = match &error {
                // Once the other model is asked it stays with it.
                _ if fallback.is_some() => overloads,
                ProviderError::Passing { is_overload: true, .. } => overloads + 1,
                _ => 0,
            };
            let elapsed = self.clock.now().since(begun);
            let wait = self.patience.next(attempt, &error, elapsed, random());
            let Some(wait) = wait.filter(|_| !cancel.fired()) else {
                return Err(given_up(error, attempt));
            };
            let until = self.clock.now().after(wait);
            (request.told)(Course::Waits(waits_for(&self.clock, until, &error)));
            let goes_on = self.waits(until, cancel);
            (request.told)(Course::Goes);
            if !goes_on {
                return Err(error);
            }
        }
    }

    fn can_do(&self, text: &str) -> bool {
        self.inner.can_do(text)
    }
}

impl<P> Retrying<P> {
    /// Waits until `until`; `false` where the call was ended before.
    fn waits(&self, until: Moment, cancel: &Cancel) -> bool {
        let wake = Wake::default();
        let ended = wake.clone();
        cancel.arm(move || ended.notify());
        loop {
            let seen = wake.seen();
            if cancel.fired() {
                return false;
            }
            if self.clock.now() >= until {
                return true;
            }
            wake.wait(&self.clock, seen, Some(until));
        }
    }
}

/// What is told of a wait for the next try.
fn waits_for(clock: &Clock, until: Moment, error: &ProviderError) -> String {
    let why = match error {
        ProviderError::Passing { after: Some(_), is_overload: false, .. } => {
            return rate_limited(clock, until);
        }
        ProviderError::Passing { is_overload: true, .. } => "the vendor is overloaded".to_owned(),
        other => headline(&other.to_string(), 80),
    };
    format!("asks again at {}: {why}", clock.wall_of(until).time_of_day())
}

/// The last error, with how often it was tried.
fn given_up(error: ProviderError, attempt: u32) -> ProviderError {
    if attempt > 1 && matches!(error, ProviderError::Passing { .. }) {
        return error.with_words(|why| format!("{why}; tried {attempt} times"));
    }
    error
}

/// A number from 0 to 1.
fn random() -> f64 {
    let [a, b, c, d, ..] = random_key();
    f64::from(u32::from_le_bytes([a, b, c, d])) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use expect_test::expect;
    use parking_lot::Mutex;

    use super::*;
    use crate::{
        base::Timestamp,
        model::{PermissionMode, Status},
        provider::Tokens,
    };

    fn passing(after: Option<u64>, is_overload: bool) -> ProviderError {
        let after = after.map(Duration::from_secs);
        ProviderError::Passing { why: "busy".to_owned(), after, is_overload }
    }

    #[test]
    fn waits_double_and_end_with_the_budget() {
        let patience = Patience { tries: 9, ..Patience::default() };
        let mut table = String::new();
        for (attempt, after, elapsed) in [
            (1, None, 0),
            (2, None, 0),
            (3, None, 0),
            (7, None, 0),
            (8, None, 0),
            (9, None, 0),
            (1, Some(0), 0),
            (1, Some(30), 0),
            (4, Some(30), 0),
            (1, Some(599), 0),
            (1, Some(601), 0),
            (1, Some(30), 590),
            (1, None, 599),
            (1, None, 600),
        ] {
            let error = passing(after, false);
            let span = Duration::from_secs(elapsed);
            let shown = [0.0, 0.5, 1.0].map(|random| {
                let wait = patience.next(attempt, &error, span, random);
                wait.map_or("-".to_owned(), |it| it.as_secs_f64().to_string())
            });
            let _ = writeln!(table, "{attempt} {after:?} {elapsed}: {}", shown.join(" "));
        }
        expect![[r"
            1 None 0: 0 0.5 1
            2 None 0: 0 1 2
            3 None 0: 0 2 4
            7 None 0: 0 30 60
            8 None 0: 0 30 60
            9 None 0: - - -
            1 Some(0) 0: 0 0.5 1
            1 Some(30) 0: 30 30.5 31
            4 Some(30) 0: 30 31 31
            1 Some(599) 0: 599 599.5 600
            1 Some(601) 0: - - -
            1 Some(30) 590: - - -
            1 None 599: 0 0.5 1
            1 None 600: 0 - -
        "]]
        .assert_eq(&table);
        for error in [ProviderError::TooLong, ProviderError::Final("no".to_owned())] {
            assert_eq!(patience.next(1, &error, Duration::ZERO, 0.0), None);
        }
    }

    /// A model that fails as it is told to, and counts.
    struct Failing(Mutex<Vec<ProviderError>>, Mutex<u32>);

    impl Provider for &Failing {
        #[expect(clippy::unnecessary_literal_bound, reason = "the trait says so")]
        fn model(&self) -> &str {
            "failing"
        }

        fn reads(&self) -> Reads {
            Reads::Recent
        }

        fn complete(&self, _: &Request<'_>, _: &Cancel) -> Result<Reply, ProviderError> {
            *self.1.lock() += 1;
            match self.0.lock().pop() {
                Some(error) => Err(error),
                None => Ok(Reply {
                    text: "here".to_owned(),
                    calls: Vec::new(),
                    status: Status::Ok,
                    decision: None,
                    tokens: Tokens::default(),
                    cost: None,
                    vendor: None,
                }),
            }
        }
    }

    fn failing(errors: Vec<ProviderError>) -> Failing {
        Failing(Mutex::new(errors), Mutex::default())
    }

    /// How a call ends, and how often the models were asked.
    fn asked(first: Vec<ProviderError>, second: Option<usize>) -> (bool, u32, u32) {
        let clock = Clock::fake(Timestamp(0));
        let (first, other) = (failing(first), failing(overloads(second.unwrap_or_default())));
        let fallback = second.is_some().then_some(&other);
        let retrying = Retrying::new(&first, fallback, Patience::default(), clock);
        let request = Request {
            system: "",
            turns: &[],
            in_hand: 0,
            tools: &[],
            told: &|_| {},
            may_be_again: false,
            mode: PermissionMode::Default,
        };
        let ended = retrying.complete(&request, &Cancel::default()).is_ok();
        (ended, *first.1.lock(), *other.1.lock())
    }

    fn overloads(count: usize) -> Vec<ProviderError> {
        (0..count).map(|_| passing(None, true)).collect()
    }

    #[test]
    fn it_is_tried_again_as_often_as_the_budget_says() {
        assert_eq!(asked(overloads(0), None), (true, 1, 0));
        assert_eq!(asked(overloads(5), None), (true, 6, 0));
        assert_eq!(asked(overloads(6), None), (false, 6, 0));
        assert_eq!(asked(vec![ProviderError::TooLong], None), (false, 1, 0));
        assert_eq!(asked(vec![passing(Some(3600), false)], None), (false, 1, 0));
    }

    #[test]
    fn after_three_overloads_the_other_model_is_asked() {
        assert_eq!(asked(overloads(9), Some(0)), (true, 3, 1));
        assert_eq!(asked(overloads(9), Some(9)), (false, 3, 3));
        let mut mixed = overloads(2);
        mixed.extend([passing(None, false), passing(None, true), passing(None, true)]);
        assert_eq!(asked(mixed, Some(0)), (true, 6, 0));
    }

    #[test]
    fn a_wait_ends_when_the_call_does() {
        let first = failing(overloads(1));
        let patience = Patience { first: Duration::from_hours(1), ..Patience::default() };
        let patience = Patience { longest: patience.first, time: patience.first, ..patience };
        let retrying = Retrying::new(&first, None, patience, Clock::real());
        let request = Request {
            system: "",
            turns: &[],
            in_hand: 0,
            tools: &[],
            told: &|_| {},
            may_be_again: false,
            mode: PermissionMode::Default,
        };
        let cancel = Cancel::default();
        cancel.fire();
        assert!(!retrying.waits(retrying.clock.now().after(patience.first), &cancel));
        assert!(retrying.complete(&request, &cancel).is_err());
        assert_eq!(*first.1.lock(), 1);
    }
}
