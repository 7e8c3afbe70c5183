//! A teammate's unread mail, its cursor, and what it has in hand.
//!
//! It is a handle, since waits deep inside a tool call read mail, too: one reader, one cursor. It
//! holds a bounded window of mail in memory, and of all that is unread behind the window only what
//! can't wait for its turn.

mod answers;

pub use answers::Awaiting;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{
    DeadLetters, DeadLine, Entry, LifeLog, MailReader, MessageBus, Store, StoreError,
    recent::{Known, Recent},
};
use crate::{
    base::Wake,
    journal::{Position, ReadError, Subscription},
    model::{
        AgentName, Desired, Kind, Life, Message, MessageId, Obedience, Protocol, QuestionStep,
        Span, Taken, Team, Tries, may_stop, obey,
    },
};

/// How many messages are held in memory.
const WINDOW: usize = 256;
/// How many lines are read at a time.
const BATCH: usize = 256;
/// How far back to look first for ids that were given before, in bytes.
const LOOK_BACK: u64 = 4 << 20;

/// Why a teammate is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebirth {
    /// The process is new.
    Process,
    /// Its thread died in this process.
    Thread,
}

/// A teammate's mail and life.
#[derive(Clone)]
pub struct Inbox(Arc<Mutex<State>>);

struct State {
    name: AgentName,
    team: Arc<Team>,
    reader: MailReader,
    window: VecDeque<Message>,
    /// Reads ahead of the window for what can't wait.
    scout: MailReader,
    urgent: Vec<Message>,
    recent: Recent,
    dead: DeadLetters,
    log: LifeLog,
    rebirth: Rebirth,
    /// The message that was taken in this life of the thread.
    begun: Option<Position>,
    interrupts: BTreeSet<Position>,
    /// Questions of this teammate behind the cursor.
    asked: BTreeMap<MessageId, Message>,
    /// Where the lines stand that have closed a question without an answer.
    closed: BTreeMap<MessageId, Position>,
    losses: Vec<String>,
    /// The requests whose responses somebody waits for: they are nobody else's.
    awaited: Vec<MessageId>,
}

impl Inbox {
    /// Opens the mail of `name`, with the right to write down its life.
    pub fn open(
        store: &Store,
        bus: &MessageBus,
        team: Arc<Team>,
        dead: DeadLetters,
        name: &AgentName,
        rebirth: Rebirth,
    ) -> Result<Self, StoreError> {
        let log = store.lives().open(name)?;
        let cursor = log.life().cursor;
        let mut state = State {
            name: name.clone(),
            team,
            reader: bus.reader(name, cursor)?,
            window: VecDeque::new(),
            scout: bus.reader(name, cursor)?,
            urgent: Vec::new(),
            recent: Recent::default(),
            dead,
            log,
            rebirth,
            begun: None,
            interrupts: BTreeSet::new(),
            asked: BTreeMap::new(),
            closed: BTreeMap::new(),
            losses: Vec::new(),
            awaited: Vec::new(),
        };
        state.reader.journal().anchor(cursor)?;
        // What was cut or replaced while nobody looked is noticed before anything is read from it.
        if let Err(why) = state.reader.journal().read(cursor, 1) {
            state.lose(why)?;
        }
        state.remember(bus)?;
        Ok(Self(Arc::new(Mutex::new(state))))
    }

    /// Notifies `wake` when mail comes.
    pub fn subscribe(&self, wake: &Wake) -> Subscription {
        let journal = Arc::clone(self.0.lock().reader.journal());
        journal.subscribe(wake)
    }

    /// Reads what has come.
    pub fn pull(&self) -> Result<(), StoreError> {
        let mut state = self.0.lock();
        state.fill()?;
        state.scout_ahead()
    }

