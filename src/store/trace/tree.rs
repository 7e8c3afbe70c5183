//! A trace as a tree: what a run did, the pieces of work in it, and the runs below it.
//!
//! A file is read once, line by line; of a life that went on for long only the latest pieces of work
//! are kept, and the rest is counted.

use std::collections::BTreeSet;

use super::{Totals, TraceHead, TraceReader, fold::Fold};
use crate::{
    base::{Timestamp, text::headline},
    journal::Position,
    model::{AgentName, MessageId, RunId, Status, ToolCall, TypeName},
    store::{Store, StoreError},
};

/// How deep runs may hang below each other in a tree.
const DEEPEST: usize = 64;
/// How much of the input and of the output of a call is kept.
const CALL: usize = 50;

/// A run, and all below it.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceNode {
    /// Its trace.
    pub id: RunId,
    /// Who and what, where the first line can be read.
    pub head: Option<TraceHead>,
    /// Whether there is nothing to be read of it.
    pub is_missing: bool,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When its last line was written.
    pub last: Option<Timestamp>,
    /// For how many milliseconds it rested between an end and going on.
    pub paused: i64,
    /// How it ended; none where it has not.
    pub ended: Option<TraceEnd>,
    /// What it has done itself.
    pub totals: Totals,
    /// The same with all that the runs below it have done.
    pub with_children: Totals,
    /// Its tools in the order of their first use.
    pub tools: Vec<ToolUse>,
    /// Its latest calls.
    pub calls: Vec<TraceCall>,
    /// Its latest pieces of work, in the order in which they were begun.
    pub pieces: Vec<TracePiece>,
    /// How many pieces of work there were before.
    pub earlier: u64,
    /// The runs below it, in the order in which they were started; of those of earlier pieces only
    /// what has not ended.
    pub children: Vec<TraceChild>,
    /// The other runs of earlier pieces, and how far they were read.
    pub left_out: Vec<(RunId, Position)>,
    /// Behind the last line that was read.
    pub read_to: Position,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEnd {
    /// When.
    pub at: Option<Timestamp>,
    /// `completed` or `failed`.
    pub status: String,
    /// Why.
    pub reason: String,
}

/// How often a tool was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    /// As the model calls it.
    pub name: String,
    /// All calls.
    pub calls: u64,
    /// Those of them that failed.
    pub errors: u64,
}

/// A call of a tool, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceCall {
    /// As the model calls it.
    pub tool: String,
    /// How its input begins.
    pub input: String,
    /// What the guard said.
    pub verdict: String,
    /// How long it took.
    pub milliseconds: u64,
    /// Whether it failed.
    pub is_error: bool,
    /// How what it gave begins.
    pub output: String,
}

impl TraceCall {
    /// What is shown of a call.
    pub fn new(
        call: &ToolCall,
        verdict: &str,
        milliseconds: u64,
        is_error: bool,
        output: &str,
    ) -> Self {
        Self {
            tool: call.tool.clone(),
            input: headline(&call.input.to_string(), CALL),
            verdict: verdict.to_owned(),
            milliseconds,
            is_error,
            output: headline(output, CALL),
        }
    }
}

/// A piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracePiece {
    /// Its place among the pieces of its run.
    pub number: u64,
    /// The message that it is about; none where the life before had it in hand, or while a run of its
    /// own has.
    pub message: Option<MessageId>,
    /// Who sent that.
    pub from: Option<AgentName>,
    /// How it begins.
    pub headline: String,
    /// What came of it, and its text.
    pub end: Option<(Status, String)>,
}

/// A run below another one.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceChild {
    /// The piece of work in which it was started.
    pub piece: Option<u64>,
    /// What it is.
    pub agent_type: Option<TypeName>,
    /// What it shall do.
    pub task: String,
    /// Whether nobody waits for it.
    pub in_background: bool,
    /// What it told its parent at its last end; none where it has not ended since it was sent to.
    pub end: Option<(Status, String)>,
    /// What it and the runs below it have done, as its parent was told.
    pub told: Totals,
    /// Its own trace.
    pub node: TraceNode,
}

impl TraceNode {
    /// A run of which nothing can be read.
    pub fn missing(id: RunId) -> Self {
        Self {
            id,
            head: None,
            is_missing: true,
            started: None,
            last: None,
            paused: 0,
            ended: None,
            totals: Totals::default(),
            with_children: Totals::default(),
            tools: Vec::new(),
            calls: Vec::new(),
            pieces: Vec::new(),
            earlier: 0,
            children: Vec::new(),
            left_out: Vec::new(),
            read_to: Position::ZERO,
        }
    }

    /// Whether a run below this one ends with it: a teammate's next life goes on with the subagents
    /// of its work in hand, but not with a task.
    pub(super) fn is_end_of(&self, child: &TraceChild) -> bool {
        let is_life = self.head.as_ref().is_some_and(|head| head.life.is_some());
        let is_task = child.node.head.as_ref().is_some_and(|head| head.spawned_by_tool.is_none());
        child.node.ended.is_none() && !child.node.is_missing && (!is_life || is_task)
    }

    fn has_piece(&self, number: u64) -> bool {
        self.pieces.binary_search_by_key(&number, |piece| piece.number).is_ok()
    }
}

/// Reads a trace with all the runs below it.
pub fn read(store: &Store, id: &RunId) -> Result<TraceNode, StoreError> {
    let mut node = read_alone(store, id)?;
    add_children(store, &mut node, &mut BTreeSet::from([id.clone()]), 1);
    Ok(node)
}

/// Reads a trace; of the runs below it only what it says itself.
pub fn read_alone(store: &Store, id: &RunId) -> Result<TraceNode, StoreError> {
    let mut reader = TraceReader::open(store, id, Position::ZERO)?;
    let mut fold = Fold::new(id.clone());
    while let Some(lines) = reader.more()? {
        for line in lines {
            fold.take(line);
        }
    }
    Ok(fold.finish(reader.next()))
}

/// Reads the runs below `node`. A run that stands elsewhere in the tree already is not read again, so
/// that nothing counts twice and nothing goes round in circles.
fn add_children(store: &Store, node: &mut TraceNode, known: &mut BTreeSet<RunId>, depth: usize) {
    let mut kept = Vec::new();
    for mut child in std::mem::take(&mut node.children) {
        if depth >= DEEPEST || !known.insert(child.node.id.clone()) {
            continue;
        }
        // What can't be read is shown as missing.
        if let Ok(read) = read_alone(store, &child.node.id) {
            child.node = read;
        }
        add_children(store, &mut child.node, known, depth + 1);
        if child.node.is_missing {
            child.node.with_children = child.told;
        }
        node.with_children += child.node.with_children;
        let is_latest = child.piece.is_none_or(|piece| node.has_piece(piece));
        if is_latest {
            kept.push(child);
        } else if child.node.is_missing || child.node.ended.is_some() {
            node.left_out.push((child.node.id, child.node.read_to));
        } else {
            kept.push(TraceChild { piece: None, ..child });
        }
    }
    node.children = kept;
}
