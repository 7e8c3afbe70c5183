//! Traces on journals in memory: what is written, and what is read of it.

use std::sync::Arc;

use expect_test::expect;

use super::*;
use crate::{
    base::{Clock, Folder, Timestamp},
    journal::memory::MemoryJournals,
};

struct Bench {
    journals: Arc<MemoryJournals>,
    store: Store,
    _temp: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::make(&temp.path().canonicalize().unwrap().join(".mailbox")).unwrap();
        let journals = Arc::new(MemoryJournals::default());
        let clock = Clock::fake(Timestamp(0));
        let store = Store::on(journals.clone(), folder, clock).unwrap();
        Self { journals, store, _temp: temp }
    }

    fn life(&self, life: u64) -> Trace {
        Trace::begin(&self.store, &name("lead"), &kind("general-purpose"), life).unwrap()
    }

    fn run(&self, id: &str, parent: &Trace) -> Trace {
        Trace::begin_run(&self.store, run(id), head(Some(parent.id()))).unwrap()
    }

    fn push(&self, id: &RunId, text: &str) {
        self.journals.journal(&layout::trace(id)).push(text.as_bytes());
    }

    fn lines(&self, id: &RunId) -> Vec<String> {
        let text = String::from_utf8(self.journals.journal(&layout::trace(id)).bytes()).unwrap();
        let text = text.replace("\"timestamp\":\"1970-01-01T00:00:00.000Z\",", "");
        text.lines().map(str::to_owned).collect()
    }

    fn tree(&self, trace: &Trace) -> TraceNode {
        self.store.trace_tree(trace.id()).unwrap()
    }
}

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

fn kind(text: &str) -> TypeName {
    TypeName::new(text).unwrap()
}

fn run(text: &str) -> RunId {
    RunId::new(text).unwrap()
}

fn message(text: &str) -> MessageId {
    MessageId::new(text).unwrap()
}

fn head(parent: Option<&RunId>) -> TraceHead {
    TraceHead {
        agent: name("lead"),
        agent_type: kind("explore"),
        life: None,
        parent: parent.cloned(),
        spawned_by_tool: Some(CallId::new("c1").unwrap()),
        task: Some("look around".to_owned()),
        parent_task: Some("7".to_owned()),
        description: Some("a look".to_owned()),
        in_background: true,
    }
}

fn call(tool: &str) -> ToolCall {
    let input = serde_json::json!({"path": "a"});
    ToolCall { id: CallId::new("c").unwrap(), tool: tool.to_owned(), input }
}

/// One model call, one tool call.
fn turn(trace: &mut Trace, tool: &str, tokens: (u64, u64)) {
    trace.model_call_started();
    trace.model_call(tokens, 5, "I look");
    trace.tool_call(&call(tool), "allow", 3, &Ok("found".to_owned()));
}

fn ask(trace: &mut Trace, id: &str, text: &str) {
    trace.message(&message(id), &name("user"), Kind::Request, text);
}

