//! What happens to a team of models when calls go wrong, on both vendors' wire formats: how often the
//! server is asked, that nothing is done twice, what is shown meanwhile, and what it is said to cost.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    model_server::{Asked, ModelServer, Play, Wire},
    model_streams::{HIDDEN, THOUGHT},
    models::{
        ALONE, BOTH, KEY, THREE, after, price, refused, said, says, team_with, thinking, thoughts,
    },
    team::Team,
};

/// What the journal of costs says of all calls that have ended: how many of them are of known cost,
/// tokens read and written, and millionths of a dollar.
fn ended(team: &Team) -> [u64; 4] {
    let journal = fs::read_to_string(team.at(".mailbox/state/costs.jsonl")).unwrap();
    let lines = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let known = lines.filter(|line| line["event"] == "ended" && !line["tokens"].is_null());
    known.fold([0; 4], |[calls, read, written, cost], line| {
        let count = |key: &str| line["tokens"][key].as_u64().unwrap_or(0);
        let dollars: f64 = line["cost_usd"].as_str().unwrap().parse().unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is small")]
        let millionths = (dollars * 1e6).round() as u64;
        let all = count("input") + count("cache_read") + count("cache_write");
        [calls + 1, read + all, written + count("output"), cost + millionths]
    })
}

/// How many requests came, and what was answered.
fn content((asked, mut answer): (usize, Value)) -> (usize, Value) {
    (asked, answer["content"].take())
}

/// Whether any file below `folder` holds `text`.
fn holds(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return holds(&path, text);
        }
        let bytes = fs::read(&path).unwrap_or_default();
        bytes.windows(text.len()).any(|piece| piece == text.as_bytes())
    })
}

#[test]
fn a_team_of_three_that_is_killed_amid_it_all_does_everything_once_and_adds_up() {
    for wire in BOTH {
        let stalls = parking_lot::Mutex::new(true);
        let server = ModelServer::start(wire, move |asked| {
            if asked.system().contains("You search and read") && std::mem::take(&mut *stalls.lock())
            {
                return Play::Stall(thinking(asked));
            }
            if asked.asked_last().contains("and this") {
                return says("both are known");
            }
            Play::Say(thinking(asked))
        });
        let team = team_with(&server, THREE);
        let mut daemon = team.up();
        team.append("lead", "{\"id\":\"q\",\"content\":\"what do we know?\"}\n");
        team.until("half an answer", |_| (server.stalled() == 1).then_some(()));
        let id = team.run(&["task", "add", "test it", "--assignee", "tester"]).ok();
        team.until_state("tester", "waiting");
        // A follow-up to what the lead is about to go on with, after its tools have run.
        team.append("lead", "{\"id\":\"f\",\"content\":\"and this\",\"in_reply_to\":\"q\"}\n");
        daemon.kill();
        let mut daemon = team.up();
        assert_eq!(team.until_answer_to("q")["content"], "both are known");
        assert_eq!(team.until_answer_to("f")["content"], "both are known");
        team.run(&["wait", "--task", id.trim()]).ok();
        team.run(&["wait", "--idle"]).ok();
        assert!(team.run(&["task", "show", id.trim()]).ok().contains("tested"));
        assert_eq!(fs::read_to_string(team.at("ran")).unwrap(), "x\n");
        daemon.signal("TERM");
        assert_eq!(daemon.wait(), 0);
        // All that was answered whole is in the journal, and the one call that was cut off is known to
        // be. The task begins anew after the kill, so how many there are is for its plan to say.
        let (asked, answered) = (server.asked() as u64, server.answered() as u64);
        assert_eq!(asked, answered + 1);
        let paid = [answered, 100 * answered, 10 * answered, price(wire) * answered];
        assert_eq!(ended(&team), paid);
        let rows = team.run(&["cost", "--json"]).ok();
        let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
        let sum = |key: &str| rows.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
        assert_eq!((sum("calls"), sum("unknown_calls")), (asked, asked - answered), "{rows:?}");
    }
}

