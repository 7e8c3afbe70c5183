//! What the user is told of without having asked: dead letters, files in the mailbox folder that
//! are nobody's, teammates that have failed.

use std::{collections::BTreeSet, time::Duration};

use super::Instance;
use crate::{
    base::{Moment, text::headline},
    journal::{JournalName, Position},
    model::{AgentName, Envelope, Kind, MessageId},
    store::{Entry, MailReader, StoreError},
};

/// How long to collect before the user is told again of dead letters.
const PAUSE: Duration = Duration::from_secs(30);
const BATCH: usize = 512;

/// Watches over what nobody else reads.
pub struct Notices {
    mailboxes: Vec<(AgentName, MailReader)>,
    strays: BTreeSet<String>,
    next_news: Option<Moment>,
}

impl Notices {
    /// Begins where an earlier life has left off.
    pub fn open(instance: &Instance) -> Result<Self, StoreError> {
        let (office, cursors) = (&instance.office, instance.store().cursors()?);
        let unread = office.team.outside.iter().cloned().chain([AgentName::user()]);
        let mut mailboxes = Vec::new();
        for name in unread {
            let cursor = cursors.read(&name)?.unwrap_or(Position::ZERO);
            let reader = office.bus.reader(&name, cursor)?;
            mailboxes.push((name, reader));
        }
        Ok(Self { mailboxes, strays: BTreeSet::new(), next_news: None })
    }

    /// Looks for lines that are no message in the mailboxes that no teammate reads.
    pub fn look_for_dead(&mut self, instance: &Instance) -> Result<(), StoreError> {
        for (name, reader) in &mut self.mailboxes {
            let before = reader.next();
            while let Some(entries) = reader.more_or_anew(BATCH)? {
                for entry in entries {
                    if let Entry::Dead(line) = entry
                        && let Err(why) = instance.office.dead.record(name, &line)
                    {
                        // It is read again when it can be recorded.
                        reader.go_to(line.at);
                        return Err(why);
                    }
                }
            }
            if reader.next() != before {
                instance.store().cursors()?.move_to(name, reader.next())?;
            }
        }
        Ok(())
    }

    /// Tells the user of new dead letters, at most once in a while; gives when to come again.
    pub fn tell_of_dead(
        &mut self,
        instance: &Instance,
        now: Moment,
    ) -> Result<Option<Moment>, StoreError> {
        let Some(news) = instance.office.dead.news() else { return Ok(None) };
        if let Some(next) = self.next_news
            && now < next
        {
            return Ok(Some(next));
        }
        tell_user(instance, &["dead", &news.count.to_string()], &news.text)?;
        instance.office.dead.told(&news)?;
        self.next_news = Some(now.after(PAUSE));
        Ok(None)
    }

    /// Tells the user of files in the mailbox folder that are nobody's mailbox: mail in them reaches
    /// nobody.
    pub fn look_for_strays(&mut self, instance: &Instance) -> Result<(), StoreError> {
        let listing = instance.store().journals().list("")?;
        let members = &instance.office.bus.roster().members;
        let is_known = |journal: &&JournalName| {
            let system = ["daemon", "tasks"].contains(&journal.0.as_str());
            system || members.iter().any(|name| name.as_str() == journal.0)
        };
        let unknown = listing.journals.iter().filter(|it| !is_known(it));
        let unknown = unknown.filter(|it| !is_read(instance, it));
        let unknown = unknown.map(|journal| format!("{journal}.jsonl"));
        for file in unknown.chain(listing.strays.iter().cloned()) {
            if !self.strays.insert(file.clone()) {
                continue;
            }
            let meant = likely(&file, members);
            let hint =
                meant.map_or_else(String::new, |name| format!(" Did you mean {name}.jsonl?"));
            let shown = headline(&file, 80);
            let text = format!(
                ".mailbox/{shown} is nobody's mailbox: what is written there reaches nobody.{hint}"
            );
            tell_user(instance, &["stray", &file], &text)?;
        }
        Ok(())
    }
}

/// Whether a mailbox is that of a teammate of another team, who has read all that is in it.
fn is_read(instance: &Instance, journal: &JournalName) -> bool {
    let (store, name) = (instance.store(), AgentName::new(journal.0.as_str()));
    let Ok(name) = name else { return false };
    let has_lived = store.lives().names().is_ok_and(|names| names.contains(&name));
    let life = has_lived.then(|| store.lives().open(&name).ok()).flatten();
    let end = store.mailbox_end(&name).ok();
    life.zip(end).is_some_and(|(log, end)| log.life().cursor >= end)
}

/// Sends the user an event whose id follows from its cause, unless it is there already.
pub fn tell_user(instance: &Instance, cause: &[&str], text: &str) -> Result<(), StoreError> {
    let (bus, user) = (&instance.office.bus, AgentName::user());
    let parts = [&["notice", instance.life.as_str()], cause].concat();
    let id = MessageId::derived(&parts);
    bus.reply(&Envelope::new(id, AgentName::daemon(), user, Kind::Event, text))?;
    Ok(())
}

/// The member whose name is most like that of `file`, where one is like it at all.
fn likely<'a>(file: &str, members: &'a BTreeSet<AgentName>) -> Option<&'a AgentName> {
    let stem = file.split('.').next().unwrap_or(file);
    let distances = members.iter().map(|name| (strsim::levenshtein(stem, name.as_str()), name));
    distances.filter(|(far, _)| *far <= 2).min().map(|(_, name)| name)
}