    /// What was lost with a mailbox that was truncated, replaced or deleted; told once.
    pub fn take_losses(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().losses)
    }

    /// Whether something was lost that nobody was told of yet.
    pub fn has_losses(&self) -> bool {
        !self.0.lock().losses.is_empty()
    }

    /// The life as it was last recorded.
    pub fn life(&self) -> Life {
        self.0.lock().log.life().clone()
    }

    /// The next message in turn: the one in hand, else the oldest unread.
    pub fn next(&self) -> Option<Message> {
        self.0.lock().next().cloned()
    }

    /// Whether there is a next message.
    pub fn has_next(&self) -> bool {
        self.0.lock().next().is_some()
    }

    /// The SHUTDOWNs to be obeyed at once, wherever they lie in the unread mail.
    pub fn shutdowns(&self) -> Vec<Message> {
        let state = self.0.lock();
        let urgent = |it: &&Message| !it.envelope.drain && state.judge(it) == Some(Obedience::Obey);
        state.unread().filter(urgent).cloned().collect()
    }

    /// All SHUTDOWNs that are to be obeyed, also those that wait for their turn.
    pub fn all_shutdowns(&self) -> Vec<Message> {
        let state = self.0.lock();
        let obeyed = |it: &&Message| state.judge(it) == Some(Obedience::Obey);
        state.unread().filter(obeyed).cloned().collect()
    }

    /// What becomes of a SHUTDOWN; `None` for every other message.
    pub fn judge(&self, message: &Message) -> Option<Obedience> {
        self.0.lock().judge(message)
    }

    /// Whether somebody who may has asked for the tool in hand to be ended; true once a message.
    pub fn is_interrupted(&self) -> bool {
        let mut state = self.0.lock();
        let wants = |it: &&Message| {
            it.envelope.interrupt
                && may_stop(it, &state.team)
                && !state.interrupts.contains(&it.at)
                && state.log.life().taken.as_ref().is_none_or(|taken| taken.at != it.at)
        };
        let places: Vec<Position> = state.unread().filter(wants).map(|it| it.at).collect();
        state.interrupts.extend(&places);
        !places.is_empty()
    }

    /// What joins the work on `work`: all but the requests that are about something else.
    pub fn joining(&self, work: &MessageId) -> Vec<Message> {
        let state = self.0.lock();
        let taken = state.log.life().taken.as_ref().map(|taken| taken.at);
        let joins = |it: &&Message| {
            let said = &it.envelope;
            let belongs = said.in_reply_to.as_ref() == Some(work)
                || said.task_id.as_deref() == Some(work.as_str());
            let is_control = said.protocol == Some(Protocol::Shutdown) || said.decision.is_some();
            Some(it.at) != taken
                && !is_control
                && !state.is_awaited(it)
                && (said.kind != Kind::Request || belongs)
        };
        state.unread().filter(joins).cloned().collect()
    }

    /// The unread messages with these senders and ids.
    pub fn unread_among(&self, keys: &BTreeSet<(AgentName, MessageId)>) -> Vec<Message> {
        let state = self.0.lock();
        let wanted =
            |it: &&Message| keys.contains(&(it.envelope.from.clone(), it.envelope.id.clone()));
        state.unread().filter(wanted).cloned().collect()
    }

    /// Takes a message in hand before it has any effect; gives how often it was begun and not ended
    /// before.
    pub fn take(&self, message: &Message) -> Result<Tries, StoreError> {
        let mut state = self.0.lock();
        let left = state.log.life().taken.as_ref().filter(|taken| taken.at == message.at);
        let mut tries = left.map(|taken| taken.tries).unwrap_or_default();
        if left.is_some() && state.begun != Some(message.at) {
            match state.rebirth {
                Rebirth::Process => tries.deaths += 1,
                Rebirth::Thread => tries.errors += 1,
            }
        }
        let taken = Taken { at: message.at, id: message.envelope.id.clone(), tries };
        state.log.record(|life| life.taken = Some(taken))?;
        state.begun = Some(message.at);
        Ok(tries)
    }

    /// Consumes messages whose effects are all done, and lets go of the one in hand where it is one
    /// of them.
    pub fn settle(&self, messages: &[Message]) -> Result<(), StoreError> {
        self.0.lock().settle(messages, |_| {})
    }

    /// As [`Inbox::settle`], and the teammate shall not run any more.
    pub fn stop(&self, by: &[Message]) -> Result<(), StoreError> {
        self.0.lock().settle(by, |life| life.desired = Desired::Stopped)
    }

    /// Changes the life otherwise.
    pub fn record(&self, change: impl FnOnce(&mut Life)) -> Result<(), StoreError> {
        self.0.lock().log.record(change)
    }

    /// Whether lines were passed over that the cursor does not know of yet.
    pub fn has_progress(&self) -> bool {
        let state = self.0.lock();
        state.window.is_empty() && state.log.life().cursor < state.reader.next()
    }

    /// Remembers how far lines were passed over, when no unread message keeps the cursor back.
    pub fn note_progress(&self) -> Result<(), StoreError> {
        let mut state = self.0.lock();
        let behind = state.log.life().cursor < state.reader.next();
        if state.window.is_empty() && behind { state.settle(&[], |_| {}) } else { Ok(()) }
    }

    /// Puts a message that can't be worked on among the dead letters.
    pub fn bury(&self, message: &Message, reason: &str) -> Result<(), StoreError> {
        let state = self.0.lock();
        state.dead.record(&state.name, &DeadLine::of_message(message, reason.to_owned()))
    }

    /// Returns when the last record of the life outlives a power cut.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.0.lock().log.sync()
    }

    /// How many messages are unread, as far as they have been looked at.
    pub fn unread_count(&self) -> usize {
        self.0.lock().window.len()
    }
}