#[test]
fn all_that_was_thought_goes_back_in_its_order_in_the_next_round() {
    let server = ModelServer::start(Wire::Messages, |asked| match asked.results() {
        0 => Play::Say((String::new(), vec![("list_files", json!({})), ("list_files", json!({}))])),
        _ => says("done"),
    });
    let team = team_with(&server, ALONE);
    assert_eq!(team.run(&["run", "go"]).ok(), "done\n");
    let seen = server.seen();
    let thought = json!({"type": "thinking", "thinking": THOUGHT.0, "signature": THOUGHT.1});
    assert_eq!(thoughts(&seen[1]), [&thought]);
    let blocks = seen[1]["messages"][1]["content"].as_array().unwrap();
    let kinds: Vec<&str> = blocks.iter().map(|it| it["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["thinking", "redacted_thinking", "tool_use", "tool_use"]);
    assert_eq!(blocks[1]["data"], HIDDEN);
}

#[test]
fn an_answer_that_ends_in_its_middle_is_asked_for_again_and_runs_nothing_twice() {
    let error = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "oh"}});
    let half = || (String::new(), vec![("bash", json!({"command": "echo x >> ran"}))]);
    for wire in BOTH {
        let first = move |n| (n == 0).then(|| Play::HalfClose(half()));
        assert_eq!(content(after(wire, first)), (3, json!("done by m")));
        let first = move |n| (n == 0).then(|| Play::Break(half()));
        assert_eq!(content(after(wire, first)), (3, json!("done by m")));
        let first = move |n| (n == 0).then(|| Play::Fail(half(), error("api_error")));
        assert_eq!(content(after(wire, first)), (3, json!("done by m")));
        let first = move |_| Some(Play::Fail(half(), error("invalid_request_error")));
        let (asked, why) = content(after(wire, first));
        assert_eq!(asked, 1);
        assert!(why.as_str().unwrap().contains("broke off: oh"), "{why}");
    }
}

#[test]
fn what_a_broken_try_has_read_is_paid_for() {
    for wire in BOTH {
        let server = ModelServer::start(wire, |asked| match asked.number {
            0 => Play::Break(said("never whole")),
            _ => says("done"),
        });
        let team = team_with(&server, ALONE);
        assert_eq!(team.run(&["run", "go"]).ok(), "done\n");
        // Chat completions tell what they took at their end alone.
        let (read, written) = if wire == Wire::Messages { (100, 1) } else { (0, 0) };
        let [calls, in_all, out, _] = ended(&team);
        assert_eq!([calls, in_all, out], [1, 100 + read, 10 + written]);
    }
}

#[test]
fn a_fallback_answers_after_three_overloads_and_costs_what_it_costs() {
    for wire in BOTH {
        let server = ModelServer::start(wire, |asked| match asked.number {
            0..3 => refused(529, "overloaded_error", "overloaded"),
            3 => Play::Say((String::new(), vec![("bash", json!({"command": "echo x >> ran"}))])),
            _ => says("done"),
        });
        let team = team_with(&server, ALONE);
        let file = team.at("teams/team.json");
        let prices =
            r#""prices": {"other": {"input": 1, "output": 1, "cache_write": 1, "cache_read": 1},"#;
        let text = fs::read_to_string(&file).unwrap().replace("\"prices\": {", prices);
        fs::write(file, text).unwrap();
        assert_eq!(team.run(&["run", "go"]).ok(), "done\n");
        assert_eq!(fs::read_to_string(team.at("ran")).unwrap(), "x\n");
        let seen = server.seen();
        let models: Vec<&str> = seen.iter().map(|it| it["model"].as_str().unwrap()).collect();
        assert_eq!(models, ["m", "m", "m", "other", "m"]);
        assert_eq!(ended(&team), [2, 200, 20, 110 + price(wire)]);
        let rows = team.run(&["cost", "--json"]).ok();
        let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
        let other = rows.iter().find(|row| row["model"] == "other").unwrap();
        assert_eq!((&other["calls"], &other["cost_usd"]), (&json!(1), &json!("0.00011")));
    }
}

