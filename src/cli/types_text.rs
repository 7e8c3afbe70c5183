//! Types of agents as text: a line of a list, and everything about one.

use super::types::TypeView;
use crate::{
    base::text::headline,
    model::{PermissionMode, TOOL_NAMES},
};

/// How wide a line of the list is.
const WIDTH: usize = 120;
/// How much of a description a line shows at least.
const LEAST: usize = 24;

/// How wide the columns of the list are.
pub struct Width {
    name: usize,
    origin: usize,
}

/// The columns that hold all of `views`.
pub fn width_of(views: &[TypeView<'_>]) -> Width {
    let widest = |length: fn(&TypeView<'_>) -> usize| views.iter().map(length).max().unwrap_or(0);
    Width {
        name: widest(|it| it.name.len()),
        origin: widest(|it| headline(&it.origin, 40).chars().count()),
    }
}

/// A type's name in its column, and what stands behind it on its line.
pub fn line_of(it: &TypeView<'_>, width: &Width) -> (String, String) {
    let name = format!("{:1$}", it.name, width.name);
    let bearer = it.mode;
    let turns = format!("{:>3} {}", it.max_turns, if it.max_turns == 1 { "turn" } else { "turns" });
    let mode = mode_text(it);
    let tools = match it.tools.len() {
        count if count == TOOL_NAMES.len() => "all tools".to_owned(),
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    };
    let origin = format!("{:1$}", headline(&it.origin, 40), width.origin);
    let front = format!(" {bearer:8}  {turns:9}  {mode:12}  {tools:9}  {origin}");
    let left = WIDTH.saturating_sub(name.chars().count() + front.chars().count() + 3);
    let description = headline(it.description, left.max(LEAST));
    (name, format!("{front}  {description}").trim_end().to_owned())
}

fn mode_text(it: &TypeView<'_>) -> &'static str {
    it.permission_mode.map_or("the caller's", PermissionMode::as_str)
}

/// Everything about a type but its prompt, each under a title; what says nothing is left out.
pub fn text_of(it: &TypeView<'_>) -> Vec<(&'static str, String)> {
    let yes_no = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
    let stated = |text: Option<&str>| text.map_or_else(|| "the caller's".to_owned(), str::to_owned);
    let tools = if it.tools.is_empty() { "none".to_owned() } else { it.tools.join(" ") };
    let temperature = it.temperature.map(|it| it.to_string()).unwrap_or_default();
    let held = it.rights_held_by.map_or_else(String::new, |program| {
        format!("held by {program}, not by postroom; of the tools below its mode follows")
    });
    let all = [
        ("name        ", it.name.to_owned()),
        ("description ", it.description.to_owned()),
        ("origin      ", it.origin.clone()),
        ("borne by    ", bearer_text(it.mode).to_owned()),
        ("turns       ", it.max_turns.to_string()),
        ("mode        ", mode_text(it).to_owned()),
        ("fail closed ", yes_no(it.fail_closed)),
        ("nesting     ", yes_no(it.allow_nesting)),
        ("plan first  ", yes_no(it.plan_required)),
        ("provider    ", stated(it.provider)),
        ("rights      ", held),
        ("model       ", stated(it.model)),
        ("temperature ", temperature),
        ("tools       ", tools),
        ("to come     ", it.tools_to_come.join(" ")),
        ("confined to ", it.confined_to.join(", ")),
        ("disallowed  ", it.disallowed_tools.join(", ")),
        ("rules       ", it.rules.join("\n")),
        ("paths       ", it.paths.join("\n")),
        ("limits      ", limits_text(it)),
        ("reports     ", it.reports.join("\n")),
    ];
    let shown = all.into_iter().filter(|(_, text)| !text.is_empty());
    shown.map(|(title, text)| (title, below(title, &text))).collect()
}

/// The further lines of a text, below its first one.
fn below(title: &str, text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines.join(&format!("\n{:1$}", "", title.len() + 1))
}

fn bearer_text(mode: &str) -> &str {
    match mode {
        "primary" => "teammates alone (primary)",
        "subagent" => "subagents alone (subagent)",
        _ => "teammates and subagents (all)",
    }
}

fn limits_text(it: &TypeView<'_>) -> String {
    let size = it.max_file_size.map(|bytes| format!("files up to {bytes} bytes"));
    let time = it.timeout_seconds.map(|seconds| format!("{seconds} s for one piece of work"));
    let again = (it.max_retries > 0).then(|| format!("begun again {} times", it.max_retries));
    let limits: Vec<String> = [size, time, again].into_iter().flatten().collect();
    limits.join("\n")
}
