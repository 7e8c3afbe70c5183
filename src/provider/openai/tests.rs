//! How answers of OpenAI, and of servers that speak like it, end.

use std::fmt::Write;

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::provider::{
    bench::{by_openai, short_openai},
    test_server::{Play, openai_stream},
};

fn choice(delta: &Value, finish: Option<&str>) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

fn calls(fragments: &Value) -> Value {
    choice(&json!({ "tool_calls": fragments }), None)
}

fn chunks(chunks: &[Value], finish: &str) -> String {
    let mut chunks = chunks.to_vec();
    chunks.push(choice(&json!({}), Some(finish)));
    by_openai(Play::stream(openai_stream(&chunks)))
}

#[test]
fn openai_may_stop_for_any_reason() {
    let word = choice(&json!({ "role": "assistant", "content": "Word." }), None);
    let whole = json!([{ "index": 0, "id": "a", "function":
        { "name": "bash", "arguments": "{\"command\": \"ls\"}" } }]);
    let cut = json!([{ "index": 1, "id": "b", "function":
        { "name": "bash", "arguments": "{\"comm" } }]);
    let refusal = choice(&json!({ "refusal": "I won't." }), None);
    let mut table = String::new();
    for (begin, finish) in [
        (vec![word.clone()], "stop"),
        (vec![word.clone(), calls(&whole)], "tool_calls"),
        (vec![calls(&whole)], "stop"),
        (vec![word.clone()], "length"),
        (vec![word.clone(), calls(&cut)], "length"),
        (vec![word.clone(), calls(&whole), calls(&cut)], "length"),
        (vec![word.clone()], "content_filter"),
        (vec![calls(&whole)], "content_filter"),
        (vec![refusal], "stop"),
        (vec![word], "something_new"),
    ] {
        let _ = writeln!(table, "{finish}: {}", chunks(&begin, finish));
    }
    expect![[r#"
        stop: Ok "Word." [0, 0, 0, 0]
        tool_calls: Ok "Word." a=bash {"command":"ls"} [0, 0, 0, 0]
        stop: Ok "" a=bash {"command":"ls"} [0, 0, 0, 0]
        length: Failed "Word.\n[cut off: the answer reached the limit of its tokens]" [0, 0, 0, 0]
        length: Failed "Word.\n[cut off: the answer reached the limit of its tokens; a call of bash was not finished and is left out]" [0, 0, 0, 0]
        length: Ok "Word.\n[cut off: the answer reached the limit of its tokens; a call of bash was not finished and is left out]" a=bash {"command":"ls"} [0, 0, 0, 0]
        content_filter: Denied "Word.\n[the model's server filtered the answer]" [0, 0, 0, 0]
        content_filter: Denied "the model's server filtered the answer" [0, 0, 0, 0]
        stop: Denied "I won't." [0, 0, 0, 0]
        something_new: Ok "Word." [0, 0, 0, 0]
    "#]].assert_eq(&table);
}

#[test]
fn calls_come_together_however_a_server_sends_them() {
    let function = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let mut table = String::new();
    for (how, fragments) in [
        (
            "fragments by index",
            vec![
                json!([{ "index": 0, "id": "a", "function": function("bash", json!("")) }]),
                json!([{ "index": 1, "id": "b", "function": function("read_file", json!("{\"pa")) }]),
                json!([{ "index": 0, "function": { "arguments": "{\"command\":" } }]),
                json!([{ "index": 1, "function": { "arguments": "th\":1}" } },
                { "index": 0, "function": { "arguments": "2}" } }]),
            ],
        ),
        (
            "whole calls, one index, no ids",
            vec![
                json!([{ "index": 0, "function": function("bash", json!("{\"command\":1}")) }]),
                json!([{ "index": 0, "function": function("bash", json!("{\"command\":2}")) }]),
            ],
        ),
        (
            "no index, no ids, objects",
            vec![json!([
                { "function": function("bash", json!({ "command": 1 })) },
                { "function": function("bash", json!({ "command": 2 })) },
            ])],
        ),
        (
            "no index, ids, fragments",
            vec![
                json!([{ "id": "a", "function": function("bash", json!("{")) }]),
                json!([{ "id": "a", "function": function("bash", json!("}")) }]),
                json!([{ "id": "b", "function": function("bash", json!("{}")) }]),
            ],
        ),
        (
            "the same id twice, null arguments",
            vec![json!([
                { "index": 0, "id": "a", "function": function("bash", Value::Null) },
                { "index": 1, "id": "a", "function": function("bash", json!("null")) },
            ])],
        ),
        (
            "no JSON",
            vec![
                json!([{ "index": 0, "id": "a", "function": function("bash", json!("{'a': 1}")) }]),
            ],
        ),
        ("no name", vec![json!([{ "index": 0, "id": "a" }])]),
    ] {
        let begin: Vec<Value> = fragments.iter().map(calls).collect();
        let _ = writeln!(table, "{how}\n  {}", chunks(&begin, "tool_calls"));
    }
    expect![[r#"
        fragments by index
          Ok "" a=bash {"command":2} b=read_file {"path":1} [0, 0, 0, 0]
        whole calls, one index, no ids
          Ok "" zu7tgbxlgmv0=bash {"command":1} g6qgu2ubu30g=bash {"command":2} [0, 0, 0, 0]
        no index, no ids, objects
          Ok "" zu7tgbxlgmv0=bash {"command":1} g6qgu2ubu30g=bash {"command":2} [0, 0, 0, 0]
        no index, ids, fragments
          Ok "" a=bash {} b=bash {} [0, 0, 0, 0]
        the same id twice, null arguments
          Ok "" a=bash {} g6qgu2ubu30g=bash {} [0, 0, 0, 0]
        no JSON
          Ok "" a=bash "{'a': 1}" [0, 0, 0, 0]
        no name
          Ok "" a= {} [0, 0, 0, 0]
    "#]]
    .assert_eq(&table);
}

#[test]
fn servers_may_speak_a_little_differently() {
    let mut table = String::new();
    let mut add = |how: &str, play: Play| {
        let _ = writeln!(table, "{how}: {}", by_openai(play));
    };
    let thought = choice(&json!({ "reasoning_content": "Hm" }), None);
    let other = choice(&json!({ "reasoning": "m.", "content": "hello" }), None);
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 50, "completion_tokens": 2,
        "prompt_tokens_details": { "cached_tokens": 40 } } });
    let end = choice(&json!({}), Some("stop"));
    let stream = openai_stream(&[thought, other, end, usage]);
    let without_done = stream[..stream.len() - "data: [DONE]\n\n".len()].to_vec();
    let without_end = String::from_utf8(stream.clone()).unwrap().replace("\"stop\"", "null");
    add("whole", Play::stream(stream));
    add("no [DONE]", Play::stream(without_done.clone()));
    add("no [DONE], broken", Play::Broken(without_done.clone()));
    add("no [DONE], half closed", Play::HalfClosed(without_done));
    add("no finish_reason", Play::stream(without_end.clone()));
    add("no end at all", Play::stream(without_end.replace("data: [DONE]\n\n", "")));
    add("only [DONE]", Play::stream("data: [DONE]\n\n"));
    add("nothing", Play::stream(""));
    add("a comment", Play::stream(": OPENROUTER PROCESSING\n\ndata: [DONE]\n\n"));
    let call = json!({ "id": "a", "function": { "name": "bash", "arguments": "{}" } });
    let message = json!({ "content": "hello", "tool_calls": [call] });
    let document = json!({ "choices": [{ "message": message, "finish_reason": "tool_calls" }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 2 } });
    let json = vec![("content-type", "application/json".to_owned())];
    add("one piece", Play::Answer(200, json.clone(), document.to_string().into_bytes()));
    add("half a piece", Play::Answer(200, json.clone(), b"{\"choices\": [".to_vec()));
    add("no message", Play::Answer(200, json, b"{}".to_vec()));
    let page = vec![("content-type", "text/html; charset=utf-8".to_owned())];
    add("a page", Play::Answer(200, page, b"<html>".to_vec()));
    expect![[r#"
        whole: Ok "hello" [10, 2, 40, 0] {"openai":{"reasoning":"Hmm."}}
        no [DONE]: Ok "hello" [10, 2, 40, 0] {"openai":{"reasoning":"Hmm."}}
        no [DONE], broken: Ok "hello" [10, 2, 40, 0] {"openai":{"reasoning":"Hmm."}}
        no [DONE], half closed: Ok "hello" [10, 2, 40, 0] {"openai":{"reasoning":"Hmm."}}
        no finish_reason: Ok "hello" [10, 2, 40, 0] {"openai":{"reasoning":"Hmm."}}
        no end at all: no answer for now: the model's answer broke off: it ended before its end
        only [DONE]: no answer for now: the model's answer broke off: it ended before it began
        nothing: no answer for now: the model's answer broke off: it ended before its end
        a comment: no answer for now: the model's answer broke off: it ended before it began
        one piece: Ok "hello" a=bash {} [1, 2, 0, 0]
        half a piece: no answer for now: the model's answer broke off: EOF while parsing a list at line 1 column 13
        no message: no answer for now: the model's answer broke off: an answer without a message
        a page: the model's server answered with a web page; check base_url
    "#]].assert_eq(&table);
}

#[test]
fn an_error_in_the_stream_ends_it() {
    let error = json!({ "error": { "message": "CUDA out of memory", "code": 500 } });
    expect!["no answer for now: the model's server broke off: CUDA out of memory"]
        .assert_eq(&by_openai(Play::stream(openai_stream(&[error]))));
    let error = json!({ "error": { "message": "slow down", "code": 429 } });
    expect!["no answer for now: the model's server broke off: slow down"]
        .assert_eq(&by_openai(Play::stream(openai_stream(&[error]))));
    let error = json!({ "error": { "message": "no such model", "code": 404 } });
    expect!["the model's server broke off: no such model"]
        .assert_eq(&by_openai(Play::stream(openai_stream(&[error]))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn an_answer_is_the_same_however_it_is_cut(
        places in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let (stream, whole) = (short_openai(), by_openai(Play::stream(short_openai())));
        prop_assert_eq!(by_openai(Play::Stream(stream, places)), whole);
    }
}
