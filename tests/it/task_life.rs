//! What becomes of a task in hand when its owner goes silent, is stopped, dies or is told that the task
//! is not wanted any more, and who is told of its end.

use std::{fs, time::Duration};

use postroom::base::Clock;
use serde_json::Value;

use crate::{
    board::{agree, list, told},
    team::{Daemon, Team},
};

const TEAM: &str = r#"{
  "permission_mode": "bypass",
  "limits": {"grace_s": 1},
  "teammates": {"lead": {"claims": "none"}, "a": {}, "b": {}, "mine": {"claims": "assigned"}},
  "outside": ["ci"]
}"#;

fn task(team: &Team, id: &str) -> Value {
    let shown = team.run(&["task", "show", id, "--json"]).ok();
    serde_json::from_str(&shown).unwrap()
}

fn until_status(team: &Team, id: &str, status: &str) -> Value {
    team.until(&format!("{id} {status}"), |team| {
        Some(task(team, id)).filter(|it| it["status"] == status)
    })
}

fn end(team: &Team, mut daemon: Daemon) {
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    assert_eq!(team.left_over(), 0);
    agree(team);
}

/// Adds a task and gives its id.
fn add(team: &Team, args: &[&str]) -> String {
    team.run(&[&["task", "add"], args].concat()).ok().trim().to_owned()
}

fn update(team: &Team, id: &str, attempt: &str, status: &str, more: &[&str]) -> crate::team::Ran {
    let of = ["task", "update", id, "--as", "ci", "--attempt", attempt];
    let how = ["--expected-status", "in_progress", "--status", status];
    team.run(&[&of[..], &how, more].concat())
}

/// Waits until the process of a command is there, and gives who has the task.
fn until_in_hand(team: &Team, id: &str) -> String {
    team.until("the command", |team| (team.left_over() > 0).then_some(()));
    until_status(team, id, "in_progress")["owner"].as_str().unwrap().to_owned()
}

/// The events in a mailbox that are about a task.
fn events(team: &Team, name: &str) -> Vec<Value> {
    let mail = team.mail(name).into_iter();
    mail.filter(|it| it["from_agent"] == "daemon" && it["task_id"].is_string()).collect()
}

#[test]
fn a_lease_ends_unless_it_is_renewed_and_a_late_write_is_void() {
    let team = Team::new(TEAM);
    let daemon = team.up();
    let id = add(&team, &["nobody can do this", "--assignee", "mine"]);
    assert_eq!(team.run(&["task", "claim", &id, "--as", "ci", "--lease", "1"]).ok(), "1\n");
    assert_eq!(update(&team, &id, "1", "in_progress", &["--lease", "2"]).ok(), "in_progress\n");
    assert_eq!(task(&team, &id)["lease_s"], 2);
    let given_back = until_status(&team, &id, "pending");
    assert_eq!(given_back["attempt"], 1);
    let late = update(&team, &id, "1", "done", &[]).exits(1);
    assert!(late.err.contains("the task is pending"), "{}", late.err);
    assert_eq!(team.run(&["task", "claim", &id, "--as", "ci"]).ok(), "2\n");
    let late = update(&team, &id, "1", "done", &[]).exits(1);
    assert!(late.err.contains("present attempt is 2"), "{}", late.err);
    assert_eq!(update(&team, &id, "2", "done", &["--result", "at last"]).ok(), "done\n");
    team.until("its end to be told", |team| (told(team).len() == 1).then_some(()));
    assert!(events(&team, "user")[0]["content"].as_str().unwrap().ends_with("at last"));
    end(&team, daemon);
}

#[test]
fn a_renewal_that_came_in_time_counts_when_it_is_read_late() {
    let team = Team::new(TEAM);
    let daemon = team.up();
    let id = add(&team, &["nobody can do this", "--assignee", "mine"]);
    // What follows from a later line is there: then the daemon has seen the claim before it.
    let until_seen = |count: usize| {
        let marker = add(&team, &["nobody can do this either"]);
        team.run(&["task", "cancel", &marker]).ok();
        team.until("the daemon to read on", |team| (told(team).len() == count).then_some(()));
    };
    team.run(&["task", "claim", &id, "--as", "ci", "--lease", "1"]).ok();
    until_seen(1);
    daemon.signal("STOP");
    assert_eq!(update(&team, &id, "1", "in_progress", &["--lease", "60"]).ok(), "in_progress\n");
    let clock = Clock::real();
    let over = clock.now().after(Duration::from_millis(1100));
    team.until("the end of the first lease", |_| (clock.now() > over).then_some(()));
    daemon.signal("CONT");
    until_seen(2);
    assert_eq!(task(&team, &id)["status"], "in_progress");
    end(&team, daemon);
}

