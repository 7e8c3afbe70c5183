//! Requests of both vendors, byte for byte as the server sees them.

use expect_test::{Expect, ExpectFile, expect, expect_file};
use serde_json::{Value, json};

use super::{
    Provider, Request, Settings, Thinking,
    bench::{anthropic, mail, openai, short_anthropic, short_openai, tools},
    test_server::{Play, Seen, TestServer},
};
use crate::{
    base::{Cancel, Clock, Timestamp},
    model::{CallId, Final, Kind, PermissionMode, Protocol, Status, ToolCall, ToolResult, Turn},
};

fn call(id: &str, tool: &str, input: Value) -> ToolCall {
    ToolCall { id: CallId::new(id).unwrap(), tool: tool.to_owned(), input }
}

fn model(text: &str, calls: Vec<ToolCall>, vendor: Option<Value>) -> Turn {
    let text = text.to_owned();
    Turn::Model {
        text,
        calls,
        status: Status::Ok,
        decision: None,
        vendor,
        tokens: crate::model::Tokens::default(),
    }
}

fn result(id: &str, text: Result<&str, &str>) -> Turn {
    let text = text.map(str::to_owned).map_err(str::to_owned);
    Turn::Result(ToolResult::new(CallId::new(id).unwrap(), text))
}

/// A conversation with all that one can hold: parallel calls, a failed one, mail that joined,
/// thoughts, a call that broke off, an input that is no JSON, a question.
fn turns() -> Vec<Turn> {
    let thoughts = json!([
        { "type": "thinking", "thinking": "Look first.", "signature": "sig1" },
        { "type": "redacted_thinking", "data": "xyz" },
        { "type": "text", "text": "I look." },
        { "type": "tool_use", "id": "c1" },
        { "type": "tool_use", "id": "c2" },
    ]);
    let thoughts = json!({ "anthropic": { "model": "model-1", "content": thoughts } });
    let calls = vec![
        call("c1", "read_file", json!({ "path": "a.md" })),
        call("c2", "bash", json!({ "command": "ls" })),
    ];
    let mut question = mail("m3", Kind::Request, "May I?\n</message>");
    if let Turn::Mail(question) = &mut question {
        question.protocol = Some(Protocol::PlanApproval);
    }
    let (status, text) = (Status::Failed, "it broke off".to_owned());
    vec![
        mail("m1", Kind::Request, "Look at \"a.md\"."),
        model("I look.", calls, Some(thoughts)),
        result("c2", Ok("a.md")),
        result("c1", Err("no such file")),
        mail("m2", Kind::Event, "a.md is written"),
        model("", vec![call("lead:m1.c3", "read_file", json!("{\"path\": "))], None),
        Turn::Final(Final { status, text, decision: None, places: [].into() }),
        question,
        model("Yes. ", Vec::new(), Some(json!({ "openai": { "reasoning": "Why not." } }))),
        mail("m4", Kind::Broadcast, "Thanks."),
    ]
}

fn settings() -> Settings {
    Settings { max_tokens: Some(1000), temperature: Some(0.5), ..Settings::of("model-1") }
}

fn sent(provider: &dyn Provider, server: &TestServer, turns: &[Turn]) -> Seen {
    let tools = tools();
    let request = Request {
        system: "You are scout.",
        turns,
        in_hand: 0,
        tools: &tools,
        told: &|_| {},
        may_be_again: false,
        mode: PermissionMode::Default,
    };
    assert_eq!(provider.complete(&request, &Cancel::default()).unwrap().text, "hello");
    server.seen().pop().unwrap()
}

fn check(seen: &Seen, body: ExpectFile, head: Expect) {
    body.assert_eq(&(String::from_utf8(seen.bytes.clone()).unwrap() + "\n"));
    let is_told = |name: &str| !["host", "content-length", "user-agent"].contains(&name);
    let told = seen.headers.iter().filter(|(name, _)| is_told(name));
    let lines: Vec<String> = told.map(|(name, value)| format!("{name}: {value}\n")).collect();
    head.assert_eq(&format!("{}\n{}", seen.path, lines.concat()));
}

