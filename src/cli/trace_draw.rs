//! Draws a trace as a tree, and its events as lines.

use std::{collections::BTreeMap, fmt::Write};

use super::{
    cost::money,
    render::{word_for, word_of},
    trace::short_id,
};
use crate::{
    base::{Timestamp, text::headline},
    model::{MessageId, RunId, Status},
    store::{Spent, Totals, TraceCall, TraceChild, TraceEvent, TraceLine, TraceNode, TracePiece},
};

/// How much of a text is shown.
const WIDTH: usize = 100;

/// Something in the tree: its lines, and what hangs below it.
struct Drawn {
    lines: Vec<String>,
    below: Vec<Drawn>,
}

/// What is known beside the traces.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The time where their daemon is up: what has not ended is running.
    pub now: Option<Timestamp>,
    /// What the calls of each have taken.
    pub spent: &'a BTreeMap<RunId, Spent>,
    /// The one whose calls of tools are shown, too.
    pub whole: Option<&'a RunId>,
    /// Those that wait for a decision, each with its question.
    pub asking: &'a BTreeMap<RunId, MessageId>,
}

impl View<'_> {
    /// What the calls of `node` alone have taken.
    fn own(self, node: &TraceNode) -> Spent {
        self.spent.get(&node.id).copied().unwrap_or_default()
    }

    /// What its calls and those of all below it have taken.
    fn with_children(self, node: &TraceNode) -> Spent {
        node.children
            .iter()
            .map(|it| self.with_children(&it.node))
            .fold(self.own(node), Spent::plus)
    }
}

/// The tree below `node`.
pub fn draw(node: &TraceNode, view: View<'_>) -> String {
    let mut text = String::new();
    draw_into(&mut text, &drawn_node(node, None, view), "", "");
    text
}

fn draw_into(text: &mut String, it: &Drawn, first: &str, rest: &str) {
    let bar = if it.below.is_empty() { "   " } else { "│  " };
    for (at, line) in it.lines.iter().enumerate() {
        let _ = match at {
            0 => writeln!(text, "{first}{line}"),
            _ => writeln!(text, "{rest}{bar}{line}"),
        };
    }
    for (at, below) in it.below.iter().enumerate() {
        let is_last = at + 1 == it.below.len();
        let (branch, stem) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        draw_into(text, below, &format!("{rest}{branch}"), &format!("{rest}{stem}"));
    }
}

fn drawn_node(node: &TraceNode, child: Option<&TraceChild>, view: View<'_>) -> Drawn {
    let mut lines = vec![format!("{}  {}", who(node, child), state(node, child, view))];
    let (is_life, works) = (is_life(node), works(node, child));
    let (first, later) = works.split_at(works.len().min(1));
    lines.extend(first.iter().filter_map(|it| it.task.clone()));
    lines.extend(Some(counts(node, view)).filter(|it| !it.is_empty()));
    lines.extend(calls(node, view));
    lines.extend(first.iter().filter_map(|it| it.said.clone()));
    lines.extend(later.iter().flat_map(|it| [&it.task, &it.said]).flatten().cloned());
    // Nothing goes on below a life that has ended.
    let now = view.now.filter(|_| !is_life || node.ended.is_none());
    let view = View { now, ..view };
    Drawn {
        lines,
        below: if is_life { below_life(node, view) } else { children(node, None, view) },
    }
}

/// A piece of work of a run, as far as it is known.
#[derive(Default)]
struct Work {
    task: Option<String>,
    said: Option<String>,
}

/// What a run was given, one after the other, and what came of it: a life has messages instead.
fn works(node: &TraceNode, child: Option<&TraceChild>) -> Vec<Work> {
    let mut works: Vec<Work> = Vec::new();
    if is_life(node) {
        return works;
    }
    for (at, piece) in node.pieces.iter().enumerate() {
        let word = if at == 0 { what(node) } else { "then".to_owned() };
        let task = Some(&piece.headline).filter(|it| !it.is_empty());
        let task = task.map(|it| format!("{word}: {}", headline(it, WIDTH)));
        let ended = piece.end.as_ref().map(|(status, text)| said(*status, text));
        works.push(Work { task, said: ended.or_else(|| Some("not ended".to_owned())) });
    }
    // A trace that is missing or of an earlier day says less than its parent's.
    if works.is_empty() {
        works.push(Work::default());
    }
    let told = child.map(|it| &it.task).filter(|it| !it.is_empty());
    if let Some(first) = works.first_mut().filter(|it| it.task.is_none()) {
        first.task = told.map(|it| format!("{}: {}", what(node), headline(it, WIDTH)));
    }
    if let Some(last) = works.last_mut() {
        last.said = result(node, child);
    }
    works
}

