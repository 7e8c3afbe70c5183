//! The board as other programs use it: many processes race for tasks, and a fold in another language
//! agrees with every one of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use postroom::{
    base::{Clock, Folder, Scope},
    model::AgentName,
    store::{Store, TaskBoard},
};
use serde_json::Value;

use crate::team::{Team, has_program};

const FOLD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fold.py");
const TEAM: &str = r#"{
  "permission_mode": "bypass",
  "teammates": {"lead": {"claims": "none"}, "w0": {}, "w1": {}, "w2": {}, "w3": {}, "w4": {},
    "w5": {}, "w6": {}, "w7": {}},
  "outside": ["ci", "anna", "py0", "py1"]
}"#;

fn python(team: &Team, args: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.arg(FOLD).arg(args[0]).arg(team.mailbox("tasks")).args(&args[1..]);
    command
}

/// The board as the fold in Python has it.
pub fn fold(team: &Team) -> Value {
    let output = python(team, &["show"]).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The board as the command line shows it.
pub fn list(team: &Team) -> Vec<Value> {
    let lines = team.run(&["task", "list", "--json"]).ok();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks that the fold in Python and the command line show the same.
#[track_caller]
pub fn agree(team: &Team) {
    if !has_program("python3") {
        return;
    }
    let fold = fold(team);
    for (here, there) in list(team).iter().zip(fold["tasks"].as_array().unwrap()) {
        for (key, value) in there.as_object().unwrap() {
            assert_eq!(here[key], *value, "{key} of {here} and {there}");
        }
    }
    assert_eq!(list(team).len(), fold["tasks"].as_array().unwrap().len());
}

/// The tasks of whose end the user was told, each with how often.
pub fn told(team: &Team) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    for line in team.mail("user").iter().filter(|line| line["from_agent"] == "daemon") {
        if let Some(id) = line["task_id"].as_str() {
            *told.entry(id.to_owned()).or_default() += 1;
        }
    }
    told
}

/// Claims tasks by the command line until none is left; gives what it won.
fn claim_by_hand(team: &Team, name: &str) -> Vec<(String, u64)> {
    let mut won = Vec::new();
    loop {
        let tasks = list(team);
        let pending: Vec<&Value> = tasks.iter().filter(|it| it["status"] == "pending").collect();
        let Some(task) = pending.get(pending.len() / 2) else { return won };
        let id = task["id"].as_str().unwrap();
        let claim = team.run(&["task", "claim", id, "--as", name]);
        if claim.code == 1 {
            continue;
        }
        let attempt = claim.ok().trim().to_owned();
        let of = ["--expected-status", "in_progress", "--status", "done", "--attempt", &attempt];
        let update = [&["task", "update", id, "--as", name, "--result", name], &of[..]].concat();
        assert_eq!(team.run(&update).ok(), "done\n");
        won.push((id.to_owned(), attempt.parse().unwrap()));
    }
}

fn race(count: usize) {
    if !has_program("python3") {
        return;
    }
    let team = Team::new(TEAM);
    let tasks = (0..count).fold(String::new(), |mut text, number| {
        writeln!(text, "{{\"title\":\"run sleep 0.05; echo {number} >> ran.txt\"}}").unwrap();
        text
    });
    let mut daemon = team.up();
    team.append("tasks", tasks);
    let mut won: BTreeMap<String, Vec<(String, u64)>> = BTreeMap::new();
    let programs = ["py0", "py1"]
        .map(|name| (name, python(&team, &["work", name]).stdout(Stdio::piped()).spawn().unwrap()));
    std::thread::scope(|scope| {
        let hands = ["ci", "anna"].map(|name| (name, scope.spawn(|| claim_by_hand(&team, name))));
        for (name, hand) in hands {
            won.insert(name.to_owned(), hand.join().unwrap());
        }
    });
    for (name, program) in programs {
        let output = program.wait_with_output().unwrap();
        assert!(output.status.success());
        won.insert(name.to_owned(), serde_json::from_slice(&output.stdout).unwrap());
    }
    team.until("the end of all tasks", |team| (told(team).len() == count).then_some(()));
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    agree(&team);
    assert!(told(&team).values().all(|times| *times == 1), "{:?}", told(&team));
    let fold = fold(&team);
    assert!(fold["tasks"].as_array().unwrap().iter().all(|it| it["status"] == "done"));
    let mut held: BTreeMap<String, Vec<(String, u64)>> = BTreeMap::new();
    let claims: Vec<(String, u64, String)> =
        serde_json::from_value(fold["claims"].clone()).unwrap();
    let ids: BTreeSet<&String> = claims.iter().map(|(id, _, _)| id).collect();
    assert_eq!((claims.len(), ids.len()), (count, count), "each is claimed once");
    for (id, attempt, owner) in &claims {
        held.entry(owner.clone()).or_default().push((id.clone(), *attempt));
    }
    for (name, won) in &won {
        assert_eq!(held.remove(name).unwrap_or_default(), *won, "what {name} believes to have won");
        eprintln!("{name} won {}", won.len());
    }
    let by_teammates: usize = held.values().map(Vec::len).sum();
    let ran = std::fs::read_to_string(team.at("ran.txt")).unwrap_or_default();
    let once: BTreeSet<&str> = ran.lines().collect();
    assert_eq!((ran.lines().count(), once.len()), (by_teammates, by_teammates));
}

#[test]
fn teammates_and_other_processes_race_for_tasks_and_each_is_won_once() {
    race(60);
}

/// `cargo test --test it board -- --ignored --nocapture`
#[test]
#[ignore = "takes half a minute"]
fn twelve_processes_race_for_four_hundred_tasks() {
    race(400);
}

#[test]
fn the_command_line_says_who_was_faster_and_changes_nothing() {
    let team = Team::new(TEAM);
    assert_eq!(team.run(&["task", "add", "read README.md"]).ok(), "1\n");
    assert_eq!(team.run(&["task", "claim", "1", "--as", "ci"]).ok(), "1\n");
    let lost = team.run(&["task", "claim", "1", "--as", "anna"]).exits(1);
    assert_eq!(lost.out, "");
    assert!(lost.err.contains("in_progress and belongs to ci"), "{}", lost.err);
    let update = |by: &str, attempt: &str, expected: &str, status: &str| {
        let of = ["--attempt", attempt, "--expected-status", expected, "--status", status];
        team.run(&[&["task", "update", "1", "--as", by], &of[..]].concat())
    };
    let wrong = update("ci", "2", "in_progress", "done").exits(1);
    assert!(wrong.err.contains("present attempt is 1"), "{}", wrong.err);
    let other = update("anna", "1", "in_progress", "done").exits(1);
    assert!(other.err.contains("belongs to ci"), "{}", other.err);
    let expected = update("ci", "1", "pending", "done").exits(1);
    assert!(expected.err.contains("in_progress and belongs to ci"), "{}", expected.err);
    team.run(&["task", "update", "1", "--as", "ci", "--attempt", "1", "--status", "done"]).exits(2);
    assert_eq!(update("ci", "1", "in_progress", "in_progress").ok(), "in_progress\n");
    assert_eq!(update("ci", "1", "in_progress", "done").ok(), "done\n");
    assert!(update("ci", "1", "in_progress", "done").exits(1).err.contains("the task is done"));
    assert!(team.run(&["task", "claim", "1", "--as", "ci"]).exits(1).err.contains("is done"));
    assert!(team.run(&["task", "cancel", "1"]).exits(1).err.contains("nothing is changed"));
    assert!(team.run(&["task", "claim", "9", "--as", "ci"]).exits(1).err.contains("no task 9"));
    agree(&team);
}

#[test]
fn lines_that_do_not_count_change_nothing_for_anybody() {
    let team = Team::new(TEAM);
    team.append(
        "tasks",
        r#"{"title":"one","event":"e1"}
{"title":"one","event":"e1"}
{"title":"two","depends_on":["7"]}
{"title":"three","id":"t3","blockedBy":[1]}
{"title":"three again","id":"t3"}
{"subject":"five","owner":"w1"}
{"op":"update","id":"1","status":"in_progress","by":"ci"}
{"op":"update","id":"t3","expected_status":"pending","status":"in_progress","by":"ci"}
{"op":"update","id":1,"expected_status":"pending","status":"in_progress","attempt":2,"by":"ci"}
{"op":"update","id":"1","expected_status":"pending","status":"in_progress","by":"ci","event":"e2"}
{"op":"update","id":"1","expected_status":"in_progress","status":"done","by":"ci","result":"late"}
{"op":"update","id":"1","expected_status":"in_progress","status":"pending","attempt":1,"by":"daemon"}
{"op":"update","id":"1","expected_status":"pending","status":"in_progress","by":"ci","event":"e2"}
{"op":"update","id":"1","expected_status":"pending","status":"done","attempt":1,"by":"ci"}
not json
[{"title":"a list"}]
"#,
    );
    let seen: Vec<String> = list(&team)
        .iter()
        .map(|it| format!("{} {} {} {}", it["id"], it["status"], it["attempt"], it["waits_for"]))
        .collect();
    assert_eq!(
        seen,
        [r#""1" "pending" 1 []"#, r#""t3" "pending" 0 ["1"]"#, r#""5" "pending" 0 []"#]
    );
    agree(&team);
    let unknown = team.run(&["task", "add", "x", "--depends-on", "77"]).exits(2);
    assert!(unknown.err.contains("depends on 77"), "{}", unknown.err);
}

#[test]
fn tasks_become_ready_in_the_order_of_their_dependencies() {
    let team = Team::new(TEAM);
    team.append(
        "tasks",
        r#"{"title":"A","description":"run echo A >> order.txt"}
{"title":"B","description":"run echo B >> order.txt","depends_on":["1"]}
{"title":"C","description":"run echo C >> order.txt","depends_on":["2"]}
"#,
    );
    let blocked = team.run(&["task", "claim", "3", "--as", "ci"]).exits(1);
    assert!(blocked.err.contains("waits for 2"), "{}", blocked.err);
    let mut daemon = team.up();
    let out = team.run(&["wait", "--task", "3", "--timeout", "30"]).ok();
    assert!(!out.contains("failed"), "{out}");
    assert_eq!(std::fs::read_to_string(team.at("order.txt")).unwrap(), "A\nB\nC\n");
    team.run(&["wait", "--idle", "--timeout", "30"]).ok();
    assert!(list(&team).iter().all(|it| it["status"] == "done" && it["attempt"] == 1));
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    agree(&team);
}

/// How long it takes to find and claim a task on a board of `count`, at best.
fn claim_time(folder: &Path, count: usize) -> Duration {
    let team = tempfile::tempdir_in(folder).unwrap();
    let root = team.path().join(".mailbox");
    let store = Store::open(Folder::make(&root).unwrap(), Clock::real()).unwrap();
    let lines: String = (1..=count).map(|_| "{\"title\":\"read README.md\"}\n").collect();
    Folder::open(&root).unwrap().create("tasks.jsonl", lines.as_bytes()).unwrap();
    let board = TaskBoard::open(&store).unwrap();
    board.look(|_| ()).unwrap();
    let (clock, name) = (Scope::plain(Clock::real()).clock, AgentName::new("w0").unwrap());
    let times = (0..50).map(|_| {
        let before = clock.now();
        board.claim_next(&name, std::slice::from_ref(&name), true, |_| true).unwrap().unwrap();
        clock.now().since(before)
    });
    times.min().unwrap()
}

/// `cargo test --release --test it board -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn a_claim_costs_the_same_on_a_board_of_a_hundred_thousand_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let (few, many) = (claim_time(folder.path(), 100), claim_time(folder.path(), 100_000));
    let ratio = many.as_secs_f64() / few.as_secs_f64();
    eprintln!("a claim takes {few:?} with 100 tasks, {many:?} with 100,000: {ratio:.2} times");
    assert!(ratio < 10.0);
}
