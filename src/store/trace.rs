//! Traces: what a run did, one event a line. Never read for a decision.

use std::sync::Arc;

use serde::Serialize;

use super::{Store, StoreError, layout};
use crate::{
    base::text::shorten,
    journal::Journal,
    model::{AgentName, CallId, Kind, MessageId, RunId, Status, ToolCall, TypeName},
};

/// The most characters of a text in a trace.
const SHOWN: usize = 2_000;

/// The trace of one life of a teammate.
pub struct Trace {
    store: Store,
    journal: Arc<dyn Journal>,
    id: RunId,
    totals: Totals,
}

/// Who a trace is about.
pub struct TraceHead {
    /// Whose.
    pub agent: AgentName,
    /// As what.
    pub agent_type: TypeName,
    /// Its life.
    pub life: Option<u64>,
    /// The trace above.
    pub parent: Option<RunId>,
    /// The call.
    pub spawned_by_tool: Option<CallId>,
    /// The work.
    pub task: Option<String>,
    /// The task on the board.
    pub parent_task: Option<String>,
    /// In a few words.
    pub description: Option<String>,
    /// Beside its caller.
    pub in_background: bool,
}

/// Sums.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Totals {
    messages: u64,
    model_calls: u64,
    tool_calls: u64,
    tokens_in: u64,
    tokens_out: u64,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Started {
        trace_id: &'a RunId,
        agent: &'a AgentName,
        mode: &'a str,
        life: u64,
    },
    Message {
        id: &'a MessageId,
        from: &'a AgentName,
        kind: Kind,
        content: String,
    },
    ModelCallStarted,
    ModelCall {
        tokens_in: u64,
        tokens_out: u64,
        milliseconds: u128,
        text: String,
    },
    ToolCall {
        call: &'a ToolCall,
        verdict: &'a str,
        milliseconds: u128,
        is_error: bool,
        output: String,
    },
    Error {
        text: String,
    },
    Conclusion {
        message: &'a MessageId,
        status: Status,
        text: String,
    },
    Ended {
        status: &'a str,
        reason: &'a str,
        totals: Totals,
    },
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
        _agent_type: &TypeName,
        life: u64,
    ) -> Result<Self, StoreError> {
        if let Some(before) = life.checked_sub(1) {
            Self::open(store, Self::id_of(agent, before))?.close_after_crash()?;
        }
        let trace = Self::open(store, Self::id_of(agent, life))?;
        trace.write(&Event::Started { trace_id: &trace.id, agent, mode: "agent", life });
        Ok(trace)
    }

    /// Begins the trace of a run.
    pub fn begin_run(store: &Store, id: RunId, head: TraceHead) -> Result<Self, StoreError> {
        let trace = Self::open(store, id)?;
        trace.write(&Event::Started {
            trace_id: &trace.id,
            agent: &head.agent,
            mode: "call",
            life: 0,
        });
        Ok(trace)
    }

    /// A subagent begins.
    pub fn subagent_started(
        &mut self,
        _id: &RunId,
        _call: Option<&CallId>,
        _agent_type: &TypeName,
        _task: &str,
        _in_background: bool,
    ) {
    }

    /// A subagent has ended.
    pub fn subagent_completed(&mut self, _: &RunId, _: Status, _: &str, _: Totals) {}

    /// What it has come to.
    pub fn with_children(&self) -> Totals {
        self.totals
    }

    /// Ends a trace that a crash left open.
    pub fn close_left_open(store: &Store, id: &RunId, _reason: &str) -> Result<(), StoreError> {
        Self::open(store, id.clone())?.close_after_crash()
    }

    fn open(store: &Store, id: RunId) -> Result<Self, StoreError> {
        let journal = store.journals.open(&layout::trace(&id))?;
        Ok(Self { store: store.clone(), journal, id, totals: Totals::default() })
    }

    fn close_after_crash(&self) -> Result<(), StoreError> {
        self.journal.close_tail()?;
        let (mut place, mut last) = (self.journal.start()?, None);
        loop {
            let batch = self.journal.read(place, 1024)?;
            let Some(line) = batch.lines.into_iter().next_back() else { break };
            (place, last) = (batch.next, line.body.ok());
        }
        match last {
            Some(line) if !line.contains("\"event\":\"ended\"") => {
                let totals = Totals::default();
                let reason = "the daemon died during this life";
                self.write(&Event::Ended { status: "failed", reason, totals });
            }
            Some(_) | None => {}
        }
        Ok(())
    }

    /// The trace's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// A message came in.
    pub fn message(&mut self, id: &MessageId, from: &AgentName, kind: Kind, content: &str) {
        self.totals.messages += 1;
        self.write(&Event::Message { id, from, kind, content: shorten(content, SHOWN) });
    }

    /// The model is asked.
    pub fn model_call_started(&mut self) {
        self.totals.model_calls += 1;
        self.write(&Event::ModelCallStarted);
    }

    /// The model has answered.
    pub fn model_call(&mut self, tokens: (u64, u64), milliseconds: u128, text: &str) {
        let (tokens_in, tokens_out) = tokens;
        self.totals.tokens_in += tokens_in;
        self.totals.tokens_out += tokens_out;
        let text = shorten(text, SHOWN);
        self.write(&Event::ModelCall { tokens_in, tokens_out, milliseconds, text });
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
        let (is_error, output) = (result.is_err(), shorten(text, SHOWN));
        self.write(&Event::ToolCall { call, verdict, milliseconds, is_error, output });
    }

    /// Something went wrong that the model does not hear of.
    pub fn error(&mut self, text: &str) {
        self.write(&Event::Error { text: shorten(text, SHOWN) });
    }

    /// A piece of work ended.
    pub fn conclusion(&mut self, message: &MessageId, status: Status, text: &str) {
        self.write(&Event::Conclusion { message, status, text: shorten(text, SHOWN) });
    }

    /// The life ended.
    pub fn end(&mut self, status: &str, reason: &str) {
        self.write(&Event::Ended { status, reason, totals: self.totals });
    }

    fn write(&self, event: &Event<'_>) {
        let body = serde_json::to_string(event)
            .unwrap_or_else(|_| crate::base::broken("an event has a JSON form"));
        let fields = body.strip_prefix('{').unwrap_or(&body);
        // A trace is for people to read: no work fails because a line of it is lost.
        drop(self.journal.append(&format!("{{\"timestamp\":\"{}\",{fields}", self.store.now())));
    }
}
