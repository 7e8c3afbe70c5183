//! Dead letters: lines that are no message, and messages that could not be worked on. Each is
//! recorded once, keyed by its place, by the daemon alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{DeadLine, Store, StoreError, layout};
use crate::{
    base::text::headline,
    journal::{Journal, Position},
    model::{AgentName, MessageId},
};

/// The most bytes of a line that are kept here; the whole stays in its mailbox.
const KEPT: usize = 64 << 10;

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadEntry {
    /// When it was recorded.
    pub timestamp: String,
    /// Derived from its place.
    pub id: MessageId,
    /// In which mailbox it lies.
    pub mailbox: AgentName,
    /// Where it begins there.
    pub at: Position,
    /// Just behind it.
    pub after: Position,
    /// Why it is dead.
    pub reason: String,
    /// How many bytes it has.
    pub length: u64,
    /// The first of them as text; what is not UTF-8 is replaced.
    pub raw: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record {
    Dead(DeadEntry),
    Done { timestamp: String, id: MessageId, how: String },
    Told { timestamp: String, count: usize },
}

/// What the user has not been told yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// How many dead letters there were when this was put together.
    pub count: usize,
    /// The sentence for the user.
    pub text: String,
}

/// All dead letters of a mailbox folder.
#[derive(Clone)]
pub struct DeadLetters {
    store: Store,
    journal: Arc<dyn Journal>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    known: BTreeSet<MessageId>,
    count: usize,
    told: usize,
    untold: BTreeMap<AgentName, Untold>,
}

struct Untold {
    count: usize,
    first: String,
    pretty_printed: bool,
}

impl DeadLetters {
    /// Opens them; for the holder of the daemon's lock.
    pub fn open(store: &Store) -> Result<Self, StoreError> {
        let journal = store.journals.open(&layout::dead_letters())?;
        let mut state = State::default();
        for record in read(&*journal)? {
            match record {
                Record::Dead(entry) => state.meet(&entry),
                Record::Told { count, .. } => state.tell(count),
                Record::Done { .. } => {}
            }
        }
        Ok(Self { store: store.clone(), journal, state: Arc::new(Mutex::new(state)) })
    }

    /// The dead letters that nobody has retried or dropped, oldest first; for whoever only looks.
    pub fn list(store: &Store) -> Result<Vec<DeadEntry>, StoreError> {
        let journal = store.journals.open(&layout::dead_letters())?;
        let mut entries = Vec::new();
        let mut done = BTreeSet::new();
        for record in read(&*journal)? {
            match record {
                Record::Dead(entry) => entries.push(entry),
                Record::Done { id, .. } => drop(done.insert(id)),
                Record::Told { .. } => {}
            }
        }
        entries.retain(|entry| !done.contains(&entry.id));
        Ok(entries)
    }

    /// Marks a dead letter as `retried` or `dropped`.
    pub fn finish(store: &Store, id: &MessageId, how: &str) -> Result<(), StoreError> {
        let journal = store.journals.open(&layout::dead_letters())?;
        let timestamp = store.now().to_string();
        let record = Record::Done { timestamp, id: id.clone(), how: how.to_owned() };
        append(&*journal, &record)
    }

    /// Records a line of `mailbox`, once.
    pub fn record(&self, mailbox: &AgentName, line: &DeadLine) -> Result<(), StoreError> {
        let place = format!("{}:{}", line.at.generation, line.at.offset);
        let id = MessageId::derived(&["dead", mailbox.as_str(), &place]);
        if self.state.lock().known.contains(&id) {
            return Ok(());
        }
        let kept = line.raw.get(..KEPT).unwrap_or(&line.raw);
        let entry = DeadEntry {
            timestamp: self.store.now().to_string(),
            id,
            mailbox: mailbox.clone(),
            at: line.at,
            after: line.after,
            reason: line.reason.clone(),
            length: line.length,
            raw: String::from_utf8_lossy(kept).into_owned(),
        };
        append(&*self.journal, &Record::Dead(entry.clone()))?;
        self.state.lock().meet(&entry);
        Ok(())
    }

    /// What the user has not been told yet.
    pub fn news(&self) -> Option<News> {
        let state = self.state.lock();
        if state.untold.is_empty() {
            return None;
        }
        let parts: Vec<String> = state.untold.iter().map(|(name, it)| it.sentence(name)).collect();
        let text = format!("{} See `postroom dead list`.", parts.join(" "));
        Some(News { count: state.count, text })
    }

    /// Remembers that the user was told.
    pub fn told(&self, news: &News) -> Result<(), StoreError> {
        let timestamp = self.store.now().to_string();
        append(&*self.journal, &Record::Told { timestamp, count: news.count })?;
        self.state.lock().tell(news.count);
        Ok(())
    }
}

impl State {
    fn meet(&mut self, entry: &DeadEntry) {
        self.known.insert(entry.id.clone());
        self.count += 1;
        let first = format!("{} (byte {})", headline(&entry.reason, 200), entry.at.offset);
        let untold = self.untold.entry(entry.mailbox.clone()).or_insert(Untold {
            count: 0,
            first,
            pretty_printed: false,
        });
        untold.count += 1;
        untold.pretty_printed |= matches!(entry.raw.trim(), "{" | "[");
    }

    fn tell(&mut self, count: usize) {
        self.told = self.told.max(count);
        // What was recorded while the news was on its way is told next time.
        if self.told >= self.count {
            self.untold.clear();
        }
    }
}

impl Untold {
    fn sentence(&self, mailbox: &AgentName) -> String {
        let lines =
            if self.count == 1 { "1 line".to_owned() } else { format!("{} lines", self.count) };
        let hint = if self.pretty_printed {
            " It looks like a pretty-printed object: write each message on one line."
        } else {
            ""
        };
        format!("{lines} in {mailbox}.jsonl could not be read: {}.{hint}", self.first)
    }
}

fn append(journal: &dyn Journal, record: &Record) -> Result<(), StoreError> {
    let line = serde_json::to_string(record)
        .unwrap_or_else(|_| crate::base::broken("a dead letter has a JSON form"));
    journal.append(&line)?;
    Ok(())
}

/// What is no record of ours is passed over: it can only be told twice for it.
fn read(journal: &dyn Journal) -> Result<Vec<Record>, StoreError> {
    let mut records = Vec::new();
    let mut place = journal.start()?;
    loop {
        let batch = journal.read(place, 1024)?;
        if batch.lines.is_empty() {
            return Ok(records);
        }
        place = batch.next;
        let bodies = batch.lines.into_iter().filter_map(|line| line.body.ok());
        records.extend(bodies.filter_map(|body| serde_json::from_str(&body).ok()));
    }
}
