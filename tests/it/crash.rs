//! Kills between every two durable writes: whatever the moment, a restart does the rest and nothing
//! twice.
//!
//! The normal run dies at some passages of each place. The whole sweep, at every passage of every
//! place and at pairs of them:
//! `cargo test --test it crash -- --ignored`

use std::{collections::BTreeMap, fs};

use serde_json::Value;

use crate::team::Team;

const TEAM: &str = r#"{
  "permission_mode": "bypass",
  "teammates": {
    "lead": {},
    "hand": {},
    "helper": {},
    "asker": {"script": "ask helper: read README.md\ntell helper: answer: thanks\nanswer: {output}"}
  }
}"#;

const PLACES: [&str; 6] = [
    "life-before-record",
    "life-after-record",
    "conversation-before-turn",
    "conversation-after-turn",
    "mail-before-append",
    "mail-after-append",
];

/// A read, a command with an effect, one with none, a follow-up to the first, a command of a subagent,
/// an ask and a tell.
fn with_mail() -> Team {
    let team = Team::new(TEAM);
    team.append(
        "hand",
        r#"{"id":"read","content":"read README.md"}
{"id":"run","content":"run echo x >> ran.txt"}
{"id":"last","content":"answer: done"}
{"id":"more","content":"answer: more","in_reply_to":"read"}
{"id":"sub","content":"delegate general: run echo y >> sub.txt"}
"#,
    );
    team.append("asker", "{\"id\":\"ask\",\"content\":\"go\"}\n");
    team
}

/// One life of the daemon, to the end of all work or to its death. Whether it died.
fn live(team: &Team, crash: Option<&str>) -> bool {
    let env = crash.map(|place| ("POSTROOM_CRASH_AT", place));
    let daemon = team.try_up_with(env.as_slice());
    let mut daemon = match daemon {
        Ok(daemon) => daemon,
        Err(said) => {
            assert!(crash.is_some(), "it did not come up: {said}");
            return true;
        }
    };
    team.until("the end of all work", |team| {
        (daemon.has_ended() || is_settled(team)).then_some(())
    });
    if !daemon.has_ended() {
        daemon.signal("TERM");
    }
    let died = daemon.wait() != 0;
    assert!(!died || crash.is_some(), "it ended otherwise than in order\n{}", team.everything());
    died
}

/// Whether all is answered; those who cause mail for others are looked at before these.
fn is_settled(team: &Team) -> bool {
    team.responses().len() >= 6
        && ["helper", "asker", "hand", "lead"].iter().all(|name| team.is_settled(name))
}

/// Checks that each thing has happened once.
fn check(team: &Team, crashes: &str) {
    let context = || format!("after {crashes}\n{}", team.everything());
    let mut answers: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in team.responses() {
        let id = line["in_reply_to"].as_str().unwrap_or_default().to_owned();
        answers.entry(id).or_default().push(line);
    }
    let counts: Vec<(&str, usize)> =
        answers.iter().map(|(id, lines)| (id.as_str(), lines.len())).collect();
    let once = [("ask", 1), ("last", 1), ("more", 1), ("read", 1), ("run", 1), ("sub", 1)];
    assert_eq!(counts, once, "{}", context());
    for (id, lines) in &answers {
        let status = lines[0]["status"].as_str().unwrap_or_default();
        let file = if id == "sub" { "sub.txt" } else { "ran.txt" };
        let ran = fs::read_to_string(team.at(file)).unwrap_or_default();
        let content = lines[0]["content"].as_str().unwrap_or_default();
        match (id.as_str(), status) {
            ("run", "ok") => assert_eq!(ran, "x\n", "{}", context()),
            ("sub", "ok") => assert_eq!(ran, "y\n", "{}", context()),
            ("run" | "sub", "failed") => {
                let unknown = content.contains("unknown: the daemon stopped during this call");
                assert!(unknown && ["", "x\n", "y\n"].contains(&ran.as_str()), "{}", context());
            }
            _ => assert_eq!(status, "ok", "{id} {}", context()),
        }
    }
    let said = |name: &str, kind: &str| -> Vec<Value> {
        let mail = team.mail(name).into_iter().filter(|line| line["msg_type"] == kind);
        mail.map(|line| line["content"].clone()).collect()
    };
    assert_eq!(said("helper", "request"), ["read README.md", "answer: thanks"], "{}", context());
    assert_eq!(said("asker", "response"), ["# A test", "thanks"], "{}", context());
    assert!(team.mail("lead").is_empty(), "{}", context());
    check_conversations(team, &context);
    let dead = fs::read_to_string(team.at(".mailbox/state/dead.jsonl")).unwrap_or_default();
    assert_eq!(dead, "", "{}", context());
    assert_eq!(team.left_over(), 0, "{}", context());
}

