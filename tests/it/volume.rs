//! Much mail, many writers, many teammates: nothing is lost or doubled, and who idles costs nothing.

use std::{
    collections::BTreeMap,
    fs,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::team::{Daemon, Team, has_program};

/// What the README says of speed and memory is measured by this script; here it only has to work.
#[test]
fn the_measuring_script_measures() {
    let measure = |more: &[&str]| {
        let mut script = Command::new("python3");
        script.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/performance.py")).args(more);
        let ended = script.env("POSTROOM", env!("CARGO_BIN_EXE_postroom")).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8(ended.stdout).unwrap()
    };
    let told = measure(&["-n", "2"]);
    assert!(told.contains("one turn: ") && told.contains(" 1 requests"), "{told}");
    assert!(told.contains("8 subagents in one turn: ") && told.contains(" 10 requests"), "{told}");
    assert!(measure(&["--turns", "210"]).starts_with("210 turns: the median of the first 100"));
}

const TWO: &str = r#"{"teammates": {"lead": {}, "scout": {}}, "outside": ["ci"]}"#;

/// Sends `count` messages as writer number `writer`, one after the other.
fn writer(team: &Team, writer: usize, count: usize) -> Child {
    let program = env!("CARGO_BIN_EXE_postroom");
    let (name, script) = match writer % 3 {
        0 => (
            "sh",
            format!(
                "i=0; while [ $i -lt {count} ]; do \
             echo '{{\"content\":\"answer: {writer} '$i'\"}}' >> .mailbox/scout.jsonl; \
             i=$((i+1)); done"
            ),
        ),
        1 if has_program("python3") => (
            "python3",
            format!(
                "import json\n\
             for i in range({count}):\n    \
             with open('.mailbox/scout.jsonl', 'a') as box:\n        \
             box.write(json.dumps({{'content': f'answer: {writer} {{i}}'}}) + '\\n')"
            ),
        ),
        _ => (
            "sh",
            format!(
                "i=0; while [ $i -lt {count} ]; do \
             {program} send scout \"answer: {writer} $i\" > /dev/null || exit 1; \
             i=$((i+1)); done"
            ),
        ),
    };
    let mut command = Command::new(name);
    command.args(["-c", &script]).current_dir(team.at(".")).stdin(Stdio::null());
    command.spawn().unwrap()
}

/// Eight processes write at once; each message is answered once, those of a writer in their order.
fn flood(count: usize) -> Duration {
    let team = Team::new(TWO);
    let daemon = team.up();
    let started = Instant::now();
    let writers: Vec<Child> = (0..8).map(|number| writer(&team, number, count)).collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let written = started.elapsed();
    team.run(&["send", "scout", "answer: last", "--wait"]).ok();
    let taken = started.elapsed();
    let mut next = BTreeMap::new();
    let answers = team.responses();
    assert_eq!(answers.len(), 8 * count + 1);
    for answer in &answers[..8 * count] {
        let text = answer["content"].as_str().unwrap();
        let (writer, number) = text.split_once(' ').unwrap();
        let expected: &mut usize = next.entry(writer.to_owned()).or_default();
        assert_eq!(number, expected.to_string(), "of writer {writer}");
        *expected += 1;
    }
    assert_eq!(next.len(), 8);
    assert_eq!(team.run(&["dead", "list"]).ok(), "");
    println!("8 × {count}: written in {written:?}, answered after {taken:?}");
    drop(daemon);
    taken
}

#[test]
fn eight_writers_at_once_lose_nothing() {
    flood(50);
}

/// `cargo test --test it volume:: -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes"]
fn eight_writers_of_a_thousand_messages_lose_nothing() {
    flood(1_000);
}

#[test]
fn ten_thousand_orders_to_stop_are_one_stop() {
    let team = Team::new(TWO);
    let _daemon = team.up();
    team.append("scout", "{\"protocol\":\"SHUTDOWN\"}\n".repeat(10_000));
    let answers = team.until_answered(10_000);
    assert!(answers.iter().all(|it| it["status"] == "stopped"));
    team.run(&["start", "scout"]).ok();
    assert_eq!(team.run(&["send", "scout", "answer: back", "--wait"]).ok(), "back\n");
    assert_eq!(team.responses().iter().filter(|it| it["status"] == "stopped").count(), 10_000);
}

/// How often each thread has given up the processor by itself, with its name.
fn switches(daemon: &Daemon) -> BTreeMap<String, (String, u64)> {
    let mut found = BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{}/task", daemon.id())).unwrap() {
        let task = task.unwrap();
        let name = fs::read_to_string(task.path().join("comm")).unwrap().trim().to_owned();
        let status = fs::read_to_string(task.path().join("status")).unwrap();
        let line = status.lines().find_map(|it| it.strip_prefix("voluntary_ctxt_switches:"));
        let count = line.unwrap().trim().parse().unwrap();
        found.insert(task.file_name().into_string().unwrap(), (name, count));
    }
    found
}

#[test]
fn a_hundred_teammates_idle_for_nothing() {
    let team = Team::new(r#"{"teammates": {"lead": {}, "impl": {"count": 100}}}"#);
    let daemon = team.up();
    for number in [1, 50, 100] {
        team.until_state(&format!("impl-{number}"), "idle");
    }
    // The first ticks look at what is new; then nobody is woken any more.
    let (mut since, mut before) = (Instant::now(), switches(&daemon));
    let more = team.until("four quiet seconds", |_| {
        let now = switches(&daemon);
        if agents(&now) != agents(&before) {
            (since, before) = (Instant::now(), now);
            return None;
        }
        (since.elapsed() > Duration::from_secs(4)).then(|| total(&now) - total(&before))
    });
    assert_eq!(agents(&before).len(), 101);
    println!("{more} switches in four seconds");
    // Two or three ticks, each with a few reads of its own that its watchers hear of.
    assert!(more < 100, "{more}");
}

fn total(all: &BTreeMap<String, (String, u64)>) -> u64 {
    all.values().map(|it| it.1).sum()
}

fn agents(all: &BTreeMap<String, (String, u64)>) -> Vec<(String, u64)> {
    all.values().filter(|it| it.0.starts_with("agent:")).cloned().collect()
}

/// `cargo test --test it volume:: -- --ignored --nocapture`
#[test]
#[ignore = "measures time"]
fn a_long_mailbox_slows_no_verb() {
    let team = Team::new(TWO);
    let verbs: [&[&str]; 3] = [&["status"], &["send", "scout", "answer: x"], &["log", "-n", "20"]];
    let measure = || -> Vec<Duration> {
        let time = |args: &&[&str]| {
            let started = Instant::now();
            assert!(matches!(team.run(args).code, 0 | 3));
            started.elapsed()
        };
        verbs.iter().map(time).collect()
    };
    measure();
    let empty = measure();
    let line = "{\"content\":\"answer: one of many lines that lie in this mailbox\"}\n";
    team.append("scout", line.repeat(100_000));
    team.append("user", line.repeat(100_000));
    let full = measure();
    println!("empty {empty:?}\nfull {full:?}");
    for (verb, (empty, full)) in verbs.iter().zip(empty.iter().zip(&full)) {
        assert!(*full < *empty * 20 + Duration::from_secs(1), "{verb:?}: {empty:?} {full:?}");
    }
}
