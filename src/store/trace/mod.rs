//! Traces: what a run did, one event a line. Never read for a decision.

mod event;
mod fold;
mod read;
mod tree;

use std::{collections::BTreeMap, sync::Arc};

pub use event::{Totals, TraceEvent, TraceHead, TraceLine};
pub use read::TraceReader;
pub use tree::{ToolUse, TraceCall, TraceChild, TraceEnd, TraceNode, TracePiece};

use super::{Store, StoreError, layout};
use crate::{
    base::text::shorten,
    journal::{Journal, Watch},
    model::{AgentName, CallId, Kind, MessageId, RunId, Status, ToolCall, TypeName},
};

/// The most characters of a text in a trace.
const SHOWN: usize = 2_000;
/// How many lives back one is looked for that a crash has left open: not every life has come as far
/// as its trace.
const LIVES_BACK: usize = 16;

/// The trace of one life of a teammate, or of a run of its own.
pub struct Trace {
    store: Store,
    journal: Arc<dyn Journal>,
    id: RunId,
    totals: Totals,
    /// What each run below this one has done so far, with all that is below it.
    children: BTreeMap<RunId, Totals>,
}

impl Trace {
    /// The trace of `agent`'s life number `life`.
    pub fn id_of(agent: &AgentName, life: u64) -> RunId {
        RunId::derived(&["life", agent.as_str(), &life.to_string()])
    }

    /// Begins the trace of a life, and closes that of the life before where a crash left it open.
    pub fn begin(
        store: &Store,
        agent: &AgentName,
        agent_type: &TypeName,
        life: u64,
    ) -> Result<Self, StoreError> {
        for before in (0..life).rev().take(LIVES_BACK) {
            let id = Self::id_of(agent, before);
            if is_there(&*store.journals.open(&layout::trace(&id))?)? {
                Self::close_left_open(store, &id, "the daemon died during this life")?;
                break;
            }
        }
        let trace = Self::open(store, Self::id_of(agent, life))?;
        trace.start(TraceHead::of_life(agent.clone(), agent_type.clone(), life));
        Ok(trace)
    }

    /// Begins the trace of a run of its own, or goes on with it where it has begun before.
    pub fn begin_run(store: &Store, id: RunId, head: TraceHead) -> Result<Self, StoreError> {
        let mut trace = Self::open(store, id)?;
        if !is_there(&*trace.journal)? {
            trace.start(head);
            return Ok(trace);
        }
        trace.journal.close_tail()?;
        let so_far = tree::read_alone(store, &trace.id)?;
        trace.totals = so_far.totals;
        trace.children = so_far.children.into_iter().map(|it| (it.node.id, it.told)).collect();
        if so_far.head.is_some() {
            trace.write(&TraceEvent::Resumed { task: head.task.map(|it| shorten(&it, SHOWN)) });
        } else {
            trace.start(head);
        }
        Ok(trace)
    }

    /// Ends a trace that a crash left open, with totals counted from its lines, and those of the runs
    /// below it that can't go on without it; does nothing where it is closed or not there. For the
    /// only one who may write it.
    pub fn close_left_open(store: &Store, id: &RunId, reason: &str) -> Result<(), StoreError> {
        let trace = Self::open(store, id.clone())?;
        if !is_there(&*trace.journal)? {
            return Ok(());
        }
        trace.journal.close_tail()?;
        if !read::is_closed(&*trace.journal)? {
            let node = tree::read(store, id)?;
            for child in &node.children {
                if node.is_end_of(child) {
                    Self::close_left_open(store, &child.node.id, reason)?;
                }
            }
            trace.write(&TraceEvent::Ended {
                status: "failed".to_owned(),
                reason: reason.to_owned(),
                totals: node.totals,
                with_children: node.with_children,
            });
        }
        Ok(())
    }

    fn open(store: &Store, id: RunId) -> Result<Self, StoreError> {
        let journal = store.journals.open(&layout::trace(&id))?;
        let (totals, children) = (Totals::default(), BTreeMap::new());
        Ok(Self { store: store.clone(), journal, id, totals, children })
    }

    fn start(&self, head: TraceHead) {
        let task = head.task.map(|task| shorten(&task, SHOWN));
        let description = head.description.map(|text| shorten(&text, SHOWN));
        let head = TraceHead { task, description, ..head };
        self.write(&TraceEvent::Started { trace_id: self.id.clone(), head });
    }

    /// The trace's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// What the run itself has done so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// What the run and all below it have done, as far as it was told of them.
    pub fn with_children(&self) -> Totals {
        self.totals + self.children.values().copied().sum()
    }

