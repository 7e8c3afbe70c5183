//! A conversation whose every turn is on disk before it is in memory.

use std::{collections::BTreeSet, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{Store, StoreError, layout};
use crate::{
    base::crash,
    journal::Journal,
    model::{AgentName, Conversation, MessageId, RunId, Turn, TypeName},
};

/// What a run of its own is: the first line of its conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHead {
    /// The teammate in whose name it runs.
    pub agent: AgentName,
    /// What it is.
    pub agent_type: TypeName,
    /// The run that called it.
    pub parent: RunId,
}

impl RunHead {
    /// Reads the head of a run's conversation alone.
    pub(super) fn read(store: &Store, run: &RunId) -> Result<Option<Self>, StoreError> {
        let journal = store.journals.open(&layout::conversation(run))?;
        let batch = journal.read(journal.start()?, 1)?;
        let bodies = batch.lines.into_iter().filter_map(|line| line.body.ok());
        let mut read = bodies.filter_map(|body| serde_json::from_str::<Read>(&body).ok());
        Ok(read.find_map(|line| line.run))
    }
}

/// A conversation and its journal, which it alone writes.
pub struct Kept {
    head: Option<RunHead>,
    journal: Arc<dyn Journal>,
    conversation: Conversation,
    mail: BTreeSet<(AgentName, MessageId)>,
    sent: BTreeSet<MessageId>,
    store: Store,
}

#[derive(Serialize)]
struct Written<'a> {
    timestamp: String,
    turn: &'a Turn,
}

#[derive(Serialize)]
struct WrittenHead<'a> {
    timestamp: String,
    run: &'a RunHead,
}

#[derive(Deserialize)]
struct Read {
    turn: Option<Turn>,
    run: Option<RunHead>,
}

impl Kept {
    /// Opens the conversation of `run` and reads what is there.
    pub fn open(store: &Store, run: &RunId) -> Result<Self, StoreError> {
        let journal = store.journals.open(&layout::conversation(run))?;
        // A line that a killed process left without its newline counts: close it before reading.
        journal.close_tail()?;
        let mut kept = Self {
            head: None,
            conversation: Conversation::default(),
            mail: BTreeSet::new(),
            sent: BTreeSet::new(),
            store: store.clone(),
            journal,
        };
        let mut place = kept.journal.start()?;
        loop {
            let batch = kept.journal.read(place, 1024)?;
            if batch.lines.is_empty() {
                return Ok(kept);
            }
            place = batch.next;
            for line in batch.lines {
                // What a kill or a power cut left of a line was never acted upon.
                let Ok(body) = line.body else { continue };
                let read: Read =
                    serde_json::from_str(&body).map_err(|why| StoreError::Damaged {
                        path: format!(".mailbox/{}.jsonl", layout::conversation(run)),
                        why: format!("{why}; move it away to begin a new conversation"),
                    })?;
                kept.head = kept.head.or(read.run);
                if let Some(turn) = read.turn {
                    kept.take(turn);
                }
            }
        }
    }

    /// Opens the conversation of a run of its own, and begins it where it is new.
    pub fn begin(store: &Store, run: &RunId, head: &RunHead) -> Result<Self, StoreError> {
        let mut kept = Self::open(store, run)?;
        if kept.head.is_none() {
            let written = WrittenHead { timestamp: store.now().to_string(), run: head };
            let line = serde_json::to_string(&written)
                .unwrap_or_else(|_| crate::base::broken("a head has a JSON form"));
            kept.journal.append(&line)?;
            kept.head = Some(head.clone());
        }
        Ok(kept)
    }

    /// What the run is, where it is one of its own.
    pub fn head(&self) -> Option<&RunHead> {
        self.head.as_ref()
    }

    /// The conversation.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Whether this mail is in it.
    pub fn has_mail(&self, from: &AgentName, id: &MessageId) -> bool {
        self.mail.contains(&(from.clone(), id.clone()))
    }

    /// Whether a call of this conversation has sent the request `id` without waiting for it.
    pub fn has_sent(&self, id: &MessageId) -> bool {
        self.sent.contains(id)
    }

    /// Writes a turn down and takes it. Mail that is there already is not taken again.
    pub fn push(&mut self, turn: Turn) -> Result<(), StoreError> {
        if let Turn::Mail(mail) = &turn
            && self.has_mail(&mail.from, &mail.id)
        {
            return Ok(());
        }
        let written = Written { timestamp: self.store.now().to_string(), turn: &turn };
        let line = serde_json::to_string(&written)
            .unwrap_or_else(|_| crate::base::broken("a turn has a JSON form"));
        crash::point("conversation-before-turn");
        self.journal.append(&line)?;
        crash::point("conversation-after-turn");
        self.take(turn);
        Ok(())
    }

    /// Returns when all turns outlive a power cut.
    pub fn sync(&self) -> Result<(), StoreError> {
        Ok(self.journal.sync()?)
    }

    fn take(&mut self, turn: Turn) {
        if let Turn::Mail(mail) = &turn
            && !self.mail.insert((mail.from.clone(), mail.id.clone()))
        {
            return;
        }
        if let Turn::Result(result) = &turn {
            // An answer that was waited for is in the conversation as a result.
            self.mail.extend(result.answer.clone());
            self.sent.extend(result.sent.clone());
        }
        self.conversation.push(turn);
    }
}
