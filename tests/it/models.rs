//! A team of models, end to end, on both vendors' wire formats: what a server on loopback thinks for it
//! is done once, costs what it says, and outlives whatever happens to a call.

use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};

use crate::{
    model_server::{Asked, ModelServer, Play, Wire},
    model_streams::{Saying, THOUGHT},
    team::Team,
};

pub const BOTH: [Wire; 2] = [Wire::Chat, Wire::Messages];
/// Prices of tokens read, written, put into the cache and read from it, and the key of each server.
const SETTINGS: &str = r#""provider": "local", "prices": {"m":
    {"input": 2, "output": 10, "cache_write": 2.5, "cache_read": 0.2}}, "#;
pub const KEY: &str = "sk-of-the-test-server";

/// What a call costs in millionths of a dollar: 70 tokens read anew and 30 from the cache and 10
/// written; or 60, 30, 10 and 10 put into the cache.
pub fn price(wire: Wire) -> u64 {
    match wire {
        Wire::Chat => 140 + 6 + 100,
        Wire::Messages => 120 + 6 + 25 + 100,
    }
}

/// A team that thinks with `server`. `rest` is what its file says beside that.
pub fn team_with(server: &ModelServer, rest: &str) -> Team {
    let (kind, path) = match server.wire {
        Wire::Chat => ("openai", "/v1"),
        Wire::Messages => ("anthropic", ""),
    };
    let mut team = Team::new(&format!(
        r#"{{{SETTINGS} "providers": {{"local": {{"kind": "{kind}", "model": "m", "base_url": "{}{path}",
            "api_key_env": "TEST_KEY", "fallback_model": "other"}}}}, {rest}}}"#,
        server.url
    ));
    team.set_env("TEST_KEY", KEY);
    team
}

pub const ALONE: &str = r#""permission_mode": "bypass", "teammates": {"lead": {}}"#;

pub fn said(text: &str) -> Saying {
    (text.to_owned(), Vec::new())
}

pub fn says(text: &str) -> Play {
    Play::Say(said(text))
}

/// A lead that delegates, asks the scout and answers; a tester that submits a plan and runs.
pub fn thinking(asked: &Asked) -> Saying {
    let done = asked.results();
    if asked.system().contains("You search and read") {
        return match done {
            0 => (String::new(), vec![("read_file", json!({"path": "README.md"}))]),
            _ => said("it is a test"),
        };
    }
    let is_plan = asked.asked_last().contains("protocol=\"plan_approval\"");
    match (asked.who(), done) {
        ("lead", 0) if is_plan => {
            ("looks good".to_owned(), vec![("decide_plan", json!({"approve": true}))])
        }
        ("lead", _) if is_plan => said("approved"),
        ("lead", 0) => (
            "two at once".to_owned(),
            vec![
                ("subagent", json!({"task": "what is README.md?", "agent_type": "explore"})),
                ("read_file", json!({"path": "nothing.md"})),
            ],
        ),
        ("lead", _) => said("all is known"),
        ("tester", 0) => (String::new(), vec![("submit_plan", json!({"plan": "run ls"}))]),
        ("tester", 1) => (String::new(), vec![("bash", json!({"command": "ls; echo x >> ran"}))]),
        ("tester", _) => said("tested"),
        _ => said("here"),
    }
}

pub const THREE: &str = r#""teammates": {"lead": {"role": "leads"}, "scout": {"type": "explore"},
    "tester": {"permission_mode": "bypass", "plan_required": true, "approver": "lead"}}"#;

/// The rows of `cost`, and a sum over them.
fn costs(team: &Team) -> (Vec<Value>, impl Fn(&str) -> u64) {
    let told = team.run(&["cost", "--json"]).ok();
    let rows: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let all = rows.clone();
    (rows, move |key| all.iter().map(|row| row[key].as_u64().unwrap()).sum())
}

fn dollars(millionths: u64) -> String {
    format!("0.{millionths:06}").trim_end_matches('0').to_owned()
}

