//! One process a mailbox folder, which keeps the teammates alive and ends them in order.
//!
//! Every thread is named and joined. What to do after a death is a pure table; the supervisor is a
//! thin loop around one closed enum of events and one deadline.

mod events;
mod hosted;
mod instance;
mod notices;
mod orders;
mod restart;
mod signals;
mod supervisor;
mod tasks;

pub use events::{Event, Events};
pub use instance::{Instance, StartError, is_up};
pub use orders::{DownHow, Order};
pub use restart::{Death, Restart, restart};
pub use signals::{SignalWatch, watch_signals};
pub use supervisor::{How, Supervisor};