impl State {
    /// All that is known to be unread, in the mailbox's order.
    fn unread(&self) -> impl Iterator<Item = &Message> {
        self.window.iter().chain(&self.urgent)
    }

    fn next(&self) -> Option<&Message> {
        let taken = self.log.life().taken.as_ref();
        let in_hand = taken.and_then(|taken| self.unread().find(|it| it.at == taken.at));
        in_hand.or_else(|| self.window.iter().find(|it| !self.is_awaited(it)))
    }

    fn is_awaited(&self, message: &Message) -> bool {
        let said = &message.envelope;
        said.kind == Kind::Response
            && said.in_reply_to.as_ref().is_some_and(|id| self.awaited.contains(id))
    }

    fn judge(&self, message: &Message) -> Option<Obedience> {
        let said = &message.envelope;
        let is_order = said.kind == Kind::Request && said.protocol == Some(Protocol::Shutdown);
        is_order.then(|| obey(message, self.log.life().birth, &self.team))
    }

    fn settle(
        &mut self,
        messages: &[Message],
        change: impl FnOnce(&mut Life),
    ) -> Result<(), StoreError> {
        let places: BTreeSet<Position> = messages.iter().map(|it| it.at).collect();
        let first = self.window.iter().find(|it| !places.contains(&it.at));
        let front = first.map_or(self.reader.next(), |it| it.at);
        self.log.record(|life| {
            for message in messages {
                if message.at.generation == life.cursor.generation {
                    life.consume(Span { from: message.at, to: message.after });
                }
            }
            life.advance(front);
            // What is settled beside the message in hand does not put that down.
            life.taken.take_if(|taken| places.contains(&taken.at));
            change(life);
        })?;
        self.begun.take_if(|begun| places.contains(begun));
        self.window.retain(|it| !places.contains(&it.at));
        self.urgent.retain(|it| !places.contains(&it.at));
        let cursor = self.log.life().cursor;
        self.interrupts.retain(|place| *place >= cursor);
        Ok(())
    }

    /// Fills the window with what is unread and next.
    fn fill(&mut self) -> Result<(), StoreError> {
        while self.window.len() < WINDOW {
            let entries = match self.reader.more(BATCH) {
                Ok(entries) if entries.is_empty() => break,
                Ok(entries) => entries,
                Err(why) => {
                    self.lose(why)?;
                    continue;
                }
            };
            for entry in entries {
                let at = entry.at();
                if let Err(why) = self.meet(entry) {
                    // What could not be dealt with, and all behind it, is read again.
                    self.reader.go_to(at);
                    return Err(why);
                }
            }
        }
        let next = self.reader.next();
        self.urgent.retain(|it| it.at >= next);
        Ok(())
    }

