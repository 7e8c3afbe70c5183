//! Subagents that were cut off: nothing of theirs runs twice, and what is sent to them later is new.

use std::fs;

use serde_json::json;

use crate::team::Team;

/// The id of the one open question.
fn question(team: &Team) -> String {
    team.until("a question", |team| {
        let lines = team.run(&["approvals", "--json"]).ok();
        let first: serde_json::Value = serde_json::from_str(lines.lines().next()?).ok()?;
        first["id"].as_str().map(str::to_owned)
    })
}

/// The id by which the lead can send to its only subagent.
fn subagent(team: &Team) -> String {
    let tree = team.run(&["trace", "lead"]).ok();
    let from = tree.find("subagent-").unwrap_or_else(|| panic!("no subagent in {tree}"));
    tree[from..].split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_subagents_second_command_that_was_allowed_runs_once() {
    let team = Team::new(r#"{"teammates": {"lead": {}}}"#);
    let mut daemon = team.up();
    let work = "delegate general:\n  run echo one >> ran\n  \
                run sh -c 'echo two >> ran; touch begun; sleep 1000'";
    team.append("lead", format!("{}\n", json!({"id": "a", "content": work})));
    let first = question(&team);
    team.run(&["approve", &first]).ok();
    team.until("the first command", |team| team.at("ran").exists().then_some(()));
    let second =
        team.until("the second question", |team| Some(question(team)).filter(|id| *id != first));
    team.run(&["approve", &second]).ok();
    team.until("the second command", |team| team.at("begun").exists().then_some(()));
    daemon.kill();
    let _daemon = team.up();
    let answer = team.until_answer_to("a");
    assert!(
        answer["content"].as_str().unwrap().contains("unknown: the daemon stopped"),
        "{answer}"
    );
    assert_eq!(fs::read_to_string(team.at("ran")).unwrap(), "one\ntwo\n");
}

#[test]
fn what_is_sent_to_a_subagent_that_was_cut_off_is_new_work() {
    let team = Team::new(r#"{"permission_mode": "bypass", "teammates": {"lead": {}}}"#);
    let mut daemon = team.up();
    let task = "run sh -c 'echo one >> ran; touch begun; sleep 1000'\nrun echo two >> ran";
    let call = json!({"task": task, "agent_type": "general", "run_in_background": true});
    team.run(&["send", "lead", &format!("tool subagent {call}"), "--wait"]).ok();
    team.until("the first command", |team| team.at("begun").exists().then_some(()));
    let id = subagent(&team);
    daemon.kill();
    let _daemon = team.up();
    team.until("the news", |team| {
        let told = |line: &serde_json::Value| line["content"].to_string().contains("failed:");
        team.mail("lead").iter().any(told).then_some(())
    });
    let send = json!({"id": id, "message": "run echo three >> ran"});
    let said = team.run(&["send", "lead", &format!("tool subagent_send {send}"), "--wait"]).ok();
    assert_eq!(said, "[no output]\n");
    assert_eq!(fs::read_to_string(team.at("ran")).unwrap(), "one\nthree\n");
}

#[test]
fn a_subagent_ends_with_the_time_of_its_caller() {
    let team = Team::new(
        r#"{"permission_mode": "bypass", "teammates": {"lead": {"type": "short"}}, "agents": {"short":
            {"description": "has a second", "allow_nesting": true,
             "permissions": {"limits": {"timeout_seconds": 1}}}}}"#,
    );
    let _daemon = team.up();
    let said =
        team.run(&["send", "lead", "delegate general: run sleep 1000", "--wait"]).exits(1).out;
    assert!(said.contains("timed out after 1 s"), "{said}");
    let tree = team.run(&["trace", "lead"]).ok();
    let child = &tree[tree.find("subagent-").unwrap()..];
    assert!(child.contains("failed: run sleep 1000"), "{tree}");
    assert!(!child.contains("running for") && !child.contains("cut off"), "{tree}");
    assert_eq!(team.left_over(), 0);
}

#[test]
fn a_shutdown_right_after_a_kill_lets_no_command_of_a_subagent_run_twice() {
    let team = Team::new(r#"{"permission_mode": "bypass", "teammates": {"lead": {}}}"#);
    let mut daemon = team.up();
    let work = "delegate general: run sh -c 'echo one >> ran; touch begun; sleep 1000'";
    team.append("lead", format!("{}\n", json!({"id": "a", "content": work})));
    team.until("the command", |team| team.at("begun").exists().then_some(()));
    daemon.kill();
    team.append("lead", "{\"id\":\"s\",\"protocol\":\"shutdown\"}\n");
    let _daemon = team.up();
    team.until_answer_to("s");
    team.run(&["start", "lead"]).ok();
    let answer = team.until_answer_to("a");
    assert!(
        answer["content"].as_str().unwrap().contains("unknown: the daemon stopped"),
        "{answer}"
    );
    assert_eq!(fs::read_to_string(team.at("ran")).unwrap(), "one\n");
}
