//! The places that no tool may write, and those that no file tool may read, in any mode.
//!
//! Pure: it looks at the path of an opened object, relative to the workspace, and at no file.
//! Letters are compared without case, since some file systems do so too.

use std::path::{Component, Path};

/// What in a `.git` folder makes git run programs or look elsewhere.
const GIT: [&str; 6] = ["hooks", "config", "config.worktree", "info", "commondir", "gitdir"];

/// Why `path` must not be written; `None` where it may be.
pub fn kept_from_writing(path: &Path) -> Option<&'static str> {
    match names(path).first().map(String::as_str) {
        Some(".mailbox") => {
            return Some("the mailbox folder is written by the daemon and by appending messages");
        }
        Some("teams") => return Some("team and agent files say what agents may do"),
        Some(
            ".claude" | ".codex" | ".opencode" | ".mcp.json" | "opencode.json" | "opencode.jsonc",
        ) => {
            return Some("settings there say what agents, and agent programs, may do and run");
        }
        Some(_) | None => {}
    }
    steers_git(path).then_some("git runs what it is told there")
}

/// Why a file tool must not read `path`; `None` where it may.
///
/// Whole outputs of commands lie in the mailbox folder too, and are named to the model that shall
/// read on there, so they are open.
pub fn kept_from_reading(path: &Path) -> Option<&'static str> {
    let names = names(path);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match names.as_slice() {
        [".mailbox", "state", "outputs", ..] => None,
        [".mailbox", ..] => Some("the mailbox folder holds keys and other people's mail"),
        _ => None,
    }
}

/// Whether `path` is a repository's link to its folder, or something in that folder that steers
/// git: of the repository itself, or of one of its submodules and worktrees.
fn steers_git(path: &Path) -> bool {
    let names = names(path);
    let Some(git) = names.iter().position(|name| name == ".git") else { return false };
    let inside = names.get(git + 1..).unwrap_or_default();
    inside.is_empty() || inside.iter().any(|name| GIT.contains(&name.as_str()))
}

fn names(path: &Path) -> Vec<String> {
    let normal = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().to_ascii_lowercase()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            None
        }
    });
    normal.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_agents_or_git_is_never_written() {
        let kept = [
            ".mailbox",
            ".mailbox/lead.jsonl",
            ".MAILBOX/lead.jsonl",
            "./.mailbox/lead.jsonl",
            ".git",
            ".git/hooks/pre-commit",
            ".git/config",
            ".git/info/attributes",
            ".git/modules/lib/hooks/post-checkout",
            ".git/modules/lib/config",
            ".git/worktrees/one/config.worktree",
            "vendor/sub/.git",
            "vendor/sub/.git/config",
            "teams/dev.json",
            "teams/agents/coder.md",
            ".claude/settings.json",
            ".claude/agents/coder.md",
        ];
        for path in kept {
            assert!(kept_from_writing(Path::new(path)).is_some(), "{path}");
        }
        let free = [
            "",
            "a",
            ".gitignore",
            "src/.mailbox",
            "src/teams/a.rs",
            "hooks/config",
            ".git/description",
            "AGENTS.md",
            "CLAUDE.md",
        ];
        for path in free {
            assert_eq!(kept_from_writing(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn mail_and_keys_are_never_read() {
        for path in [".mailbox", ".mailbox/lead.jsonl", ".mailbox/state", ".mailbox/state/key"] {
            assert!(kept_from_reading(Path::new(path)).is_some(), "{path}");
        }
        for path in [".", "src", ".git/config", "teams/dev.json", ".mailbox/state/outputs/c1.txt"] {
            assert_eq!(kept_from_reading(Path::new(path)), None, "{path}");
        }
    }
}
