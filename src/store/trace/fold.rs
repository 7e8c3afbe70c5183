//! What the lines of one trace come to, one after the other.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
};

use super::{
    Totals, TraceCall, TraceChild, TraceEnd, TraceEvent, TraceLine, TraceNode, TracePiece,
    tree::ToolUse,
};
use crate::{
    base::text::headline,
    journal::Position,
    model::{AgentName, Kind, MessageId, RunId, Status},
};

/// How many pieces of work, and how many calls, are kept.
pub const KEPT: usize = 50;
/// How much of a text is kept: a headline is all that is shown of it.
const HEADLINE: usize = 200;

/// A trace so far.
pub struct Fold {
    node: TraceNode,
    /// The pieces that have not ended, the latest last.
    open: Vec<Open>,
    /// The latest pieces that have ended.
    done: VecDeque<TracePiece>,
    /// The latest calls.
    calls: VecDeque<TraceCall>,
    /// Where each run below stands among the children.
    places: BTreeMap<RunId, usize>,
    next: u64,
}

/// A message that is worked on, belongs to work that is under way, or is context.
struct Open {
    piece: TracePiece,
    /// Whether it is worked on by itself.
    is_work: bool,
}

impl Fold {
    /// Nothing yet.
    pub fn new(id: RunId) -> Self {
        let node = TraceNode::missing(id);
        let (open, done, calls) = (Vec::new(), VecDeque::new(), VecDeque::new());
        Self { node, open, done, calls, places: BTreeMap::new(), next: 0 }
    }

    /// Takes the next line.
    pub fn take(&mut self, line: TraceLine) {
        let before = self.node.last;
        let node = &mut self.node;
        node.is_missing = false;
        node.last = line.at.or(before);
        match line.event {
            TraceEvent::Started { head, .. } => {
                node.started = node.started.or(line.at);
                let task = head.task.clone();
                node.head.get_or_insert(head);
                self.begin_run(task);
            }
            TraceEvent::Resumed { task } => {
                if let (Some(before), Some(at)) = (before, line.at) {
                    node.paused += at.0.saturating_sub(before.0).max(0);
                }
                node.ended = None;
                self.begin_run(task);
            }
            TraceEvent::Message { id, from, kind, content } => {
                node.totals.messages += 1;
                let headline = headline(&content, HEADLINE);
                self.open(Some(id), Some(from), headline, kind == Kind::Request);
            }
            TraceEvent::ModelCallStarted => {
                node.totals.model_calls += 1;
                self.begin_work();
            }
            TraceEvent::ModelCall { tokens_in, tokens_out, .. } => {
                node.totals += Totals { tokens_in, tokens_out, ..Totals::default() };
            }
            TraceEvent::ToolCall { call, verdict, milliseconds, is_error, output } => {
                let shown = TraceCall::new(&call, &verdict, milliseconds, is_error, &output);
                self.calls.push_back(shown);
                if self.calls.len() > KEPT {
                    self.calls.pop_front();
                }
                self.count_tool(call.tool, is_error);
            }
            TraceEvent::SubagentStarted { id, agent_type, task, in_background, .. } => {
                let piece = self.open.iter().rev().find(|it| it.is_work).map(|it| it.piece.number);
                let child = self.child(id, piece);
                child.end = None;
                child.agent_type.get_or_insert(agent_type);
                if child.task.is_empty() {
                    child.task = headline(&task, HEADLINE);
                }
                child.in_background |= in_background;
            }
            TraceEvent::SubagentCompleted { id, status, text, with_children } => {
                let child = self.child(id, None);
                child.end = Some((status, headline(&text, HEADLINE)));
                child.told = with_children;
            }
            TraceEvent::Conclusion { message, status, text } => {
                self.conclude(message, status, &text);
            }
            TraceEvent::Ended { status, reason, .. } => {
                node.ended = Some(TraceEnd { at: line.at, status, reason });
            }
            TraceEvent::Compaction { .. } | TraceEvent::Error { .. } | TraceEvent::Unknown => {}
        }
    }

