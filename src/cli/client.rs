//! Sends mail and waits for what comes of it, with the daemon in another process or in this one.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{
    context::Context,
    failure::{Code, Failure},
    status,
};
use crate::{
    base::{Clock, Interrupted, Moment, Scope},
    journal::{Position, ReadError, Subscription, Watch},
    model::{AgentName, Board, Envelope, Kind, Message, MessageId, TaskId, TaskState},
    store::{Entry, MailReader, MessageBus, Store, TaskBoard, TeamFile},
};

/// How often to look whether the daemon still lives, and for mail where no event tells of it.
const LOOK: Duration = Duration::from_secs(1);
/// How many lines are read at a time.
const BATCH: usize = 512;

/// A sender who can wait.
pub struct Client<'a> {
    context: &'a Context,
    /// All that is on disk.
    pub store: Store,
    /// The way to the mailboxes.
    pub bus: MessageBus,
    /// The team, where one is known.
    pub team: Option<TeamFile>,
    me: AgentName,
    scope: Scope,
    _watch: Watch,
}

/// A request that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its id.
    pub id: MessageId,
    /// Who answers it: a response of anybody else is none.
    pub of: AgentName,
}

impl From<&Envelope> for Asked {
    fn from(said: &Envelope) -> Self {
        Self { id: said.id.clone(), of: said.to.clone() }
    }
}

/// Responses by the request that they answer.
pub type Answers = BTreeMap<MessageId, Message>;

impl<'a> Client<'a> {
    /// Speaks as `me`.
    pub fn new(context: &'a Context, me: AgentName) -> Result<Self, Failure> {
        let store = context.store()?;
        let (bus, team) = context.bus(&store)?;
        Self::with(context, me, store, bus, team)
    }

    /// Speaks as `me` to the members of a team that may not have run yet.
    pub fn for_team(context: &'a Context, me: AgentName, file: TeamFile) -> Result<Self, Failure> {
        let store = context.store_of(context.make_folder()?)?;
        let bus = store.unsealed_bus(Arc::new((&file.team).into()));
        Self::with(context, me, store, bus, Some(file))
    }

    fn with(
        context: &'a Context,
        me: AgentName,
        store: Store,
        bus: MessageBus,
        team: Option<TeamFile>,
    ) -> Result<Self, Failure> {
        let scope = Scope::plain(context.clock().clone());
        let wake = scope.wake.clone();
        let watch = store.journals().watch(Box::new(move || wake.notify()))?;
        Ok(Self { context, store, bus, team, me, scope, _watch: watch })
    }

    /// The clocks.
    pub fn clock(&self) -> &Clock {
        self.context.clock()
    }

    /// In whose name it speaks.
    pub fn me(&self) -> &AgentName {
        &self.me
    }

    /// What it waits with.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Sends; gives the place in the own mailbox behind which an answer will lie.
    pub fn send(&self, envelope: Envelope) -> Result<Position, Failure> {
        let place = self.bus.end_of(&self.me)?;
        self.bus.send(envelope)?;
        Ok(place)
    }

    /// A request from the own name.
    pub fn request(&self, to: AgentName, content: impl Into<String>) -> Envelope {
        Envelope::new(MessageId::random(), self.me.clone(), to, Kind::Request, content)
    }

    /// Waits for the responses to all that was `asked`, which lie behind `after` in the own mailbox.
    /// `seen` gets each as it comes. Ends early when there is no daemon left to answer.
    pub fn await_answers(
        &self,
        asked: &[Asked],
        after: Position,
        timeout: Option<Duration>,
        mut seen: impl FnMut(&Message),
    ) -> Result<Answers, Failure> {
        let _mail = self.subscribe()?;
        let until = timeout.map(|span| self.context.clock().now().after(span));
        let mut reader = self.bus.reader(&self.bus.mailbox_of(&self.me), after)?;
        let mut answers = Answers::new();
        loop {
            let is_up = self.context.is_up();
            self.collect(&mut reader, asked, &mut answers, &mut seen)?;
            if asked.iter().all(|it| answers.contains_key(&it.id)) {
                return Ok(answers);
            }
            if !is_up {
                let missing = missing(asked, &answers);
                return Err(Failure::no_daemon(format!(
                    "no daemon is here to answer {missing}; the mail is kept, and \
                     `postroom up` has it answered"
                )));
            }
            self.pause(until, &mut reader, || missing(asked, &answers))?;
        }
    }

    /// Waits until all of `ids` have ended on the board.
    pub fn await_tasks(&self, ids: &[TaskId], timeout: Option<Duration>) -> Result<(), Failure> {
        let board = TaskBoard::open(&self.store)?;
        let _lines = board.subscribe(&self.scope.wake);
        let until = timeout.map(|span| self.context.clock().now().after(span));
        let open = || board.look(|board| open_tasks(board, ids));
        loop {
            let is_up = self.context.is_up();
            let missing = open()?;
            if missing.is_empty() {
                return Ok(());
            }
            let named = format!("task {}", crate::base::text::listed(&missing));
            if !is_up {
                return Err(Failure::no_daemon(format!(
                    "no daemon is here to work on {named}; `postroom up` has it worked on"
                )));
            }
            for id in &missing {
                if status::is_undoable(self.context, &board, id)? {
                    let text = format!("nobody here can do task {id}; `postroom task show {id}`");
                    return Err(Failure { code: Code::Failed, text });
                }
            }
            let more = || (open().ok()?.len() < missing.len()).then_some(());
            self.pause_for(until, more, &format!("{named} has not ended"))?;
        }
    }

