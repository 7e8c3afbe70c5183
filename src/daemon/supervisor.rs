//! Keeps the teammates alive: one closed enum of events, one deadline.

use std::{
    collections::{BTreeMap, BTreeSet},
    process,
    sync::mpsc::Receiver,
    time::Duration,
};

use super::{
    Death, Instance, Restart,
    events::{Event, Events},
    hosted::Hosted,
    instance::earliest,
    notices::{Notices, tell_user},
    orders::{DownHow, Order, OrderBook, answer, may_order},
    tasks::TaskConsumer,
};
use crate::{
    base::{Clock, Moment, Stop, left_overs::Mark},
    journal::{Tick, Watch},
    model::{AgentName, Desired, Envelope, Kind, Message, MessageId, Status},
    store::{Activity, StoreError, TeamStatus},
};

/// How often everything is looked at that no event tells of.
const TICK: Duration = Duration::from_secs(2);
/// The same where the file system gives no events.
const TICK_WITHOUT_EVENTS: Duration = Duration::from_millis(250);
/// How long changes of the status are collected before it is written.
const STATUS_PAUSE: Duration = Duration::from_millis(50);
/// How long past the grace a thread may take to end.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// How the daemon's life has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// In order.
    Clean,
    /// Without waiting for all.
    Forced,
    /// The mailbox folder is gone or not usable.
    Lost(String),
}

/// The supervisor of a team.
pub struct Supervisor {
    instance: Instance,
    clock: Clock,
    events: Events,
    receiver: Receiver<Event>,
    root: Stop,
    hosted: BTreeMap<AgentName, Hosted>,
    orders: OrderBook,
    notices: Notices,
    tasks: TaskConsumer,
    watch: Watch,
    tick_at: Moment,
    tail_at: Option<Moment>,
    news_at: Option<Moment>,
    lease_at: Option<Moment>,
    status_at: Option<Moment>,
    since: String,
    troubles: BTreeMap<&'static str, String>,
    /// Orders to start somebody who is just about to end.
    postponed: Vec<Message>,
    ending: Option<Ending>,
}

struct Ending {
    /// Who was started once more to obey a SHUTDOWN that came behind its end.
    called_back: BTreeSet<AgentName>,
    /// When patience ends; never in a drain.
    until: Option<Moment>,
    orders: Vec<Message>,
}

impl Supervisor {
    /// Makes ready to host the team of `instance`.
    pub fn new(
        instance: Instance,
        events: Events,
        receiver: Receiver<Event>,
    ) -> Result<Self, StoreError> {
        let clock = instance.store().clock().clone();
        let told = events.clone();
        let watch = instance.store().journals().watch(Box::new(move || told.changed()))?;
        let orders = OrderBook::open(&instance)?;
        let notices = Notices::open(&instance)?;
        let (now, since) = (clock.now(), instance.store().now().to_string());
        let tasks = TaskConsumer::open(&instance, now)?;
        Ok(Self {
            instance,
            clock,
            events,
            receiver,
            root: Stop::root(),
            hosted: BTreeMap::new(),
            orders,
            notices,
            tasks,
            watch,
            tick_at: now,
            tail_at: None,
            news_at: None,
            lease_at: None,
            status_at: None,
            since,
            troubles: BTreeMap::new(),
            postponed: Vec::new(),
            ending: None,
        })
    }

    /// Hosts the team until its life ends. `ready` runs when all are started and the status says so.
    /// However it ends, no teammate goes on without it.
    pub fn run(mut self, ready: impl FnOnce(&Instance)) -> Result<How, StoreError> {
        let how = self.host(ready);
        if how.is_err() {
            self.abandon();
        }
        how
    }

    fn host(&mut self, ready: impl FnOnce(&Instance)) -> Result<How, StoreError> {
        for name in self.instance.start.clone() {
            self.start(&name);
        }
        self.write_status(true);
        ready(&self.instance);
        loop {
            let now = self.clock.now();
            if let Some(how) = self.do_what_is_due(now)? {
                return Ok(how);
            }
            let event = match self.deadline() {
                Some(until) => self.receiver.recv_timeout(until.since(self.clock.now())).ok(),
                None => self.receiver.recv().ok(),
            };
            if let Some(event) = event
                && let Some(how) = self.on(event)?
            {
                return Ok(how);
            }
        }
    }

