//! SHUTDOWN: who may, and when it is too old. Pure.

use super::{AgentName, Team, message::Message};
use crate::journal::Position;

/// What becomes of a SHUTDOWN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obedience {
    /// It is obeyed.
    Obey,
    /// It was written before the teammate was last started: it meant an earlier life.
    Stale,
    /// Its sender may not stop anybody.
    NotAllowed,
}

/// Judges a SHUTDOWN that lies in a mailbox of a teammate born at `birth`.
///
/// The user and outsiders may stop anybody, and whoever leads may, where the seal shows that the
/// lead itself wrote the line.
pub fn obey(shutdown: &Message, birth: Position, team: &Team) -> Obedience {
    if !may_stop(shutdown, team) {
        Obedience::NotAllowed
    } else if shutdown.at < birth {
        Obedience::Stale
    } else {
        Obedience::Obey
    }
}

/// Whether a message comes from somebody who may stop or interrupt a teammate.
pub fn may_stop(message: &Message, team: &Team) -> bool {
    let from = &message.envelope.from;
    *from == AgentName::user()
        || team.outside.contains(from)
        || (*from == team.lead && message.sealed)
}
