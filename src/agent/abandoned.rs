//! Runs that nobody goes on with: cut off, cancelled, or with a caller whose time is over. They are
//! ended on disk, so that what is sent to one later is new work, and begins nothing old again.

use super::run::{cut_off, not_run};
use crate::{
    model::{Final, Next, RunId, Status, Turn},
    store::{Kept, Store, StoreError, Trace},
};

/// Ends the run where it has not ended: its conversation, and its trace with `why`. A run without a
/// conversation was never begun.
pub fn abandon(store: &Store, run: &RunId, status: Status, why: &str) -> Result<(), StoreError> {
    if store.run_head(run)?.is_some() {
        let mut kept = store.conversation(run)?;
        close(&mut kept, status, why)?;
    }
    Trace::close_left_open(store, run, why)
}

/// Ends the work in hand of a conversation: each of its calls has a result then. The first without one
/// may have run.
fn close(kept: &mut Kept, status: Status, why: &str) -> Result<(), StoreError> {
    if kept.conversation().in_hand().is_empty() {
        return Ok(());
    }
    let mut may_have_run = true;
    while let Next::RunTool(call) = kept.conversation().next() {
        let result = if may_have_run { cut_off(call) } else { not_run(call) };
        may_have_run = false;
        kept.push(Turn::Result(result))?;
    }
    kept.push(Turn::Final(Final::told(status, why.to_owned())))
}