    fn deadline(&self) -> Option<Moment> {
        let restarts = self.hosted.values().map(Hosted::restart_at);
        let patience = self.ending.as_ref().and_then(|ending| ending.until);
        let own = [
            Some(self.tick_at),
            self.tail_at,
            self.news_at,
            self.lease_at,
            self.status_at,
            patience,
        ];
        earliest(own.into_iter().chain(restarts))
    }

    fn on(&mut self, event: Event) -> Result<Option<How>, StoreError> {
        self.events.take(&event);
        match event {
            Event::Changed => {
                let now = self.clock.now();
                let journals = self.instance.store().journals();
                self.tail_at = journals.tick(now, Tick::Changed);
                self.read_what_nobody_reads(now);
            }
            Event::Status => {
                let soon = self.clock.now().after(STATUS_PAUSE);
                self.status_at = self.status_at.or(Some(soon));
            }
            Event::Ended(name, how) => self.on_end(&name, &how),
            Event::Signal(_) if self.ending.is_some() => return self.end_by_force().map(Some),
            Event::Signal(_) => self.begin_end(DownHow::Gracefully, None),
            Event::Down(how) => self.begin_end(how, None),
        }
        self.ended_in_order()
    }

    fn do_what_is_due(&mut self, now: Moment) -> Result<Option<How>, StoreError> {
        let is_due = |at: Option<Moment>| at.is_some_and(|at| at <= now);
        if self.tick_at <= now
            && let Some(how) = self.tick(now)?
        {
            return Ok(Some(how));
        }
        if is_due(self.tail_at) {
            self.tail_at = self.instance.store().journals().tick(now, Tick::Changed);
        }
        if is_due(self.news_at) {
            self.tell_of_dead(now);
        }
        if is_due(self.lease_at) {
            self.consume_tasks(now);
        }
        if is_due(self.status_at) {
            self.status_at = None;
            self.write_status(self.ending.is_none());
        }
        let due: Vec<AgentName> = self
            .hosted
            .iter()
            .filter(|(_, hosted)| is_due(hosted.restart_at()))
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
            self.start(&name);
        }
        match &self.ending {
            Some(ending) if is_due(ending.until) => self.end_by_force().map(Some),
            Some(_) => self.ended_in_order(),
            None => Ok(None),
        }
    }

    /// Looks at everything that no event may have told of.
    fn tick(&mut self, now: Moment) -> Result<Option<How>, StoreError> {
        if !self.instance.store().is_in_place() {
            self.abandon();
            let folder = self.instance.store().root().path().display().to_string();
            return Ok(Some(How::Lost(format!("{folder} was moved or deleted"))));
        }
        let pause = if self.watch.is_watching() { TICK } else { TICK_WITHOUT_EVENTS };
        self.tick_at = now.after(pause);
        self.tail_at = self.instance.store().journals().tick(now, Tick::All);
        let strays = self.notices.look_for_strays(&self.instance);
        self.note_trouble("files that are nobody's", strays);
        self.read_what_nobody_reads(now);
        Ok(None)
    }

    /// Reads orders, and the mailboxes that no teammate reads.
    fn read_what_nobody_reads(&mut self, now: Moment) {
        let orders = self.obey_orders();
        self.note_trouble("orders", orders);
        self.consume_tasks(now);
        let dead = self.notices.look_for_dead(&self.instance);
        self.note_trouble("mail of the user and of outsiders", dead);
        self.tell_of_dead(now);
    }

    fn consume_tasks(&mut self, now: Moment) {
        let consumed = self.tasks.consume(&self.instance, now);
        self.lease_at = *consumed.as_ref().unwrap_or(&None);
        self.note_trouble("the board", consumed.map(drop));
    }

    fn tell_of_dead(&mut self, now: Moment) {
        let told = self.notices.tell_of_dead(&self.instance, now);
        self.news_at = *told.as_ref().unwrap_or(&None);
        self.note_trouble("dead letters", told.map(drop));
    }

    /// What can't be read or written now is shown in the status and tried again at the next tick:
    /// the teammates go on all the same.
    fn note_trouble(&mut self, with: &'static str, result: Result<(), StoreError>) {
        let known = match result {
            Ok(()) => self.troubles.remove(with),
            Err(why) => self.troubles.insert(with, why.to_string()),
        };
        if known.as_ref() != self.troubles.get(with) {
            self.events.status();
        }
    }

    fn start(&mut self, name: &AgentName) {
        let hosted = self.hosted.entry(name.clone()).or_default();
        self.instance.office.statuses.update(name, |status| status.is_ending = false);
        self.instance.office.statuses.set(name, Activity::Idle, "");
        if let Err(why) = hosted.start(&self.instance.office, name, &self.root, &self.events) {
            self.events.ended(name.clone(), Death::Failed(format!("no thread: {why}")));
        }
    }

    fn on_end(&mut self, name: &AgentName, how: &Death) {
        let now = self.clock.now();
        let verdict = self.hosted.entry(name.clone()).or_default().ended(how, now);
        self.tasks.release(name);
        self.consume_tasks(now);
        let statuses = &self.instance.office.statuses;
        match (how.why(), verdict) {
            (Some(why), Restart::GiveUp) => {
                statuses.set(name, Activity::Failed, why);
                let told = self.tell_of_failure(name, why);
                self.note_trouble("a failure", told);
            }
            (Some(why), Restart::After(_)) => {
                statuses.set(name, Activity::Retrying, format!("restarts after: {why}"));
            }
            (_, Restart::Never) | (None, _) => {}
        }
        if self.ending.is_some() {
            self.hosted.entry(name.clone()).or_default().forgive();
        }
        for order in std::mem::take(&mut self.postponed) {
            let obeyed = self.obey(order);
            self.note_trouble("orders", obeyed);
        }
    }

    fn tell_of_failure(&self, name: &AgentName, why: &str) -> Result<(), StoreError> {
        let text = format!(
            "{name} does not run any more: {why}. When that is mended, `postroom start {name}` \
             starts it."
        );
        tell_user(&self.instance, &["failed", name.as_str(), MessageId::random().as_str()], &text)?;
        let lead = &self.instance.office.team.lead;
        if lead != name {
            let (id, from) = (MessageId::random(), AgentName::daemon());
            let event = Envelope::new(id, from, lead.clone(), Kind::Event, text);
            self.instance.office.bus.reply(&event)?;
        }
        Ok(())
    }

    fn obey_orders(&mut self) -> Result<(), StoreError> {
        let mut done = Ok(());
        for order in self.orders.read(&self.instance)? {
            // An order whose answer could not be written does not keep the next from being obeyed.
            done = done.and(self.obey(order));
        }
        done
    }

    fn obey(&mut self, order: Message) -> Result<(), StoreError> {
        if !may_order(&self.instance, &order) {
            let text = "not allowed: only the user and outsiders give orders to the daemon";
            return answer(&self.instance, &order, Status::Denied, text);
        }
        match order.envelope.content.parse() {
            Ok(Order::Start(name)) => self.start_by_order(&name, order),
            Ok(Order::Down(how)) => {
                self.begin_end(how, Some(order));
                Ok(())
            }
            Err(why) => answer(&self.instance, &order, Status::Failed, &why),
        }
    }

    fn start_by_order(&mut self, name: &AgentName, order: Message) -> Result<(), StoreError> {
        let name = self.instance.office.team.resolve(name.clone());
        if !self.instance.office.team.teammates.contains_key(&name) {
            let known = crate::base::text::listed(self.instance.office.team.teammates.keys());
            let text = format!("no teammate is called {name}; there are {known}");
            return answer(&self.instance, &order, Status::Failed, &text);
        }
        if self.hosted.get(&name).is_some_and(Hosted::is_running) {
            let known = self.instance.office.statuses.all();
            if known.get(&name).is_some_and(|it| it.is_ending) {
                self.postponed.push(order);
                return Ok(());
            }
            return answer(&self.instance, &order, Status::Ok, &format!("{name} is running"));
        }
        match self.record_start(&name) {
            Ok(()) => {
                self.hosted.entry(name.clone()).or_default().forgive();
                self.start(&name);
                answer(&self.instance, &order, Status::Ok, &format!("{name} is started"))
            }
            Err(why) => answer(&self.instance, &order, Status::Failed, &why.to_string()),
        }
    }

    /// An explicit start is a birth: a SHUTDOWN from before no longer counts.
    fn record_start(&self, name: &AgentName) -> Result<(), StoreError> {
        let mut log = self.instance.store().lives().open(name)?;
        let end = self.instance.office.bus.end_of(name)?;
        log.record(|life| {
            life.desired = Desired::Running;
            life.be_born(end);
        })
    }

    fn begin_end(&mut self, how: DownHow, order: Option<Message>) {
        let grace_end = self.clock.now().after(self.instance.office.team.limits.grace);
        let until = match how {
            DownHow::Drain => None,
            DownHow::Gracefully => Some(grace_end.after(LAST_PATIENCE)),
            DownHow::Force => Some(self.clock.now().after(LAST_PATIENCE)),
        };
        let ending = self.ending.get_or_insert(Ending {
            called_back: BTreeSet::new(),
            until,
            orders: Vec::new(),
        });
        ending.until = earliest([ending.until, until]);
        ending.orders.extend(order);
        self.hosted.values_mut().filter(|it| !it.is_running()).for_each(Hosted::forgive);
        self.root.request(how.haste(grace_end));
    }

    fn ended_in_order(&mut self) -> Result<Option<How>, StoreError> {
        if self.ending.is_none() || self.hosted.values().any(Hosted::is_running) {
            return Ok(None);
        }
        if self.call_back() {
            return Ok(None);
        }
        // It is a cache: without it the next start only takes longer.
        drop(self.instance.office.board.save_snapshot());
        self.instance.mark_clean()?;
        self.say_goodbye()?;
        Ok(Some(How::Clean))
    }

    /// Starts those once more for whom a SHUTDOWN came while others were still ending: after a clean
    /// end it would be stale. They obey it and end. Whether there is anybody.
    fn call_back(&mut self) -> bool {
        let names: Vec<AgentName> = self.hosted.keys().cloned().collect();
        let mut is_anybody = false;
        for name in names {
            let Some(ending) = &mut self.ending else { break };
            // What can't be read can't be obeyed either.
            let is_told = self.instance.office.is_told_to_stop(&name).unwrap_or_default();
            if is_told && ending.called_back.insert(name.clone()) {
                is_anybody = true;
                self.start(&name);
            }
        }
        is_anybody
    }

    /// Ends without waiting for threads; their processes are ended, their work goes back by itself
    /// at the next start, which is one after a crash.
    fn end_by_force(&mut self) -> Result<How, StoreError> {
        self.abandon();
        self.say_goodbye()?;
        Ok(How::Forced)
    }

    /// Ends all work at once, and waits for no thread.
    fn abandon(&mut self) {
        self.root.request(crate::base::Haste::Now);
        drop(Mark::of_folder(self.instance.store().root().path()).kill_all());
        self.hosted.values_mut().for_each(Hosted::leave);
    }

    fn say_goodbye(&mut self) -> Result<(), StoreError> {
        let orders = self.ending.take().map(|ending| ending.orders).unwrap_or_default();
        for order in orders {
            answer(&self.instance, &order, Status::Ok, "the team is down")?;
        }
        self.write_status(false);
        Ok(())
    }

    fn write_status(&mut self, ready: bool) {
        let office = &self.instance.office;
        let mut notes = self.instance.notes.clone();
        if !self.watch.is_watching() {
            notes.push("no file events here: mail is looked for four times a second".to_owned());
        }
        notes.extend(self.troubles.iter().map(|(with, why)| format!("{with}: {why}")));
        let status = TeamStatus {
            team: office.team.name.clone(),
            file: self.instance.team.path.display().to_string(),
            pid: process::id(),
            life: self.instance.life.clone(),
            since: self.since.clone(),
            ready,
            notes,
            used_up: office.costs.used_up().into_iter().map(Into::into).collect(),
            teammates: office.statuses.all(),
        };
        // That it can't be written could be read nowhere: it is written once more at the next tick.
        if status.write(self.instance.store()).is_err() {
            self.status_at = Some(self.tick_at);
        }
    }
}
