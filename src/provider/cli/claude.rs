//! Claude Code in its print mode, as its documentation describes it: the pages "CLI reference",
//! "Run Claude Code programmatically" and "Permission modes" at code.claude.com/docs, and "Track cost
//! and usage" there for what it prints of tokens and money, which is that of the one run.

use serde_json::Value;

use super::{Ask, LONGEST_ARGUMENT, Printed, Start, count_at, text_at};
use crate::model::{Cost, PermissionMode, Tokens};

/// The mode, in its own words. In print mode nobody is asked: what would be asked for is refused.
fn mode(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Plan => "plan",
        PermissionMode::Default => "default",
        PermissionMode::Auto => "acceptEdits",
        PermissionMode::Bypass => "bypassPermissions",
    }
}

/// How it is started: the prompt comes in on standard input.
pub fn start(ask: &Ask<'_>) -> Start {
    let mut words = vec!["-p", "--output-format", "json", "--permission-mode", mode(ask.mode)];
    if let Some(session) = ask.session {
        words.extend(["--resume", session]);
    }
    if let Some(model) = ask.model {
        words.extend(["--model", model]);
    }
    // It holds for a run and is not kept in the session.
    let is_short = ask.system.len() <= LONGEST_ARGUMENT;
    if is_short && !ask.system.is_empty() {
        words.extend(["--append-system-prompt", ask.system]);
    }
    let input = if is_short { ask.news.to_owned() } else { super::with_system(ask) };
    let arguments = words.into_iter().map(Into::into).collect();
    Start { arguments, input, ..Start::default() }
}

/// What it prints at its end: an object of type `result`, or a list with one in it where its settings
/// make it verbose.
pub fn printed(output: &str) -> Option<Printed> {
    let whole = serde_json::from_str::<Value>(output).ok();
    let values = match whole {
        Some(Value::Array(list)) => list,
        Some(one) => vec![one],
        None => super::events(output).collect(),
    };
    let is_result = |it: &&Value| text_at(it, "/type").is_none_or(|kind| kind == "result");
    let has_result = |it: &&Value| it.get("result").is_some() || it.get("is_error").is_some();
    let result = values.iter().rev().filter(is_result).find(has_result)?;
    let text = text_at(result, "/result").unwrap_or_default();
    let usage = |key: &str| count_at(result, &format!("/usage/{key}"));
    Some(Printed {
        text: text.to_owned(),
        session: text_at(result, "/session_id").map(str::to_owned),
        failure: failure(result, text),
        tokens: Tokens {
            input: usage("input_tokens"),
            output: usage("output_tokens"),
            cache_read: usage("cache_read_input_tokens"),
            cache_write: usage("cache_creation_input_tokens"),
        },
        of_session: None,
        cost: result.get("total_cost_usd").and_then(Value::as_f64).and_then(Cost::of_dollars),
        refused: refused(result),
    })
}

fn failure(result: &Value, text: &str) -> Option<String> {
    let subtype = text_at(result, "/subtype").unwrap_or_default();
    let is_error = result.get("is_error").and_then(Value::as_bool).unwrap_or_default();
    if !is_error && !subtype.starts_with("error") {
        return None;
    }
    let errors = result.get("errors").and_then(Value::as_array);
    let errors = errors.into_iter().flatten().filter_map(Value::as_str);
    let said: Vec<&str> = [text].into_iter().chain(errors).filter(|it| !it.is_empty()).collect();
    Some(if said.is_empty() { subtype.replace('_', " ") } else { said.join("\n") })
}

fn refused(result: &Value) -> Option<String> {
    let denials = result.get("permission_denials")?.as_array()?;
    let tools: Vec<&str> = denials.iter().filter_map(|it| text_at(it, "/tool_name")).collect();
    (!tools.is_empty()).then(|| format!("claude was not let use: {}", tools.join(", ")))
}
