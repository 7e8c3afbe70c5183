//! `OpenCode` as `opencode run --format json`, as its documentation describes it: the pages "CLI",
//! "Agents" and "Permissions" at opencode.ai/docs, and `packages/opencode` of its repository for the
//! events. Without a terminal it reads the prompt from standard input.

use serde_json::{Value, json};

use super::{Ask, Printed, Start, count_at, events, text_at, with_system};
use crate::model::{Cost, PermissionMode, Tokens};

/// The variable with permissions that go before those of its files.
const PERMISSION: &str = "OPENCODE_PERMISSION";

/// What is allowed it; by itself it allows everything. What it would ask for ends a run without a
/// word, so what is not allowed is denied: the model is told so and goes on.
fn permission(mode: PermissionMode) -> Option<Value> {
    let edit = match mode {
        PermissionMode::Plan | PermissionMode::Default => "deny",
        PermissionMode::Auto => "allow",
        PermissionMode::Bypass => return None,
    };
    Some(json!({
        "*": "deny",
        "read": "allow",
        "glob": "allow",
        "grep": "allow",
        "list": "allow",
        "todowrite": "allow",
        "todoread": "allow",
        "edit": edit,
        "bash": "deny",
        "external_directory": "deny",
    }))
}

/// How it is started.
pub fn start(ask: &Ask<'_>) -> Start {
    let mut words = vec!["run", "--format", "json"];
    match ask.mode {
        PermissionMode::Plan | PermissionMode::Default => words.extend(["--agent", "plan"]),
        PermissionMode::Auto => words.extend(["--agent", "build"]),
        PermissionMode::Bypass => words.extend(["--agent", "build", "--auto"]),
    }
    if let Some(session) = ask.session {
        words.extend(["-s", session]);
    }
    if let Some(model) = ask.model {
        words.extend(["-m", model]);
    }
    let env = permission(ask.mode).map(|it| (PERMISSION.into(), it.to_string().into()));
    Start {
        arguments: words.into_iter().map(Into::into).collect(),
        env: env.into_iter().collect(),
        input: with_system(ask),
    }
}

/// What its events come to: the words of the last step, and what all steps have taken.
pub fn printed(output: &str) -> Option<Printed> {
    let mut all = Printed::default();
    let mut cost = Some(Cost::default());
    let mut is_any = false;
    for event in events(output) {
        is_any = true;
        if let Some(session) = text_at(&event, "/sessionID") {
            all.session = Some(session.to_owned());
        }
        match text_at(&event, "/type").unwrap_or_default() {
            "step_start" => all.text.clear(),
            "text" => {
                let gap = if all.text.is_empty() { "" } else { "\n" };
                all.text.push_str(gap);
                all.text.push_str(text_at(&event, "/part/text").unwrap_or_default());
            }
            "step_finish" => {
                all.tokens = all.tokens.plus(tokens(&event));
                let of_step = event.pointer("/part/cost").and_then(Value::as_f64);
                let of_step = of_step.and_then(Cost::of_dollars);
                cost = cost.zip(of_step).map(|(cost, of_step)| cost.plus(of_step));
            }
            "error" => all.failure = Some(failure(&event)),
            _ => {}
        }
    }
    // It prints 0 where it knows no price.
    all.cost = cost.filter(|it| !it.is_nothing());
    is_any.then_some(all)
}

fn tokens(event: &Value) -> Tokens {
    let count = |key: &str| count_at(event, &format!("/part/tokens/{key}"));
    Tokens {
        input: count("input"),
        output: count("output").saturating_add(count("reasoning")),
        cache_read: count("cache/read"),
        cache_write: count("cache/write"),
    }
}

fn failure(event: &Value) -> String {
    let places = ["/error/data/message", "/error/message", "/error/name", "/message"];
    let said = places.iter().find_map(|place| text_at(event, place));
    said.unwrap_or("it says no more than that there was an error").to_owned()
}
