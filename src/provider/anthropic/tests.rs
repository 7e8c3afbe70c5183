//! How answers of Anthropic end.

use std::fmt::Write;

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::provider::{
    bench::{anthropic, ask, by_anthropic, fake, once, shown},
    test_server::{Play, TestServer, anthropic_stream},
};

fn start(index: usize, block: &Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn delta(index: usize, delta: &Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

fn stop(reason: &str) -> [Value; 2] {
    let usage = json!({ "output_tokens": 9 });
    let delta = json!({ "stop_reason": reason });
    [
        json!({ "type": "message_delta", "delta": delta, "usage": usage }),
        json!({ "type": "message_stop" }),
    ]
}

/// A stream of Anthropic's that says a word, makes a call for each of `inputs` and ends.
fn said(inputs: &[&str], reason: &str) -> Vec<u8> {
    let usage = json!({ "input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 40,
        "cache_creation_input_tokens": 5 });
    let mut events = vec![
        json!({ "type": "message_start", "message": { "usage": usage } }),
        start(0, &json!({ "type": "text", "text": "" })),
        json!({ "type": "ping" }),
        delta(0, &json!({ "type": "text_delta", "text": "Wörd" })),
        delta(0, &json!({ "type": "text_delta", "text": "s." })),
        json!({ "type": "content_block_stop", "index": 0 }),
    ];
    for (place, input) in inputs.iter().enumerate() {
        let (index, id) = (place + 1, format!("toolu_{place}"));
        let call = json!({ "type": "tool_use", "id": id, "name": "bash", "input": {} });
        events.push(start(index, &call));
        let (first, second) = input.split_at(input.len() / 2);
        for json in [first, second] {
            events.push(delta(index, &json!({ "type": "input_json_delta", "partial_json": json })));
        }
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    events.extend(stop(reason));
    anthropic_stream(&events)
}

#[test]
fn anthropic_may_stop_for_any_reason() {
    let whole = r#"{"command": "ls"}"#;
    let mut table = String::new();
    for (inputs, reason) in [
        (vec![], "end_turn"),
        (vec![], "stop_sequence"),
        (vec![whole, whole], "tool_use"),
        (vec![""], "tool_use"),
        (vec![r#"{"command": "#], "tool_use"),
        (vec![], "max_tokens"),
        (vec![whole], "max_tokens"),
        (vec![r#"{"command": "l"#], "max_tokens"),
        (vec![""], "max_tokens"),
        (vec![whole, r#"{"command": "l"#], "max_tokens"),
        (vec![], "refusal"),
        (vec![whole], "refusal"),
        (vec![], "model_context_window_exceeded"),
        (vec![], "something_new"),
        (vec![whole], "something_new"),
    ] {
        let reply = by_anthropic(Play::stream(said(&inputs, reason)));
        let _ = writeln!(table, "{reason} {inputs:?}\n  {reply}");
    }
    expect![[r#"
        end_turn []
          Ok "Wörds." [3, 9, 40, 5]
        stop_sequence []
          Ok "Wörds." [3, 9, 40, 5]
        tool_use ["{\"command\": \"ls\"}", "{\"command\": \"ls\"}"]
          Ok "Wörds." toolu_0=bash {"command":"ls"} toolu_1=bash {"command":"ls"} [3, 9, 40, 5]
        tool_use [""]
          Ok "Wörds." toolu_0=bash {} [3, 9, 40, 5]
        tool_use ["{\"command\": "]
          Ok "Wörds." toolu_0=bash "{\"command\": " [3, 9, 40, 5]
        max_tokens []
          Failed "Wörds.\n[cut off: the answer reached the limit of its tokens]" [3, 9, 40, 5]
        max_tokens ["{\"command\": \"ls\"}"]
          Ok "Wörds.\n[cut off: the answer reached the limit of its tokens]" toolu_0=bash {"command":"ls"} [3, 9, 40, 5]
        max_tokens ["{\"command\": \"l"]
          Failed "Wörds.\n[cut off: the answer reached the limit of its tokens; a call of bash was not finished and is left out]" [3, 9, 40, 5]
        max_tokens [""]
          Failed "Wörds.\n[cut off: the answer reached the limit of its tokens; a call of bash was not finished and is left out]" [3, 9, 40, 5]
        max_tokens ["{\"command\": \"ls\"}", "{\"command\": \"l"]
          Ok "Wörds.\n[cut off: the answer reached the limit of its tokens; a call of bash was not finished and is left out]" toolu_0=bash {"command":"ls"} [3, 9, 40, 5]
        refusal []
          Denied "Wörds.\n[the model refused to go on]" [3, 9, 40, 5]
        refusal ["{\"command\": \"ls\"}"]
          Denied "Wörds.\n[the model refused to go on]" [3, 9, 40, 5]
        model_context_window_exceeded []
          the conversation is too long for the model
        something_new []
          Ok "Wörds." [3, 9, 40, 5]
        something_new ["{\"command\": \"ls\"}"]
          Ok "Wörds." toolu_0=bash {"command":"ls"} [3, 9, 40, 5]
    "#]].assert_eq(&table);
}

#[test]
fn a_turn_that_pauses_is_gone_on_with() {
    let search = json!({ "type": "server_tool_use", "id": "srv_1", "name": "search", "input": {} });
    let mut first = vec![
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 3 } } }),
        start(0, &search),
        delta(0, &json!({ "type": "input_json_delta", "partial_json": "{\"query\": \"x\"}" })),
    ];
    first.extend(stop("pause_turn"));
    let server = TestServer::start([
        Play::stream(anthropic_stream(&first)),
        Play::stream(said(&[], "end_turn")),
    ]);
    let reply = shown(ask(&*anthropic(&server, once(), &fake())));
    expect![[r#"Ok "Wörds." [3, 9, 40, 5] {"anthropic":{"content":[{"id":"srv_1","input":{"query":"x"},"name":"search","type":"server_tool_use"},{"text":"Wörds.","type":"text"}],"model":"model-1"}}"#]].assert_eq(&reply);
    let seen = server.seen();
    expect![[r#"{"content":[{"id":"srv_1","input":{"query":"x"},"name":"search","type":"server_tool_use"}],"role":"assistant"}"#]].assert_eq(&seen[1].json()["messages"][1].to_string());
}

#[test]
fn thoughts_are_kept_with_their_signatures() {
    let thought = json!({ "type": "thinking", "thinking": "", "signature": "" });
    let mut events = vec![
        start(0, &thought),
        delta(0, &json!({ "type": "thinking_delta", "thinking": "Hm" })),
        delta(0, &json!({ "type": "thinking_delta", "thinking": "m." })),
        delta(0, &json!({ "type": "signature_delta", "signature": "s1g" })),
        start(1, &json!({ "type": "redacted_thinking", "data": "xyz" })),
        start(2, &json!({ "type": "tool_use", "id": "toolu_1", "name": "bash", "input": {} })),
    ];
    events.extend(stop("tool_use"));
    expect![[r#"Ok "" toolu_1=bash {} [0, 9, 0, 0] {"anthropic":{"content":[{"signature":"s1g","thinking":"Hmm.","type":"thinking"},{"data":"xyz","type":"redacted_thinking"},{"id":"toolu_1","type":"tool_use"}],"model":"model-1"}}"#]].assert_eq(&by_anthropic(Play::stream(anthropic_stream(&events))));
}

#[test]
fn an_error_in_the_stream_ends_it() {
    let error = |kind: &str, text: &str| {
        let error = json!({ "type": kind, "message": text });
        let begun = start(0, &json!({ "type": "text", "text": "a" }));
        let events = [begun, json!({ "type": "error", "error": error })];
        by_anthropic(Play::stream(anthropic_stream(&events)))
    };
    expect!["no answer for now: the model's server broke off: Overloaded"]
        .assert_eq(&error("overloaded_error", "Overloaded"));
    expect!["the conversation is too long for the model"]
        .assert_eq(&error("invalid_request_error", "prompt is too long: 9 > 8"));
    let odd = |events: &[Value]| by_anthropic(Play::stream(anthropic_stream(events)));
    let text = json!({ "type": "text", "text": "" });
    expect!["no answer for now: the model's answer broke off: blocks are out of order"]
        .assert_eq(&odd(&[start(1, &text)]));
    expect!["no answer for now: the model's answer broke off: a piece of no block"]
        .assert_eq(&odd(&[delta(0, &json!({}))]));
    expect![
        "no answer for now: the model's answer broke off: EOF while parsing an object at line 1 column 1"
    ]
    .assert_eq(&by_anthropic(Play::stream("data: {\n\n")));
}

#[test]
fn an_answer_of_anthropic_may_come_in_one_piece() {
    let call =
        json!({ "type": "tool_use", "id": "a", "name": "bash", "input": { "command": "ls" } });
    let document = json!({ "type": "message", "content": [{ "type": "text", "text": "hi" }, call],
        "stop_reason": "tool_use", "usage": { "input_tokens": 3, "output_tokens": 4 } });
    let answer = Play::Answer(200, Vec::new(), document.to_string().into_bytes());
    expect![[r#"Ok "hi" a=bash {"command":"ls"} [3, 4, 0, 0]"#]].assert_eq(&by_anthropic(answer));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_answer_is_the_same_however_it_is_cut(
        places in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let stream = said(&[r#"{"command": "ls ü"}"#, r#"{"command": 2}"#], "tool_use");
        let whole = by_anthropic(Play::stream(stream.clone()));
        prop_assert!(whole.starts_with("Ok \"Wörds.\" toolu_0=bash"));
        prop_assert_eq!(by_anthropic(Play::Stream(stream, places)), whole);
    }

    #[test]
    fn an_answer_that_is_cut_off_is_never_taken_for_whole(end in any::<prop::sample::Index>()) {
        let stream = said(&[r#"{"command": "ls"}"#], "tool_use");
        let stop = b"data: {\"type\":\"message_stop\"}".len();
        let cut = stream[..end.index(stream.len() - 2 - stop)].to_vec();
        let ended = by_anthropic(Play::HalfClosed(cut));
        prop_assert!(ended.starts_with("no answer for now: the model's answer broke off"), "{}", ended);
    }
}
