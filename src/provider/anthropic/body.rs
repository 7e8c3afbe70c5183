//! The body of a request: a pure function, so that the same conversation is sent in the same bytes
//! and the vendor's cache knows it again.

use serde_json::{Map, Value, json};

use super::{Ask, Thinking};
use crate::{
    model::{ToolCall, ToolSpec},
    provider::{
        Request,
        frame::framed,
        rounds::{Part, Said, as_object, rounds, vendor_id, vendor_name},
    },
};

/// What a model that says nothing is shown to have said: a block holds some text.
const NOTHING_SAID: &str = "(nothing said)";
/// How many of the last turns of the user carry a mark of the cache.
const MARKED_TURNS: usize = 2;

/// The body for `request`; `so_far` is what the model has said of the turn that it paused in.
pub fn body_of(ask: &Ask, request: &Request<'_>, so_far: &[Value]) -> Value {
    let said = rounds(request.turns);
    let mut messages: Vec<Value> = said.iter().map(|said| message(said, &ask.model)).collect();
    let users = messages.iter_mut().rev().filter(|it| it.get("role") == Some(&json!("user")));
    users.take(MARKED_TURNS).for_each(mark_last_block);
    let thinking = thinking(ask, &messages);
    if !so_far.is_empty() {
        messages.push(json!({ "role": "assistant", "content": so_far }));
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(ask.model));
    body.insert("max_tokens".to_owned(), json!(max_tokens(ask)));
    body.insert("stream".to_owned(), json!(true));
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    if !request.system.trim().is_empty() {
        // The mark covers what stands before it, and the tools do.
        let mut block = text_block(request.system);
        mark(&mut block);
        body.insert("system".to_owned(), json!([block]));
    } else if let Some(last) = tools.last_mut() {
        mark(last);
    }
    if !tools.is_empty() {
        body.insert("tools".to_owned(), json!(tools));
    }
    match (&thinking, ask.temperature) {
        (Some(thinking), _) => drop(body.insert("thinking".to_owned(), thinking.clone())),
        (None, Some(temperature)) => {
            body.insert("temperature".to_owned(), json!(temperature));
        }
        (None, None) => {}
    }
    body.insert("messages".to_owned(), json!(messages));
    Value::Object(body)
}

/// The most tokens of the answer: what it thinks counts, and has its own room.
fn max_tokens(ask: &Ask) -> u32 {
    match ask.thinking {
        Thinking::Budget(budget) => ask.max_tokens.saturating_add(budget),
        Thinking::Adaptive | Thinking::Unset => ask.max_tokens,
    }
}

/// How it shall think. In the middle of a round of calls that began without thinking, as with
/// another model, it can't begin to.
fn thinking(ask: &Ask, messages: &[Value]) -> Option<Value> {
    let wanted = match ask.thinking {
        Thinking::Unset => return None,
        Thinking::Adaptive => return Some(json!({ "type": "adaptive" })),
        Thinking::Budget(budget) => json!({ "type": "enabled", "budget_tokens": budget }),
    };
    let last = messages.iter().rev().find(|it| it.get("role") == Some(&json!("assistant")));
    let blocks = last.and_then(|it| it.get("content")?.as_array());
    let (first, has_calls) = blocks.map_or((None, false), |blocks| {
        (blocks.first(), blocks.iter().any(|block| kind(block) == "tool_use"))
    });
    let began = first.is_some_and(is_thinking);
    (began || !has_calls).then_some(wanted)
}

fn kind(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn is_thinking(block: &Value) -> bool {
    matches!(kind(block), "thinking" | "redacted_thinking")
}

fn tool(spec: &ToolSpec) -> Value {
    json!({ "name": spec.name, "description": spec.description, "input_schema": spec.schema })
}

fn message(said: &Said<'_>, model: &str) -> Value {
    match said {
        Said::User(parts) => {
            let blocks: Vec<Value> = parts.iter().map(user_block).collect();
            json!({ "role": "user", "content": blocks })
        }
        Said::Model { text, calls, vendor } => {
            let kept = vendor.and_then(|vendor| kept_blocks(vendor, calls, model));
            let blocks = kept.unwrap_or_else(|| plain_blocks(text, calls));
            json!({ "role": "assistant", "content": blocks })
        }
    }
}

fn user_block(part: &Part<'_>) -> Value {
    match part {
        Part::Result { call, text, is_error } => {
            let mut block = json!({ "type": "tool_result", "tool_use_id": call, "content": text });
            if let (true, Value::Object(fields)) = (is_error, &mut block) {
                fields.insert("is_error".to_owned(), json!(true));
            }
            block
        }
        Part::Mail(mail) => text_block(&framed(mail)),
        Part::Note(text) => text_block(text),
    }
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn call_block(call: &ToolCall) -> Value {
    let (id, input) = (vendor_id(&call.id), as_object(&call.input));
    json!({ "type": "tool_use", "id": id, "name": vendor_name(&call.tool), "input": input })
}

/// A turn of which nothing but words and calls is known.
fn plain_blocks(text: &str, calls: &[&ToolCall]) -> Vec<Value> {
    let mut blocks = Vec::new();
    match text.trim_end() {
        "" if calls.is_empty() => blocks.push(text_block(NOTHING_SAID)),
        "" => {}
        text => blocks.push(text_block(text)),
    }
    blocks.extend(calls.iter().map(|call| call_block(call)));
    blocks
}

/// The turn as it came, calls in their places. What a model thought only the same model may read.
fn kept_blocks(vendor: &Value, calls: &[&ToolCall], model: &str) -> Option<Vec<Value>> {
    let kept = vendor.get("anthropic")?;
    let is_same = kept.get("model").and_then(Value::as_str) == Some(model);
    let mut left: Vec<&ToolCall> = calls.to_vec();
    let mut blocks = Vec::new();
    for block in kept.get("content")?.as_array()? {
        match kind(block) {
            "tool_use" => {
                let id = block.get("id").and_then(Value::as_str);
                let place = left.iter().position(|call| Some(call.id.as_str()) == id);
                blocks.extend(place.map(|place| call_block(left.remove(place))));
            }
            _ if is_thinking(block) && !is_same => {}
            _ => blocks.push(block.clone()),
        }
    }
    blocks.extend(left.into_iter().map(call_block));
    (!blocks.is_empty()).then_some(blocks)
}

fn mark_last_block(message: &mut Value) {
    let blocks = message.get_mut("content").and_then(Value::as_array_mut);
    if let Some(block) = blocks.and_then(|blocks| blocks.last_mut()) {
        mark(block);
    }
}

/// Marks the end of what the vendor shall keep.
fn mark(block: &mut Value) {
    if let Value::Object(fields) = block {
        fields.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
}
