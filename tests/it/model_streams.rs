//! What a model says, as the events of both vendors' streams.

use serde_json::{Value, json};

/// What each whole answer says that it took: tokens read anew, from the cache, into it, and written.
pub const USAGE: [u64; 4] = [60, 30, 10, 10];
/// What the vendor has thought and shows to nobody.
pub const HIDDEN: &str = "RW5jcnlwdGVk/+=";
/// What the model has thought, and its vendor's mark that it has.
pub const THOUGHT: (&str, &str) = ("hm: \u{1F914} \"so\"", "c2lnbmF0dXJl+/=");

/// What the model says: its text, and its calls as tool and input.
pub type Saying = (String, Vec<(&'static str, Value)>);

/// A call's input in two pieces.
fn halves(input: &Value) -> (String, String) {
    let text = input.to_string();
    let half = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap();
    let (first, second) = text.split_at(half);
    (first.to_owned(), second.to_owned())
}

/// Chunks of chat completions.
pub fn chat(number: usize, (text, calls): Saying) -> Vec<String> {
    let mut events =
        vec![json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]})];
    let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
    for (index, (tool, input)) in calls.into_iter().enumerate() {
        let (first, second) = halves(&input);
        let id = format!("call_{number}_{index}");
        let function = json!({"name": tool, "arguments": first});
        let call = json!({"index": index, "id": id, "type": "function", "function": function});
        let rest = json!({"index": index, "function": {"arguments": second}});
        for piece in [call, rest] {
            events.push(json!({"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]}));
        }
    }
    events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}));
    let [anew, from_cache, into_cache, written] = USAGE;
    let read = anew + from_cache + into_cache;
    let details = json!({"cached_tokens": from_cache});
    events.push(json!({"choices": [], "usage": {"prompt_tokens": read,
        "completion_tokens": written, "prompt_tokens_details": details}}));
    let lines = events.iter().map(|event| format!("data: {event}\n\n"));
    lines.chain(["data: [DONE]\n\n".to_owned()]).collect()
}

/// Events of Anthropic's messages.
pub fn messages(number: usize, (text, calls): Saying) -> Vec<String> {
    let [anew, from_cache, into_cache, written] = USAGE;
    let usage = json!({"input_tokens": anew, "cache_read_input_tokens": from_cache,
        "cache_creation_input_tokens": into_cache, "output_tokens": 1});
    let message = json!({"id": format!("msg_{number}"), "type": "message", "role": "assistant",
        "model": "m", "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage});
    let mut events = vec![json!({"type": "message_start", "message": message})];
    let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
    let (thought, mark) = THOUGHT;
    let (mark, its_end) = mark.split_at(mark.len() / 2);
    let mut blocks = vec![
        (
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            vec![
                json!({"type": "thinking_delta", "thinking": thought}),
                json!({"type": "signature_delta", "signature": mark}),
                json!({"type": "signature_delta", "signature": its_end}),
            ],
        ),
        (json!({"type": "redacted_thinking", "data": HIDDEN}), Vec::new()),
    ];
    if !text.is_empty() {
        let delta = json!({"type": "text_delta", "text": text});
        blocks.push((json!({"type": "text", "text": ""}), vec![delta]));
    }
    for (index, (tool, input)) in calls.into_iter().enumerate() {
        let (first, second) = halves(&input);
        let id = format!("toolu_{number}_{index}");
        let pieces = [first, second];
        let deltas = pieces.map(|it| json!({"type": "input_json_delta", "partial_json": it}));
        blocks.push((
            json!({"type": "tool_use", "id": id, "name": tool, "input": {}}),
            deltas.into(),
        ));
    }
    for (index, (block, deltas)) in blocks.into_iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        events.push(json!({"type": "ping"}));
        for delta in deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop},
        "usage": {"output_tokens": written}}));
    events.push(json!({"type": "message_stop"}));
    let line =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(line).collect()
}
