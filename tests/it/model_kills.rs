//! `kill -9` at random moments while models think, delegate and have their conversations summed up.
//!
//! The normal run has few rounds. The whole one, with a seed where one has failed:
//! `POSTROOM_SEED=1 cargo test --test it model_kills -- --ignored --nocapture`

use std::{collections::BTreeSet, fs, time::Duration};

use serde_json::{Value, json};

use crate::{
    dice::{Dice, pass},
    model_server::{Asked, ModelServer, Play, Wire},
    model_streams::USAGE,
    team::Team,
};

/// Three rounds for each message: reading beside delegating, then a command, then the answer.
fn thinking(asked: &Asked) -> Play {
    if asked.system().starts_with("You keep the memory") {
        return Play::Say(("files were read".to_owned(), Vec::new()));
    }
    let is_subagent = asked.system().contains("You search and read");
    let read = ("read_file", json!({"path": "README.md"}));
    match asked.results() {
        0 if is_subagent => Play::Say((String::new(), vec![read])),
        _ if is_subagent => Play::Say(("read".to_owned(), Vec::new())),
        0 => {
            let child = json!({"task": asked.asked_last(), "agent_type": "explore"});
            Play::Say((String::new(), vec![read, ("subagent", child)]))
        }
        2 => {
            let word = word_of(&asked.asked_last());
            Play::Say((
                String::new(),
                vec![("bash", json!({"command": format!("echo {word} >> ran")}))],
            ))
        }
        _ => Play::Say((word_of(&asked.asked_last()), Vec::new())),
    }
}

/// The word that a message asks for: `word-7`.
fn word_of(text: &str) -> String {
    let from = text.rfind("word-").unwrap_or_else(|| panic!("no word in {text}"));
    text[from..].chars().take_while(|it| it.is_alphanumeric() || *it == '-').collect()
}

fn kill_at_random(wire: Wire, rounds: usize, messages: usize, longest: u64) {
    let mut dice = Dice::seeded();
    let server = ModelServer::start(wire, thinking);
    let (kind, path) = match wire {
        Wire::Chat => ("openai", "/v1"),
        Wire::Messages => ("anthropic", ""),
    };
    let mut team = Team::new(&format!(
        r#"{{"provider": "local", "permission_mode": "bypass", "limits": {{"grace_s": 1}},
            "prices": {{"m": {{"input": 2, "output": 10}}}},
            "providers": {{"local": {{"kind": "{kind}", "model": "m", "base_url": "{}{path}",
                "api_key_env": "TEST_KEY"}}}},
            "teammates": {{"lead": {{}}, "w1": {{}}, "w2": {{}}}}}}"#,
        server.url
    ));
    team.set_env("TEST_KEY", "sk-of-the-test-server");
    fs::write(team.at("README.md"), "# A test\n".repeat(100)).unwrap();
    let names = ["lead", "w1", "w2"];
    let mut sent = 0;
    for round in 1..=rounds {
        while sent < messages * round / rounds {
            let line = json!({"id": sent.to_string(), "content": format!("say word-{sent}")});
            team.append(names[sent % names.len()], format!("{line}\n"));
            sent += 1;
        }
        let mut daemon = team.up();
        pass(Duration::from_millis(dice.below(longest)));
        daemon.kill();
    }
    let mut daemon = team.up();
    team.until("all answers", |team| {
        let settled = names.iter().all(|name| team.is_settled(name));
        (team.responses().len() >= messages && settled).then_some(())
    });
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    assert_eq!(team.left_over(), 0);
    // No request was wrong: each call had one result, whatever was cut off.
    server.is_content();
    let answers = team.responses();
    let answered: BTreeSet<&str> =
        answers.iter().map(|line| line["in_reply_to"].as_str().unwrap()).collect();
    assert_eq!((answers.len(), answered.len()), (messages, messages));
    for line in &answers {
        let word = format!("word-{}", line["in_reply_to"].as_str().unwrap());
        assert_eq!(line["content"], word.as_str(), "{line}");
    }
    // A command whose result a kill cut off is not run again.
    let ran = fs::read_to_string(team.at("ran")).unwrap();
    let words: Vec<&str> = ran.lines().collect();
    assert_eq!(words.len(), words.iter().collect::<BTreeSet<_>>().len(), "{words:?}");
    costs_add_up(&team, &server);
}

/// What is known to be spent is the server's own count, but for calls that a kill cut off: these are
/// shown as unknown, whether the server had answered them whole or not.
fn costs_add_up(team: &Team, server: &ModelServer) {
    let told = team.run(&["cost", "--json"]).ok();
    let rows: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sum = |key: &str| rows.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
    let [anew, from_cache, into_cache, written] = USAGE;
    let known = sum("calls") - sum("unknown_calls");
    assert_eq!(sum("tokens_in"), known * (anew + from_cache + into_cache), "{told}");
    assert_eq!(sum("tokens_out"), known * written, "{told}");
    let answered = server.answered() as u64;
    assert!(known <= answered && answered <= sum("calls"), "{known} {answered} {told}");
    // A call is written down before it is made, so none is missing.
    assert!(server.asked() as u64 <= sum("calls"), "{} {told}", server.asked());
    eprintln!("{} calls, {} cut off; {} asked", sum("calls"), sum("unknown_calls"), server.asked());
}

#[test]
fn a_few_kills_while_models_think_lose_and_repeat_nothing() {
    kill_at_random(Wire::Chat, 3, 9, 300);
    kill_at_random(Wire::Messages, 3, 9, 300);
}

#[test]
#[ignore = "takes a minute"]
fn twenty_kills_while_models_think_lose_and_repeat_nothing() {
    for wire in [Wire::Chat, Wire::Messages] {
        kill_at_random(wire, 20, 80, 800);
    }
}
