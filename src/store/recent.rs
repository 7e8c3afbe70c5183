//! The ids that senders have given lately: a repetition has no second effect.

use std::collections::{BTreeMap, VecDeque};

use crate::model::{AgentName, Message, MessageId};

/// How many given ids are remembered for a mailbox.
pub const REMEMBERED: usize = 4096;

/// What a message is in the light of those before it.
#[derive(Debug, PartialEq, Eq)]
pub enum Known {
    /// Its id is new, or derived from its place.
    New,
    /// The same sender has said the same under the same id.
    Repeated,
    /// The same sender has said something else under the same id.
    Contradicts,
}

/// The latest given ids of one mailbox.
#[derive(Default)]
pub struct Recent {
    digests: BTreeMap<(AgentName, MessageId), u32>,
    order: VecDeque<(AgentName, MessageId)>,
}

impl Recent {
    /// Judges `message` and remembers it.
    pub fn meet(&mut self, message: &Message) -> Known {
        if !message.id_given {
            return Known::New;
        }
        let said = &message.envelope;
        let (key, digest) = ((said.from.clone(), said.id.clone()), said.digest());
        match self.digests.get(&key) {
            Some(known) if *known == digest => return Known::Repeated,
            Some(_) => return Known::Contradicts,
            None => {}
        }
        self.digests.insert(key.clone(), digest);
        self.order.push_back(key);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.digests.remove(&oldest);
        }
        Known::New
    }

    /// Whether as much is remembered as can be.
    pub fn is_full(&self) -> bool {
        self.order.len() >= REMEMBERED
    }
}
