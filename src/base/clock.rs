//! Wall time to show, monotonic time to decide by. The only place that asks the system's clocks.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use jiff::{Timestamp as Wall, civil::Date, tz::TimeZone};
use parking_lot::Mutex;

/// Wall time in milliseconds since 1970 (UTC): written and shown, never compared for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Reads RFC 3339 text, or a number of seconds or milliseconds since 1970 as text.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(wall) = text.parse::<Wall>() {
            return Some(Self(wall.as_millisecond()));
        }
        let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite())?;
        // Seconds stay below 10^11 until the year 5138; larger numbers are milliseconds.
        let millis = if number.abs() < 1e11 { number * 1000.0 } else { number };
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked by `Wall`")]
        Wall::from_millisecond(millis as i64).ok().map(|wall| Self(wall.as_millisecond()))
    }

    /// Its time of day, such as `19:19:42 UTC`.
    pub fn time_of_day(self) -> String {
        let text = self.to_string();
        format!("{} UTC", text.get(11..19).unwrap_or(&text))
    }

    /// The first moment of its day in UTC.
    #[must_use]
    pub fn start_of_day(self) -> Self {
        Self::of_date(self.date())
    }

    /// The first moment of the day after in UTC.
    #[must_use]
    pub fn start_of_next_day(self) -> Self {
        Self::of_date(self.date().tomorrow().unwrap_or(Date::MAX))
    }

    /// The first moment of its month in UTC.
    #[must_use]
    pub fn start_of_month(self) -> Self {
        Self::of_date(self.date().first_of_month())
    }

    /// The first moment of the month after in UTC.
    #[must_use]
    pub fn start_of_next_month(self) -> Self {
        Self::of_date(self.date().last_of_month().tomorrow().unwrap_or(Date::MAX))
    }

    fn date(self) -> Date {
        let wall = Wall::from_millisecond(self.0).unwrap_or(Wall::UNIX_EPOCH);
        TimeZone::UTC.to_datetime(wall).date()
    }

    fn of_date(date: Date) -> Self {
        let start = TimeZone::UTC.to_timestamp(date.to_datetime(jiff::civil::Time::midnight()));
        Self(start.map_or(i64::MAX, Wall::as_millisecond))
    }
}

impl fmt::Display for Timestamp {
    /// `2026-11-30T19:19:42.422Z`: fixed width, so that sorting lines sorts times.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wall = Wall::from_millisecond(self.0).unwrap_or(Wall::UNIX_EPOCH);
        write!(out, "{wall:.3}")
    }
}

/// Monotonic time of this process; every deadline is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// The moment `span` later.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// The clocks, real or fake.
///
/// On a fake clock a wait with a deadline jumps to it, unless a child or a call is alive: then it
/// really waits. So one piece of an agent's work needs no second thread and may run a real child.
#[derive(Clone)]
pub struct Clock(Arc<Kind>);

enum Kind {
    Real(Instant),
    Fake { start: Timestamp, now: Mutex<Duration>, alive: AtomicUsize },
}

impl Clock {
    /// The system's clocks.
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn real() -> Self {
        Self(Arc::new(Kind::Real(Instant::now())))
    }

    /// A clock that stands at `start` and moves only when something waits for a deadline.
    pub fn fake(start: Timestamp) -> Self {
        Self(Arc::new(Kind::Fake { start, now: Mutex::default(), alive: AtomicUsize::new(0) }))
    }

    /// The time to write and show.
    pub fn wall(&self) -> Timestamp {
        match &*self.0 {
            Kind::Real(_) => Timestamp(Wall::now().as_millisecond()),
            Kind::Fake { start, now, .. } => {
                Timestamp(start.0 + i64::try_from(now.lock().as_millis()).unwrap_or(i64::MAX))
            }
        }
    }

    /// The time to show for `moment`.
    pub fn wall_of(&self, moment: Moment) -> Timestamp {
        let span = moment.since(self.now()).as_millis();
        Timestamp(self.wall().0.saturating_add(i64::try_from(span).unwrap_or(i64::MAX)))
    }

    /// The time to decide by.
    pub fn now(&self) -> Moment {
        match &*self.0 {
            Kind::Real(start) => Moment(start.elapsed()),
            Kind::Fake { now, .. } => Moment(*now.lock()),
        }
    }

    /// Keeps a fake clock from jumping while the guard lives.
    pub fn hold(&self) -> Alive {
        if let Kind::Fake { alive, .. } = &*self.0 {
            alive.fetch_add(1, Ordering::SeqCst);
        }
        Alive(self.clone())
    }

    /// Moves a fake clock to `until` and says so; a real clock, or one that is held, is left alone.
    pub(super) fn jump(&self, until: Moment) -> bool {
        match &*self.0 {
            Kind::Fake { now, alive, .. } if alive.load(Ordering::SeqCst) == 0 => {
                let mut now = now.lock();
                *now = until.0.max(*now);
                true
            }
            Kind::Fake { .. } | Kind::Real(_) => false,
        }
    }

    /// How long a thread may really wait for `until`; `None` on a fake clock, whose time stands.
    pub(super) fn left(&self, until: Moment) -> Option<Duration> {
        match &*self.0 {
            Kind::Real(_) => Some(until.since(self.now())),
            Kind::Fake { .. } => None,
        }
    }
}

/// While it lives something real is under way and a fake clock stands still.
pub struct Alive(Clock);

impl Drop for Alive {
    fn drop(&mut self) {
        if let Kind::Fake { alive, .. } = &*self.0.0 {
            alive.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_have_one_width() {
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp(1_796_066_382_422).to_string(), "2026-11-30T19:19:42.422Z");
        assert_eq!(Timestamp(i64::MAX).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn timestamps_are_read_in_the_usual_spellings() {
        let known = Some(Timestamp(1_796_066_382_422));
        assert_eq!(Timestamp::parse("2026-11-30T19:19:42.422Z"), known);
        assert_eq!(Timestamp::parse("2026-11-30T20:19:42.422+01:00"), known);
        assert_eq!(Timestamp::parse("1796066382.422"), known);
        assert_eq!(Timestamp::parse("1796066382422"), known);
        for odd in ["", "yesterday", "NaN", "1e999", "999999999999999999999999999999"] {
            assert_eq!(Timestamp::parse(odd), None, "{odd}");
        }
    }
}
