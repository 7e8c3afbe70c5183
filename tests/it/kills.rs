//! `kill -9` at random moments, while commands run.
//!
//! The normal run has few rounds. The whole one, with a seed where one has failed:
//! `POSTROOM_SEED=1 cargo test --test it kills -- --ignored --nocapture`

use std::{collections::BTreeMap, fs, time::Duration};

use serde_json::Value;

use crate::dice::{Dice, pass};
use crate::team::{Daemon, Team};

const WORKERS: [&str; 4] = ["w0", "w1", "w2", "w3"];
const TEAM: &str = r#"{
  "permission_mode": "bypass",
  "limits": {"grace_s": 1},
  "teammates": {"lead": {}, "w0": {}, "w1": {}, "w2": {}, "w3": {}}
}"#;

fn kill_at_random(rounds: usize, messages: usize, longest: u64) {
    let (team, mut dice) = (Team::new(TEAM), Dice::seeded());
    let mut sent = 0;
    for round in 1..=rounds {
        while sent < messages * round / rounds {
            let worker = WORKERS[sent % WORKERS.len()];
            let command = format!("run sleep 0.01; echo {sent} >> {worker}.txt");
            team.append(worker, format!("{{\"id\":\"{sent}\",\"content\":\"{command}\"}}\n"));
            sent += 1;
        }
        let mut daemon: Daemon = team.up();
        pass(Duration::from_millis(dice.below(longest)));
        // Now and then it dies on its way down.
        if dice.below(4) == 0 {
            daemon.signal("TERM");
            pass(Duration::from_millis(dice.below(100)));
        }
        daemon.kill();
    }
    let mut daemon = team.up();
    team.until("all answers", |team| {
        (team.responses().len() >= messages && WORKERS.iter().all(|name| team.is_settled(name)))
            .then_some(())
    });
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    assert_eq!(team.left_over(), 0);
    check(&team, messages);
}

/// Checks that each message is answered by one line, and that what is said to have run has run once.
fn check(team: &Team, messages: usize) {
    let mut answers: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
    for line in team.responses() {
        let id = line["in_reply_to"].as_str().unwrap().parse().unwrap();
        answers.entry(id).or_default().push(line);
    }
    let mut ran: BTreeMap<usize, usize> = BTreeMap::new();
    for worker in WORKERS {
        for line in fs::read_to_string(team.at(&format!("{worker}.txt"))).unwrap().lines() {
            *ran.entry(line.parse().unwrap()).or_default() += 1;
        }
    }
    assert_eq!(answers.len(), messages);
    let mut cut_off = 0;
    for (id, lines) in &answers {
        assert_eq!(lines.len(), 1, "{lines:#?}");
        let times = ran.get(id).copied().unwrap_or_default();
        match lines[0]["status"].as_str() {
            Some("ok") => assert_eq!(times, 1, "{id}"),
            Some("failed") => {
                let text = lines[0]["content"].as_str().unwrap();
                let is_told = text.contains("unknown: the daemon stopped")
                    || text.contains("interrupted: the teammate was stopped");
                assert!(is_told && times <= 1, "{id} ran {times} times: {text}");
                cut_off += 1;
            }
            other => panic!("{id}: {other:?}"),
        }
    }
    eprintln!("{messages} messages, {cut_off} of them cut off and told so");
}

#[test]
fn a_few_kills_at_random_lose_and_repeat_nothing() {
    kill_at_random(3, 40, 250);
}

#[test]
#[ignore = "takes a minute"]
fn twenty_kills_at_random_lose_and_repeat_nothing() {
    kill_at_random(20, 400, 500);
}