#[test]
fn a_life_and_a_run_say_what_they_are_in_their_first_line() {
    let bench = Bench::new();
    let mut life = bench.life(3);
    let mut run = bench.run("k3v9x0q2m1ab", &life);
    run.end("completed", "done");
    ask(&mut life, "m1", "go");
    life.model_call_started();
    life.tool_call(&call("grep"), "allow", 3, &Err("no".to_owned()));
    life.error("odd");
    life.end("completed", "shutdown");
    let lines = [bench.lines(run.id()), bench.lines(life.id())].concat().join("\n");
    expect![[r#"
        {"event":"started","trace_id":"k3v9x0q2m1ab","parent_trace_id":"g8rlhw0vp4d7","spawned_by_tool":"c1","agent":"lead","agent_type":"explore","mode":"call","in_background":true,"task":"look around","context":{"parent_task":"7","description":"a look"}}
        {"event":"ended","status":"completed","reason":"done","totals":{"messages":0,"model_calls":0,"tool_calls":0,"tokens_in":0,"tokens_out":0},"with_children":{"messages":0,"model_calls":0,"tool_calls":0,"tokens_in":0,"tokens_out":0}}
        {"event":"started","trace_id":"g8rlhw0vp4d7","agent":"lead","agent_type":"general-purpose","mode":"agent","life":3}
        {"event":"message","id":"m1","from":"user","kind":"request","content":"go"}
        {"event":"model_call_started"}
        {"event":"tool_call","call":{"id":"c","tool":"grep","input":{"path":"a"}},"verdict":"allow","milliseconds":3,"is_error":true,"output":"no"}
        {"event":"error","text":"odd"}
        {"event":"ended","status":"completed","reason":"shutdown","totals":{"messages":1,"model_calls":1,"tool_calls":1,"tokens_in":0,"tokens_out":0},"with_children":{"messages":1,"model_calls":1,"tool_calls":1,"tokens_in":0,"tokens_out":0}}"#]].assert_eq(&lines);
}

#[test]
fn all_that_is_written_is_read_again() {
    let bench = Bench::new();
    let life = bench.life(1);
    bench.run("child", &life);
    let node = bench.store.trace_tree(&run("child")).unwrap();
    assert_eq!(node.head, Some(head(Some(life.id()))));
    let lead = TraceHead::of_life(name("lead"), kind("general-purpose"), 1);
    assert_eq!(bench.tree(&life).head, Some(lead));
}

#[test]
fn totals_roll_up_over_three_levels_and_a_run_that_is_resumed_counts_once() {
    let bench = Bench::new();
    let mut life = bench.life(1);
    ask(&mut life, "m1", "look");
    turn(&mut life, "subagent", (10, 1));
    life.subagent_started(&run("middle"), None, &kind("explore"), "look", false);
    let mut middle = bench.run("middle", &life);
    turn(&mut middle, "subagent", (20, 2));
    middle.subagent_started(&run("lowest"), None, &kind("explore"), "look", false);
    let mut lowest = bench.run("lowest", &middle);
    turn(&mut lowest, "grep", (40, 4));
    lowest.end("completed", "done");
    middle.subagent_completed(lowest.id(), Status::Ok, "found", lowest.with_children());
    middle.end("completed", "done");
    life.subagent_completed(middle.id(), Status::Ok, "found", middle.with_children());
    assert_eq!(life.with_children().tokens_in, 70);

    life.subagent_started(&run("middle"), None, &kind("explore"), "more", false);
    let mut again = bench.run("middle", &life);
    assert_eq!(again.with_children(), middle.with_children());
    turn(&mut again, "grep", (80, 8));
    again.end("completed", "done");
    life.subagent_completed(again.id(), Status::Failed, "not found", again.with_children());
    assert_eq!(life.with_children().tokens_in, 150);
    assert_eq!(life.totals().tokens_in, 10);

    let tree = bench.tree(&life);
    assert_eq!((tree.totals, tree.with_children), (life.totals(), life.with_children()));
    let [child] = tree.children.as_slice() else { panic!("{tree:#?}") };
    assert_eq!(child.end, Some((Status::Failed, "not found".to_owned())));
    assert_eq!(child.piece, Some(tree.pieces[0].number));
    assert_eq!(child.node.totals, again.totals());
    assert_eq!(child.node.children[0].node.totals.tokens_out, 4);
    assert!(child.node.ended.is_some());
    let resumed = bench.lines(&run("middle"));
    assert_eq!(resumed.iter().filter(|line| line.contains("\"started\"")).count(), 1);
    let line = "{\"event\":\"resumed\",\"task\":\"look around\"}".to_owned();
    assert!(resumed.contains(&line), "{resumed:#?}");
}

#[test]
fn what_a_crash_left_open_is_closed_with_what_its_lines_say() {
    let bench = Bench::new();
    let mut life = bench.life(1);
    ask(&mut life, "m1", "look");
    turn(&mut life, "subagent", (10, 1));
    life.subagent_started(&run("child"), None, &kind("explore"), "look", false);
    let mut child = bench.run("child", &life);
    turn(&mut child, "grep", (20, 2));
    bench.push(life.id(), "{\"timestamp\":\"1970-01-01T00:00");
    // The life that came next died before it had a trace.
    bench.life(3);
    let tree = bench.tree(&life);
    let end = tree.ended.unwrap();
    assert_eq!(
        (end.status.as_str(), end.reason.as_str()),
        ("failed", "the daemon died during this life")
    );
    let last = bench.lines(life.id()).pop().unwrap();
    assert!(last.contains("\"totals\":{\"messages\":1,\"model_calls\":1,\"tool_calls\":1,\"tokens_in\":10,\"tokens_out\":1}"), "{last}");
    assert!(
        last.contains(
            "\"with_children\":{\"messages\":1,\"model_calls\":2,\"tool_calls\":2,\"tokens_in\":30"
        ),
        "{last}"
    );

    Trace::close_left_open(&bench.store, child.id(), "gone").unwrap();
    let closed = bench.lines(child.id());
    assert!(closed.last().unwrap().contains("\"reason\":\"gone\""), "{closed:#?}");
    Trace::close_left_open(&bench.store, child.id(), "again").unwrap();
    assert_eq!(bench.lines(child.id()), closed);
    Trace::close_left_open(&bench.store, &run("nobody"), "gone").unwrap();
    assert!(bench.lines(&run("nobody")).is_empty());
}

#[test]
fn damaged_lines_and_missing_runs_are_shown_as_far_as_they_go() {
    let bench = Bench::new();
    let mut life = bench.life(1);
    bench.push(
        life.id(),
        "garbage\n{\"event\":\"of a later day\",\"left\":3}\n{\"event\":\"message\"}\n{}\n",
    );
    ask(&mut life, "m1", "look");
    turn(&mut life, "bash", (1, 1));
    life.subagent_started(&run("gone"), None, &kind("explore"), "look", true);
    let told = Totals { tokens_in: 5, ..Totals::default() };
    life.subagent_completed(&run("gone"), Status::Ok, "found", told);
    life.conclusion(&message("m1"), Status::Ok, "done");
    let own = life.id().clone();
    life.subagent_started(&own, None, &kind("explore"), "round and round", false);
    bench.push(life.id(), "{\"event\":\"half");
    let tree = bench.tree(&life);
    assert_eq!(tree.totals.messages, 1);
    assert_eq!(tree.with_children.tokens_in, 6);
    let [gone] = tree.children.as_slice() else { panic!("{tree:#?}") };
    assert!(gone.node.is_missing && gone.in_background);
    assert!(bench.store.trace_tree(&run("nobody")).unwrap().is_missing);
}

#[test]
fn what_comes_during_a_piece_of_work_belongs_to_it() {
    let bench = Bench::new();
    let mut life = bench.life(1);
    // Gone on with from the life before.
    turn(&mut life, "bash", (0, 0));
    life.conclusion(&message("before"), Status::Ok, "done");
    life.message(&message("note"), &name("user"), Kind::Broadcast, "by the way");
    ask(&mut life, "a", "look");
    life.model_call_started();
    ask(&mut life, "b", "and there");
    life.subagent_started(&run("x"), None, &kind("explore"), "look", false);
    life.conclusion(&message("a"), Status::Failed, "nothing");
    life.message(&message("r"), &name("scout"), Kind::Response, "here it is");
    life.model_call_started();
    life.conclusion(&message("r"), Status::Ok, "fine");
    // A task, and mail that is answered in a pause of it.
    ask(&mut life, "task", "build");
    life.model_call_started();
    ask(&mut life, "mail", "how far?");
    life.model_call_started();
    life.conclusion(&message("mail"), Status::Ok, "half");
    life.model_call_started();
    let tree = bench.tree(&life);
    let pieces: Vec<_> = tree
        .pieces
        .iter()
        .map(|it| {
            let id = it.message.as_ref().map(ToString::to_string).unwrap_or_default();
            (id, it.headline.as_str(), it.end.as_ref().map(|it| it.1.as_str()))
        })
        .collect();
    let expected = [
        ("before".to_owned(), "", Some("done")),
        ("a".to_owned(), "look", Some("nothing")),
        ("r".to_owned(), "here it is", Some("fine")),
        ("task".to_owned(), "build", None),
        ("mail".to_owned(), "how far?", Some("half")),
    ];
    assert_eq!(pieces, expected);
    assert_eq!(tree.children[0].piece, Some(tree.pieces[1].number));
}

#[test]
fn of_a_long_life_only_the_latest_work_is_kept() {
    let bench = Bench::new();
    let mut life = bench.life(1);
    for number in 0..200 {
        let id = format!("m{number}");
        ask(&mut life, &id, "look");
        life.model_call_started();
        if number % 100 == 90 {
            let child = run(&format!("child{number}"));
            life.subagent_started(&child, None, &kind("explore"), "look", false);
            let mut run = bench.run(child.as_str(), &life);
            turn(&mut run, "grep", (7, 1));
            run.end("completed", "done");
        }
        if number == 5 {
            life.subagent_started(&run("slow"), None, &kind("explore"), "look", true);
            bench.run("slow", &life);
        }
        life.conclusion(&message(&id), Status::Ok, "done");
    }
    let tree = bench.tree(&life);
    assert_eq!((tree.pieces.len(), tree.earlier), (50, 150));
    assert_eq!(tree.pieces[0].message, Some(message("m150")));
    let children: Vec<&str> = tree.children.iter().map(|it| it.node.id.as_str()).collect();
    assert_eq!(children, ["slow", "child190"]);
    assert_eq!(tree.left_out.iter().map(|it| it.0.as_str()).collect::<Vec<_>>(), ["child90"]);
    assert_eq!((tree.totals.tokens_in, tree.with_children.tokens_in), (0, 14));
}

#[test]
fn a_reader_goes_on_where_it_was() {
    let bench = Bench::new();
    let mut life = bench.life(1);
    let place = bench.tree(&life).read_to;
    let mut reader = TraceReader::open(&bench.store, life.id(), place).unwrap();
    assert!(!reader.has_more() && reader.more().unwrap().is_none());
    life.error("odd");
    assert!(reader.has_more());
    let lines = reader.more().unwrap().unwrap();
    assert_eq!(
        lines,
        [TraceLine { at: Some(Timestamp(0)), event: TraceEvent::Error { text: "odd".to_owned() } }]
    );
    assert!(!reader.has_more());
}

#[test]
#[ignore = "takes seconds where it is not optimized"]
fn a_long_life_is_read_in_a_moment() {
    let bench = Bench::new();
    let mut life = bench.life(1);
    for number in 0..25_000 {
        ask(&mut life, &format!("m{number}"), &"look ".repeat(200));
        turn(&mut life, "bash", (1, 1));
    }
    let clock = Clock::real();
    let started = clock.now();
    let tree = bench.tree(&life);
    eprintln!("{:?}", clock.now().since(started));
    assert_eq!((tree.pieces.len(), tree.totals.model_calls), (50, 25_000));
}
