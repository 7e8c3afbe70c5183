//! What is said of a program that has failed, or is not there, and what to do about it.

use std::{
    ffi::OsString,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::Printed;
use crate::{
    base::text::shorten,
    model::Preset,
    provider::{
        ProviderError,
        program::{Ended, Program},
    },
};

/// The longest complaint of a program that is told on, in characters.
const LONGEST_WHY: usize = 2_000;

/// Why a run has failed, and the mend; none where it has not.
pub fn failure(preset: Preset, printed: &Printed, ended: &Ended) -> Option<String> {
    let name = preset.as_str();
    let why = match &printed.failure {
        Some(why) => shorten(why.trim(), LONGEST_WHY),
        None if !ended.status.success() => format!("it ended with {}", ended.status),
        None if printed.text.trim().is_empty() => "it ended without an answer".to_owned(),
        None => return None,
    };
    let errors = below(&ended.errors);
    Some(format!("{name} has failed: {why}; {}{errors}", mend(preset, &why)))
}

/// What is said where a program has printed nothing that is known here.
pub fn no_answer(preset: Preset, ended: &Ended) -> ProviderError {
    let name = preset.as_str();
    let how = if ended.status.success() {
        "printed none of the JSON that it is asked for".to_owned()
    } else {
        format!("ended with {}", ended.status)
    };
    let seen = if ended.errors.is_empty() { &ended.output } else { &ended.errors };
    let mend = mend(preset, seen);
    ProviderError::Final(format!("{name} {how}; {mend}{}", below(seen)))
}

fn below(text: &str) -> String {
    let text = shorten(text.trim(), LONGEST_WHY);
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// Whether a program says that it does not know the session that it was to go on with. The words are
/// those of the three programs in their versions of the last year.
pub fn is_gone(ended: &Ended, printed: Option<&Printed>) -> bool {
    // A run that has taken something has worked: it is told of, and not done again.
    let has_worked =
        |it: &Printed| !it.tokens.is_nothing() || it.cost.is_some_and(|cost| !cost.is_nothing());
    if printed.is_some_and(has_worked) {
        return false;
    }
    let words = [
        "no conversation found",
        "no rollout found",
        "no saved session found",
        "session not found",
        "thread not found",
        "thread not loaded",
    ];
    let failure = printed.and_then(|it| it.failure.as_deref()).unwrap_or_default();
    // A run that has answered has had a session; its stderr may speak of others.
    let errors = if printed.is_some_and(|it| it.failure.is_none() && !it.text.is_empty()) {
        ""
    } else {
        ended.errors.as_str()
    };
    let said = format!("{failure}\n{errors}").to_lowercase();
    words.iter().any(|words| said.contains(words))
}

/// What to do about a failure.
fn mend(preset: Preset, why: &str) -> String {
    let (login, by_hand) = match preset {
        Preset::Claude => ("claude auth login", "claude -p hello"),
        Preset::Codex => ("codex login", "codex exec hello"),
        Preset::OpenCode => ("opencode auth login", "opencode run hello"),
    };
    let said = why.to_lowercase();
    let words = ["login", "log in", "api key", "api_key", "unauthorized", "authenticat", "401"];
    if words.iter().any(|word| said.contains(word)) {
        let key = preset.key_variable().map_or(String::new(), |it| format!(", or set {it}"));
        return format!("run `{login}` once by hand{key}");
    }
    format!("try `{by_hand}` in the workspace by hand")
}

/// Where the program of an agent program is, as it would be started.
pub fn is_there(program: &str, cwd: &Path, path: Option<&OsString>) -> bool {
    let is_program = |file: PathBuf| {
        file.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_program(cwd.join(program));
    }
    let folders = path.map(|it| std::env::split_paths(it).collect::<Vec<_>>()).unwrap_or_default();
    folders.into_iter().any(|folder| is_program(folder.join(program)))
}

/// Why a program can't be started because it is not there, and the mend.
pub fn not_there(preset: Preset, program: &Program) -> Option<String> {
    let name = program.name();
    if is_there(&name, &program.cwd, program.env.get(&OsString::from("PATH"))) {
        return None;
    }
    let whose = preset.as_str();
    let place = if name.contains('/') { "not there" } else { "not on PATH" };
    Some(format!(
        "the program {name} is {place}: install {whose}, or name its program in \"command\" of the \
         provider"
    ))
}
