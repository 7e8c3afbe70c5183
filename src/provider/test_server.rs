//! A server on this machine that speaks as both vendors do, answers by a script, and watches that
//! each call of a conversation has exactly one result.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::base::thread::Thread;

/// What the server does with one request.
#[derive(Debug, Clone)]
pub enum Play {
    /// Answers with a stream, cut before these bytes.
    Stream(Vec<u8>, Vec<usize>),
    /// Answers with a body of a known length.
    Answer(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Sends a part of a stream and closes the connection.
    Broken(Vec<u8>),
    /// Sends a stream whose end is the end of its connection, and goes on reading.
    HalfClosed(Vec<u8>),
    /// Sends a part of a stream and then nothing, until the client goes.
    Stalled(Vec<u8>),
    /// Sends nothing at all, until the client goes.
    Silent,
}

impl Play {
    /// A whole stream in one piece.
    pub fn stream(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Stream(bytes.into(), Vec::new())
    }

    /// A refusal.
    pub fn refusal(status: u16, body: &str) -> Self {
        Self::Answer(status, Vec::new(), body.as_bytes().to_vec())
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Where it went.
    pub path: String,
    /// Its headers, names in small letters.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub bytes: Vec<u8>,
}

impl Seen {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap()
    }
}

#[derive(Default)]
struct State {
    script: VecDeque<Play>,
    seen: Vec<Seen>,
    faults: Vec<String>,
    connections: usize,
    ends: bool,
}

/// The server; its end fails the test where a request was wrong or one too many.
pub struct TestServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    thread: Option<Thread<()>>,
}

impl TestServer {
    /// Starts it with its script.
    pub fn start(script: impl IntoIterator<Item = Play>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let script = script.into_iter().collect();
        let state = Arc::new(Mutex::new(State { script, ..State::default() }));
        let served = Arc::clone(&state);
        let thread = Thread::start("test-server", move || serve(&listener, &served)).unwrap();
        Self { address, state, thread: Some(thread) }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections were made so far.
    pub fn connections(&self) -> usize {
        self.state.lock().connections
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.state.lock().seen.clone()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.state.lock().ends = true;
        drop(TcpStream::connect(self.address));
        drop(self.thread.take());
        let state = self.state.lock();
        if !std::thread::panicking() {
            assert!(state.faults.is_empty(), "{:#?}", state.faults);
            assert!(state.script.is_empty(), "requests that did not come: {:?}", state.script);
        }
    }
}

fn serve(listener: &TcpListener, state: &Arc<Mutex<State>>) {
    let mut connections = Vec::new();
    for stream in listener.incoming() {
        {
            let mut state = state.lock();
            if state.ends {
                break;
            }
            state.connections += 1;
        }
        let (stream, state) = (stream.unwrap(), Arc::clone(state));
        let serve = move || attend(&stream, &state);
        connections.push(Thread::start("test-connection", serve).unwrap());
    }
}

fn attend(stream: &TcpStream, state: &Mutex<State>) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(seen) = read_request(&mut reader) {
        if seen.path.starts_with("CONNECT ") {
            // A proxy: it is the server behind itself.
            state.lock().seen.push(seen);
            let mut stream = stream;
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            continue;
        }
        let faults = faults(&seen);
        let play = {
            let mut state = state.lock();
            state.faults.extend(faults);
            state.seen.push(seen);
            state.script.pop_front()
        };
        let Some(play) = play else {
            state.lock().faults.push("one request too many".to_owned());
            return;
        };
        // The client may have gone; what it has seen is what the test looks at.
        if !matches!(perform(stream, &mut reader, play), Ok(true)) {
            return;
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.trim().strip_prefix("POST ").unwrap_or(line.trim());
    let path = path.strip_suffix(" HTTP/1.1")?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |it| it.parse().unwrap());
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes).ok()?;
    Some(Seen { path, headers, bytes })
}

