//! A process whose memory and environment are its own.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// From now on no other process of this user can read this one's memory or environment in /proc; root
/// still can. Where the kernel refuses, nothing changes.
pub fn forbid_looking_in() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}
