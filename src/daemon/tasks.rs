//! What follows from the board: whoever added a task is told of its end, claims of the dead are
//! given back, leases end. One consumer with a cursor of its own, whoever wrote the lines.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use super::{Instance, instance::earliest};
use crate::{
    base::{Moment, text::headline},
    journal::Position,
    model::{
        AgentName, Change, Envelope, Hold, Kind, MessageId, Task, TaskId, TaskState, way_out,
        worker,
    },
    store::{BoardNews, DeadLine, StoreError},
};

/// The consumer.
pub struct TaskConsumer {
    /// When the leases end that are running: by task, with the attempt.
    leases: BTreeMap<TaskId, (u64, Moment)>,
    /// What has changed and was not dealt with yet, in order.
    pending: VecDeque<BoardNews>,
    /// Lines that are none and were not recorded yet.
    dead: Vec<DeadLine>,
    /// Whose claims have to be given back, since their threads have died.
    died: BTreeSet<AgentName>,
    /// Whether lines are dealt with for the second time, so that mail may be out already.
    repeats: bool,
}

/// The name under which the board's cursor and dead letters are kept.
fn board_name() -> AgentName {
    AgentName::named("tasks")
}

impl TaskConsumer {
    /// Begins where an earlier life has left off. Claims of runs that died with it go back.
    pub fn open(instance: &Instance, now: Moment) -> Result<Self, StoreError> {
        let board = &instance.office.board;
        let cursor = instance.store().cursors()?.read(&board_name())?.unwrap_or(Position::ZERO);
        board.collect_news(cursor)?;
        let claimed: Vec<Task> = board.look(|board| board.in_hand().cloned().collect())?;
        let mut consumer = Self {
            leases: BTreeMap::new(),
            pending: VecDeque::new(),
            dead: Vec::new(),
            died: BTreeSet::new(),
            repeats: true,
        };
        for task in claimed {
            match &task.state {
                TaskState::InProgress { hold: Hold::Run(_), .. } => {
                    board.give_back(&task, Some("death"))?;
                }
                _ => consumer.watch_lease(&task, now),
            }
        }
        Ok(consumer)
    }

    /// Deals with what has changed; gives when the next lease ends.
    pub fn consume(
        &mut self,
        instance: &Instance,
        now: Moment,
    ) -> Result<Option<Moment>, StoreError> {
        let board = &instance.office.board;
        self.give_back(instance)?;
        let (news, dead, place) = board.take_news()?;
        let changed = !news.is_empty() || !dead.is_empty() || !self.pending.is_empty();
        self.pending.extend(news);
        self.dead.extend(dead);
        for line in &self.dead {
            instance.office.dead.record(&board_name(), line)?;
        }
        self.dead.clear();
        // What fails now, such as for want of space, is dealt with next time.
        while let Some(it) = self.pending.front().cloned() {
            self.deal_with(instance, &it, now)?;
            self.pending.pop_front();
        }
        if changed {
            instance.store().cursors()?.move_to(&board_name(), place)?;
        }
        self.repeats = false;
        // A renewal that has come in time counts, however late it is read.
        self.end_leases(instance, now)?;
        Ok(earliest(self.leases.values().map(|(_, at)| Some(*at))))
    }

    /// The thread of `name` has died: what it had in hand goes back.
    pub fn release(&mut self, name: &AgentName) {
        self.died.insert(name.clone());
    }

    fn give_back(&mut self, instance: &Instance) -> Result<(), StoreError> {
        let board = &instance.office.board;
        while let Some(name) = self.died.first().cloned() {
            let is_theirs = |task: &&Task| matches!(&task.state, TaskState::InProgress { owner, hold: Hold::Run(_) } if *owner == name);
            let theirs: Vec<Task> =
                board.look(|board| board.in_hand().filter(is_theirs).cloned().collect())?;
            for task in theirs {
                board.give_back(&task, Some("error"))?;
            }
            self.died.remove(&name);
        }
        Ok(())
    }

    fn deal_with(
        &mut self,
        instance: &Instance,
        news: &BoardNews,
        now: Moment,
    ) -> Result<(), StoreError> {
        let task = &news.task;
        match news.change {
            Change::Created(_) => {
                self.tell_of_fault(instance, news)?;
                self.tell_of_hopeless(instance, news)?;
            }
            Change::Claimed(_) | Change::Renewed(_) => self.watch_lease(task, now),
            Change::Released(_) => drop(self.leases.remove(&task.id)),
            Change::Ended(_) => {
                self.leases.remove(&task.id);
                self.tell_of_end(instance, news)?;
            }
        }
        Ok(())
    }