#[test]
fn a_team_of_models_delegates_asks_plans_and_answers() {
    for wire in BOTH {
        let server = ModelServer::start(wire, |asked| Play::Say(thinking(asked)));
        let team = team_with(&server, THREE);
        let mut daemon = team.up();
        let id = team.run(&["task", "add", "test it", "--assignee", "tester"]).ok();
        let said = team.run(&["send", "lead", "what do we know?", "--wait"]).ok();
        assert_eq!(said, "all is known\n");
        team.run(&["wait", "--task", id.trim()]).ok();
        assert!(team.run(&["task", "show", id.trim()]).ok().contains("tested"));
        assert_eq!(fs::read_to_string(team.at("ran")).unwrap(), "x\n");
        daemon.signal("TERM");
        assert_eq!(daemon.wait(), 0);
        server.is_content();
        // Two turns of the lead and two of its subagent, two for the plan, three for the task.
        assert_eq!((server.asked(), server.answered()), (9, 9));
        let (rows, sum) = costs(&team);
        let sums = ["calls", "tokens_in", "tokens_out", "cached"].map(&sum);
        assert_eq!(sums, [9, 900, 90, 270], "{rows:?}");
        let lead = rows.iter().find(|row| row["for"] == "lead").unwrap();
        assert_eq!(lead["cost_usd"], dollars(6 * price(wire)));
        let tester = rows.iter().find(|row| row["for"] == "tester").unwrap();
        assert_eq!(tester["cost_usd"], dollars(3 * price(wire)));
        assert!(team.run(&["cost", "--tasks"]).ok().contains("task 1"));
        let unknown = team.run(&["cost", "nobody"]).exits(2).err;
        assert!(unknown.contains("there are lead, scout and tester"), "{unknown}");
        // What is shown as told is what was sent, of teammates and of their subagents.
        for who in ["lead", "explore"] {
            let told = team.run(&["types", "--prompt", who]).ok();
            let is_told = |it: &Value| {
                let system = match wire {
                    Wire::Chat => &it["messages"][0]["content"],
                    Wire::Messages => &it["system"][0]["text"],
                };
                system.as_str() == Some(told.trim_end())
            };
            assert!(server.seen().iter().any(is_told), "{told}");
        }
        let trace = team.run(&["trace", "lead"]).ok();
        assert!(trace.contains("subagent×1") && trace.contains("read_file×1"), "{trace}");
        let (own, all) = (4 * price(wire) + 50, 6 * price(wire) + 50);
        let (own, all) = (own / 100, all / 100);
        let paid = format!("out, $0.{own:04}, with children 600 tokens in 60 out, $0.{all:04}\n");
        assert!(trace.contains(&paid), "{paid} in {trace}");
    }
}

#[test]
fn a_follow_up_joins_between_two_rounds_and_a_kill_in_between_doubles_nothing() {
    for wire in BOTH {
        let server = ModelServer::start(wire, |asked| match asked.results() {
            0 if asked.asked_last().contains("and this") => says("both are done"),
            0 => Play::Say((
                String::new(),
                vec![
                    ("bash", json!({"command": "echo one >> calls"})),
                    ("bash", json!({"command": "touch begun; sleep 1000"})),
                    ("bash", json!({"command": "echo three >> calls"})),
                ],
            )),
            _ => says("done without the other"),
        });
        let team = team_with(&server, ALONE);
        let mut daemon = team.up();
        team.append("lead", "{\"id\":\"a\",\"content\":\"go\"}\n");
        team.until("the second call", |team| team.at("begun").exists().then_some(()));
        team.append("lead", "{\"id\":\"b\",\"content\":\"and this\",\"in_reply_to\":\"a\"}\n");
        daemon.kill();
        let mut daemon = team.up();
        assert_eq!(team.until_answer_to("a")["content"], "both are done");
        assert_eq!(team.until_answer_to("b")["content"], "both are done");
        assert_eq!(fs::read_to_string(team.at("calls")).unwrap(), "one\nthree\n");
        server.is_content();
        assert_eq!(server.asked(), 2);
        daemon.signal("TERM");
        assert_eq!(daemon.wait(), 0);
    }
}

/// The blocks of thinking in a request of the messages' wire.
pub fn thoughts(request: &Value) -> Vec<&Value> {
    let messages = request["messages"].as_array().unwrap().iter();
    let blocks = messages.flat_map(|it| it["content"].as_array().unwrap());
    blocks.filter(|block| block["type"] == "thinking").collect()
}

