//! `trace`: what a team has done, as a person asks for it while the daemon is up, down or killed.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::Value;

use crate::team::Team;

const TEAM: &str = r#"{
  "permission_mode": "bypass",
  "limits": {"grace_s": 1},
  "teammates": {"lead": {}, "scout": {}}
}"#;

/// The lines of a trace.
fn lines(team: &Team, trace: &str) -> Vec<Value> {
    let text = fs::read_to_string(team.at(&format!(".mailbox/traces/{trace}.jsonl"))).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn a_team_is_shown_up_and_down() {
    let team = Team::new(TEAM);
    let nobody = team.run(&["trace"]).exits(0);
    assert_eq!(nobody.err, "nobody has run yet; `postroom up` starts the team\n");
    let mut daemon = team.up();
    team.append("scout", "{\"id\":\"m\",\"content\":\"read README.md\\nread missing.md\"}\n");
    let answer = team.until_answer_to("m");
    let id = answer["trace_id"].as_str().unwrap();
    team.until("the end of the work", |team| team.is_settled("scout").then_some(()));
    let all = team.run(&["trace"]).ok();
    let parts = [
        "lead · general-purpose · ",
        &format!("scout · general-purpose · {}  life 1, running for ", &id[..8]),
        "read_file×2 (1 failed)",
        "└─ m from user: read README.md…",
        "failed: ",
    ];
    for part in parts {
        assert!(all.contains(part), "{part} is not in\n{all}");
    }
    for given in ["scout", id, &id[..4], &format!("subagent-{}", &id[..8])] {
        let one = team.run(&["trace", given]).ok();
        assert!(one.starts_with("scout · ") && !one.contains("lead · "), "{one}");
        let calls = one.matches("│  read_file {\"path\":\"").count();
        assert_eq!(calls, if given == "scout" { 0 } else { 2 }, "{one}");
    }
    team.run(&["down"]).ok();
    assert_eq!(daemon.wait(), 0);
    let down = team.run(&["trace", "scout"]).ok();
    assert!(down.contains(", completed: the daemon ends\n"), "{down}");
}

#[test]
fn an_unknown_trace_is_said_to_be_none_and_what_there_is() {
    let team = Team::new(TEAM);
    let daemon = team.up();
    // Each begins its trace when it begins to run.
    for name in ["lead", "scout"] {
        team.until_state(name, "idle");
    }
    let unknown = team.run(&["trace", "nobody"]).exits(2).err;
    let expected = "postroom: no trace is called \"nobody\", and no teammate; there are the teammates \
                    lead and scout and 2 traces in .mailbox/traces; `postroom trace` shows the \
                    latest of each teammate\n";
    assert_eq!(unknown, expected);
    assert!(team.run(&["trace", "zz"]).exits(2).err.contains("too short"));
    assert!(team.run(&["trace", "user"]).exits(2).err.contains("has not run"));
    drop(daemon);
}

#[test]
fn a_trace_that_is_followed_ends_with_its_life() {
    let team = Team::new(TEAM);
    let _daemon = team.up();
    let mut child = team.command(&["trace", "scout", "-f"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = printed.next().unwrap();
    assert!(first.starts_with("scout · general-purpose · "), "{first}");
    team.append("scout", "{\"id\":\"m\",\"content\":\"read README.md\"}\n");
    let concluded = printed.find(|line| line.contains("  m ok: # A test")).unwrap();
    assert!(concluded.contains("  scout "), "{concluded}");
    team.run(&["stop", "scout"]).exits(0);
    let last = printed.last().unwrap();
    assert!(last.ends_with("  ends, completed: shutdown"), "{last}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn runs_that_begin_later_are_followed_too() {
    let team = Team::new(TEAM);
    let daemon = team.up();
    team.until("a trace", |team| team.at(".mailbox/traces").exists().then_some(()));
    drop(daemon);
    let head = |id: &str| {
        format!(
            "{{\"event\":\"started\",\"trace_id\":\"{id}\",\"agent\":\"lead\",\
             \"agent_type\":\"explore\",\"mode\":\"call\"}}\n"
        )
    };
    let end = "{\"event\":\"ended\",\"status\":\"completed\",\"reason\":\"done\"}\n";
    let begun = |id: &str| {
        format!(
            "{{\"event\":\"subagent_started\",\"id\":\"{id}\",\"agent_type\":\"explore\",\
             \"task\":\"look\"}}\n"
        )
    };
    team.append("traces/upper0000000", head("upper0000000"));
    let mut child =
        team.command(&["trace", "subagent-upper", "-f"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(printed.next().unwrap().starts_with("lead · explore · subagent-upper000  "));
    team.append("traces/middle000000", [head("middle000000"), begun("lowest000000")].concat());
    team.append("traces/lowest000000", [&head("lowest000000"), end].concat());
    team.append("traces/upper0000000", begun("middle000000"));
    printed.find(|line| line.ends_with("lead subagent-lowest00  ends, completed: done")).unwrap();
    team.append("traces/upper0000000", "half a line\n{\"event\":\"novel\"}\n");
    team.append("traces/middle000000", "{\"event\":\"error\",\"text\":\"odd\"}\n");
    printed.find(|line| line.ends_with("lead subagent-middle00  failed: odd")).unwrap();
    team.append("traces/upper0000000", end);
    let last = printed.last().unwrap();
    assert!(last.ends_with("lead subagent-upper000  ends, completed: done"), "{last}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_team_that_is_followed_goes_on_into_its_next_lives() {
    let team = Team::new(TEAM);
    let daemon = team.up();
    let mut child = team.command(&["trace", "-f"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    printed.find(|line| line.starts_with("scout · general-purpose · ")).unwrap();
    team.run(&["stop", "scout"]).exits(0);
    team.run(&["start", "scout"]).exits(0);
    printed.find(|line| line.ends_with("  life 2 begins")).unwrap();
    team.append("scout", "{\"id\":\"m\",\"content\":\"read README.md\"}\n");
    printed.find(|line| line.contains("  m ok: # A test")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    drop(daemon);
}

#[test]
fn earlier_lives_are_shown_where_they_are_asked_for() {
    let team = Team::new(TEAM);
    let _daemon = team.up();
    team.run(&["stop", "scout"]).exits(0);
    team.run(&["start", "scout"]).exits(0);
    let lives = |args: &[&str]| {
        let shown = team.run(&[&["trace"], args].concat()).ok();
        let heads = shown.lines().filter(|line| line.contains(" · general-purpose · "));
        let life = |it: &str| it.split_once("  ")?.1.split_once(',').map(|it| it.0.to_owned());
        heads.filter_map(life).collect::<Vec<_>>()
    };
    assert_eq!(lives(&["scout"]), ["life 2"]);
    assert_eq!(lives(&["scout", "--all"]), ["life 1", "life 2"]);
    assert_eq!(lives(&["--all"]).len(), 3);
}

#[test]
fn the_trace_that_a_killed_daemon_left_open_is_closed_with_what_was_done() {
    let team = Team::new(TEAM);
    let mut daemon = team.up();
    team.append("scout", "{\"id\":\"m\",\"content\":\"read README.md\"}\n");
    let id = team.until_answer_to("m")["trace_id"].as_str().unwrap().to_owned();
    team.until("the end of the work", |team| team.is_settled("scout").then_some(()));
    daemon.kill();
    let cut_off = team.run(&["trace", "scout"]).ok();
    assert!(cut_off.contains("cut off after "), "{cut_off}");
    let _daemon = team.up();
    let lines = team.until("the end of the trace", |team| {
        Some(lines(team, &id)).filter(|it| it.last().is_some_and(|it| it["event"] == "ended"))
    });
    let (head, end) = (&lines[0], lines.last().unwrap());
    assert_eq!((&head["agent_type"], &head["mode"]), (&"general-purpose".into(), &"agent".into()));
    assert_eq!((&end["event"], &end["status"]), (&"ended".into(), &"failed".into()));
    assert_eq!((&end["totals"]["messages"], &end["totals"]["tool_calls"]), (&1.into(), &1.into()));
    assert_eq!(end["with_children"], end["totals"]);
    let closed = team.run(&["trace", &id]).ok();
    assert!(closed.contains("failed: the daemon died during this life"), "{closed}");
}