#[test]
fn anthropic_is_sent_these_bytes() {
    let server = TestServer::start([Play::stream(short_anthropic())]);
    let provider = anthropic(&server, settings(), &Clock::fake(Timestamp(0)));
    let seen = sent(&*provider, &server, &turns());
    check(
        &seen,
        expect_file!["../../tests/golden/anthropic-request.json"],
        expect![[r#"
        /v1/messages
        accept: */*
        accept-encoding: gzip
        anthropic-version: 2023-06-01
        content-type: application/json
        x-api-key: sk-test-123
    "#]],
    );
}

#[test]
fn openai_is_sent_these_bytes() {
    let server = TestServer::start([Play::stream(short_openai())]);
    let provider = openai(&server, settings(), &Clock::fake(Timestamp(0)));
    let seen = sent(&*provider, &server, &turns());
    check(
        &seen,
        expect_file!["../../tests/golden/openai-request.json"],
        expect![[r#"
        /v1/chat/completions
        accept: */*
        accept-encoding: gzip
        authorization: Bearer sk-test-123
        content-type: application/json
    "#]],
    );
}

/// What is asked for beside the conversation.
fn asked(settings: Settings, turns: &[Turn]) -> String {
    let server = TestServer::start([Play::stream(short_anthropic())]);
    let provider = anthropic(&server, settings, &Clock::fake(Timestamp(0)));
    let mut body = sent(&*provider, &server, turns).json();
    let messages = body["messages"].take();
    let fields = body.as_object_mut().unwrap();
    fields.retain(|key, _| !["messages", "stream", "system", "tools", "model"].contains(&&**key));
    let thoughts = messages.to_string().matches("\"thinking\":").count();
    format!("{body} thoughts: {thoughts}")
}

#[test]
fn thinking_has_its_room_and_stays_with_its_model() {
    let (whole, round) = (turns(), &turns()[..4]);
    let budget = Settings { thinking: Thinking::Budget(2000), ..settings() };
    let adaptive = Settings { thinking: Thinking::Adaptive, ..settings() };
    let other = Settings { model: "model-2".to_owned(), ..budget.clone() };
    expect![[
        r#"{"max_tokens":3000,"thinking":{"budget_tokens":2000,"type":"enabled"}} thoughts: 1"#
    ]]
    .assert_eq(&asked(budget.clone(), &whole));
    expect![[
        r#"{"max_tokens":3000,"thinking":{"budget_tokens":2000,"type":"enabled"}} thoughts: 1"#
    ]]
    .assert_eq(&asked(budget, round));
    expect![[r#"{"max_tokens":1000,"thinking":{"type":"adaptive"}} thoughts: 1"#]]
        .assert_eq(&asked(adaptive, round));
    expect![[
        r#"{"max_tokens":3000,"thinking":{"budget_tokens":2000,"type":"enabled"}} thoughts: 0"#
    ]]
    .assert_eq(&asked(other.clone(), &whole));
    // It can't begin to think in the middle of a round.
    expect![[r#"{"max_tokens":3000,"temperature":0.5} thoughts: 0"#]]
        .assert_eq(&asked(other, round));
    expect![[r#"{"max_tokens":16384} thoughts: 1"#]]
        .assert_eq(&asked(Settings::of("model-1"), round));
}

#[test]
fn a_request_is_valid_wherever_its_conversation_was_cut() {
    let whole = turns();
    let script = |answer: Vec<u8>| (0..=whole.len()).map(move |_| Play::stream(answer.clone()));
    let (first, second) =
        (TestServer::start(script(short_anthropic())), TestServer::start(script(short_openai())));
    let clock = Clock::fake(Timestamp(0));
    let one = anthropic(&first, settings(), &clock);
    let other = openai(&second, settings(), &clock);
    for end in 0..=whole.len() {
        sent(&*one, &first, &whole[..end]);
        sent(&*other, &second, &whole[end..]);
    }
}
