//! Teammates whose work is done by agent programs: stand-ins on PATH take the same arguments and
//! print the same JSON. What they are started with and what they read lies in the folder.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use postroom::base::Clock;
use serde_json::{Value, json};

use crate::{
    plans::{decide, send, until_asked},
    team::Team,
};

/// Notes its arguments, but for the system prompt, and its input, and does what `act` says.
const STAND_IN: &str = r#"#!/bin/sh
line= skip=
for it in "$@"; do
  case "$skip$it" in
    -*system-prompt) skip=1 ;;
    1*) skip= ;;
    *) line="$line $it" ;;
  esac
done
cat > read.$POSTROOM_TEAMMATE
echo "$POSTROOM_TEAMMATE:$line" >> started
. ./act
"#;

/// A team in whose folder `program` stands for an agent program.
fn team_on(program: &str, json: &str) -> Team {
    let mut team = Team::new(json);
    fs::create_dir(team.at("bin")).unwrap();
    let file = team.at("bin").join(program);
    fs::write(&file, STAND_IN).unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", team.at("bin").display(), std::env::var("PATH").unwrap());
    team.set_env("PATH", &path);
    team
}

fn act(team: &Team, script: &str) {
    fs::write(team.at("act"), script).unwrap();
}

/// What Claude Code prints at its end.
fn claude_says(text: &str, session: &str) -> String {
    let result = json!({
        "type": "result", "subtype": "success", "is_error": false, "result": text,
        "session_id": session, "total_cost_usd": 0.25, "num_turns": 1,
        "usage": {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 100},
    });
    format!("cat <<'END'\n{result}\nEND\n")
}

/// What Codex prints at the end of a turn of a session that has taken so many tokens by then.
fn codex_says(text: &str, session: &str, taken: u64) -> String {
    let events = [
        json!({"type": "thread.started", "thread_id": session}),
        json!({"type": "item.completed", "item": {"type": "agent_message", "text": text}}),
        json!({"type": "turn.completed", "usage": {"input_tokens": taken,
            "cached_input_tokens": taken / 2, "output_tokens": taken / 10}}),
    ];
    let lines: Vec<String> = events.iter().map(|event| format!("{event}\n")).collect();
    format!("cat <<'END'\n{}END\n", lines.concat())
}

fn started(team: &Team) -> Vec<String> {
    let text = fs::read_to_string(team.at("started")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn read_by(team: &Team, name: &str) -> String {
    fs::read_to_string(team.at(&format!("read.{name}"))).unwrap()
}

const CLAUDE: &str = r#"{"provider": "mine", "providers": {"mine": {"preset": "claude"}},
    "teammates": {"lead": {}}}"#;

#[test]
fn a_session_goes_on_after_down_and_after_a_kill() {
    let team = team_on("claude", CLAUDE);
    act(&team, &claude_says("one", "s-1"));
    let mut daemon = team.up();
    assert_eq!(team.run(&["send", "lead", "the first", "--wait"]).ok(), "one\n");
    assert!(read_by(&team, "lead").contains("the first"));
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);

    let mut daemon = team.up();
    act(&team, &claude_says("two", "s-2"));
    assert_eq!(team.run(&["send", "lead", "the second", "--wait"]).ok(), "two\n");
    let read = read_by(&team, "lead");
    assert!(read.starts_with("<message id=") && read.contains("the second"), "{read}");
    assert!(!read.contains("the first"), "{read}");

    act(&team, "touch begun; setsid sleep 1000 & sleep 1000");
    send(&team, "lead", "third", "the third");
    team.until("the third run", |team| team.at("begun").exists().then_some(()));
    daemon.kill();
    act(&team, &claude_says("three", "s-2"));
    let _daemon = team.up();
    assert_eq!(team.until_answer_to("third")["content"], "three");
    assert_eq!(team.left_over(), 0);
    let plain = "lead: -p --output-format json --permission-mode default";
    let resumed = |session: &str| format!("{plain} --resume {session}");
    assert_eq!(started(&team), [plain.to_owned(), resumed("s-1"), resumed("s-2"), resumed("s-2")]);

    let costs = team.run(&["cost"]).ok();
    assert!(costs.contains("$0.7500 and unknown") && costs.contains("claude"), "{costs}");
    let row: Value = serde_json::from_str(&team.run(&["cost", "--json"]).ok()).unwrap();
    assert_eq!((&row["tokens_in"], &row["cached"]), (&json!(330), &json!(300)), "{row}");
}

