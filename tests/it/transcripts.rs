//! What a team did, rendered from its traces: so the traces are tested, too.

use std::{fmt::Write, fs};

use expect_test::expect_file;
use serde_json::Value;

use crate::team::Team;

const TEAM: &str = r#"{
  "permission_mode": "bypass",
  "teammates": {"lead": {}},
  "agents": {"short": {"max_turns": 2}}
}"#;

/// The lives of `name`, each with all that ran below it where it was started. Times are left out.
fn transcript(team: &Team, name: &str) -> String {
    let mut lives: Vec<(u64, String)> = Vec::new();
    for entry in fs::read_dir(team.at(".mailbox/traces")).unwrap().flatten() {
        let id = entry.file_name().to_string_lossy().replace(".jsonl", "");
        let head = events(team, &id).into_iter().next().unwrap();
        if head["mode"] == "agent" && head["agent"] == name {
            lives.push((head["life"].as_u64().unwrap(), id));
        }
    }
    lives.sort();
    let mut shown = String::new();
    for (_, id) in lives {
        render(team, &id, &mut Vec::new(), 0, &mut shown);
    }
    shown
}

fn events(team: &Team, id: &str) -> Vec<Value> {
    let text = fs::read_to_string(team.at(&format!(".mailbox/traces/{id}.jsonl")));
    text.unwrap_or_default().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn render(team: &Team, id: &str, known: &mut Vec<String>, depth: usize, shown: &mut String) {
    known.push(id.to_owned());
    let pad = "    ".repeat(depth);
    for event in events(team, id) {
        let text = |key: &str| event[key].as_str().unwrap_or("-").trim().replace('\n', " / ");
        let line = match event["event"].as_str().unwrap() {
            "started" => {
                let what = if event["mode"] == "agent" { "life" } else { "run" };
                let by = if event["spawned_by_tool"].is_string() { ", by a call" } else { "" };
                let task = &event["context"]["parent_task"];
                let task = task.as_str().map(|it| format!(", for task {it}")).unwrap_or_default();
                format!("{what} {id} of {} as {}{by}{task}", text("agent"), text("agent_type"))
            }
            "message" => format!("{} from {}: {}", text("kind"), text("from"), text("content")),
            "model_call_started" => continue,
            "model_call" => format!("model: {}", text("text")),
            "tool_call" => {
                let failed = if event["is_error"] == true { " failed" } else { "" };
                let (tool, verdict) = (&event["call"]["tool"], text("verdict"));
                format!("{}, {verdict}{failed}: {}", tool.as_str().unwrap(), text("output"))
            }
            "subagent_started" => format!("began {} as {}", text("id"), text("agent_type")),
            "subagent_completed" => format!("{} ended: {}", text("id"), text("status")),
            "conclusion" => format!("concluded {}: {}", text("status"), text("text")),
            "ended" => {
                let (own, all) = (&event["totals"], &event["with_children"]);
                let counts = |it: &Value| {
                    let count = |key: &str| it[key].as_u64().unwrap_or_default();
                    format!("{} turns {} calls", count("model_calls"), count("tool_calls"))
                };
                format!(
                    "ended {} {}; {}, with all below {}",
                    text("status"),
                    text("reason"),
                    counts(own),
                    counts(all)
                )
            }
            other => format!("{other} {}", text("text")),
        };
        writeln!(shown, "{pad}{line}").unwrap();
        let below = event["id"].as_str().filter(|_| event["event"] == "subagent_started");
        if let Some(below) = below.filter(|it| !known.iter().any(|known| known == it)) {
            render(team, below, known, depth + 1, shown);
        }
    }
}

fn send(team: &Team, id: &str, content: &str) {
    let line = serde_json::json!({"id": id, "content": content});
    team.append("lead", format!("{line}\n"));
}

/// One request to the lead, from the start of the team to its end.
fn of_request(content: &str) -> String {
    let team = Team::new(TEAM);
    let mut daemon = team.up();
    send(&team, "a", content);
    team.until_answer_to("a");
    daemon.signal("TERM");
    daemon.wait();
    transcript(&team, "lead")
}

#[test]
fn three_levels_of_delegation() {
    let told = of_request(
        "delegate general-purpose:\n  read README.md\n  delegate general-purpose:\n    delegate \
         explore:\n      list\n      answer: at the bottom",
    );
    expect_file!["../golden/transcript-levels.txt"].assert_eq(&told);
}

#[test]
fn a_refused_fourth_level() {
    let told = of_request(
        "delegate general-purpose:\n  delegate general-purpose:\n    delegate general-purpose:\n      \
         delegate explore: list",
    );
    expect_file!["../golden/transcript-refused.txt"].assert_eq(&told);
}

#[test]
fn a_subagent_that_fails_is_a_result_and_not_its_callers_end() {
    let told = of_request("- delegate general: run echo tried; exit 4\nanswer: went on");
    expect_file!["../golden/transcript-failing.txt"].assert_eq(&told);
}

#[test]
fn a_subagent_that_runs_out_of_turns() {
    let told = of_request("- delegate short:\n  list\n  read README.md\n  list\nanswer: went on");
    expect_file!["../golden/transcript-out-of-turns.txt"].assert_eq(&told);
}

#[test]
fn a_subagent_beside_the_work_that_ends_during_the_next_request() {
    let team = Team::new(TEAM);
    let mut daemon = team.up();
    let task = "run until [ -e go ]; do sleep 0.02; done; echo finished";
    let input =
        serde_json::json!({"task": task, "agent_type": "general", "run_in_background": true});
    send(&team, "a", &format!("tool subagent {input}"));
    team.until_answer_to("a");
    let wait = "until grep -q '[t]race_id' .mailbox/lead.jsonl; do sleep 0.02; done";
    send(&team, "b", &format!("run touch go; {wait}\nlist\nanswer: b is done"));
    team.until_answer_to("b");
    team.until("all mail", |team| team.is_settled("lead").then_some(()));
    daemon.signal("TERM");
    daemon.wait();
    expect_file!["../golden/transcript-beside.txt"].assert_eq(&transcript(&team, "lead"));
}

#[test]
fn a_kill_in_the_middle_of_a_subagent() {
    let team = Team::new(TEAM);
    let mut daemon = team.up();
    let task =
        "delegate general:\n  read README.md\n  - run touch begun; sleep 1000\n  answer: went on";
    send(&team, "a", task);
    team.until("the command", |team| team.at("begun").exists().then_some(()));
    daemon.kill();
    let mut daemon = team.up();
    team.until_answer_to("a");
    daemon.signal("TERM");
    daemon.wait();
    expect_file!["../golden/transcript-killed.txt"].assert_eq(&transcript(&team, "lead"));
}
