//! Budgets: how much may be spent in a window of time.
//!
//! That a window has ended is the one decision that is made by wall time: days and months are those
//! of UTC. A clock that is set back gives nothing back, since all that was spent since the window's
//! start counts, also what was written with a later time.

use super::Cost;
use crate::base::Timestamp;

/// How much may be spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budget {
    /// The most money.
    pub max_cost: Option<Cost>,
    /// The most tokens, read and written, cached ones too.
    pub max_tokens: Option<u64>,
    /// In which time.
    pub per: Per,
}

/// A window of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Per {
    /// A day of UTC.
    #[default]
    Day,
    /// A month of UTC.
    Month,
    /// For ever.
    Life,
}

/// When a window begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its first moment; none for ever.
    pub from: Option<Timestamp>,
    /// The first moment of the next; none for ever.
    pub until: Option<Timestamp>,
}

impl Per {
    /// The words for them in team files.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("day", Self::Day), ("month", Self::Month), ("life", Self::Life)];

    /// Behind an amount.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "a day",
            Self::Month => "a month",
            Self::Life => "for ever",
        }
    }

    /// The window that `now` is in.
    pub fn window(self, now: Timestamp) -> Window {
        let (from, until) = match self {
            Self::Day => (now.start_of_day(), now.start_of_next_day()),
            Self::Month => (now.start_of_month(), now.start_of_next_month()),
            Self::Life => return Window { from: None, until: None },
        };
        Window { from: Some(from), until: Some(until) }
    }
}

impl Budget {
    /// Whether anything may be spent without end.
    pub fn is_unlimited(&self) -> bool {
        self.max_cost.is_none() && self.max_tokens.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use expect_test::expect;

    use super::*;

    #[test]
    fn windows_end_at_midnight_of_utc() {
        let mut table = String::new();
        for text in [
            "2026-11-30T00:00:00.000Z",
            "2026-11-30T23:59:59.999Z",
            "2026-12-31T12:00:00.000Z",
            "2028-02-29T00:30:00.000+01:00",
            "1969-12-31T23:59:59.999Z",
        ] {
            let now = Timestamp::parse(text).unwrap();
            for per in [Per::Day, Per::Month] {
                let Window { from, until } = per.window(now);
                let (from, until) = (from.unwrap(), until.unwrap());
                assert!(from <= now && now < until);
                writeln!(table, "{text} {}: {from} {until}", per.as_str()).unwrap();
            }
        }
        expect![[r#"
            2026-11-30T00:00:00.000Z a day: 2026-11-30T00:00:00.000Z 2026-12-01T00:00:00.000Z
            2026-11-30T00:00:00.000Z a month: 2026-11-01T00:00:00.000Z 2026-12-01T00:00:00.000Z
            2026-11-30T23:59:59.999Z a day: 2026-11-30T00:00:00.000Z 2026-12-01T00:00:00.000Z
            2026-11-30T23:59:59.999Z a month: 2026-11-01T00:00:00.000Z 2026-12-01T00:00:00.000Z
            2026-12-31T12:00:00.000Z a day: 2026-12-31T00:00:00.000Z 2027-01-01T00:00:00.000Z
            2026-12-31T12:00:00.000Z a month: 2026-12-01T00:00:00.000Z 2027-01-01T00:00:00.000Z
            2028-02-29T00:30:00.000+01:00 a day: 2028-02-28T00:00:00.000Z 2028-02-29T00:00:00.000Z
            2028-02-29T00:30:00.000+01:00 a month: 2028-02-01T00:00:00.000Z 2028-03-01T00:00:00.000Z
            1969-12-31T23:59:59.999Z a day: 1969-12-31T00:00:00.000Z 1970-01-01T00:00:00.000Z
            1969-12-31T23:59:59.999Z a month: 1969-12-01T00:00:00.000Z 1970-01-01T00:00:00.000Z
        "#]]
        .assert_eq(&table);
        assert_eq!(Per::Life.window(Timestamp(0)), Window { from: None, until: None });
    }
}