#[test]
fn a_lost_session_is_told_everything_once() {
    let team = team_on("claude", CLAUDE);
    act(&team, &claude_says("one", "s-1"));
    let _daemon = team.up();
    assert_eq!(team.run(&["send", "lead", "the first", "--wait"]).ok(), "one\n");
    let gone = "case \"$*\" in *--resume*) echo 'No conversation found with session ID' >&2; exit 1;; esac\n";
    act(&team, &format!("{gone}{}", claude_says("two", "s-9")));
    assert_eq!(team.run(&["send", "lead", "the second", "--wait"]).ok(), "two\n");
    let read = read_by(&team, "lead");
    for part in ["the first", "(You answered:)\none", "the second"] {
        assert!(read.contains(part), "{read}");
    }
    assert_eq!(started(&team).len(), 3);
    let traces = fs::read_dir(team.at(".mailbox/traces")).unwrap().flatten();
    let traces: String = traces.map(|it| fs::read_to_string(it.path()).unwrap()).collect();
    assert!(traces.contains("the session s-1 is gone"), "{traces}");
}

#[test]
fn each_mode_is_that_of_the_program_and_tokens_of_a_session_count_once() {
    let team = team_on(
        "codex",
        r#"{"provider": "codex", "providers": {"codex": {"preset": "codex", "model": "gpt-9"}},
            "teammates": {"plan": {"permission_mode": "plan"}, "ask": {}, "look": {"type": "explore",
              "permission_mode": "plan"}, "auto": {"permission_mode": "auto"},
              "free": {"permission_mode": "bypass"}, "noshell": {"permission_mode": "bypass",
              "type": "editor"}, "careful": {"permission_mode": "bypass", "plan_required": true}},
            "agents": {"editor": {"tools": ["read_file", "write_file", "edit_file"]}}}"#,
    );
    act(&team, &codex_says("done", "t-1", 100));
    let _daemon = team.up();
    let modes = [
        ("plan", "read-only"),
        ("ask", "read-only"),
        ("look", "read-only"),
        ("careful", "read-only"),
        ("auto", "workspace-write"),
        ("noshell", "workspace-write"),
        ("free", "danger-full-access"),
    ];
    for (name, sandbox) in modes {
        assert_eq!(team.run(&["send", name, "go", "--wait"]).ok(), "done\n");
        let line = started(&team).pop().unwrap();
        assert!(line.starts_with(&format!("{name}: exec --json ")), "{line}");
        assert!(
            line.contains(&format!("--sandbox {sandbox} -c sandbox_mode=\"{sandbox}\"")),
            "{line}"
        );
        assert!(line.ends_with(" -m gpt-9 -"), "{line}");
        assert!(read_by(&team, name).starts_with(&format!("You are {name}, a teammate")));
    }
    act(&team, &codex_says("more", "t-1", 150));
    assert_eq!(team.run(&["send", "free", "go on", "--wait"]).ok(), "more\n");
    assert!(started(&team).pop().unwrap().ends_with(" -m gpt-9 resume t-1 -"));
    let row: Value = serde_json::from_str(&team.run(&["cost", "free", "--json"]).ok()).unwrap();
    let seen = [&row["tokens_in"], &row["tokens_out"], &row["cached"], &row["cost_usd"]];
    assert_eq!(seen, [&json!(150), &json!(15), &json!(75), &Value::Null], "{row}");
    // A task for a stricter type is done in its mode.
    let id =
        team.run(&["task", "add", "look", "--assignee", "free", "--agent-type", "explore"]).ok();
    team.run(&["wait", "--task", id.trim()]).ok();
    assert!(
        started(&team)
            .pop()
            .unwrap()
            .contains("free: exec --json --skip-git-repo-check --sandbox read-only")
    );
}

#[test]
fn a_subagent_may_be_a_program_with_a_session_of_its_own() {
    let team = team_on(
        "claude",
        r#"{"providers": {"mine": {"preset": "claude"}}, "permission_mode": "auto",
            "agents": {"coder": {"provider": "mine", "model": "opus"}},
            "teammates": {"lead": {}}}"#,
    );
    act(&team, &claude_says("coded", "s-1"));
    let _daemon = team.up();
    for _ in 0..2 {
        let said = team.run(&["send", "lead", "delegate coder: code it", "--wait"]).ok();
        assert!(said.starts_with("coded"), "{said}");
        let line = started(&team).pop().unwrap();
        let wanted = "lead: -p --output-format json --permission-mode acceptEdits --model opus";
        assert_eq!(line, wanted);
    }
}