#[test]
fn half_an_answer_is_asked_for_again_and_what_was_thought_goes_back_unchanged() {
    for wire in BOTH {
        let server = ModelServer::start(wire, |asked| {
            let two = (
                "two at once".to_owned(),
                vec![
                    ("bash", json!({"command": "echo one >> calls"})),
                    ("bash", json!({"command": "echo two >> calls; touch begun; sleep 1000"})),
                ],
            );
            match (asked.number, asked.results()) {
                (0, _) => Play::Stall(two),
                (_, 0) => Play::Say(two),
                _ => says("done"),
            }
        });
        let team = team_with(&server, ALONE);
        let mut daemon = team.up();
        team.append("lead", "{\"id\":\"a\",\"content\":\"go\"}\n");
        team.until("half an answer", |_| (server.stalled() == 1).then_some(()));
        daemon.kill();
        let mut daemon = team.up();
        team.until("the second call", |team| team.at("begun").exists().then_some(()));
        daemon.kill();
        let mut daemon = team.up();
        assert_eq!(team.until_answer_to("a")["content"], "done");
        assert_eq!(fs::read_to_string(team.at("calls")).unwrap(), "one\ntwo\n");
        server.is_content();
        let seen = server.seen();
        assert_eq!(seen.len(), 3);
        // What was asked again is the same to the byte, and so a vendor's cache still knows it.
        assert_eq!(seen[0].to_string(), seen[1].to_string());
        if wire == Wire::Messages {
            let thought =
                json!({"type": "thinking", "thinking": THOUGHT.0, "signature": THOUGHT.1});
            assert_eq!(thoughts(&seen[2]), [&thought]);
        }
        daemon.signal("TERM");
        assert_eq!(daemon.wait(), 0);
        // A call that was cut off has cost nobody knows what; the others are the server's own count.
        let (rows, sum) = costs(&team);
        assert_eq!(["calls", "unknown_calls", "tokens_in"].map(&sum), [3, 1, 200], "{rows:?}");
        assert_eq!(rows[0]["cost_usd"], Value::Null);
        let told = team.run(&["cost"]).ok();
        assert!(told.contains("and unknown  (1 call cut off, failed"), "{told}");
    }
}

#[test]
fn down_ends_a_call_that_stands_still_one_that_waits_and_one_that_is_held_back() {
    let still = |_: &Asked| Play::Stall(said("never whole"));
    let later = |_: &Asked| Play::Answer(429, "Retry-After: 300\r\n", "slow down".to_owned());
    for wire in BOTH {
        for is_limited in [false, true] {
            let server =
                ModelServer::start(
                    wire,
                    move |asked| {
                        if is_limited { later(asked) } else { still(asked) }
                    },
                );
            let two = r#""teammates": {"lead": {}, "scout": {}}"#;
            let team = team_with(&server, two);
            let mut daemon = team.up();
            team.append("lead", "{\"id\":\"a\",\"content\":\"go\"}\n");
            team.until("the call", |_| {
                (server.asked() == 1 && (is_limited || server.stalled() == 1)).then_some(())
            });
            if is_limited {
                team.until("the limit", |team| {
                    team.run(&["status"]).out.contains("rate-limited until").then_some(())
                });
                // Another's call is held back by what this one was told.
                team.append("scout", "{\"id\":\"b\",\"content\":\"go\"}\n");
                team.until("the other", |team| {
                    let told = team.run(&["status"]).out;
                    (told.matches("rate-limited until").count() == 2).then_some(())
                });
                assert_eq!(server.asked(), 1);
            }
            let began = std::time::Instant::now();
            team.run(&["down"]).ok();
            assert!(began.elapsed().as_secs() < 2, "{:?}", began.elapsed());
            assert_eq!(daemon.wait(), 0);
            assert_eq!(team.answers(), Vec::<Value>::new());
            assert_eq!(team.left_over(), 0);
            server.is_content();
        }
    }
}

