//! Sends mail: one sealed line behind all others in the receiver's mailbox. It never consumes any.

use std::{collections::BTreeSet, sync::Arc};

use super::{Entry, MailReader, Store, StoreError, layout};
use crate::{
    base::{crash, text::listed},
    journal::{AppendError, Position},
    model::{AgentName, Envelope, MOST_CONTENT, Mailbox, MessageId, TOO_LONG, Team, resolve_lead},
};

/// Who has a mailbox, and who is meant by `lead`.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    /// Teammates, outsiders and `user`.
    pub members: BTreeSet<AgentName>,
    /// Whom `lead` and `team-lead` stand for.
    pub lead: Option<AgentName>,
}

impl From<&Team> for Roster {
    fn from(team: &Team) -> Self {
        Self { members: team.members(), lead: team.lead_by_alias() }
    }
}

impl Roster {
    /// Whoever `name` means.
    pub fn resolve(&self, name: AgentName) -> AgentName {
        if self.members.contains(&name) { name } else { resolve_lead(name, self.lead.as_ref()) }
    }
}

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// Nobody has that name.
    #[error("nobody is called {name}; there are {}", listed(known))]
    Unknown {
        /// Who was wanted.
        name: AgentName,
        /// Who is there.
        known: Vec<AgentName>,
    },
    /// It was not stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The way to a mailbox.
#[derive(Clone)]
pub struct MessageBus {
    store: Store,
    roster: Arc<Roster>,
    hand: Hand,
}

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hand {
    /// The daemon, whose lines are sealed.
    Daemon,
    /// The command line, which speaks for whoever calls it and seals nothing.
    Client,
}

/// How many lines to read at a time.
const BATCH: usize = 512;

impl MessageBus {
    pub(super) fn new(store: Store, roster: Arc<Roster>, hand: Hand) -> Self {
        Self { store, roster, hand }
    }

    /// Who has a mailbox.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Sends to a member, or to `daemon`; gives the place behind the line.
    pub fn send(&self, mut envelope: Envelope) -> Result<Position, SendError> {
        envelope.to = self.roster.resolve(envelope.to);
        if !self.roster.members.contains(&envelope.to) && envelope.to != AgentName::daemon() {
            let known = self.roster.members.iter().cloned().collect();
            return Err(SendError::Unknown { name: envelope.to, known });
        }
        let mailbox = envelope.to.clone();
        Ok(self.append(&mailbox, &envelope)?)
    }

    /// Replies to whoever asked. A reply to somebody without a mailbox lies in the user's.
    pub fn reply(&self, envelope: &Envelope) -> Result<Position, StoreError> {
        self.append(&self.mailbox_of(&envelope.to), envelope)
    }

    /// Where mail for `name` lies.
    pub fn mailbox_of(&self, name: &AgentName) -> AgentName {
        let known = self.roster.members.contains(name) || *name == AgentName::daemon();
        if known { name.clone() } else { AgentName::user() }
    }

    /// Where the mail for `name` ends now.
    pub fn end_of(&self, name: &AgentName) -> Result<Position, StoreError> {
        let journal = self.store.journals.open(&layout::mailbox(&self.mailbox_of(name)))?;
        Ok(journal.end()?)
    }

    /// Where the mail for `name` begins.
    pub fn start_of(&self, name: &AgentName) -> Result<Position, StoreError> {
        let journal = self.store.journals.open(&layout::mailbox(&self.mailbox_of(name)))?;
        Ok(journal.start()?)
    }

    /// Returns when the mail for `name` outlives a power cut.
    pub fn sync(&self, name: &AgentName) -> Result<(), StoreError> {
        let journal = self.store.journals.open(&layout::mailbox(&self.mailbox_of(name)))?;
        Ok(journal.sync()?)
    }

    /// Whether a line that postroom wrote for `to` stands behind `after`, with this sender and id.
    pub fn has(
        &self,
        to: &AgentName,
        from: &AgentName,
        id: &MessageId,
        after: Position,
    ) -> Result<bool, StoreError> {
        let mut reader = self.reader(&self.mailbox_of(to), after)?;
        while let Some(entries) = reader.more_or_anew(BATCH)? {
            let is_it = |entry: &Entry| match entry {
                Entry::Message(it) => {
                    (it.sealed || self.hand == Hand::Client)
                        && it.envelope.id == *id
                        && it.envelope.from == *from
                }
                Entry::Dead(_) => false,
            };
            if entries.iter().any(is_it) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the mailbox of `name` from behind `after` on.
    pub fn reader(&self, name: &AgentName, after: Position) -> Result<MailReader, StoreError> {
        let journal = self.store.journals.open(&layout::mailbox(name))?;
        Ok(MailReader::new(journal, self.mailbox(name), after))
    }

    /// The mailbox of `name` as a reader sees it.
    pub fn mailbox(&self, name: &AgentName) -> Mailbox {
        Mailbox { owner: name.clone(), lead: self.roster.lead.clone(), key: self.store.key }
    }

    fn append(&self, mailbox: &AgentName, envelope: &Envelope) -> Result<Position, StoreError> {
        if envelope.content.len() > MOST_CONTENT {
            return Err(AppendError::Invalid(TOO_LONG.to_owned()).into());
        }
        let journal = self.store.journals.open(&layout::mailbox(mailbox))?;
        let before = journal.end()?;
        let now = self.store.now();
        let line = match self.hand {
            Hand::Daemon => envelope.to_sealed_line(mailbox, now, &self.store.key),
            Hand::Client => envelope.to_line(now),
        };
        crash::point("mail-before-append");
        match journal.append(&line) {
            Ok(place) => {
                crash::point("mail-after-append");
                Ok(place)
            }
            Err(AppendError::Unknown(why)) => {
                // The line may be there all the same: the file tells.
                if self.has(&envelope.to, &envelope.from, &envelope.id, before)? {
                    Ok(journal.end()?)
                } else {
                    Err(AppendError::NotAppended(why).into())
                }
            }
            Err(why) => Err(why.into()),
        }
    }
}