/// The word for what a run does first: a task of the board has its number.
fn what(node: &TraceNode) -> String {
    let of_board = node.head.as_ref().filter(|head| head.spawned_by_tool.is_none());
    let id = of_board.and_then(|head| head.parent_task.as_ref());
    id.map_or_else(|| "task".to_owned(), |id| format!("task {id}"))
}

/// The calls of the run or life that was asked for by its id.
fn calls(node: &TraceNode, view: View<'_>) -> Vec<String> {
    if view.whole != Some(&node.id) {
        return Vec::new();
    }
    let left_out = node.totals.tool_calls.saturating_sub(node.calls.len() as u64);
    let left_out = (left_out > 0).then(|| format!("… {left_out} earlier calls"));
    left_out.into_iter().chain(node.calls.iter().map(call_text)).collect()
}

/// The pieces of work, each with what was started in it, and what was started in none of them.
fn below_life(node: &TraceNode, view: View<'_>) -> Vec<Drawn> {
    let mut below = Vec::new();
    if node.earlier > 0 {
        let line = format!("… {} earlier pieces of work", node.earlier);
        below.push(Drawn { lines: vec![line], below: Vec::new() });
    }
    for piece in &node.pieces {
        let state = match &piece.end {
            Some((status, text)) => said(*status, text),
            None if view.now.is_some() => "in hand".to_owned(),
            None => "not ended".to_owned(),
        };
        let lines = vec![about(piece), state];
        below.push(Drawn { lines, below: children(node, Some(piece.number), view) });
    }
    let of_none = node.children.iter().filter(|it| it.piece.is_none());
    below.extend(of_none.map(|it| drawn_node(&it.node, Some(it), view)));
    below
}

/// The runs that were started in a piece of work, or all of them.
fn children(node: &TraceNode, piece: Option<u64>, view: View<'_>) -> Vec<Drawn> {
    let of_it = node.children.iter().filter(|it| piece.is_none() || it.piece == piece);
    of_it.map(|it| drawn_node(&it.node, Some(it), view)).collect()
}

fn is_life(node: &TraceNode) -> bool {
    node.head.as_ref().is_some_and(|head| head.life.is_some())
}

/// Who it is: agent, type, short id.
fn who(node: &TraceNode, child: Option<&TraceChild>) -> String {
    let id = short_id(&node.id, is_life(node));
    let known = child.and_then(|it| it.agent_type.as_ref());
    match (&node.head, known) {
        (Some(head), _) => format!("{} · {} · {id}", head.agent, head.agent_type),
        (None, Some(kind)) => format!("{kind} · {id}"),
        (None, None) => id,
    }
}

fn state(node: &TraceNode, child: Option<&TraceChild>, view: View<'_>) -> String {
    if node.is_missing {
        return "its trace is missing".to_owned();
    }
    let mut parts = Vec::new();
    if let Some(life) = node.head.as_ref().and_then(|head| head.life) {
        parts.push(format!("life {life}"));
    }
    let in_background = node.head.as_ref().is_some_and(|head| head.in_background);
    if in_background || child.is_some_and(|it| it.in_background) {
        parts.push("in the background".to_owned());
    }
    let span = |until: Option<Timestamp>| match (node.started, until) {
        (Some(from), Some(until)) => span(until.0.saturating_sub(from.0) - node.paused),
        _ => "an unknown time".to_owned(),
    };
    match (&node.ended, view.now) {
        (Some(end), _) if is_life(node) => {
            parts.push(span(end.at));
            parts.push(format!("{}: {}", end.status, headline(&end.reason, WIDTH)));
        }
        (Some(end), _) => parts.push(span(end.at)),
        (None, Some(now)) => {
            parts.push(format!("running for {}", span(Some(now))));
            let question = view.asking.get(&node.id);
            parts.extend(question.map(|id| format!("waits for `postroom approve {id}`")));
        }
        (None, None) => parts.push(format!("cut off after {}", span(node.last))),
    }
    parts.join(", ")
}

/// Turns, tools in the order of their first use, tokens, money.
fn counts(node: &TraceNode, view: View<'_>) -> String {
    let mut parts = Vec::new();
    if node.totals.model_calls > 0 {
        let s = if node.totals.model_calls == 1 { "" } else { "s" };
        parts.push(format!("{} turn{s}", node.totals.model_calls));
    }
    let tools = node.tools.iter().map(|it| match it.errors {
        0 => format!("{}×{}", it.name, it.calls),
        errors => format!("{}×{} ({errors} failed)", it.name, it.calls),
    });
    let tools: Vec<String> = tools.collect();
    if !tools.is_empty() {
        parts.push(tools.join(" "));
    }
    if has_tokens(node.totals) {
        parts.push(tokens(node.totals));
    }
    parts.extend(cost(&view.own(node)));
    if has_tokens(node.with_children) && node.with_children != node.totals {
        parts.push(format!("with children {}", tokens(node.with_children)));
        parts.extend(cost(&view.with_children(node)));
    }
    parts.join(", ")
}