#[test]
fn three_leases_that_end_fail_a_task_and_a_retry_begins_to_count_anew() {
    let team = Team::new(TEAM);
    let daemon = team.up();
    let id = add(&team, &["nobody can do this", "--assignee", "mine"]);
    for attempt in ["1\n", "2\n", "3\n"] {
        assert_eq!(team.run(&["task", "claim", &id, "--as", "ci", "--lease", "0"]).ok(), attempt);
        team.until("the end of the lease", |team| {
            (task(team, &id)["status"] != "in_progress").then_some(())
        });
    }
    assert_eq!(task(&team, &id)["status"], "failed");
    assert_eq!(task(&team, &id)["result"], "given back 3 times: lease");
    team.run(&["task", "claim", &id, "--as", "ci"]).exits(1);
    assert_eq!(team.run(&["task", "retry", &id]).ok(), "pending\n");
    assert_eq!(team.run(&["task", "claim", &id, "--as", "ci", "--lease", "0"]).ok(), "4\n");
    until_status(&team, &id, "pending");
    end(&team, daemon);
}

#[test]
fn a_failed_dependency_blocks_is_told_to_the_lead_and_retried() {
    let team = Team::new(TEAM);
    let first = add(&team, &["read later.md"]);
    let second = add(&team, &["run cat later.md", "--depends-on", &first]);
    let daemon = team.up();
    until_status(&team, &first, "failed");
    let told = team.until("the lead to be told", |team| events(team, "lead").pop());
    let text = told["content"].as_str().unwrap();
    assert!(text.contains("task 1 is failed") && text.contains("wait for it: 2"), "{text}");
    assert!(team.run(&["task", "list"]).ok().contains("2  pending (waits for 1)"));
    assert!(team.run(&["status"]).ok().contains("1 blocked"));
    let failed = team.run(&["wait", "--task", &first, "--timeout", "30"]).exits(1);
    assert!(failed.err.contains("task 1 has failed"), "{}", failed.err);
    fs::write(team.at("later.md"), "here\n").unwrap();
    assert_eq!(team.run(&["task", "retry", &first]).ok(), "pending\n");
    assert_eq!(team.run(&["wait", "--task", &second, "--timeout", "30"]).ok().trim(), "here");
    assert_eq!(task(&team, &first)["attempt"], 2);
    team.until("all to be told", |team| (events(team, "user").len() == 3).then_some(()));
    team.run(&["wait", "--idle", "--timeout", "30"]).ok();
    assert_eq!((events(&team, "user").len(), events(&team, "lead").len()), (3, 1));
    end(&team, daemon);
}

#[test]
fn the_result_is_told_once_to_whoever_added_the_task() {
    let team = Team::new(TEAM);
    let daemon = team.up();
    add(&team, &["read README.md"]);
    team.append("tasks", "{\"title\":\"run echo for-ci\",\"by\":\"ci\"}\n");
    team.append("mine", "{\"id\":\"m\",\"content\":\"task: run echo for-mine\"}\n");
    team.until_answer_to("m");
    let mails = ["user", "ci", "mine"]
        .map(|name| team.until(&format!("{name} to be told"), |team| events(team, name).pop()));
    for (mail, wanted) in mails.iter().zip(["# A test", "for-ci", "for-mine"]) {
        assert_eq!(mail["msg_type"], "event");
        assert!(mail["content"].as_str().unwrap().contains(wanted), "{mail}");
    }
    // Whoever added one itself acts on its end.
    team.until("a turn of its own", |team| {
        let turns = team.conversation("mine");
        let at = turns.iter().position(|turn| turn["mail"]["id"] == mails[2]["id"])?;
        turns[at..].iter().any(|turn| !turn["model"].is_null()).then_some(())
    });
    team.run(&["wait", "--idle", "--timeout", "30"]).ok();
    assert!(["user", "ci", "mine"].iter().all(|name| events(&team, name).len() == 1));
    end(&team, daemon);
}

#[test]
fn a_cancelled_task_stops_its_worker_within_the_call() {
    let team = Team::new(TEAM);
    let daemon = team.up();
    let id = add(&team, &["do it", "--description", "run sleep 300\n- run touch more.txt"]);
    let owner = until_in_hand(&team, &id);
    assert_eq!(team.run(&["task", "cancel", &id]).ok(), "cancelled\n");
    team.until("its processes to end", |team| (team.left_over() == 0).then_some(()));
    team.until_state(&owner, "idle");
    team.append(&owner, "{\"id\":\"m\",\"content\":\"answer: free\"}\n");
    assert_eq!(team.until_answer_to("m")["content"], "free");
    assert!(!team.at("more.txt").exists());
    assert_eq!(task(&team, &id)["status"], "cancelled");
    let lines = team.mail("tasks");
    assert_eq!(lines.last().unwrap()["status"], "cancelled", "{lines:#?}");
    end(&team, daemon);
}