    /// Counted on this process's clock from when it has seen the claim: other clocks may be wrong.
    fn watch_lease(&mut self, task: &Task, now: Moment) {
        if let TaskState::InProgress { hold: Hold::Lease(seconds), .. } = &task.state {
            let end = now.after(Duration::from_secs(*seconds));
            self.leases.insert(task.id.clone(), (task.attempt, end));
        }
    }

    fn end_leases(&mut self, instance: &Instance, now: Moment) -> Result<(), StoreError> {
        let due: Vec<TaskId> = self
            .leases
            .iter()
            .filter(|(_, (_, at))| *at <= now)
            .map(|(id, _)| id.clone())
            .collect();
        for id in due {
            let Some((attempt, _)) = self.leases.remove(&id) else { continue };
            let task = instance.office.board.look(|board| board.get(&id).cloned())?;
            if let Some(task) = task.filter(|task| task.attempt == attempt) {
                instance.office.board.give_back(&task, Some("lease"))?;
            }
        }
        Ok(())
    }

    fn tell_of_end(&self, instance: &Instance, news: &BoardNews) -> Result<(), StoreError> {
        let task = &news.task;
        let what = format!("task {} ({})", task.id, headline(&task.title, 80));
        let worker = worker(Some(&instance.office.team), task);
        let by = |word: &str| worker.as_ref().map_or_else(String::new, |it| format!("{word} {it}"));
        let text = match &task.state {
            TaskState::Done(result) => format!("{what} is done{}\n\n{result}", by(" by")),
            TaskState::Failed(why) => format!(
                "{what} has failed{}\n\n{why}\n\n`postroom task retry {}` tries it again",
                by(", tried by"),
                task.id
            ),
            TaskState::Cancelled => format!("{what} was cancelled"),
            TaskState::Pending | TaskState::InProgress { .. } => return Ok(()),
        };
        self.tell(instance, news, &task.added_by, "end", &text)?;
        let blocked = instance.office.board.look(|board| board.blocked_by(&task.id))?;
        if !matches!(task.state, TaskState::Done(_)) && !blocked.is_empty() {
            let waiting = crate::base::text::listed(&blocked);
            let text = format!(
                "task {} is {} and these wait for it: {waiting}",
                task.id,
                task.state.as_str()
            );
            self.tell(instance, news, &instance.office.team.lead, "blocks", &text)?;
        }
        Ok(())
    }

    /// Whoever adds a task that nobody can do has written something else than was meant.
    fn tell_of_fault(&self, instance: &Instance, news: &BoardNews) -> Result<(), StoreError> {
        let task = &news.task;
        let Some(fault) = instance.office.team.fault_of(task) else { return Ok(()) };
        let shown = headline(&task.title, 80);
        let text =
            format!("task {} ({shown}) can't be done: {fault}\n\n{}", task.id, way_out(task));
        self.tell(instance, news, &task.added_by, "fault", &text)
    }

    /// A task that waits for one which has ended otherwise than done can't begin by itself.
    fn tell_of_hopeless(&self, instance: &Instance, news: &BoardNews) -> Result<(), StoreError> {
        let task = &news.task;
        let has_ended = |id: &&TaskId| {
            instance.office.board.look(|board| {
                let state = board.get(id).map(|task| &task.state);
                matches!(state, Some(TaskState::Failed(_) | TaskState::Cancelled))
            })
        };
        let mut hopeless = Vec::new();
        for id in &task.depends_on {
            if has_ended(&id)? {
                hopeless.push(id);
            }
        }
        if hopeless.is_empty() {
            return Ok(());
        }
        let ended = crate::base::text::listed(hopeless);
        let text = format!(
            "task {} ({}) waits for what will not be done: {ended}",
            task.id,
            headline(&task.title, 80)
        );
        self.tell(instance, news, &instance.office.team.lead, "hopeless", &text)
    }

    /// Sends an event whose id follows from the line that caused it, once.
    fn tell(
        &self,
        instance: &Instance,
        news: &BoardNews,
        to: &AgentName,
        what: &str,
        text: &str,
    ) -> Result<(), StoreError> {
        let (task, after) = (&news.task, news.after);
        let place = format!("{}:{}", after.generation, after.offset);
        let id = MessageId::derived(&["task", what, task.id.as_str(), &place, to.as_str()]);
        let (bus, from) = (&instance.office.bus, AgentName::daemon());
        if self.repeats && bus.has(to, &from, &id, bus.start_of(to)?)? {
            return Ok(());
        }
        let trace = task.worker.as_ref().and_then(|it| it.trace.as_ref());
        let event = Envelope {
            task_id: Some(task.id.to_string()),
            trace_id: trace.map(ToString::to_string),
            ..Envelope::new(id, from, to.clone(), Kind::Event, text)
        };
        bus.reply(&event)?;
        Ok(())
    }
}