/// A team of one on a server that answers the first requests so, then `done`; how many it was sent,
/// and what the team answered.
pub fn after(
    wire: Wire,
    first: impl Fn(usize) -> Option<Play> + Send + Sync + 'static,
) -> (usize, Value) {
    let server = ModelServer::start(wire, move |asked| {
        first(asked.number).unwrap_or_else(|| match asked.results() {
            0 => Play::Say((String::new(), vec![("bash", json!({"command": "echo x >> ran"}))])),
            _ => says(&format!("done by {}", asked.body["model"].as_str().unwrap())),
        })
    });
    let team = team_with(&server, ALONE);
    let mut daemon = team.up();
    team.append("lead", "{\"id\":\"a\",\"content\":\"go\"}\n");
    let answer = team.until_answer_to("a");
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    server.is_content();
    if answer["status"] == "ok" {
        assert_eq!(fs::read_to_string(team.at("ran")).unwrap(), "x\n");
    }
    let everything = team.everything();
    assert!(!everything.contains(KEY), "{everything}");
    (server.asked(), answer)
}

pub fn refused(status: u16, kind: &str, text: &str) -> Play {
    let error = json!({"type": "error", "error": {"type": kind, "message": text}});
    Play::Answer(status, "Retry-After: 0\r\nContent-Type: application/json\r\n", error.to_string())
}

#[test]
fn what_may_go_better_is_asked_again_as_often_as_it_takes() {
    for wire in BOTH {
        let limited = |n| (n == 0).then(|| refused(429, "rate_limit_error", "slow down"));
        let (asked, answer) = after(wire, limited);
        assert_eq!((asked, &answer["content"]), (3, &json!("done by m")));
        let overloaded = |n| (n < 2).then(|| refused(529, "overloaded_error", "overloaded"));
        assert_eq!(after(wire, overloaded).0, 4);
        // After three overloads in a row the other model is asked, for the rest of that call.
        let overloaded = |n| (n < 3).then(|| refused(529, "overloaded_error", "overloaded"));
        let (asked, answer) = after(wire, overloaded);
        assert_eq!((asked, &answer["content"]), (5, &json!("done by m")));
        let broken = |n| (n == 1).then(|| Play::Break(said("half of this")));
        let (asked, answer) = after(wire, broken);
        assert_eq!((asked, &answer["content"]), (3, &json!("done by m")));
    }
}

#[test]
fn five_overloads_are_one_call_and_six_are_too_many() {
    let overloaded = |n| (n < 5).then(|| refused(529, "overloaded_error", "overloaded"));
    let (asked, answer) = after(Wire::Messages, overloaded);
    assert_eq!((asked, &answer["content"]), (7, &json!("done by m")));
    let (asked, answer) = after(Wire::Messages, |_| Some(refused(529, "overloaded_error", "busy")));
    assert_eq!((asked, &answer["status"]), (6, &json!("failed")));
    let why = answer["content"].as_str().unwrap();
    assert!(why.contains("busy") && why.contains("tried 6 times"), "{why}");
}

#[test]
fn what_will_not_go_better_is_asked_once() {
    for wire in BOTH {
        let wrong = |_| Some(refused(400, "invalid_request_error", "no such tool"));
        let (asked, answer) = after(wire, wrong);
        assert_eq!((asked, &answer["status"]), (1, &json!("failed")));
        assert!(answer["content"].as_str().unwrap().contains("no such tool"), "{answer}");
        let denied = |_| Some(refused(401, "authentication_error", &format!("bad key {KEY}")));
        let (asked, answer) = after(wire, denied);
        assert_eq!((asked, &answer["status"]), (1, &json!("failed")));
        // A prompt that is too long with nothing older in it can't be made shorter.
        let long = |_| Some(refused(400, "invalid_request_error", TOO_LONG));
        let (asked, answer) = after(wire, long);
        assert_eq!((asked, &answer["status"]), (1, &json!("failed")));
        let why = answer["content"].as_str().unwrap();
        assert!(why.contains("longer than m can read"), "{why}");
    }
}

const TOO_LONG: &str = "prompt is too long: maximum context length is 200000 tokens";