/// What was paid, where anything was.
fn cost(spent: &Spent) -> Option<String> {
    (!spent.is_free()).then(|| money(spent))
}

fn has_tokens(totals: Totals) -> bool {
    totals.tokens_in > 0 || totals.tokens_out > 0
}

fn tokens(totals: Totals) -> String {
    format!("{} tokens in {} out", totals.tokens_in, totals.tokens_out)
}

/// What came of a run: what it told its parent, else its own last word.
fn result(node: &TraceNode, child: Option<&TraceChild>) -> Option<String> {
    let own = || node.pieces.last().and_then(|piece| piece.end.as_ref());
    if let Some((status, text)) = child.and_then(|it| it.end.as_ref()).or_else(own) {
        return Some(said(*status, text));
    }
    let end = node.ended.as_ref()?;
    Some(format!("{}: {}", end.status, headline(&end.reason, WIDTH)))
}

fn said(status: Status, text: &str) -> String {
    format!("{}: {}", word_for(status), headline(text, WIDTH))
}

fn about(piece: &TracePiece) -> String {
    match (&piece.message, &piece.from) {
        (Some(id), Some(from)) => format!("{id} from {from}: {}", headline(&piece.headline, WIDTH)),
        (Some(id), None) => format!("{id}, gone on with from the life before"),
        (None, _) => "work of the life before".to_owned(),
    }
}

/// A length of time for people.
fn span(milliseconds: i64) -> String {
    let tenths = milliseconds.max(0) / 100;
    let seconds = tenths / 10;
    match seconds {
        0..60 => format!("{seconds}.{} s", tenths % 10),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// An event as a line; none where this postroom does not know it.
pub fn event_line(who: &str, line: &TraceLine) -> Option<String> {
    let what = event_text(&line.event)?;
    let time = line.at.map_or_else(|| "unknown time            ".to_owned(), |at| at.to_string());
    Some(format!("{time}  {who}  {what}"))
}

fn call_text(call: &TraceCall) -> String {
    let TraceCall { tool, input, verdict, milliseconds, is_error, output } = call;
    let how = if *is_error { "failed" } else { "ok" };
    format!("{tool} {input}  {verdict}, {milliseconds} ms, {how}: {output}")
}

fn event_text(event: &TraceEvent) -> Option<String> {
    Some(match event {
        TraceEvent::Started { head, .. } => match (head.life, &head.task) {
            (Some(life), _) => format!("life {life} begins"),
            (None, Some(task)) => format!("begins: {}", headline(task, WIDTH)),
            (None, None) => "begins".to_owned(),
        },
        TraceEvent::Resumed { task: Some(task) } => format!("goes on: {}", headline(task, WIDTH)),
        TraceEvent::Resumed { task: None } => "goes on".to_owned(),
        TraceEvent::Message { id, from, kind, content } => {
            format!("{} {id} from {from}: {}", word_of(*kind), headline(content, WIDTH))
        }
        TraceEvent::ModelCallStarted => "asks its model".to_owned(),
        TraceEvent::ModelCall { tokens_in, tokens_out, milliseconds, text } => format!(
            "model: {milliseconds} ms, {tokens_in} tokens in {tokens_out} out  {}",
            headline(text, WIDTH)
        ),
        TraceEvent::Compaction { tokens_before, tokens_after } => {
            format!("shortens its conversation from about {tokens_before} to {tokens_after} tokens")
        }
        TraceEvent::ToolCall { call, verdict, milliseconds, is_error, output } => {
            call_text(&TraceCall::new(call, verdict, *milliseconds, *is_error, output))
        }
        TraceEvent::SubagentStarted { id, agent_type, task, .. } => {
            format!("starts {agent_type} {}: {}", short_id(id, false), headline(task, WIDTH))
        }
        TraceEvent::SubagentCompleted { id, status, text, .. } => {
            format!("{} {}", short_id(id, false), said(*status, text))
        }
        TraceEvent::Error { text } => format!("failed: {}", headline(text, WIDTH)),
        TraceEvent::Conclusion { message, status, text } => {
            format!("{message} {}", said(*status, text))
        }
        TraceEvent::Ended { status, reason, .. } => {
            format!("ends, {status}: {}", headline(reason, WIDTH))
        }
        TraceEvent::Unknown => return None,
    })
}

#[cfg(test)]
mod tests;