#[test]
fn whoever_is_stopped_gives_its_task_back_and_another_takes_it() {
    let team = Team::new(TEAM);
    let daemon = team.up();
    let work = "run test -e again.txt || { touch again.txt; sleep 300; }";
    let id = add(&team, &[work]);
    let owner = until_in_hand(&team, &id);
    team.until("the command's beginning", |team| team.at("again.txt").exists().then_some(()));
    team.run(&["stop", &owner]).ok();
    until_status(&team, &id, "done");
    let task = task(&team, &id);
    assert_eq!(task["attempt"], 2);
    let lines = team.mail("tasks");
    assert_ne!(lines.last().unwrap()["by"], *owner, "{lines:#?}");
    assert!(lines.iter().all(|line| line["reason"].is_null()), "an order is no death");
    end(&team, daemon);
}

#[test]
fn mail_is_answered_between_the_calls_of_a_task_and_a_stop_meanwhile_is_obeyed() {
    let team = Team::new(TEAM);
    let daemon = team.up();
    let work =
        "run until test -e go; do sleep 0.02; done\nrun until test -e on; do sleep 0.02; done";
    let id = add(&team, &["long", "--assignee", "mine", "--description", work]);
    until_in_hand(&team, &id);
    team.append("mine", "{\"id\":\"m\",\"content\":\"answer: between\"}\n");
    fs::write(team.at("go"), "").unwrap();
    assert_eq!(team.until_answer_to("m")["content"], "between");
    assert_eq!(task(&team, &id)["status"], "in_progress");
    team.append("mine", "{\"id\":\"n\",\"content\":\"run sleep 300\"}\n");
    fs::write(team.at("on"), "").unwrap();
    team.until("the message in hand", |team| {
        (team.life("mine")["taken"]["id"] == "n" && team.left_over() > 0).then_some(())
    });
    team.run(&["stop", "mine"]).ok();
    assert_eq!(task(&team, &id)["status"], "pending");
    end(&team, daemon);
}

#[test]
fn a_task_in_hand_at_a_kill_is_done_again_by_somebody_and_fails_at_the_third_death() {
    let team = Team::new(TEAM);
    let id = add(&team, &["deadly", "--description", "run sleep 300"]);
    let then = add(&team, &["then", "--description", "read README.md"]);
    for attempt in 1..=3 {
        let mut daemon = team.up();
        until_in_hand(&team, &id);
        assert_eq!(task(&team, &id)["attempt"], attempt);
        daemon.kill();
    }
    let daemon = team.up();
    assert_eq!(team.left_over(), 0);
    let failed = until_status(&team, &id, "failed");
    assert_eq!(failed["result"], "given back 3 times: death");
    assert_eq!(until_status(&team, &then, "done")["attempt"], 1);
    team.until("both ends to be told", |team| (told(team).len() == 2).then_some(()));
    assert!(told(&team).values().all(|times| *times == 1));
    assert!(team.run(&["status"]).ok().contains("1 failed"));
    end(&team, daemon);
}

#[test]
fn tasks_go_to_those_who_may_and_can_do_them() {
    let team = Team::new(TEAM);
    let daemon = team.up();
    let prose = add(&team, &["Please make it nicer"]);
    let for_mine = add(&team, &["read README.md", "--assignee", "mine"]);
    let for_lead = add(&team, &["read README.md", "--assignee", "lead"]);
    let for_a = add(&team, &["read README.md", "--assignee", "a"]);
    let unknown = team.run(&["task", "add", "x", "--assignee", "nobody"]).exits(2);
    assert!(unknown.err.contains("nobody is called nobody"), "{}", unknown.err);
    until_status(&team, &for_mine, "done");
    until_status(&team, &for_a, "done");
    // New tasks wake the idle at once.
    team.run(&["stop", "a"]).ok();
    team.run(&["stop", "b"]).ok();
    let free = add(&team, &["read README.md"]);
    let clock = Clock::real();
    let before = clock.now();
    let woken = add(&team, &["read README.md", "--assignee", "mine"]);
    until_status(&team, &woken, "done");
    let took = clock.now().since(before);
    assert!(took.as_millis() < 1500, "{took:?}");
    let owner = |id: &str| {
        let lines = team.mail("tasks").into_iter();
        let mut claims = lines.filter(|it| it["id"] == id && it["status"] == "in_progress");
        claims.next().map(|it| it["owner"].as_str().unwrap().to_owned())
    };
    assert_eq!(owner(&for_mine).as_deref(), Some("mine"));
    assert_eq!(owner(&for_a).as_deref(), Some("a"));
    // Prose is no program, the lead takes none, and free ones are not for those with `assigned`.
    let left: Vec<Value> = list(&team).into_iter().filter(|it| it["status"] == "pending").collect();
    let left: Vec<&str> = left.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(left, [&*prose, &*for_lead, &*free]);
    team.run(&["start", "b"]).ok();
    until_status(&team, &free, "done");
    assert_eq!(owner(&free).as_deref(), Some("b"));
    end(&team, daemon);
}