#[test]
fn a_conversation_that_is_too_long_is_summed_up_and_goes_on() {
    for wire in BOTH {
        let refusals = AtomicUsize::new(0);
        let server = ModelServer::start(wire, move |asked| {
            if asked.system().starts_with("You keep the memory") {
                return says("We looked at README.md three times.");
            }
            let is_new = asked.asked_last().contains("go on");
            let is_first = is_new && refusals.fetch_add(1, Ordering::SeqCst) == 0;
            match asked.results() {
                _ if is_first => refused(400, "invalid_request_error", TOO_LONG),
                0 if !is_new => {
                    Play::Say((String::new(), vec![("read_file", json!({"path": "README.md"})); 3]))
                }
                _ => says("done"),
            }
        });
        let team = team_with(&server, ALONE);
        fs::write(team.at("README.md"), "# A test\n".repeat(200)).unwrap();
        let _daemon = team.up();
        team.append("lead", "{\"id\":\"a\",\"content\":\"look\"}\n");
        assert_eq!(team.until_answer_to("a")["content"], "done");
        team.append("lead", "{\"id\":\"b\",\"content\":\"go on\"}\n");
        assert_eq!(team.until_answer_to("b")["content"], "done");
        server.is_content();
        let seen = server.seen();
        // Two for the first message; a refusal, a summary and the second try for the other.
        assert_eq!(seen.len(), 5);
        let (refused, again) = (seen[2].to_string(), seen[4].to_string());
        assert!(refused.contains("look") && !refused.contains("three times"));
        assert!(again.contains("We looked at README.md three times."), "{again}");
        assert!(again.contains("go on") && !again.contains("# A test"), "{again}");
        assert!(again.len() < refused.len());
    }
}

#[test]
fn a_budget_stops_further_calls_and_an_unknown_price_is_never_nothing() {
    let server = ModelServer::start(Wire::Chat, |_| says("spent"));
    let mut team = Team::new(
        r#"{"provider": "openai", "providers": {"openai": {"model": "nobody-knows"}},
            "teammates": {"lead": {}, "small": {"budget": {"max_tokens": 150, "per": "life"}},
              "rich": {"budget": {"max_cost_usd": 5}}}}"#,
    );
    team.set_env("OPENAI_BASE_URL", &format!("{}/v1", server.url));
    let _daemon = team.up();
    let send = |name: &str| team.run(&["send", name, "go", "--wait"]);
    assert_eq!(send("small").ok(), "spent\n");
    assert_eq!(send("small").ok(), "spent\n");
    let refused = send("small").exits(1).out;
    assert!(
        refused.contains("the budget of small is used up (max_tokens 150 for ever"),
        "{refused}"
    );
    let refused = send("rich").exits(1).out;
    assert!(refused.contains("the price of the model nobody-knows is not known"), "{refused}");
    assert_eq!(server.asked(), 2);
    let told = team.run(&["cost"]).ok();
    assert!(told.contains("unknown  (its price is not known"), "{told}");
    team.until("the note", |team| {
        team.run(&["status"]).out.contains("the budget of small is used up").then_some(())
    });
}

#[test]
fn a_server_that_counts_nothing_has_an_unknown_cost() {
    let whole = r#"{"choices": [{"message": {"content": "here"}, "finish_reason": "stop"}]}"#;
    let uncounted = Play::Answer(200, "Content-Type: application/json\r\n", whole.to_owned());
    let answer = parking_lot::Mutex::new(Some(uncounted));
    let server = ModelServer::start(Wire::Chat, move |_| answer.lock().take().unwrap());
    let team = team_with(&server, ALONE);
    assert_eq!(team.run(&["run", "go"]).ok(), "here\n");
    let (rows, _) = costs(&team);
    assert_eq!((&rows[0]["cost_usd"], &rows[0]["unknown_calls"]), (&Value::Null, &json!(1)));
}

#[test]
fn what_a_model_says_fits_into_a_line_however_long_it_is() {
    for size in [600_000, 1_040_000, 3_000_000] {
        let team = Team::new(&format!(
            r#"{{"teammates": {{"lead": {{}}}}, "provider": "own", "providers": {{"own":
                {{"kind": "command", "io": "text", "command": ["sh", "-c",
                "head -c {size} /dev/zero | tr '\\\\0' '\\\\001'; echo end"]}}}}}}"#
        ));
        let said = team.run(&["run", "go"]).ok();
        assert!(said.contains("left out") && said.ends_with("end\n"), "{} {size}", said.len());
        assert_eq!(team.run(&["dead", "list"]).ok(), "");
    }
}