/// Answers, and says whether the connection can go on.
fn perform(mut stream: &TcpStream, reader: &mut impl Read, play: Play) -> std::io::Result<bool> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n");
    match play {
        Play::Stream(bytes, cuts) => {
            stream.write_all(chunked.as_bytes())?;
            for piece in pieces(&bytes, cuts) {
                stream.write_all(&chunk(piece))?;
            }
            stream.write_all(b"0\r\n\r\n")?;
            return Ok(true);
        }
        Play::Answer(status, headers, bytes) => {
            write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", bytes.len())?;
            for (name, value) in headers {
                write!(stream, "{name}: {value}\r\n")?;
            }
            stream.write_all(b"\r\n")?;
            stream.write_all(&bytes)?;
            return Ok(true);
        }
        Play::Broken(bytes) => {
            stream.write_all(chunked.as_bytes())?;
            stream.write_all(&chunk(&bytes))?;
            stream.shutdown(Shutdown::Both)?;
        }
        Play::HalfClosed(bytes) => {
            stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes())?;
            stream.write_all(&bytes)?;
            stream.shutdown(Shutdown::Write)?;
            reader.read_to_end(&mut Vec::new())?;
        }
        Play::Stalled(bytes) => {
            stream.write_all(chunked.as_bytes())?;
            stream.write_all(&chunk(&bytes))?;
            reader.read_to_end(&mut Vec::new())?;
        }
        Play::Silent => drop(reader.read_to_end(&mut Vec::new())?),
    }
    Ok(false)
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

fn pieces(bytes: &[u8], mut cuts: Vec<usize>) -> Vec<&[u8]> {
    for cut in &mut cuts {
        *cut %= bytes.len() + 1;
    }
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect()
}

/// What is wrong with a request.
fn faults(seen: &Seen) -> Vec<String> {
    let Ok(body) = serde_json::from_slice(&seen.bytes) else {
        return vec![format!("{} got no JSON", seen.path)];
    };
    let turns = match seen.path.as_str() {
        path if path.ends_with("/v1/messages") => anthropic_turns(&body),
        path if path.ends_with("/chat/completions") => openai_turns(&body),
        path => return vec![format!("there is nothing at {path}")],
    };
    let mut faults = faults_of(&turns);
    if body["stream"] != Value::Bool(true) {
        faults.push("no stream was asked for".to_owned());
    }
    faults
}

/// A turn of either vendor: the calls that it makes or the results that it gives.
#[derive(Debug, Default)]
struct Turn {
    is_model: bool,
    calls: Vec<String>,
    results: Vec<String>,
    odd: Vec<String>,
}

/// Each call has exactly one result in the next turn, and nothing else has one.
fn faults_of(turns: &[Turn]) -> Vec<String> {
    let (mut faults, mut known) = (Vec::new(), BTreeSet::new());
    let mut due: Vec<String> = Vec::new();
    for turn in turns {
        faults.extend(turn.odd.iter().cloned());
        let mut results = turn.results.clone();
        for call in due.drain(..) {
            let before = results.len();
            results.retain(|result| *result != call);
            match before - results.len() {
                1 => {}
                count => faults.push(format!("{call} has {count} results")),
            }
        }
        faults.extend(results.iter().map(|result| format!("{result} is no call of that turn")));
        due.clone_from(&turn.calls);
        let twice = due.iter().filter(|call| !known.insert((*call).clone()));
        faults.extend(twice.map(|call| format!("{call} is there twice")));
    }
    faults.extend(due.iter().map(|call| format!("{call} has 0 results")));
    if turns.first().is_none_or(|turn| turn.is_model) {
        faults.push("the user does not begin".to_owned());
    }
    let pairs = turns.iter().zip(turns.iter().skip(1));
    faults.extend(
        pairs
            .filter(|(one, next)| one.is_model == next.is_model)
            .map(|_| "two turns of one side".to_owned()),
    );
    faults
}

fn anthropic_turns(body: &Value) -> Vec<Turn> {
    body["messages"].as_array().unwrap().iter().map(anthropic_turn).collect()
}