    /// Waits until `is_idle`.
    pub fn await_idle(
        &self,
        timeout: Option<Duration>,
        is_idle: impl Fn() -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let until = timeout.map(|span| self.context.clock().now().after(span));
        while !is_idle()? {
            let more = || is_idle().unwrap_or_default().then_some(());
            self.pause_for(until, more, "somebody still has something to do")?;
        }
        Ok(())
    }

    /// Waits for more mail, for a moment at most.
    fn pause(
        &self,
        until: Option<Moment>,
        reader: &mut MailReader,
        missing: impl Fn() -> String,
    ) -> Result<(), Failure> {
        let place = reader.next();
        let more = || {
            let end = reader.journal().end().ok()?;
            (end != place).then_some(())
        };
        self.pause_for(until, more, &format!("{} is not answered", missing()))
    }

    /// Waits for `more`, for a moment at most.
    fn pause_for(
        &self,
        until: Option<Moment>,
        more: impl FnMut() -> Option<()>,
        what: &str,
    ) -> Result<(), Failure> {
        let next = self.context.clock().now().after(LOOK);
        let waited = self.scope.wait(Some(until.map_or(next, |until| until.min(next))), more);
        let is_late = until.is_some_and(|until| until <= self.context.clock().now());
        match waited {
            Err(Interrupted::Late) if is_late => Err(Failure {
                code: Code::TimedOut,
                text: format!("time is out and {what}; `postroom wait` goes on waiting"),
            }),
            Err(Interrupted::Stopping) => {
                Err(Failure { code: Code::Interrupted, text: "interrupted".to_owned() })
            }
            Ok(()) | Err(Interrupted::Late | Interrupted::Interrupt) => Ok(()),
        }
    }

    /// Takes the responses that have come: each from whoever was asked, a teammate's with its seal.
    fn collect(
        &self,
        reader: &mut MailReader,
        asked: &[Asked],
        answers: &mut Answers,
        seen: &mut impl FnMut(&Message),
    ) -> Result<(), Failure> {
        for message in read_on(reader)? {
            let said = &message.envelope;
            let is_hosted = said.from == AgentName::daemon()
                || self.team.as_ref().is_some_and(|it| it.team.teammates.contains_key(&said.from));
            let answers_it = |it: &&Asked| {
                said.kind == Kind::Response
                    && said.in_reply_to.as_ref() == Some(&it.id)
                    && said.from == it.of
                    && (message.sealed || !is_hosted)
            };
            let Some(found) = asked.iter().find(answers_it) else { continue };
            if !answers.contains_key(&found.id) {
                seen(&message);
                answers.insert(found.id.clone(), message);
            }
        }
        Ok(())
    }

    fn subscribe(&self) -> Result<Subscription, Failure> {
        let mailbox = self.bus.mailbox_of(&self.me);
        let reader = self.bus.reader(&mailbox, Position::ZERO)?;
        Ok(reader.journal().subscribe(&self.scope.wake))
    }
}

fn open_tasks(board: &Board, ids: &[TaskId]) -> Vec<TaskId> {
    let is_open = |id: &&TaskId| {
        board.get(id).is_some_and(|task| {
            matches!(task.state, TaskState::Pending | TaskState::InProgress { .. })
        })
    };
    ids.iter().filter(is_open).cloned().collect()
}

fn missing(asked: &[Asked], answers: &Answers) -> String {
    let ids = asked.iter().map(|it| &it.id);
    crate::base::text::listed(ids.filter(|id| !answers.contains_key(id)))
}

/// About how many bytes a line has; for guessing how far to look back.
const LINE: u64 = 1_000;

/// Goes to a place behind which at least the last `count` messages lie, or to the start.
pub fn go_before_last(reader: &mut MailReader, count: usize) -> Result<(), Failure> {
    let failed = |why: ReadError| Failure::failed(why.to_string());
    let end = reader.journal().end().map_err(failed)?;
    let mut reach = (count as u64).saturating_mul(LINE);
    loop {
        let start = reader.journal().back(end, reach).map_err(failed)?;
        reader.go_to(start);
        let is_enough = start.offset == 0 || read_on(reader)?.len() >= count;
        if is_enough {
            reader.go_to(start);
            return Ok(());
        }
        reach = reach.saturating_mul(4);
    }
}

/// All messages that a reader has not read yet.
pub fn read_on(reader: &mut MailReader) -> Result<Vec<Message>, Failure> {
    let mut messages = Vec::new();
    let failed = |why: ReadError| Failure::failed(why.to_string());
    while let Some(entries) = reader.more_or_anew(BATCH).map_err(failed)? {
        messages.extend(entries.into_iter().filter_map(|entry| match entry {
            Entry::Message(message) => Some(*message),
            Entry::Dead(_) => None,
        }));
    }
    Ok(messages)
}
