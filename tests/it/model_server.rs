//! A server on this machine that thinks for a team and speaks both vendors' streams, cut wherever it
//! happens. It remembers as a fault each call of a tool without a result, with two, or a result
//! without a call.

use std::{
    io::{BufRead, BufReader, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    dice::Dice,
    model_streams::{Saying, chat, messages},
};

/// Which vendor's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Chat completions.
    Chat,
    /// Anthropic's messages.
    Messages,
}

/// What the server does with a request.
pub enum Play {
    /// Answers with a whole stream.
    Say(Saying),
    /// Sends about half of the stream, then nothing until the client goes.
    Stall(Saying),
    /// Sends about half of the stream and closes the connection.
    Break(Saying),
    /// Sends about half of the stream, closes its side of the connection and goes on reading.
    HalfClose(Saying),
    /// Sends about half of the stream, then an error as an event.
    Fail(Saying, Value),
    /// Answers with a status, headers, and a body: refuses, mostly.
    Answer(u16, &'static str, String),
}

/// What a request has asked.
pub struct Asked {
    /// How many came before it.
    pub number: usize,
    /// Its body.
    pub body: Value,
    wire: Wire,
}

/// A part of a request's conversation.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    User(String),
    Calls(Vec<String>),
    Result(String),
}

impl Asked {
    /// What the model is told about itself.
    pub fn system(&self) -> &str {
        let system = match self.wire {
            Wire::Chat => &self.body["messages"][0]["content"],
            Wire::Messages => &self.body["system"][0]["text"],
        };
        system.as_str().unwrap_or_default()
    }

    /// The name of the teammate that it is for.
    pub fn who(&self) -> &str {
        let name = self.system().strip_prefix("You are ").and_then(|it| it.split(',').next());
        name.unwrap_or_default()
    }

    /// How many results stand behind the last message of a user.
    pub fn results(&self) -> usize {
        let parts = self.parts();
        let behind = parts.iter().rev().take_while(|it| !matches!(it, Part::User(_)));
        behind.filter(|it| matches!(it, Part::Result(_))).count()
    }

    /// The last message of a user.
    pub fn asked_last(&self) -> String {
        let last = self.parts().into_iter().rev().find_map(|it| match it {
            Part::User(text) => Some(text),
            _ => None,
        });
        last.unwrap_or_default()
    }

    fn parts(&self) -> Vec<Part> {
        let messages = self.body["messages"].as_array().unwrap().iter();
        messages
            .flat_map(|message| match self.wire {
                Wire::Chat => chat_parts(message),
                Wire::Messages => message_parts(message),
            })
            .collect()
    }

    /// Each call has exactly one result behind it, before anything else is said.
    fn faults(&self) -> Vec<String> {
        let (mut wrong, mut open) = (Vec::new(), Vec::<String>::new());
        for part in self.parts().into_iter().chain([Part::Calls(Vec::new())]) {
            if let Part::Result(id) = part {
                match open.iter().position(|it| *it == id) {
                    Some(place) => drop(open.remove(place)),
                    None => wrong.push(format!("a result of no open call: {id}")),
                }
                continue;
            }
            wrong.extend(open.drain(..).map(|id| format!("no result of {id}")));
            if let Part::Calls(calls) = part {
                open = calls;
            }
        }
        wrong
    }
}

fn id_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn chat_parts(message: &Value) -> Vec<Part> {
    match message["role"].as_str().unwrap() {
        "system" => Vec::new(),
        "tool" => vec![Part::Result(id_of(&message["tool_call_id"]))],
        "user" => vec![Part::User(id_of(&message["content"]))],
        _ => {
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            vec![Part::Calls(calls.map(|call| id_of(&call["id"])).collect())]
        }
    }
}

fn message_parts(message: &Value) -> Vec<Part> {
    let blocks = message["content"].as_array().unwrap();
    if message["role"] == "assistant" {
        let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
        return vec![Part::Calls(calls.map(|block| id_of(&block["id"])).collect())];
    }
    let parts = blocks.iter().map(|block| match block["type"].as_str().unwrap() {
        "tool_result" => Part::Result(id_of(&block["tool_use_id"])),
        _ => Part::User(id_of(&block["text"])),
    });
    parts.collect()
}

type Think = dyn Fn(&Asked) -> Play + Send + Sync;

/// The server.
pub struct ModelServer {
    /// Where it is, without a path.
    pub url: String,
    /// What it speaks.
    pub wire: Wire,
    state: Arc<State>,
}

struct State {
    think: Box<Think>,
    asked: AtomicUsize,
    whole: AtomicUsize,
    stalled: AtomicUsize,
    connections: AtomicUsize,
    wrong: Mutex<Vec<String>>,
    seen: Mutex<Vec<Value>>,
    dice: Mutex<Dice>,
}

impl ModelServer {
    /// Starts it.
    pub fn start(wire: Wire, think: impl Fn(&Asked) -> Play + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State {
            think: Box::new(think),
            asked: AtomicUsize::new(0),
            whole: AtomicUsize::new(0),
            stalled: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            wrong: Mutex::default(),
            seen: Mutex::default(),
            dice: Mutex::new(Dice::seeded()),
        });
        let all = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                stream.set_nodelay(true).unwrap();
                let state = Arc::clone(&all);
                state.connections.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    while let Some(body) = read(&mut reader) {
                        if state.serve(wire, body, &stream).is_none() {
                            return;
                        }
                    }
                });
            }
        });
        Self { url, wire, state }
    }

    /// How many requests came.
    pub fn asked(&self) -> usize {
        self.state.asked.load(Ordering::SeqCst)
    }

    /// How many answers were sent whole.
    pub fn answered(&self) -> usize {
        self.state.whole.load(Ordering::SeqCst)
    }

    /// How many answers stand still.
    pub fn stalled(&self) -> usize {
        self.state.stalled.load(Ordering::SeqCst)
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// The bodies of all requests.
    pub fn seen(&self) -> Vec<Value> {
        self.state.seen.lock().clone()
    }

    /// Checks that no request was wrong.
    pub fn is_content(&self) {
        assert_eq!(*self.state.wrong.lock(), Vec::<String>::new());
    }
}

