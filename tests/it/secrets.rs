//! A key that the daemon was given stands in no file and in no answer, whatever finds it.

use std::{fs, path::Path};

use crate::team::Team;

const KEY: &str = "sk-only-for-this-test-4711";

/// The files below `folder` that hold the key.
fn holders(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holders(&path));
        } else if String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(KEY) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn a_key_that_a_command_finds_is_told_to_nobody() {
    let mut team = Team::new(
        r#"{"permission_mode": "bypass", "teammates": {"lead": {}}, "providers":
            {"own": {"kind": "openai", "base_url": "http://127.0.0.1:1", "api_key_env": "MY_KEY"}}}"#,
    );
    team.set_env("ANTHROPIC_API_KEY", KEY);
    team.set_env("MY_KEY", &format!("{KEY}-mine"));
    let mut daemon = team.up();
    let asked = |line: &str| {
        let ended = team.run(&["send", "lead", line, "--wait"]);
        ended.out + &ended.err
    };
    assert!(!asked("run env").contains(KEY));
    // Root may look into any process; what it finds is taken out all the same.
    let found = asked("run cat /proc/$PPID/environ || echo refused");
    assert!(found.contains("=[key]") || found.contains("refused"), "{found}");
    let beside = "tool background_run {\"command\": \"cat /proc/$PPID/environ || true\"}";
    assert!(asked(beside).contains("command-"));
    team.until("the end of what ran beside", |team| {
        let mail = fs::read_to_string(team.at(".mailbox/lead.jsonl")).unwrap_or_default();
        mail.contains("\"msg_type\":\"event\"").then_some(())
    });
    assert!(!asked("tool background_check {}").contains(KEY));
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    // The output of a command is kept as it came, for whoever owns the folder.
    let found = holders(&team.at(".mailbox"));
    assert!(found.iter().all(|it| it.contains("/outputs/")), "{found:?}");
}