#[test]
fn a_plan_is_approved_before_the_program_may_change_anything() {
    let team = team_on(
        "claude",
        r#"{"provider": "mine", "providers": {"mine": {"preset": "claude"}},
            "teammates": {"lead": {"plan_required": true, "permission_mode": "auto"}}}"#,
    );
    act(&team, &claude_says("PLAN\nwrite the file", "s-1"));
    let _daemon = team.up();
    send(&team, "lead", "m", "change it");
    let question = until_asked(&team, "lead", 1);
    act(&team, &claude_says("changed", "s-1"));
    decide(&team, "lead", "user", "d", &question, true);
    assert_eq!(team.until_answer_to("m")["content"], "changed");
    let read = read_by(&team, "lead");
    assert!(read.starts_with("(What came of it:)") && read.contains("approved"), "{read}");
    let modes: Vec<String> = started(&team);
    assert!(modes[0].contains("--permission-mode plan"), "{modes:?}");
    assert!(modes[1].contains("--permission-mode acceptEdits --resume s-1"), "{modes:?}");
}

#[test]
fn what_fails_says_why_and_what_to_do() {
    let team = team_on("claude", CLAUDE);
    act(&team, "echo 'Invalid API key' >&2; exit 1");
    let _daemon = team.up();
    let said = team.run(&["send", "lead", "go", "--wait"]).exits(1).out;
    assert!(said.contains("claude ended with exit status: 1; run `claude auth login`"), "{said}");
    act(&team, "echo hello");
    let said = team.run(&["send", "lead", "go", "--wait"]).exits(1).out;
    assert!(said.contains("none of the JSON") && said.contains("hello"), "{said}");
    fs::remove_file(team.at("bin/claude")).unwrap();
    if crate::team::has_program("claude") {
        return;
    }
    let said = team.run(&["send", "lead", "go", "--wait"]).exits(1).out;
    assert!(said.contains("the program claude is not on PATH: install claude"), "{said}");
}

#[test]
fn a_program_that_is_missing_is_said_by_up_and_check() {
    let mut team = Team::new(
        r#"{"provider": "mine", "providers": {"mine": {"preset": "codex", "command": "no-such"}},
            "rules": {"deny": ["bash(git push:*)"]}, "teammates": {"lead": {}}}"#,
    );
    let why = team.try_up().err().unwrap();
    let wanted = "lead has nobody to think for it: provider mine: the program no-such is not on PATH: \
                  install codex, or name its program in \"command\" of the provider";
    assert!(why.contains(wanted), "{why}");
    let checked = team.run(&["check"]).exits(0).err;
    for part in [
        "lead: rights held by codex, not by postroom; rules and paths can't be told it",
        "provider mine: the program no-such is not there",
    ] {
        assert!(checked.contains(part), "{checked}");
    }
    team.set_env("X", "");
    fs::write(
        team.at("teams/team.json"),
        r#"{"providers": {"a": {"preset": "cloud"}, "b": {"kind": "openai", "preset": "codex"},
            "c": {"preset": "codex", "io": "text"}, "d": {"kind": "command"}},
            "teammates": {"lead": {}}}"#,
    )
    .unwrap();
    let faults = team.run(&["check"]).exits(2).err;
    for part in [
        "claude, codex and opencode",
        "\"preset\" belongs to a provider of kind command",
        "leave out \"io\"",
        "or a \"preset\"",
    ] {
        assert!(faults.contains(part), "{part}: {faults}");
    }
}

#[test]
fn people_are_told_whose_rights_they_are() {
    let team = team_on("claude", CLAUDE);
    act(&team, &claude_says("one", "s-1"));
    let held = "rights held by claude, not by postroom";
    assert!(team.run(&["check"]).exits(0).err.contains(held));
    let shown = team.run(&["types", "explore"]).ok();
    assert!(shown.contains("held by claude, not by postroom"), "{shown}");
    let told = team.run(&["types", "--prompt", "lead"]).ok();
    assert!(told.contains("What you may do is judged by claude, in its mode for default."));
    let daemon = team.up();
    assert!(daemon.said.contains(held), "{}", daemon.said);
    let status = team.run(&["status"]).ok();
    assert!(status.contains(held), "{status}");
}

