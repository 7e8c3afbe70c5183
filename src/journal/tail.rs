//! When bytes behind the last newline get one. Pure: it is told what is there and what time it is.
//!
//! A whole object is completed soon, since what follows can't change it. Anything else may be half
//! of what its writer has yet to say, and is left alone for long.

use std::time::Duration;

use crate::base::Moment;

/// How long whole objects rest before they are completed.
pub const WHOLE_RESTS: Duration = Duration::from_millis(250);
/// How long anything else rests.
pub const BROKEN_RESTS: Duration = Duration::from_secs(30);

/// A tail as it was at the last look.
#[derive(Debug, Clone, Copy)]
pub struct Tail {
    extent: Extent,
    since: Moment,
    is_whole: bool,
}

/// Where a tail lies; one that grew or moved is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The journal's generation.
    pub generation: u64,
    /// Behind the last newline.
    pub start: u64,
    /// The journal's end.
    pub end: u64,
}

/// What to do about a tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// There is none.
    Nothing,
    /// Look again at this moment.
    At(Moment),
    /// Give it its newline.
    Now,
}

/// Says what is due for the tail in `extent`. `is_whole` is asked once for each tail.
pub fn due<E>(
    tail: &mut Option<Tail>,
    extent: Extent,
    now: Moment,
    is_whole: impl FnOnce() -> Result<bool, E>,
) -> Result<Due, E> {
    if extent.start == extent.end {
        *tail = None;
        return Ok(Due::Nothing);
    }
    let resting = match *tail {
        Some(resting) if resting.extent == extent => resting,
        Some(_) | None => Tail { extent, since: now, is_whole: is_whole()? },
    };
    *tail = Some(resting);
    let rests = if resting.is_whole { WHOLE_RESTS } else { BROKEN_RESTS };
    let at = resting.since.after(rests);
    Ok(if at <= now { Due::Now } else { Due::At(at) })
}
