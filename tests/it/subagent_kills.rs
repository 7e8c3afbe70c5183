//! `kill -9` at random moments, while subagents work: waited for, nested, and in the background.
//!
//! The normal run has few rounds. The whole one, with a seed where one has failed:
//! `POSTROOM_SEED=1 cargo test --test it subagent_kills -- --ignored --nocapture`

use std::{collections::BTreeMap, fs, time::Duration};

use serde_json::{Value, json};

use crate::dice::{Dice, pass};
use crate::team::Team;

const WORKERS: [&str; 2] = ["w0", "w1"];
const TEAM: &str = r#"{
  "permission_mode": "bypass",
  "limits": {"grace_s": 1},
  "teammates": {"lead": {}, "w0": {}, "w1": {}}
}"#;

/// A piece of work that writes its number once: in a subagent, in one below it, or beside.
fn work(number: usize) -> String {
    let run = format!("run sleep 0.01; echo {number} >> ran.txt");
    match number % 3 {
        0 => format!("delegate general: {run}"),
        1 => format!("delegate general-purpose:\n  delegate general:\n    {run}\n  read README.md"),
        _ => {
            let input = json!({"task": run, "agent_type": "general", "run_in_background": true});
            format!("tool subagent {input}")
        }
    }
}

fn kill_at_random(rounds: usize, messages: usize, longest: u64) {
    let (team, mut dice) = (Team::new(TEAM), Dice::seeded());
    let mut sent = 0;
    for round in 1..=rounds {
        while sent < messages * round / rounds {
            let line = json!({"id": sent.to_string(), "content": work(sent)});
            team.append(WORKERS[sent % WORKERS.len()], format!("{line}\n"));
            sent += 1;
        }
        let mut daemon = team.up();
        pass(Duration::from_millis(dice.below(longest)));
        if dice.below(4) == 0 {
            daemon.signal("TERM");
            pass(Duration::from_millis(dice.below(100)));
        }
        daemon.kill();
    }
    let mut daemon = team.up();
    team.until("all answers and ends", |team| {
        let is_quiet = WORKERS
            .iter()
            .all(|name| team.is_settled(name) && team.life(name)["background"] == Value::Null);
        (team.responses().len() >= messages && is_quiet).then_some(())
    });
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    assert_eq!(team.left_over(), 0);
    check(&team, messages);
}

/// Checks that each message is answered by one line, that what was begun beside is told of once for
/// each time that it was begun, and that nothing has run twice.
fn check(team: &Team, messages: usize) {
    let mut answers: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
    for line in team.responses() {
        let id = line["in_reply_to"].as_str().unwrap().parse().unwrap();
        answers.entry(id).or_default().push(line);
    }
    let mut ran: BTreeMap<usize, usize> = BTreeMap::new();
    for line in fs::read_to_string(team.at("ran.txt")).unwrap_or_default().lines() {
        *ran.entry(line.parse().unwrap()).or_default() += 1;
    }
    assert_eq!(answers.len(), messages);
    let twice: Vec<_> = ran.iter().filter(|(_, times)| **times > 1).collect();
    let conversations = || team.everything_below(".mailbox/state");
    assert!(twice.is_empty(), "{twice:?}: {}", conversations());
    for (id, lines) in &answers {
        assert_eq!(lines.len(), 1, "{lines:#?}");
        let (status, text) = (&lines[0]["status"], lines[0]["content"].as_str().unwrap());
        let has_run = ran.contains_key(id);
        match (id % 3, status.as_str().unwrap()) {
            (2, "ok") => assert!(text.contains("started in the background"), "{text}"),
            (_, "ok") => assert!(has_run, "{id}: {text}"),
            (_, "failed") => {
                let is_told = text.contains("unknown: the daemon stopped")
                    || text.contains("interrupted: the teammate was stopped");
                assert!(is_told, "{id}: {text}");
            }
            (_, other) => panic!("{id}: {other}"),
        }
    }
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in WORKERS {
        let mail = team.mail(name).into_iter();
        for end in mail.filter(|it| it["msg_type"] == "event" && it["trace_id"].is_string()) {
            let run = end["trace_id"].as_str().unwrap().to_owned();
            told.entry(run).or_default().push(end["content"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(told.len(), messages / 3, "{told:#?}");
    let cut_off = told.values().filter(|ends| !ends.iter().any(|it| it.contains(" done:"))).count();
    for ends in told.values() {
        // One that had written nothing of its own when it was cut off is begun again.
        let done = ends.iter().filter(|it| it.contains(" done:")).count();
        assert!(done <= 1 && ends.len() <= 3, "{ends:#?}");
    }
    let dead = fs::read_to_string(team.at(".mailbox/state/dead.jsonl")).unwrap_or_default();
    assert_eq!(dead, "");
    eprintln!("{messages} messages, {cut_off} ends beside the work cut off and told so");
}

#[test]
fn a_few_kills_amid_subagents_lose_and_repeat_nothing() {
    kill_at_random(3, 30, 250);
}

#[test]
#[ignore = "takes a minute"]
fn twenty_kills_amid_subagents_lose_and_repeat_nothing() {
    kill_at_random(20, 300, 500);
}
