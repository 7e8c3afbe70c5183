//! A team on real providers' wire formats: a server on loopback thinks for it, and fails the test
//! when a call of a tool gets no result, two, or a result without a call.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::team::Team;

/// What a model says to a request: its text, and its calls as tool and input.
type Think = dyn Fn(&Value) -> (String, Vec<(&'static str, Value)>) + Send + Sync;

/// A server that speaks chat completions.
struct Server {
    url: String,
    asked: Arc<AtomicUsize>,
    wrong: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(think: Box<Think>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (asked, wrong) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (count, faults, think) = (Arc::clone(&asked), Arc::clone(&wrong), Arc::new(think));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (count, faults) = (Arc::clone(&count), Arc::clone(&faults));
                let think = Arc::clone(&think);
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    let mut stream = stream;
                    while let Some(request) = read(&mut reader) {
                        let number = count.fetch_add(1, Ordering::SeqCst);
                        faults.lock().extend(check(&request));
                        let answer = answer(number, think(&request));
                        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
                        let length = answer.len();
                        let sent = write!(stream, "{head}Content-Length: {length}\r\n\r\n{answer}");
                        if sent.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { url, asked, wrong }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn is_content(&self) {
        assert_eq!(*self.wrong.lock(), Vec::<String>::new());
    }
}

fn read(reader: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// Each call has exactly one result behind it, before anything else is said.
fn check(request: &Value) -> Vec<String> {
    let (mut wrong, mut open) = (Vec::new(), Vec::<String>::new());
    for message in request["messages"].as_array().unwrap() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default().to_owned();
            match open.iter().position(|it| *it == id) {
                Some(place) => drop(open.remove(place)),
                None => wrong.push(format!("a result of no open call: {id}")),
            }
            continue;
        }
        wrong.extend(open.drain(..).map(|id| format!("no result of {id}")));
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            open.push(call["id"].as_str().unwrap_or_default().to_owned());
        }
    }
    wrong.extend(open.into_iter().map(|id| format!("no result of {id}")));
    wrong
}

/// A stream of events, whose tool calls come in two pieces.
fn answer(number: usize, (text, calls): (String, Vec<(&'static str, Value)>)) -> String {
    let mut events =
        vec![json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]})];
    let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
    for (index, (tool, input)) in calls.into_iter().enumerate() {
        let input = input.to_string();
        let half = input.len() / 2;
        let half = (0..=half).rev().find(|it| input.is_char_boundary(*it)).unwrap();
        let delta = |function: Value| {
            let id = format!("call_{number}_{index}");
            let call = json!({"index": index, "id": id, "type": "function", "function": function});
            json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
        };
        events.push(delta(json!({"name": tool, "arguments": &input[..half]})));
        let rest = json!({"index": index, "function": {"arguments": &input[half..]}});
        events.push(json!({"choices": [{"index": 0, "delta": {"tool_calls": [rest]}}]}));
    }
    events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}));
    events.push(json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10}}));
    let lines: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    lines.concat() + "data: [DONE]\n\n"
}

/// The name of the teammate that a request is for.
fn who(request: &Value) -> String {
    let system = request["messages"][0]["content"].as_str().unwrap();
    let name = system.strip_prefix("You are ").and_then(|it| it.split(',').next());
    name.unwrap_or_default().to_owned()
}

/// How many results stand in a request behind its last message of a user.
fn results(request: &Value) -> usize {
    let messages = request["messages"].as_array().unwrap();
    messages
        .iter()
        .rev()
        .take_while(|it| it["role"] != "user")
        .filter(|it| it["role"] == "tool")
        .count()
}

/// The last message of a user.
fn asked_last(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    let last = messages.iter().rev().find(|it| it["role"] == "user").unwrap();
    last["content"].as_str().unwrap_or_default().to_owned()
}

