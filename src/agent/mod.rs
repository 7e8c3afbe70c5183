//! One run of a model from its work to its report, and the teammate that has many.
//!
//! A tool runs only through `dispatch`. An agent's thread blocks in `Scope` alone. Decisions are
//! pure functions of the conversation and the mailbox; what is here drives them.

mod abandoned;
mod approval;
mod asks;
mod autonomous;
mod background;
mod compactor;
mod conclude;
mod desk;
mod dispatch;
mod lineage;
mod mind;
mod model_call;
mod office;
mod programs;
mod prompt;
mod run;
mod secrets;
mod shutdown;
mod subagent;
mod task;
mod thinkers;
mod worker;

#[cfg(test)]
mod tests;

pub use autonomous::{AutonomousAgent, Ending, Step};
pub use desk::Desk;
pub use office::{Office, OfficeError, can_be_taken, check_scripts};
pub use programs::notes_on_programs;
pub use prompt::prompt_of;
pub use run::Run;
pub use worker::{Ended, ModelLoop, Worker};
