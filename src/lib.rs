//! postroom hosts a team of AI agents in one process. They talk through plain JSONL mailboxes: a
//! line appended to `.mailbox/<name>.jsonl` is a message, and `cat` is the audit.
//!
//! # Invariants
//! 1. **Files are the truth, memory is a cache.** The command line works on the same files through
//!    the same [`store`], daemon up or down. Any process can be killed at any instruction, and the
//!    next start goes on from the files.
//! 2. **An event is only a hint.** What there is to do is the file's length minus the cursor.
//! 3. **The order of a journal decides.** All readers fold the same lines to the same board and the
//!    same questions, and nobody acts on a line of their own before reading it back.
//! 4. **Only [`base`] touches the clock, threads, processes, locks and renames; only [`journal`] knows
//!    that a journal is a file.**
//! 5. **A tool runs only through one dispatch** in [`agent`]: find, prepare, guard, ask, run,
//!    fulfil, trace. There is no second way in.
//! 6. **Decisions are pure functions; drivers are thin loops around them.**
//! 7. **Model text is never authority.** Nothing that came from a model, a message body or a file
//!    changes rights.
//! 8. **An agent's thread blocks in one place**, [`base::Scope::wait`].
//!
//! # Rooms
//! Each uses only rooms above it; a test holds this order against the `use` lines.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make the files and processes they look at")
)]

pub mod base;
pub mod journal;
pub mod model;
pub mod store;
pub mod guard;
pub mod provider;
pub mod tools;
pub mod agent;
pub mod daemon;
pub mod cli;