#[test]
fn a_program_thinks_as_the_formats_say() {
    let team = Team::new(
        r#"{"provider": "own", "teammates": {"lead": {}}, "providers":
            {"own": {"kind": "command", "command": ["python3", "think.py"]}}}"#,
    );
    let program = "import json, sys\n\
        asked = json.load(sys.stdin)\n\
        work = asked['turns'][asked['in_hand']:]\n\
        results = [turn['result']['text'] for turn in work if 'result' in turn]\n\
        print('thinking', file=sys.stderr)\n\
        known = [tool['name'] for tool in asked['tools']]\n\
        if results:\n    \
            print(json.dumps({'text': work[0]['mail']['text'] + ': ' + results[0]}))\n\
        else:\n    \
            call = {'tool': known[known.index('read_file')], 'input': {'path': 'README.md'}}\n    \
            print(json.dumps({'text': '', 'calls': [call], 'tokens': {'input': 5, 'output': 1}}))\n";
    fs::write(team.at("think.py"), program).unwrap();
    assert_eq!(team.run(&["run", "what is it?"]).ok(), "what is it?: # A test\n");
    assert!(team.run(&["trace", "lead"]).ok().contains("2 turns, read_file×1"));
    assert!(team.run(&["help", "program"]).ok().contains("in_hand"));
}

#[test]
fn what_can_not_be_a_provider_is_said_by_check() {
    let team = Team::new(
        r#"{"teammates": {"lead": {}}, "providers": {"clerk": {"kind": "openai"},
            "a": {"kind": "openai", "base_url": "localhost:1"},
            "b": {"kind": "anthropic", "api_key_env": "sk-ant-123"}}}"#,
    );
    let told = team.run(&["check"]).exits(2).err;
    for fault in ["the provider clerk is of its own kind", "is an address such as", "never the key"]
    {
        assert!(told.contains(fault), "{told}");
    }
}

#[test]
fn init_takes_a_server_of_its_own_without_a_price() {
    let mut team = Team::new(r#"{"teammates": {"lead": {}}}"#);
    let server = ModelServer::start(Wire::Chat, |_| says("a local model speaks"));
    team.set_env("OPENAI_BASE_URL", &format!("{}/v1", server.url));
    team.set_env("OPENAI_MODEL", "qwen3");
    team.run(&["init", "own"]).ok();
    assert_eq!(team.run(&["run", "own", "hello"]).ok(), "a local model speaks\n");
}

#[test]
fn any_team_runs_on_any_provider_and_a_missing_key_is_said() {
    let server = ModelServer::start(Wire::Chat, |_| says("a model speaks"));
    let mut team = Team::new(
        r#"{"teammates": {"lead": {"script": "answer: a clerk speaks"}},
            "providers": {"shell": {"kind": "command", "command": ["sh", "-c", "cat; echo '!'"], "io": "text"}}}"#,
    );
    assert_eq!(team.run(&["run", "hello"]).ok(), "a clerk speaks\n");
    assert!(team.run(&["run", "hello", "--provider", "shell"]).ok().starts_with("hello"));
    let missing = team.run(&["run", "hello", "--provider", "openai"]).exits(2).err;
    assert!(
        missing.contains("lead has nobody to think for it") && missing.contains("OPENAI_API_KEY"),
        "{missing}"
    );
    let missing = team.run(&["run", "hello", "--provider", "anthropic"]).exits(2).err;
    assert!(missing.contains("ANTHROPIC_API_KEY"), "{missing}");
    let unknown = team.run(&["run", "hello", "--provider", "opnai"]).exits(2).err;
    assert!(unknown.contains("did you mean openai?"), "{unknown}");
    team.set_env("OPENAI_BASE_URL", &format!("{}/v1", server.url));
    assert_eq!(team.run(&["run", "hello", "--provider", "openai"]).ok(), "a model speaks\n");
    team.set_env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
    let mut daemon = team.up_with(&["--provider", "openai"]);
    team.append("lead", "{\"id\":\"a\",\"content\":\"go\"}\n");
    team.until_state("lead", "working");
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    assert!(team.responses().iter().all(|it| it["in_reply_to"] != "a"));
}