#[test]
fn the_deadline_ends_all_that_it_started() {
    let team = team_on("claude", &CLAUDE.replace("\"claude\"}", "\"claude\", \"timeout_s\": 1}"));
    act(&team, "setsid sleep 1000 & sleep 1000");
    let _daemon = team.up();
    let said = team.run(&["send", "lead", "go", "--wait"]).exits(1).out;
    assert!(said.contains("claude timed out after 1 s and was killed"), "{said}");
    assert_eq!(team.left_over(), 0);
}

#[test]
fn down_does_not_wait_for_it() {
    let team = team_on("claude", CLAUDE);
    act(&team, "touch begun; trap '' TERM; setsid sleep 1000 & sleep 1000");
    let mut daemon = team.up();
    send(&team, "lead", "m", "go");
    team.until("the run", |team| team.at("begun").exists().then_some(()));
    let clock = Clock::real();
    let begun = clock.now();
    team.run(&["down"]).ok();
    assert_eq!(daemon.wait(), 0);
    assert!(clock.now().since(begun) < Duration::from_secs(2));
    assert_eq!(team.left_over(), 0);
}

#[test]
fn it_gets_its_own_key_and_no_other() {
    let mut team = team_on("claude", CLAUDE);
    team.set_env("ANTHROPIC_API_KEY", "sk-a");
    team.set_env("OPENAI_API_KEY", "sk-o");
    team.set_env("OTHER_SECRET", "sk-x");
    act(&team, &format!("env > env; {}", claude_says("one", "s-1")));
    let daemon = team.up();
    team.run(&["send", "lead", "go", "--wait"]).ok();
    let env = fs::read_to_string(team.at("env")).unwrap();
    assert!(env.contains("ANTHROPIC_API_KEY=sk-a") && env.contains("POSTROOM_TEAMMATE=lead"));
    assert!(env.contains("HOME=") && !env.contains("sk-o") && !env.contains("sk-x"), "{env}");
    drop(daemon);
    let named = "\"claude\", \"api_key_env\": \"OTHER_SECRET\"}";
    fs::write(team.at("teams/team.json"), CLAUDE.replace("\"claude\"}", named)).unwrap();
    let _daemon = team.up();
    team.run(&["send", "lead", "go", "--wait"]).ok();
    let env = fs::read_to_string(team.at("env")).unwrap();
    assert!(env.contains("ANTHROPIC_API_KEY=sk-x") && !env.contains("sk-a"), "{env}");
}

#[test]
fn a_budget_in_dollars_counts_what_the_program_says() {
    let team = team_on(
        "claude",
        &CLAUDE.replace(
            "\"lead\": {}",
            "\"lead\": {\"budget\": {\"max_cost_usd\": 0.3, \"per\": \"life\"}}",
        ),
    );
    act(&team, &claude_says("one", "s-1"));
    let _daemon = team.up();
    let ask = || team.run(&["send", "lead", "go", "--wait"]);
    assert_eq!([ask().ok(), ask().ok()], ["one\n", "one\n"]);
    let refused = ask().exits(1).out;
    assert!(refused.contains("the budget of lead is used up"), "{refused}");
    assert_eq!(started(&team).len(), 2);
}

#[test]
fn opencode_reads_the_prompt_and_its_steps_are_summed_up() {
    let team = team_on(
        "opencode",
        r#"{"provider": "oc", "providers": {"oc": {"preset": "opencode"}}, "teammates": {"lead": {}}}"#,
    );
    let part = json!({"cost": 0.5, "tokens": {"input": 7, "output": 3}});
    let event = |kind: &str, part: Value| {
        json!({"type": kind, "sessionID": "ses_1", "part": part}).to_string()
    };
    let lines = [
        event("text", json!({"text": "all good"})),
        event("step_finish", part),
        "# no JSON".to_owned(),
    ];
    act(&team, &format!("cat <<'END'\n{}\nEND\n", lines.join("\n")));
    let _daemon = team.up();
    for again in ["", " -s ses_1"] {
        assert_eq!(team.run(&["send", "lead", "go", "--wait"]).ok(), "all good\n");
        let line = started(&team).pop().unwrap();
        assert_eq!(line, format!("lead: run --format json --agent plan{again}"));
    }
    assert!(team.run(&["cost"]).ok().contains("$1.0000"));
}