/// Checks that no conversation holds a message twice, or two results of one call.
fn check_conversations(team: &Team, context: &impl Fn() -> String) {
    for name in ["asker", "hand", "helper"] {
        let (mut mail, mut results) = (Vec::new(), Vec::new());
        for turn in team.conversation(name) {
            if let Some(it) = turn.get("mail") {
                mail.push(format!("{} {}", it["from"], it["id"]));
            }
            if let Some(it) = turn.get("result") {
                results.push(it["call"].to_string());
            }
        }
        for all in [mail, results] {
            let mut once = all.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), all.len(), "{name}: {all:?} {}", context());
        }
    }
}

/// Dies at one place after the other, a life each, then lives to the end. Whether all were reached.
fn die_at(crashes: &[String]) -> bool {
    let team = with_mail();
    let all = crashes.iter().all(|crash| live(&team, Some(crash)));
    if all {
        live(&team, None);
    }
    check(&team, &crashes.join(", "));
    all
}

/// Dies at each passage of `place`, until there are no more. How many there were.
fn sweep(place: &str) -> usize {
    (1..1000).take_while(|passage| die_at(&[format!("{place}:{passage}")])).count()
}

#[test]
fn a_death_at_some_passages_of_each_place_loses_and_repeats_nothing() {
    for place in PLACES {
        for passage in [2, 6] {
            assert!(die_at(&[format!("{place}:{passage}")]), "{place} is not passed so often");
        }
    }
}

#[test]
fn two_deaths_in_a_row_lose_and_repeat_nothing() {
    for (first, second) in [
        ("conversation-after-turn:5", "conversation-before-turn:2"),
        ("mail-after-append:3", "mail-after-append:1"),
        ("life-before-record:9", "life-after-record:2"),
        ("conversation-before-turn:6", "mail-before-append:1"),
    ] {
        die_at(&[first.to_owned(), second.to_owned()]);
    }
}

#[test]
#[ignore = "takes minutes"]
fn a_death_at_every_passage_of_every_place() {
    for place in PLACES {
        let passages = sweep(place);
        eprintln!("{place}: {passages} passages");
        assert!(passages > 5, "{place}");
    }
}

#[test]
#[ignore = "takes minutes"]
fn many_pairs_of_deaths() {
    for first in PLACES {
        for (passage, second) in [3, 7, 11].into_iter().zip(PLACES.into_iter().cycle().skip(1)) {
            for again in [1, 4] {
                for second in [second, first] {
                    die_at(&[format!("{first}:{passage}"), format!("{second}:{again}")]);
                }
            }
        }
    }
}

#[test]
fn a_message_that_ten_daemons_died_on_is_a_dead_letter_and_the_next_goes_on() {
    let team = Team::new(TEAM);
    team.append(
        "hand",
        "{\"id\":\"bad\",\"content\":\"read README.md\"}\n\
         {\"id\":\"good\",\"content\":\"read README.md\"}\n",
    );
    for death in 1..=10 {
        assert!(dies(&team, "conversation-before-turn:1"), "death {death}");
        let tries = team.life("hand")["taken"]["tries"]["deaths"].clone();
        assert_eq!(tries, death - 1);
    }
    // It also dies while it gives up, before and behind each word of it.
    for place in ["mail-after-append:1", "conversation-before-turn:1", "conversation-after-turn:2"]
    {
        assert!(dies(&team, place), "{place}");
    }
    let _daemon = team.up();
    let answers = team.until_answered(2);
    let told: Vec<_> = answers.iter().map(|it| (&it["in_reply_to"], &it["status"])).collect();
    let expected: [(Value, Value); 2] =
        [("bad".into(), "failed".into()), ("good".into(), "ok".into())];
    assert_eq!(told, expected.each_ref().map(|(id, status)| (id, status)));
    assert!(answers[0]["content"].as_str().unwrap().starts_with("given up: "), "{answers:?}");
    let events: Vec<_> = team.mail("lead");
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(
        (&events[0]["msg_type"], &events[0]["from_agent"]),
        (&"event".into(), &"hand".into())
    );
    let dead = fs::read_to_string(team.at(".mailbox/state/dead.jsonl")).unwrap();
    assert_eq!(dead.lines().filter(|line| line.contains("given up: ")).count(), 1, "{dead}");
}

/// Starts a daemon that dies at `place`; whether it did.
fn dies(team: &Team, place: &str) -> bool {
    match team.try_up_with(&[("POSTROOM_CRASH_AT", place)]) {
        Ok(mut daemon) => {
            team.until("its death", |_| daemon.has_ended().then_some(()));
            daemon.wait() == -1
        }
        Err(_) => true,
    }
}