fn anthropic_turn(message: &Value) -> Turn {
    let mut turn = Turn { is_model: message["role"] == "assistant", ..Turn::default() };
    let blocks = message["content"].as_array().unwrap();
    for (place, block) in blocks.iter().enumerate() {
        let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        match text("type").as_str() {
            "tool_use" if turn.is_model && block["input"].is_object() => {
                turn.calls.push(text("id"));
            }
            "tool_result" if !turn.is_model && place == turn.results.len() => {
                turn.results.push(text("tool_use_id"));
            }
            "text" if !text("text").trim().is_empty() => {}
            "thinking" | "redacted_thinking" | "server_tool_use" if turn.is_model => {}
            _ => turn.odd.push(format!("an odd block: {block}")),
        }
    }
    if blocks.is_empty() {
        turn.odd.push("a turn without blocks".to_owned());
    }
    turn
}

fn openai_turns(body: &Value) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for message in body["messages"].as_array().unwrap() {
        let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
        let role = text("role");
        if role == "system" {
            continue;
        }
        let is_model = role == "assistant";
        if is_model || turns.last().is_none_or(|it| it.is_model) {
            turns.push(Turn { is_model, ..Turn::default() });
        }
        let turn = turns.last_mut().unwrap();
        match role.as_str() {
            "tool" => turn.results.push(text("tool_call_id")),
            "user" | "assistant" => {}
            _ => turn.odd.push(format!("an odd role: {role}")),
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if !serde_json::from_str::<Value>(arguments).is_ok_and(|it| it.is_object()) {
                turn.odd.push(format!("odd arguments: {arguments}"));
            }
            turn.calls.push(call["id"].as_str().unwrap().to_owned());
        }
        if message["content"].as_str().is_none() && turn.calls.is_empty() {
            turn.odd.push("a message without content".to_owned());
        }
    }
    turns
}

/// A stream of Anthropic's events.
pub fn anthropic_stream(events: &[Value]) -> Vec<u8> {
    let lines = events.iter().map(|data| {
        format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
    });
    lines.collect::<String>().into_bytes()
}

/// A stream of OpenAI's chunks.
pub fn openai_stream(chunks: &[Value]) -> Vec<u8> {
    let lines = chunks.iter().map(|data| format!("data: {data}\n\n"));
    (lines.collect::<String>() + "data: [DONE]\n\n").into_bytes()
}

mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(path: &str, messages: Value) -> String {
        let body = json!({ "stream": true, "messages": messages });
        let (path, bytes) = (path.to_owned(), body.to_string().into_bytes());
        faults(&Seen { path, headers: BTreeMap::new(), bytes }).join("; ")
    }

    #[test]
    fn the_server_notices_calls_without_exactly_one_result() {
        let user = |content: Value| json!({ "role": "user", "content": content });
        let text = json!({ "type": "text", "text": "x" });
        let calls = json!({ "role": "assistant", "content": [
            { "type": "tool_use", "id": "a", "input": {} },
        ]});
        let result = |id: &str| json!({ "type": "tool_result", "tool_use_id": id });
        let first = user(json!([text]));
        let check = |last: Value| wrong("/v1/messages", json!([first, calls, user(last)]));
        assert_eq!(check(json!([result("a"), text])), "");
        assert_eq!(check(json!([text])), "a has 0 results");
        assert_eq!(check(json!([result("a"), result("a")])), "a has 2 results");
        assert_eq!(check(json!([result("a"), result("b")])), "b is no call of that turn");
        let none = wrong("/v1/messages", json!([user(json!([result("a")]))]));
        assert_eq!(none, "a is no call of that turn");
        assert_eq!(wrong("/v1/messages", json!([first, calls])), "a has 0 results");

        let user = json!({ "role": "user", "content": "x" });
        let call = json!({ "id": "a", "function": { "arguments": "{}" } });
        let calls = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
        let tool = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "" });
        let check = |messages| wrong("/chat/completions", messages);
        assert_eq!(check(json!([user, calls, tool("a"), user])), "");
        assert_eq!(check(json!([user, calls, user])), "a has 0 results");
        assert_eq!(check(json!([user, calls, tool("a"), tool("a")])), "a has 2 results");
        assert_eq!(check(json!([user, tool("a")])), "a is no call of that turn");
    }
}