impl State {
    /// Answers a request; none where the connection is over.
    fn serve(&self, wire: Wire, body: Value, mut stream: &TcpStream) -> Option<()> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        self.seen.lock().push(body.clone());
        let asked = Asked { number, body, wire };
        self.wrong.lock().extend(asked.faults());
        let (saying, end) = match (self.think)(&asked) {
            Play::Say(saying) => (saying, End::Whole),
            Play::Stall(saying) => (saying, End::Stall),
            Play::Break(saying) => (saying, End::Break),
            Play::HalfClose(saying) => (saying, End::HalfClose),
            Play::Fail(saying, error) => (saying, End::Fail(error)),
            Play::Answer(status, headers, body) => {
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status} So\r\n{headers}Content-Length: {length}\r\n\r\n");
                return stream.write_all((head + &body).as_bytes()).ok();
            }
        };
        let events = match wire {
            Wire::Chat => chat(number, saying),
            Wire::Messages => messages(number, saying),
        };
        let (answer, length) = end.cut(wire, &events);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
        write!(stream, "{head}Content-Length: {length}\r\n\r\n").ok()?;
        let mut rest = answer.as_bytes();
        while !rest.is_empty() {
            let some = 1 + usize::try_from(self.dice.lock().below(97)).unwrap();
            let (piece, behind) = rest.split_at(some.min(rest.len()));
            stream.write_all(piece).ok()?;
            rest = behind;
        }
        let waits = || BufReader::new(stream).read_line(&mut String::new());
        match end {
            End::Whole => {
                self.whole.fetch_add(1, Ordering::SeqCst);
                return Some(());
            }
            End::Fail(_) => return Some(()),
            End::Stall => {
                self.stalled.fetch_add(1, Ordering::SeqCst);
                // The client says no more, and goes.
                let _ = waits();
            }
            End::HalfClose => {
                let _ = stream.shutdown(Shutdown::Write);
                let _ = waits();
            }
            End::Break => drop(stream.shutdown(Shutdown::Both)),
        }
        None
    }
}

/// How an answer ends.
enum End {
    Whole,
    Stall,
    Break,
    HalfClose,
    Fail(Value),
}

impl End {
    /// What is sent, and the length that was promised.
    fn cut(&self, wire: Wire, events: &[String]) -> (String, usize) {
        let whole = events.concat();
        // The half as bytes lies within an event, most of the time.
        let half = (0..=whole.len() / 2).rev().find(|at| whole.is_char_boundary(*at)).unwrap();
        match self {
            Self::Whole => (whole.clone(), whole.len()),
            Self::Stall | Self::Break | Self::HalfClose => (whole[..half].to_owned(), whole.len()),
            Self::Fail(error) => {
                let error = match wire {
                    Wire::Chat => format!("data: {error}\n\n"),
                    Wire::Messages => format!("event: error\ndata: {error}\n\n"),
                };
                let sent = events[..events.len() / 2].concat() + &error;
                (sent.clone(), sent.len())
            }
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.is_content();
        }
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

#[test]
fn the_server_notices_calls_without_exactly_one_result() {
    let faults = |wire, messages: Value| {
        let asked = Asked { number: 0, body: json!({"messages": messages}), wire };
        asked.faults().join("; ")
    };
    let text = json!({"type": "text", "text": "x"});
    let first = json!({"role": "user", "content": [text]});
    let calls = ["a", "b"].map(|id| json!({"type": "tool_use", "id": id}));
    let calls = json!({"role": "assistant", "content": calls});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id});
    let check = |content: Value| {
        let last = json!({"role": "user", "content": content});
        faults(Wire::Messages, json!([first, calls, last]))
    };
    assert_eq!(check(json!([result("b"), result("a"), text])), "");
    assert_eq!(check(json!([result("a")])), "no result of b");
    let twice = check(json!([result("a"), result("b"), result("a")]));
    assert_eq!(twice, "a result of no open call: a");
    let late = check(json!([result("a"), text, result("b")]));
    assert_eq!(late, "no result of b; a result of no open call: b");
    let none = json!({"role": "user", "content": [result("a")]});
    assert_eq!(faults(Wire::Messages, json!([first, none])), "a result of no open call: a");

    let user = json!({"role": "user", "content": "x"});
    let calls = json!({"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id});
    let check = |last: Vec<Value>| {
        let messages = [vec![user.clone(), calls.clone()], last].concat();
        faults(Wire::Chat, json!(messages))
    };
    assert_eq!(check(vec![result("a"), result("b"), user.clone()]), "");
    assert_eq!(check(vec![result("a"), user.clone()]), "no result of b");
    let twice = check(vec![result("a"), result("b"), result("b")]);
    assert_eq!(twice, "a result of no open call: b");
    assert_eq!(faults(Wire::Chat, json!([user, result("a")])), "a result of no open call: a");
}