fn said(text: &str) -> (String, Vec<(&'static str, Value)>) {
    (text.to_owned(), Vec::new())
}

fn is_subagent(request: &Value) -> bool {
    request["messages"][0]["content"].as_str().unwrap().contains("You search and read")
}

/// A lead that delegates, asks the scout and answers; a tester that submits a plan and runs.
fn thinking(request: &Value) -> (String, Vec<(&'static str, Value)>) {
    let done = results(request);
    if is_subagent(request) {
        return match done {
            0 => (String::new(), vec![("read_file", json!({"path": "README.md"}))]),
            _ => said("it is a test"),
        };
    }
    let is_plan = asked_last(request).contains("protocol=\"plan_approval\"");
    match (who(request).as_str(), done) {
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

fn team_on(url: &str) -> Team {
    let mut team = Team::new(
        r#"{"provider": "local", "prices": {"m": {"input": 2, "output": 10}}, "providers": {"local": {"kind": "openai", "model": "m"}},
            "teammates": {"lead": {"role": "leads"}, "scout": {"type": "explore"},
              "tester": {"permission_mode": "bypass", "plan_required": true, "approver": "lead"}}}"#,
    );
    team.set_env("OPENAI_BASE_URL", url);
    team
}

#[test]
fn a_team_of_models_delegates_asks_plans_and_answers() {
    let server = Server::start(Box::new(thinking));
    let team = team_on(&server.url);
    let mut daemon = team.up();
    let id = team.run(&["task", "add", "test it", "--assignee", "tester"]).ok();
    let said = team.run(&["send", "lead", "what do we know?", "--wait"]).ok();
    assert_eq!(said, "all is known\n");
    team.run(&["wait", "--task", id.trim()]).ok();
    assert!(team.run(&["task", "show", id.trim()]).ok().contains("tested"));
    assert_eq!(fs::read_to_string(team.at("ran")).unwrap(), "x\n");
    // Two turns of the lead and two of its subagent, two for the plan, three for the task, and one for
    // the news of the task's end where it was the lead's.
    let status = team.run(&["status", "--json"]).ok();
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    server.is_content();
    let asked = server.asked();
    assert_eq!(asked, 9, "{status}");
    // Each call read 100 tokens at $2 a million and wrote 10 at $10: $0.0003.
    let costs = team.run(&["cost", "--json"]).ok();
    let rows: Vec<Value> = costs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sum = |key: &str| rows.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("calls"), sum("tokens_in"), sum("tokens_out")), (9, 900, 90), "{costs}");
    assert!(costs.contains("\"cost_usd\":\"0.0018\"") && costs.contains("\"cost_usd\":\"0.0009\""));
    assert!(team.run(&["cost"]).ok().contains("$0.0027"));
    assert!(team.run(&["cost", "--tasks"]).ok().contains("task 1"));
    let unknown = team.run(&["cost", "nobody"]).exits(2).err;
    assert!(unknown.contains("there are lead, scout and tester"), "{unknown}");
    let tokens = team.run(&["trace", "lead"]).ok();
    assert!(tokens.contains("subagent×1") && tokens.contains("read_file×1"), "{tokens}");
    let paid = "out, $0.0012, with children 600 tokens in 60 out, $0.0018\n";
    assert!(tokens.contains(paid), "{tokens}");
}

#[test]
fn a_kill_amid_a_models_work_goes_on_with_the_next_call() {
    let server = Server::start(Box::new(|request| match results(request) {
        0 => (
            String::new(),
            vec![
                ("bash", json!({"command": "echo one >> calls"})),
                ("bash", json!({"command": "touch begun; sleep 1000"})),
                ("bash", json!({"command": "echo three >> calls"})),
            ],
        ),
        _ => said("done"),
    }));
    let mut team = Team::new(
        r#"{"provider": "openai", "permission_mode": "bypass", "teammates": {"lead": {}}}"#,
    );
    team.set_env("OPENAI_BASE_URL", &server.url);
    let mut daemon = team.up();
    team.append("lead", "{\"id\":\"a\",\"content\":\"go\"}\n");
    team.until("the second call", |team| team.at("begun").exists().then_some(()));
    daemon.kill();
    let _daemon = team.up();
    assert_eq!(team.until_answer_to("a")["content"], "done");
    assert_eq!(fs::read_to_string(team.at("calls")).unwrap(), "one\nthree\n");
    server.is_content();
    assert_eq!(server.asked(), 2);
}

#[test]
fn a_budget_stops_further_calls_and_an_unknown_price_is_never_nothing() {
    let server = Server::start(Box::new(|_| said("spent")));
    let mut team = Team::new(
        r#"{"provider": "openai", "providers": {"openai": {"model": "nobody-knows"}},
            "teammates": {"lead": {}, "small": {"budget": {"max_tokens": 150, "per": "life"}},
              "rich": {"budget": {"max_cost_usd": 5}}}}"#,
    );
    team.set_env("OPENAI_BASE_URL", &server.url);
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
fn any_team_runs_on_any_provider_and_a_missing_key_is_said() {
    let server = Server::start(Box::new(|_| said("a model speaks")));
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
    team.set_env("OPENAI_BASE_URL", &server.url);
    assert_eq!(team.run(&["run", "hello", "--provider", "openai"]).ok(), "a model speaks\n");
    team.set_env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
    let mut daemon = team.up_with(&["--provider", "openai"]);
    team.append("lead", "{\"id\":\"a\",\"content\":\"go\"}\n");
    team.until_state("lead", "working");
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    assert!(team.responses().iter().all(|it| it["in_reply_to"] != "a"));
}