    /// All that was read, behind `read_to`.
    pub fn finish(mut self, read_to: Position) -> TraceNode {
        let open = self.open.into_iter().filter(|it| it.is_work).map(|it| it.piece);
        self.node.pieces = self.done.into_iter().chain(open).collect();
        self.node.pieces.sort_by_key(|piece| piece.number);
        let too_many = self.node.pieces.len().saturating_sub(KEPT);
        self.node.pieces.drain(..too_many);
        self.node.earlier += too_many as u64;
        self.node.calls = self.calls.into();
        self.node.with_children = self.node.totals;
        self.node.read_to = read_to;
        self.node
    }

    fn open(
        &mut self,
        message: Option<MessageId>,
        from: Option<AgentName>,
        headline: String,
        is_work: bool,
    ) {
        let piece = TracePiece { number: self.next, message, from, headline, end: None };
        self.next += 1;
        self.open.push(Open { piece, is_work });
        if self.open.len() > KEPT {
            let oldest = self.open.iter().position(|it| !it.is_work).unwrap_or_default();
            self.node.earlier += u64::from(self.open.remove(oldest).is_work);
        }
    }

    /// A run is given work, or goes on with what it has.
    fn begin_run(&mut self, task: Option<String>) {
        if let Some(task) = task.filter(|_| !self.open.iter().any(|it| it.is_work)) {
            self.open(None, None, headline(&task, HEADLINE), true);
        }
    }

    /// The model is asked: about the latest message, where no work is under way. Where there is none,
    /// the life before has had it.
    fn begin_work(&mut self) {
        if self.open.iter().any(|it| it.is_work) {
            return;
        }
        match self.open.last_mut() {
            Some(latest) => latest.is_work = true,
            None => self.open(None, None, String::new(), true),
        }
    }

    /// What has come during a piece of work belonged to it; so did the context before it.
    fn conclude(&mut self, message: MessageId, status: Status, text: &str) {
        let of_it = |it: &Open| it.piece.message.as_ref() == Some(&message);
        let nameless = |it: &Open| it.piece.message.is_none();
        let at = self.open.iter().rposition(of_it).or_else(|| self.open.iter().rposition(nameless));
        let at = at.unwrap_or_else(|| {
            self.open(None, None, String::new(), true);
            self.open.len().saturating_sub(1)
        });
        let mut joined: Vec<u64> = self.open.drain(at + 1..).map(|it| it.piece.number).collect();
        let Some(mut it) = self.open.pop() else { return };
        for before in mem::take(&mut self.open) {
            if before.is_work {
                self.open.push(before);
            } else {
                joined.push(before.piece.number);
            }
        }
        it.piece.message = Some(message);
        it.piece.end = Some((status, headline(text, HEADLINE)));
        self.hand_over(&joined, it.piece.number);
        self.done.push_back(it.piece);
        if self.done.len() > KEPT {
            self.done.pop_front();
            self.node.earlier += 1;
        }
    }

    /// Runs that were started while `joined` came belong to the piece that these belonged to.
    fn hand_over(&mut self, joined: &[u64], number: u64) {
        let Some(first) = joined.iter().chain([&number]).min().copied() else { return };
        let is_since = |it: &&mut TraceChild| it.piece.is_none_or(|piece| piece >= first);
        for child in self.node.children.iter_mut().rev().take_while(is_since) {
            if child.piece.is_some_and(|piece| joined.contains(&piece)) {
                child.piece = Some(number);
            }
        }
    }

    fn count_tool(&mut self, name: String, is_error: bool) {
        self.node.totals.tool_calls += 1;
        let tools = &mut self.node.tools;
        let at = tools.iter().position(|it| it.name == name).unwrap_or(tools.len());
        if at == tools.len() {
            tools.push(ToolUse { name, calls: 0, errors: 0 });
        }
        if let Some(it) = tools.get_mut(at) {
            it.calls += 1;
            it.errors += u64::from(is_error);
        }
    }

    /// The run called `id`, which is new where it was not named before.
    fn child(&mut self, id: RunId, piece: Option<u64>) -> &mut TraceChild {
        let children = &mut self.node.children;
        let at = *self.places.entry(id.clone()).or_insert(children.len());
        if at == children.len() {
            children.push(TraceChild {
                piece,
                agent_type: None,
                task: String::new(),
                in_background: false,
                end: None,
                told: Totals::default(),
                node: TraceNode::missing(id),
            });
        }
        children.get_mut(at).unwrap_or_else(|| crate::base::broken("it was added if need be"))
    }
}
