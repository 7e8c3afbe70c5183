//! Trees of traces as they are drawn.

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
    let (spent, asking) = (BTreeMap::new(), BTreeMap::new());
    draw(&tree, View { now, spent: &spent, whole: Some(&tree.id), asking: &asking })
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
    (4, r#""message","id":"m2","from":"user","kind":"request","content":"look into the parser""#),
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
        │  read_file {}  allow, 1 ms, ok: 
        │  bash {}  allow, 1 ms, failed: 
        │  read_file {}  allow, 1 ms, ok: 
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

#[test]
fn each_piece_of_work_of_a_run_has_its_own_answer() {
    let run: &[(u32, &str)] = &[
        (
            0,
            r#""started","trace_id":"k3v9x0q2m1ab","agent":"worker","agent_type":"explore","mode":"call","task":"find the parser","context":{"parent_task":"4"}"#,
        ),
        (1, r#""model_call_started""#),
        (2, r#""conclusion","message":"m1","status":"ok","text":"in src/parse.rs""#),
        (2, r#""ended","status":"completed","reason":"""#),
        (5, r#""resumed","task":"and its tests""#),
        (6, r#""resumed","task":"and its tests""#),
        (6, r#""model_call_started""#),
        (7, r#""conclusion","message":"m2","status":"failed","text":"there are none""#),
        (7, r#""ended","status":"failed","reason":"""#),
        (8, r#""resumed","task":"then write some""#),
        (9, r#""model_call_started""#),
    ];
    let traces = [("k3v9x0q2m1ab", run)];
    expect![[r#"
        worker · explore · subagent-k3v9x0q2  running for 5.0 s
           task 4: find the parser
           3 turns
           ok: in src/parse.rs
           then: and its tests
           failed: there are none
           then: then write some
    "#]]
    .assert_eq(&drawn("k3v9x0q2m1ab", &traces, Some(10)));
}

#[test]
fn of_many_calls_the_latest_are_listed() {
    let call = r#""tool_call","call":{"id":"c","tool":"grep","input":{"pattern":"x"}},"verdict":"allow","milliseconds":1,"is_error":false,"output":"found\nmore""#;
    let begin = r#""started","trace_id":"k3v9x0q2m1ab","agent":"lead","agent_type":"explore","mode":"call","task":"look""#;
    let lines: Vec<(u32, &str)> =
        [(0, begin)].into_iter().chain((0..60).map(|_| (1, call))).collect();
    let tree = drawn("k3v9x0q2m1ab", &[("k3v9x0q2m1ab", &lines)], None);
    let shown: Vec<&str> = tree.lines().map(|line| line.trim_start_matches([' ', '│'])).collect();
    assert_eq!(shown[3], "… 10 earlier calls");
    let calls = "grep {\"pattern\":\"x\"}  allow, 1 ms, ok: found…";
    assert_eq!(shown.iter().filter(|line| **line == calls).count(), 50, "{tree}");
}