    fn meet(&mut self, entry: Entry) -> Result<(), StoreError> {
        let message = match entry {
            Entry::Dead(line) => return self.dead.record(&self.name, &line),
            Entry::Message(message) => *message,
        };
        if message.envelope.question.is_some() && message.envelope.from == self.name {
            self.meet_question(&message);
            return Ok(());
        }
        match self.recent.meet(&message) {
            Known::New if self.log.life().has_consumed(message.at) => {}
            Known::New => self.window.push_back(message),
            Known::Repeated => {}
            Known::Contradicts => {
                let said = &message.envelope;
                let reason = format!(
                    "{} has sent something else under the id {}; give each message an id of its own",
                    said.from, said.id
                );
                self.dead.record(&self.name, &DeadLine::of_message(&message, reason))?;
            }
        }
        Ok(())
    }

    /// A line of a question's own life is no mail: it only says how the question stands.
    fn meet_question(&mut self, message: &Message) {
        let said = &message.envelope;
        match (message.sealed, said.question) {
            (true, Some(QuestionStep::Asked)) => {
                self.asked.insert(said.id.clone(), message.clone());
            }
            (true, Some(QuestionStep::Decided)) => {
                if let Some(id) = &said.in_reply_to {
                    self.asked.remove(id);
                }
            }
            (true, Some(QuestionStep::Expired | QuestionStep::Withdrawn)) => {
                if let Some(id) = &said.in_reply_to {
                    self.closed.entry(id.clone()).or_insert(message.at);
                }
            }
            (false, _) | (true, None) => {}
        }
    }

    /// Looks through all that lies behind the window for what can't wait: orders to end, interrupts
    /// and responses, for which somebody may be waiting.
    fn scout_ahead(&mut self) -> Result<(), StoreError> {
        if self.scout.next() < self.reader.next() {
            self.scout.go_to(self.reader.next());
        }
        if self.window.len() < WINDOW {
            return Ok(());
        }
        loop {
            let entries = match self.scout.more(BATCH) {
                Ok(entries) if entries.is_empty() => return Ok(()),
                Ok(entries) => entries,
                Err(why) => return self.lose(why),
            };
            for entry in entries {
                let Entry::Message(message) = entry else { continue };
                let said = &message.envelope;
                if said.question.is_some() && said.from == self.name {
                    self.meet_question(&message);
                    continue;
                }
                let can_wait = said.kind != Kind::Response
                    && said.protocol != Some(Protocol::Shutdown)
                    && !said.interrupt;
                if !can_wait && !self.log.life().has_consumed(message.at) {
                    self.urgent.push(*message);
                }
            }
        }
    }

    /// Goes on in the new generation of a mailbox that is no longer what was read.
    fn lose(&mut self, why: ReadError) -> Result<(), StoreError> {
        let ReadError::Lost { resume, unread, how } = why else { return Err(why.into()) };
        self.log.record(|life| life.go_on_at(resume))?;
        self.reader.go_to(resume);
        self.scout.go_to(resume);
        self.window.clear();
        self.urgent.clear();
        self.interrupts.clear();
        let lost = match unread {
            0 => "nothing unread is known to be lost".to_owned(),
            bytes => format!("{bytes} unread bytes are lost"),
        };
        self.losses.push(format!("the mailbox {}.jsonl was {how}: {lost}", self.name));
        Ok(())
    }

    /// Learns the ids that were given lately, from the lines before the cursor.
    fn remember(&mut self, bus: &MessageBus) -> Result<(), StoreError> {
        let cursor = self.log.life().cursor;
        let mut reach = LOOK_BACK;
        loop {
            let start = self.reader.journal().back(cursor, reach)?;
            self.recent = Recent::default();
            let mut reader = bus.reader(&self.name, start)?;
            while reader.next() < cursor {
                let entries = reader.more(BATCH)?;
                if entries.is_empty() {
                    break;
                }
                for entry in entries {
                    match entry {
                        Entry::Message(message) if message.at < cursor => {
                            self.recent.meet(&message);
                        }
                        Entry::Message(_) | Entry::Dead(_) => {}
                    }
                }
            }
            if start.offset == 0 || self.recent.is_full() {
                return Ok(());
            }
            reach = reach.saturating_mul(4);
        }
    }
}
