//! What the standard library lacks here: clock, wake, stop, the one wait, child processes, named
//! threads, the lock, folders held open, durable replacement, ids and text for people.
//!
//! It knows no word of the domain. It alone touches the clock, threads, processes, locks and
//! renames (see `clippy.toml`).

pub mod below;
pub mod child;
pub mod clock;
pub mod crash;
pub mod detached;
pub mod folder;
pub mod hash;
pub mod left_overs;
pub mod lock;
pub mod privacy;
pub mod scope;
pub mod stop;
pub mod target;
pub mod text;
pub mod thread;
pub mod wake;

pub use below::Below;
pub use child::{Child, Launch};
pub use clock::{Clock, Moment, Timestamp};
pub use folder::{FileError, Folder};
pub use scope::{Cancel, Interrupted, Scope};
pub use stop::{Haste, Stop};
pub use wake::{Seen, Wake};

/// Ends the thread because `invariant`, which this program itself has to keep, does not hold.
pub fn broken(invariant: &str) -> ! {
    panic!("broken invariant: {invariant}")
}