#[test]
fn a_key_that_is_not_taken_is_named_and_never_shown() {
    for wire in BOTH {
        let text = format!("bad key {KEY}");
        let server = ModelServer::start(wire, move |_| refused(401, "authentication_error", &text));
        let team = team_with(&server, ALONE);
        let mut daemon = team.up();
        team.append("lead", "{\"id\":\"a\",\"content\":\"go\"}\n");
        let answer = team.until_answer_to("a");
        let shown = [&["status"][..], &["trace", "lead"], &["log"]].map(|args| team.run(args));
        daemon.signal("TERM");
        assert_eq!(daemon.wait(), 0);
        assert_eq!((server.asked(), &answer["status"]), (1, &json!("failed")));
        let why = answer["content"].as_str().unwrap();
        assert!(why.contains("answered 401") && why.contains("the API key in TEST_KEY"), "{why}");
        assert!(shown.iter().all(|it| !it.out.contains(KEY) && !it.err.contains(KEY)));
        assert!(!holds(&team.at(".mailbox"), KEY));
    }
}

/// The status as a person sees it.
fn status(team: &Team) -> String {
    team.run(&["status"]).out
}

#[test]
fn status_says_until_when_a_call_is_held_back_and_then_no_more() {
    let limited = |asked: &Asked| match asked.number {
        0 => Play::Answer(429, "Retry-After: 3\r\n", "slow down".to_owned()),
        _ => Play::Stall(said("on its way")),
    };
    for wire in BOTH {
        let server = ModelServer::start(wire, limited);
        let team = team_with(&server, r#""teammates": {"lead": {}}"#);
        let _daemon = team.up();
        team.append("lead", "{\"id\":\"a\",\"content\":\"go\"}\n");
        let told = team.until("the limit", |team| {
            Some(status(team)).filter(|told| told.contains("rate-limited until"))
        });
        let until = told.split("rate-limited until ").nth(1).unwrap();
        let is_time = |text: &str| {
            let parts = text.split(':').map(str::parse::<u8>).collect::<Result<Vec<_>, _>>();
            parts.is_ok_and(|parts| parts.len() == 3)
        };
        assert!(is_time(&until[..8]) && until[8..].starts_with(" UTC"), "{told}");
        assert!(told.contains("working"), "{told}");
        team.until("the second try", |_| (server.stalled() == 1).then_some(()));
        team.until("that it goes on", |team| {
            let told = status(team);
            (!told.contains("rate-limited") && told.contains("working")).then_some(())
        });
        assert_eq!(server.asked(), 2);
    }
}

#[test]
fn a_server_that_asks_for_a_second_is_asked_again_after_it() {
    for wire in BOTH {
        let begun = std::time::Instant::now();
        let limited = Play::Answer(429, "Retry-After: 1\r\n", "slow down".to_owned());
        let limited = parking_lot::Mutex::new(Some(limited));
        let (asked, answer) = content(after(wire, move |_| limited.lock().take()));
        assert_eq!((asked, answer), (3, json!("done by m")));
        assert!(begun.elapsed().as_secs() >= 1);
    }
}

#[test]
fn rounds_of_one_teammate_share_a_connection() {
    let server = ModelServer::start(Wire::Messages, |asked| match asked.results() {
        0 if asked.number < 5 => {
            Play::Say((String::new(), vec![("bash", json!({"command": "true"}))]))
        }
        _ => says("done"),
    });
    let team = team_with(&server, ALONE);
    let _daemon = team.up();
    for _ in 0..3 {
        assert_eq!(team.run(&["send", "lead", "go", "--wait"]).ok(), "done\n");
    }
    // The end of an answer is read aside, so that now and then one is still at it.
    assert!(server.connections() < server.asked(), "{}", server.connections());
}
