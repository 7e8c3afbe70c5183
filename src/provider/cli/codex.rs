//! Codex CLI as `codex exec --json`, as its documentation describes it: "Non-interactive mode" at
//! developers.openai.com/codex, and the events in `codex-rs/exec` of github.com/openai/codex.

use serde_json::Value;

use super::{Ask, Printed, Start, count_at, events, text_at, with_system};
use crate::model::{PermissionMode, Tokens};

/// The sandbox that its commands run in. It asks nobody in this mode.
fn sandbox(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Plan | PermissionMode::Default => "read-only",
        PermissionMode::Auto => "workspace-write",
        PermissionMode::Bypass => "danger-full-access",
    }
}

/// How it is started: the prompt comes in on standard input. `resume` takes no `--sandbox` of its own
/// and would go on with that of the session, so the mode is said as a setting, which holds for both.
pub fn start(ask: &Ask<'_>) -> Start {
    let sandbox = sandbox(ask.mode);
    let setting = format!("sandbox_mode=\"{sandbox}\"");
    let mut words = vec!["exec", "--json", "--skip-git-repo-check", "--sandbox", sandbox];
    words.extend(["-c", setting.as_str(), "-c", "approval_policy=\"never\""]);
    if let Some(model) = ask.model {
        words.extend(["-m", model]);
    }
    if let Some(session) = ask.session {
        words.extend(["resume", session]);
    }
    words.push("-");
    let arguments = words.into_iter().map(Into::into).collect();
    Start { arguments, input: with_system(ask), ..Start::default() }
}

/// What its events come to: the last message of the agent, and what the whole session has taken, with
/// what was read from the cache within what was read.
pub fn printed(output: &str) -> Option<Printed> {
    let mut all = Printed::default();
    let mut is_any = false;
    // An error may be one that it has got over, unless the turn fails.
    let mut complaint = None;
    for event in events(output) {
        is_any = true;
        match text_at(&event, "/type").unwrap_or_default() {
            "thread.started" => all.session = text_at(&event, "/thread_id").map(str::to_owned),
            "item.completed" if text_at(&event, "/item/type") == Some("agent_message") => {
                text_at(&event, "/item/text").unwrap_or_default().clone_into(&mut all.text);
            }
            "turn.completed" => {
                all.of_session = Some(tokens(&event));
                (all.failure, complaint) = (None, None);
            }
            "turn.failed" => {
                let why = text_at(&event, "/error/message").or(complaint.as_deref());
                all.failure = Some(why.unwrap_or("its turn has failed").to_owned());
            }
            "error" => complaint = text_at(&event, "/message").map(str::to_owned),
            _ => {}
        }
    }
    all.failure = all.failure.or(complaint);
    is_any.then_some(all)
}

fn tokens(event: &Value) -> Tokens {
    let usage = |key: &str| count_at(event, &format!("/usage/{key}"));
    let cached = usage("cached_input_tokens");
    Tokens {
        input: usage("input_tokens").saturating_sub(cached),
        output: usage("output_tokens"),
        cache_read: cached,
        cache_write: 0,
    }
}
