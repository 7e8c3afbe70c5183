//! The body of a request: a pure function, so that the same conversation is sent in the same bytes.

use serde_json::{Map, Value, json};

use super::Ask;
use crate::{
    model::{ToolCall, ToolSpec},
    provider::{
        Request,
        frame::framed,
        rounds::{Part, Said, as_object, rounds, vendor_id, vendor_name},
    },
};

/// What a model that says nothing is shown to have said.
const NOTHING_SAID: &str = "(nothing said)";

/// The body for `request`.
pub fn body_of(ask: &Ask, request: &Request<'_>) -> Value {
    let mut messages = Vec::new();
    if !request.system.trim().is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    for said in rounds(request.turns) {
        match said {
            Said::User(parts) => messages.extend(user_messages(&parts)),
            // What it thought is not handed back.
            Said::Model { text, calls, vendor: _ } => messages.push(model_message(text, &calls)),
        }
    }
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| drop(body.insert(key.to_owned(), value));
    put("model", json!(ask.model));
    put("messages", json!(messages));
    put("stream", json!(true));
    put("stream_options", json!({ "include_usage": true }));
    if !request.tools.is_empty() {
        put("tools", request.tools.iter().map(tool).collect());
    }
    if let Some(most) = ask.max_tokens {
        put(if ask.is_openai { "max_completion_tokens" } else { "max_tokens" }, json!(most));
    }
    if let Some(temperature) = ask.temperature {
        put("temperature", json!(temperature));
    }
    Value::Object(body)
}

fn tool(spec: &ToolSpec) -> Value {
    let function = json!({
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.schema,
    });
    json!({ "type": "function", "function": function })
}

/// The results, each a message of its own right behind the calls, then the rest as one message.
fn user_messages(parts: &[Part<'_>]) -> Vec<Value> {
    let (mut messages, mut words) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Result { call, text, is_error } => {
                let content = if *is_error { format!("Error: {text}") } else { (*text).to_owned() };
                messages.push(json!({ "role": "tool", "tool_call_id": call, "content": content }));
            }
            Part::Mail(mail) => words.push(framed(mail)),
            Part::Note(text) => words.push((*text).to_owned()),
        }
    }
    if !words.is_empty() {
        messages.push(json!({ "role": "user", "content": words.join("\n\n") }));
    }
    messages
}

fn model_message(text: &str, calls: &[&ToolCall]) -> Value {
    if calls.is_empty() {
        let text = if text.trim().is_empty() { NOTHING_SAID } else { text };
        return json!({ "role": "assistant", "content": text });
    }
    let content = if text.trim().is_empty() { Value::Null } else { json!(text) };
    let calls: Vec<Value> = calls.iter().map(|call| call_of(call)).collect();
    json!({ "role": "assistant", "content": content, "tool_calls": calls })
}

fn call_of(call: &ToolCall) -> Value {
    let arguments = as_object(&call.input).to_string();
    let function = json!({ "name": vendor_name(&call.tool), "arguments": arguments });
    json!({ "id": vendor_id(&call.id), "type": "function", "function": function })
}
