//! Draws a trace as a tree, and its events as lines.

use std::{collections::BTreeMap, fmt::Write};

use super::{
    cost::money,
    render::{word_for, word_of},
    trace::short_id,
};
use crate::{
    base::{Timestamp, text::headline},
    model::{RunId, Status},
    store::{Spent, Totals, TraceChild, TraceEvent, TraceLine, TraceNode, TracePiece},
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
}

impl View<'_> {
    /// What the calls of `node` alone have taken.
    fn own(self, node: &TraceNode) -> Spent {
        self.spent.get(&node.id).copied().unwrap_or_default()
    }

    /// What its calls and those of all below it have taken.
    fn whole(self, node: &TraceNode) -> Spent {
        node.children.iter().map(|it| self.whole(&it.node)).fold(self.own(node), Spent::plus)
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
    let mut lines = vec![format!("{}  {}", who(node, child), state(node, child, view.now))];
    let (task, work) = (child.map_or("", |it| it.task.as_str()), counts(node, view));
    if !task.is_empty() {
        lines.push(format!("task: {}", headline(task, WIDTH)));
    }
    if !work.is_empty() {
        lines.push(work);
    }
    let is_life = is_life(node);
    if !is_life && let Some(result) = result(node, child) {
        lines.push(result);
    }
    // Nothing goes on below a life that has ended.
    let now = view.now.filter(|_| !is_life || node.ended.is_none());
    let view = View { now, ..view };
    Drawn {
        lines,
        below: if is_life { below_life(node, view) } else { children(node, None, view) },
    }
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

fn state(node: &TraceNode, child: Option<&TraceChild>, now: Option<Timestamp>) -> String {
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
    match (&node.ended, now) {
        (Some(end), _) if is_life(node) => {
            parts.push(span(end.at));
            parts.push(format!("{}: {}", end.status, headline(&end.reason, WIDTH)));
        }
        (Some(end), _) => parts.push(span(end.at)),
        (None, Some(now)) => parts.push(format!("running for {}", span(Some(now)))),
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
        parts.extend(cost(&view.whole(node)));
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

fn event_text(event: &TraceEvent) -> Option<String> {
    Some(match event {
        TraceEvent::Started { head, .. } => match (head.life, &head.task) {
            (Some(life), _) => format!("life {life} begins"),
            (None, Some(task)) => format!("begins: {}", headline(task, WIDTH)),
            (None, None) => "begins".to_owned(),
        },
        TraceEvent::Resumed => "goes on".to_owned(),
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
            let how = if *is_error { "failed" } else { "ok" };
            let input = headline(&call.input.to_string(), WIDTH / 2);
            let output = headline(output, WIDTH / 2);
            format!("{} {input}  {verdict}, {milliseconds} ms, {how}: {output}", call.tool)
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
mod tests {
    use std::sync::Arc;

    use expect_test::expect;

    use super::*;
    use crate::{
        base::{Clock, Folder},
        journal::{JournalName, memory::MemoryJournals},
        model::RunId,
        store::Store,
    };

    /// The tree of the trace `id`, of traces with these lines, each with its second.
    fn drawn(id: &str, traces: &[(&str, &[(u32, &str)])], now: Option<i64>) -> String {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::make(&temp.path().canonicalize().unwrap().join(".mailbox")).unwrap();
        let journals = Arc::new(MemoryJournals::default());
        for (id, lines) in traces {
            let journal = journals.journal(&JournalName(format!("traces/{id}")));
            for (second, line) in *lines {
                let time = Timestamp(i64::from(*second) * 1000);
                let line = format!("{{\"timestamp\":\"{time}\",\"event\":{line}}}\n");
                journal.push(line.as_bytes());
            }
        }
        let store = Store::on(journals, folder, Clock::fake(Timestamp(0))).unwrap();
        let tree = store.trace_tree(&RunId::new(id).unwrap()).unwrap();
        let now = now.map(|second| Timestamp(second * 1000));
        draw(&tree, View { now, spent: &BTreeMap::new() })
    }

    const LIFE: &[(u32, &str)] = &[
        (
            0,
            r#""started","trace_id":"dybk67jd3e8o","agent":"lead","agent_type":"general-purpose","mode":"agent","life":3"#,
        ),
        (
            1,
            r#""message","id":"m1","from":"user","kind":"request","content":"read README.md\nand more""#,
        ),
        (1, r#""model_call_started""#),
        (2, r#""model_call","tokens_in":100,"tokens_out":20,"milliseconds":5,"text":"""#),
        (
            2,
            r#""tool_call","call":{"id":"c","tool":"read_file","input":{}},"verdict":"allow","milliseconds":1,"is_error":false,"output":"""#,
        ),
        (
            2,
            r#""tool_call","call":{"id":"c","tool":"bash","input":{}},"verdict":"allow","milliseconds":1,"is_error":true,"output":"""#,
        ),
        (
            2,
            r#""tool_call","call":{"id":"c","tool":"read_file","input":{}},"verdict":"allow","milliseconds":1,"is_error":false,"output":"""#,
        ),
        (3, r#""conclusion","message":"m1","status":"failed","text":"FAILED: run make""#),
        (
            4,
            r#""message","id":"m2","from":"user","kind":"request","content":"look into the parser""#,
        ),
        (4, r#""model_call_started""#),
        (
            5,
            r#""subagent_started","id":"k3v9x0q2m1ab","call":"c","agent_type":"explore","task":"find the parser""#,
        ),
        (
            9,
            r#""subagent_completed","id":"k3v9x0q2m1ab","status":"ok","text":"in src/parse.rs","with_children":{}"#,
        ),
        (
            9,
            r#""subagent_started","id":"nowhere00000","agent_type":"plan","task":"plan it","in_background":true"#,
        ),
    ];

    const RUN: &[(u32, &str)] = &[
        (
            5,
            r#""started","trace_id":"k3v9x0q2m1ab","agent":"lead","agent_type":"explore","mode":"call""#,
        ),
        (5, r#""model_call_started""#),
        (6, r#""model_call","tokens_in":1000,"tokens_out":200,"milliseconds":5,"text":"""#),
        (6, r#""subagent_started","id":"lowest000000","agent_type":"explore","task":"grep""#),
        (8, r#""ended","status":"completed","reason":"done""#),
    ];

    const LOWEST: &[(u32, &str)] = &[
        (
            6,
            r#""started","trace_id":"lowest000000","agent":"lead","agent_type":"explore","mode":"call""#,
        ),
        (8, r#""error","text":"odd""#),
    ];

    #[test]
    fn a_tree_shows_who_did_what_for_whom() {
        let traces = [("dybk67jd3e8o", LIFE), ("k3v9x0q2m1ab", RUN), ("lowest000000", LOWEST)];
        expect![[r#"
            lead · general-purpose · dybk67jd  life 3, running for 1m 15s
            │  2 turns, read_file×2 bash×1 (1 failed), 100 tokens in 20 out, with children 1100 tokens in 220 out
            ├─ m1 from user: read README.md…
            │     failed: FAILED: run make
            └─ m2 from user: look into the parser
               │  in hand
               ├─ lead · explore · subagent-k3v9x0q2  3.0 s
               │  │  task: find the parser
               │  │  1 turn, 1000 tokens in 200 out
               │  │  ok: in src/parse.rs
               │  └─ lead · explore · subagent-lowest00  running for 1m 09s
               │        task: grep
               └─ plan · subagent-nowhere0  its trace is missing
                     task: plan it
        "#]].assert_eq(&drawn("dybk67jd3e8o", &traces, Some(75)));
        expect![[r#"
            lead · explore · subagent-k3v9x0q2  3.0 s
            │  1 turn, 1000 tokens in 200 out
            │  completed: done
            └─ lead · explore · subagent-lowest00  cut off after 2.0 s
                  task: grep
        "#]]
        .assert_eq(&drawn("k3v9x0q2m1ab", &traces, None));
    }

    #[test]
    fn spans_are_short() {
        let spans = [(-5, "0.0 s"), (1_250, "1.2 s"), (62_000, "1m 02s"), (7_500_000, "2h 05m")];
        for (milliseconds, text) in spans.into_iter().chain([(180_000_000, "2d 02h")]) {
            assert_eq!(span(milliseconds), text);
        }
    }
}
