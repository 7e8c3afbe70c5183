//! `kill -9` at random moments, while tasks wait for each other and for somebody's leave.
//!
//! The normal run has few rounds. The whole one, with a seed where one has failed:
//! `POSTROOM_SEED=1 cargo test --test it task_kills -- --ignored --nocapture`

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    time::Duration,
};

use serde_json::Value;

use crate::{
    board::{agree, list, told},
    dice::{Dice, pass},
    plans::{decide, send, steps},
    team::{Daemon, Team},
};

const TEAM: &str = r#"{
  "permission_mode": "bypass",
  "limits": {"grace_s": 1},
  "teammates": {
    "lead": {"claims": "none", "permission_mode": "default"},
    "w0": {}, "w1": {},
    "w2": {"permission_mode": "default"},
    "w3": {"plan_required": true, "claims": "none"}
  }
}"#;
const ASKERS: [&str; 3] = ["lead", "w2", "w3"];

/// A third of the tasks wait for the one before; one in five can't be done.
fn tasks(from: usize, to: usize) -> String {
    (from..to).fold(String::new(), |mut lines, number| {
        let work = match number % 5 {
            4 => format!("read {number}.md"),
            _ => format!("run sleep 0.02; echo {number} >> tasks.txt"),
        };
        let waits =
            if number % 3 == 2 { format!(",\"depends_on\":[{number}]") } else { String::new() };
        writeln!(lines, "{{\"title\":\"{work}\"{waits}}}").unwrap();
        lines
    })
}

/// Messages whose work asks first: leave for a call, or approval of a plan.
fn messages(team: &Team, from: usize, to: usize) {
    for number in from..to {
        send(
            team,
            "lead",
            &format!("lead-{number}"),
            &format!("run echo lead-{number} >> asked.txt"),
        );
        let plan = format!("plan: {number}\nrun echo w3-{number} >> asked.txt");
        send(team, "w3", &format!("w3-{number}"), &plan);
    }
}

/// Says yes by hand to all that is asked and not answered yet.
fn say_yes(team: &Team, answered: &mut BTreeSet<String>) {
    for asker in ASKERS {
        for asked in steps(team, asker, "asked") {
            let id = asked["id"].as_str().unwrap().to_owned();
            if answered.insert(id.clone()) {
                decide(team, asker, "user", &format!("yes-{id}"), &id, true);
            }
        }
    }
}

fn has_ended(task: &Value, all: &BTreeMap<String, Value>) -> bool {
    match task["status"].as_str() {
        Some("done" | "failed") => true,
        Some("pending") => task["waits_for"].as_array().unwrap().iter().any(|id| {
            let other = &all[id.as_str().unwrap()];
            other["status"] != "done" && has_ended(other, all)
        }),
        _ => false,
    }
}

fn by_id(team: &Team) -> BTreeMap<String, Value> {
    let tasks = list(team).into_iter();
    tasks.map(|task| (task["id"].as_str().unwrap().to_owned(), task)).collect()
}

fn kill_at_random(rounds: usize, count: usize, asking: usize, longest: u64) {
    let (team, mut dice, mut answered) = (Team::new(TEAM), Dice::seeded(), BTreeSet::new());
    for round in 0..rounds {
        let part = |of: usize, round: usize| of * round / rounds;
        team.append("tasks", tasks(part(count, round), part(count, round + 1)));
        messages(&team, part(asking, round), part(asking, round + 1));
        let mut daemon: Daemon = team.up();
        pass(Duration::from_millis(dice.below(longest)));
        // Answers come while it runs, or while it is down.
        if dice.below(2) == 0 {
            say_yes(&team, &mut answered);
            pass(Duration::from_millis(dice.below(50)));
        }
        if dice.below(4) == 0 {
            daemon.signal("TERM");
            pass(Duration::from_millis(dice.below(100)));
        }
        daemon.kill();
        if dice.below(2) == 0 {
            say_yes(&team, &mut answered);
        }
    }
    let mut daemon = team.up();
    team.until("the end of all work", |team| {
        say_yes(team, &mut answered);
        let all = by_id(team);
        let tasks_are = all.values().all(|task| has_ended(task, &all));
        (tasks_are && team.answers().len() >= 2 * asking).then_some(())
    });
    let ended = by_id(&team).values().filter(|it| it["status"] != "pending").count();
    team.until("all ends to be told", |team| (told(team).len() == ended).then_some(()));
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    assert_eq!(team.left_over(), 0);
    agree(&team);
    check_tasks(&team, count);
    check_questions(&team, asking);
}

fn check_tasks(team: &Team, count: usize) {
    let all = by_id(team);
    assert_eq!(all.len(), count);
    assert!(told(team).values().all(|times| *times == 1), "{:?}", told(team));
    let ran = fs::read_to_string(team.at("tasks.txt")).unwrap_or_default();
    let mut again = 0;
    for (id, task) in &all {
        let number = id.parse::<usize>().unwrap() - 1;
        let times = ran.lines().filter(|line| *line == number.to_string()).count();
        let attempts = task["attempt"].as_u64().unwrap();
        assert!(times as u64 <= attempts, "{task} ran {times} times");
        again += usize::from(attempts > 1);
        match task["status"].as_str().unwrap() {
            "done" => assert!(times >= 1 && number % 5 != 4, "{task}"),
            "failed" => assert!(!task["result"].as_str().unwrap().is_empty(), "{task}"),
            other => assert_eq!(other, "pending", "{task} waits for one that has failed"),
        }
    }
    eprintln!("{count} tasks, {again} of them begun more than once");
}

fn check_questions(team: &Team, asking: usize) {
    let ran = fs::read_to_string(team.at("asked.txt")).unwrap_or_default();
    let mut cut_off = 0;
    for number in 0..asking {
        for name in ["lead", "w3"] {
            let id = format!("{name}-{number}");
            let all = team.answers();
            let answers: Vec<&Value> = all.iter().filter(|it| it["in_reply_to"] == *id).collect();
            assert_eq!(answers.len(), 1, "{answers:#?}");
            let times = ran.lines().filter(|line| *line == id).count();
            if answers[0]["status"] == "ok" {
                assert_eq!(times, 1, "{id}");
                continue;
            }
            let text = answers[0]["content"].as_str().unwrap();
            assert!(text.contains("the daemon stopped") || text.contains("was stopped"), "{text}");
            assert!(times <= 1, "{id} ran {times} times");
            cut_off += 1;
        }
    }
    let mut count = 0;
    for asker in ASKERS {
        let asked = steps(team, asker, "asked");
        let ids: BTreeSet<&str> = asked.iter().map(|it| it["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), asked.len(), "each is asked once");
        let copies = team.mail("user").into_iter().filter(|it| it["msg_type"] == "request");
        let copies: Vec<Value> = copies.filter(|it| it["from_agent"] == asker).collect();
        for id in &ids {
            assert!(copies.iter().filter(|it| it["id"] == **id).count() <= 1, "{id} of {asker}");
        }
        count += asked.len();
    }
    let open = team.run(&["approvals", "--json"]).ok();
    assert_eq!(open, "", "nothing is left open");
    eprintln!("{count} questions, {cut_off} of {} answers tell of a call cut off", 2 * asking);
}

#[test]
fn a_few_kills_at_random_lose_and_repeat_no_task_and_no_question() {
    kill_at_random(3, 24, 6, 250);
}

#[test]
#[ignore = "takes a minute"]
fn twenty_kills_at_random_lose_and_repeat_no_task_and_no_question() {
    kill_at_random(20, 200, 40, 600);
}