    /// A message came in.
    pub fn message(&mut self, id: &MessageId, from: &AgentName, kind: Kind, content: &str) {
        self.totals.messages += 1;
        let (id, from, content) = (id.clone(), from.clone(), shorten(content, SHOWN));
        self.write(&TraceEvent::Message { id, from, kind, content });
    }

    /// The model is asked.
    pub fn model_call_started(&mut self) {
        self.totals.model_calls += 1;
        self.write(&TraceEvent::ModelCallStarted);
    }

    /// The model has answered.
    pub fn model_call(&mut self, tokens: (u64, u64), milliseconds: u128, text: &str) {
        let (tokens_in, tokens_out) = tokens;
        self.totals.tokens_in += tokens_in;
        self.totals.tokens_out += tokens_out;
        let (milliseconds, text) = (short_of(milliseconds), shorten(text, SHOWN));
        self.write(&TraceEvent::ModelCall { tokens_in, tokens_out, milliseconds, text });
    }

    /// The conversation was shortened, from about so many tokens to about so many.
    pub fn compaction(&mut self, tokens_before: u64, tokens_after: u64) {
        self.write(&TraceEvent::Compaction { tokens_before, tokens_after });
    }

    /// A tool was called.
    pub fn tool_call(
        &mut self,
        call: &ToolCall,
        verdict: &str,
        milliseconds: u128,
        result: &Result<String, String>,
    ) {
        self.totals.tool_calls += 1;
        let (Ok(text) | Err(text)) = result;
        self.write(&TraceEvent::ToolCall {
            call: call.clone(),
            verdict: verdict.to_owned(),
            milliseconds: short_of(milliseconds),
            is_error: result.is_err(),
            output: shorten(text, SHOWN),
        });
    }

    /// A run below this one was started, or sent to again.
    pub fn subagent_started(
        &mut self,
        id: &RunId,
        call: Option<&CallId>,
        agent_type: &TypeName,
        task: &str,
        in_background: bool,
    ) {
        self.write(&TraceEvent::SubagentStarted {
            id: id.clone(),
            call: call.cloned(),
            agent_type: agent_type.clone(),
            task: shorten(task, SHOWN),
            in_background,
        });
    }

    /// A run below this one has ended, after all this that it and the runs below it have done since
    /// their beginning.
    pub fn subagent_completed(
        &mut self,
        id: &RunId,
        status: Status,
        text: &str,
        with_children: Totals,
    ) {
        self.children.insert(id.clone(), with_children);
        let (id, text) = (id.clone(), shorten(text, SHOWN));
        self.write(&TraceEvent::SubagentCompleted { id, status, text, with_children });
    }

    /// Something went wrong that the model does not hear of.
    pub fn error(&mut self, text: &str) {
        self.write(&TraceEvent::Error { text: shorten(text, SHOWN) });
    }

    /// A piece of work ended.
    pub fn conclusion(&mut self, message: &MessageId, status: Status, text: &str) {
        let (message, text) = (message.clone(), shorten(text, SHOWN));
        self.write(&TraceEvent::Conclusion { message, status, text });
    }

    /// The run ended.
    pub fn end(&mut self, status: &str, reason: &str) {
        self.write(&TraceEvent::Ended {
            status: status.to_owned(),
            reason: shorten(reason, SHOWN),
            totals: self.totals,
            with_children: self.with_children(),
        });
    }

    fn write(&self, event: &TraceEvent) {
        // A trace is for people to read: no work fails because a line of it is lost.
        drop(self.journal.append(&TraceLine::to_text(self.store.now(), event)));
    }
}

impl Store {
    /// All traces that are there.
    pub fn traces(&self) -> Result<Vec<RunId>, StoreError> {
        let listing = self.journals.list(layout::TRACES)?;
        let names = listing.journals.iter().filter_map(|name| name.0.rsplit('/').next());
        Ok(names.filter_map(|name| RunId::new(name).ok()).collect())
    }

    /// Calls `changed` at every change of a trace; it must only notify.
    pub fn watch_traces(&self, changed: Box<dyn Fn() + Send + Sync>) -> Result<Watch, StoreError> {
        Ok(self.journals.watch_folder(layout::TRACES, changed)?)
    }

    /// A trace with all the runs below it.
    pub fn trace_tree(&self, id: &RunId) -> Result<TraceNode, StoreError> {
        tree::read(self, id)
    }
}

fn is_there(journal: &dyn Journal) -> Result<bool, StoreError> {
    Ok(journal.end()?.offset > 0)
}

fn short_of(milliseconds: u128) -> u64 {
    u64::try_from(milliseconds).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
