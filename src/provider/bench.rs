//! What the tests of providers share: models at the other end of a real connection, and how their
//! answers are shown.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;

use super::{
    Course, Patience, Provider, ProviderConfig, ProviderError, Reply, Request, Secret, Settings,
    Told, open,
    test_server::{Play, TestServer, anthropic_stream, openai_stream},
};
use crate::{
    base::{Cancel, Clock, Timestamp},
    model::{AgentName, Kind, Mail, MessageId, PermissionMode, Tokens, ToolSpec, Turn},
};

/// The key of all tests.
pub const KEY: &str = "sk-test-123";

/// A message of the lead.
pub fn mail(id: &str, kind: Kind, text: &str) -> Turn {
    let (id, from) = (MessageId::new(id).unwrap(), AgentName::named("lead"));
    Turn::Mail(Mail { id, from, kind, protocol: None, text: text.to_owned(), hops: 0 })
}

/// Two tools.
pub fn tools() -> Vec<ToolSpec> {
    let schema = |field: &str| {
        json!({
            "type": "object",
            "properties": { field: { "type": "string" } },
            "required": [field],
        })
    };
    [("read_file", "Reads a file.", "path"), ("bash", "Runs a command.", "command")]
        .map(|(name, told, field)| ToolSpec {
            name,
            description: told.into(),
            schema: schema(field),
        })
        .to_vec()
}

/// A short answer of Anthropic.
pub fn short_anthropic() -> Vec<u8> {
    anthropic_stream(&[
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 7 } } }),
        json!({ "type": "content_block_start", "index": 0,
            "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0,
            "delta": { "type": "text_delta", "text": "hello" } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
            "usage": { "output_tokens": 2 } }),
        json!({ "type": "message_stop" }),
    ])
}

/// A short answer of OpenAI.
pub fn short_openai() -> Vec<u8> {
    openai_stream(&[
        json!({ "choices": [{ "delta": { "role": "assistant", "content": "hello" } }] }),
        json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }),
        json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 2 } }),
    ])
}

/// Anthropic at `server`.
pub fn anthropic(server: &TestServer, settings: Settings, clock: &Clock) -> Arc<dyn Provider> {
    let (base_url, key) = (Some(server.url()), Secret::new(KEY));
    open(&ProviderConfig::Anthropic { base_url, key, settings }, clock).unwrap()
}

/// OpenAI at `server`.
pub fn openai(server: &TestServer, settings: Settings, clock: &Clock) -> Arc<dyn Provider> {
    let (base_url, key) = (Some(format!("{}/v1", server.url())), Some(Secret::new(KEY)));
    open(&ProviderConfig::OpenAi { base_url, key, settings }, clock).unwrap()
}

/// A clock that stands.
pub fn fake() -> Clock {
    Clock::fake(Timestamp(0))
}

/// Asks with one message.
pub fn ask(provider: &dyn Provider) -> Result<Reply, ProviderError> {
    ask_until(provider, &Cancel::default())
}

/// Asks with one message, and gives what each try has taken, too.
pub fn took(provider: &dyn Provider) -> (Result<Reply, ProviderError>, Vec<Tokens>) {
    let took = Mutex::new(Vec::new());
    let told: &Told<'_> = &|course| {
        if let Course::Took(_, tokens) = course {
            took.lock().push(tokens);
        }
    };
    let reply = ask_telling(provider, told, &Cancel::default());
    (reply, took.into_inner())
}

/// Asks with one message, until `cancel` fires.
pub fn ask_until(provider: &dyn Provider, cancel: &Cancel) -> Result<Reply, ProviderError> {
    ask_telling(provider, &|_| {}, cancel)
}

fn ask_telling(
    provider: &dyn Provider,
    told: &Told<'_>,
    cancel: &Cancel,
) -> Result<Reply, ProviderError> {
    let (turns, tools) = ([mail("m1", Kind::Request, "Say hello.")], tools());
    let request = Request {
        system: "You are scout.",
        turns: &turns,
        in_hand: 0,
        tools: &tools,
        told,
        may_be_again: false,
        mode: PermissionMode::Default,
    };
    provider.complete(&request, cancel)
}

/// An answer as text: status, words, calls, tokens, the vendor's own.
pub fn shown(reply: Result<Reply, ProviderError>) -> String {
    match reply {
        Ok(Reply { text, calls, status, decision: _, tokens, cost: _, vendor }) => {
            let calls: Vec<_> =
                calls.iter().map(|it| format!(" {}={} {}", it.id, it.tool, it.input)).collect();
            let vendor = vendor.map_or(String::new(), |it| format!(" {it}"));
            let counts = [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write];
            format!("{status:?} {text:?}{} {counts:?}{vendor}", calls.concat())
        }
        Err(why) => why.to_string(),
    }
}

/// Tries once.
pub fn once() -> Settings {
    let patience = Patience { tries: 1, ..Patience::default() };
    Settings { patience, ..Settings::of("model-1") }
}

/// What comes of one answer of Anthropic.
pub fn by_anthropic(play: Play) -> String {
    let server = TestServer::start([play]);
    shown(ask(&*anthropic(&server, once(), &fake())))
}

/// What comes of one answer of OpenAI.
pub fn by_openai(play: Play) -> String {
    let server = TestServer::start([play]);
    shown(ask(&*openai(&server, once(), &fake())))
}
