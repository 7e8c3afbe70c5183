//! What to do after the death of a teammate. Pure.

use std::{collections::VecDeque, time::Duration};

use crate::base::Moment;

/// How a teammate's thread has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Death {
    /// A SHUTDOWN was obeyed.
    Stopped,
    /// The daemon ends.
    WithDaemon,
    /// Something was not stored or read.
    Failed(String),
    /// There is no room, or no right, for now.
    NoRoom(String),
    /// Somebody has to mend a file first.
    Refused(String),
    /// It panicked.
    Panicked(String),
}

impl Death {
    /// What went wrong, where anything did.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Stopped | Self::WithDaemon => None,
            Self::Failed(why) | Self::NoRoom(why) | Self::Refused(why) | Self::Panicked(why) => {
                Some(why)
            }
        }
    }
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// It is started again after this long.
    After(Duration),
    /// It has died too often: somebody has to look.
    GiveUp,
    /// It ended as it should.
    Never,
}

const FIRST: Duration = Duration::from_secs(1);
/// How long to wait for room; it is nobody's fault and does not count.
const NO_ROOM: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_mins(1);
/// Deaths are counted over this long.
const SPAN: Duration = Duration::from_mins(1);
const MOST_DEATHS: usize = 5;

/// Judges a death at `now`, after `earlier` deaths, oldest first.
pub fn restart(how: &Death, earlier: &VecDeque<Moment>, now: Moment) -> Restart {
    match how {
        Death::Stopped | Death::WithDaemon => return Restart::Never,
        Death::NoRoom(_) => return Restart::After(NO_ROOM),
        Death::Refused(_) => return Restart::GiveUp,
        Death::Failed(_) | Death::Panicked(_) => {}
    }
    let lately = earlier.iter().filter(|death| now.since(**death) < SPAN).count();
    if lately >= MOST_DEATHS {
        return Restart::GiveUp;
    }
    // Deaths that follow each other within the longest pause belong together.
    let (mut run, mut last) = (0_u32, now);
    for death in earlier.iter().rev() {
        if last.since(*death) > LONGEST.saturating_mul(2) {
            break;
        }
        (run, last) = (run + 1, *death);
    }
    Restart::After(FIRST.saturating_mul(1 << run.min(6)).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::base::{Clock, Timestamp};

    #[test]
    fn the_whole_table() {
        let start = Clock::fake(Timestamp(0)).now();
        let at = |seconds: u64| start.after(Duration::from_secs(seconds));
        let died = || Death::Panicked("x".to_owned());
        let rows: [(&str, Death, &[u64]); 12] = [
            ("stopped", Death::Stopped, &[]),
            ("the daemon ends", Death::WithDaemon, &[999, 999, 999, 999, 999]),
            ("no room", Death::NoRoom("x".to_owned()), &[950, 960, 970, 980, 990]),
            ("a file has to be mended", Death::Refused("x".to_owned()), &[]),
            ("first death", died(), &[]),
            ("first failure", Death::Failed("x".to_owned()), &[]),
            ("second", died(), &[990]),
            ("third", died(), &[980, 990]),
            ("fifth", died(), &[950, 960, 970, 990]),
            ("sixth within a minute", died(), &[950, 960, 970, 980, 990]),
            ("sixth, but slowly", died(), &[300, 400, 500, 700, 900]),
            ("long ago", died(), &[10]),
        ];
        let mut table = String::new();
        for (what, how, earlier) in rows {
            let earlier = earlier.iter().map(|seconds| at(*seconds)).collect();
            let _ = writeln!(table, "{what}: {:?}", restart(&how, &earlier, at(1000)));
        }
        expect_test::expect![[r#"
            stopped: Never
            the daemon ends: Never
            no room: After(2s)
            a file has to be mended: GiveUp
            first death: After(1s)
            first failure: After(1s)
            second: After(2s)
            third: After(4s)
            fifth: After(16s)
            sixth within a minute: GiveUp
            sixth, but slowly: After(2s)
            long ago: After(1s)
        "#]]
        .assert_eq(&table);
    }
}
