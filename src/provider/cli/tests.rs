//! How the programs are started, what their outputs come to, and a stand-in that is really run.

use std::fmt::Write;

use expect_test::expect;

use super::*;
use crate::{
    base::{Clock, hash::random_id, left_overs::Mark},
    model::{AgentName, CallId, Kind, Mail, MessageId, Protocol, ToolResult, ToolSpec},
};

fn mail(id: &str, protocol: Option<Protocol>, text: &str) -> Turn {
    let (id, from) = (MessageId::new(id).unwrap(), AgentName::named("lead"));
    Turn::Mail(Mail { id, from, kind: Kind::Request, protocol, text: text.to_owned(), hops: 0 })
}

fn said(text: &str, vendor: Option<Value>) -> Turn {
    Turn::Model {
        text: text.to_owned(),
        calls: Vec::new(),
        status: Status::Ok,
        decision: None,
        tokens: Tokens::default(),
        vendor,
    }
}

fn request<'a>(turns: &'a [Turn], tools: &'a [ToolSpec]) -> Request<'a> {
    let in_hand = turns.len().saturating_sub(1);
    Request {
        system: "You are x.",
        turns,
        in_hand,
        tools,
        told: &|_| {},
        may_be_again: false,
        mode: PermissionMode::Plan,
    }
}

fn plan_tool() -> ToolSpec {
    let schema = json!({ "type": "object" });
    ToolSpec { name: "submit_plan", description: "Asks.".into(), schema }
}

/// A stand-in of `preset` that is a shell script.
fn cli(preset: Preset, script: &str) -> Cli {
    let path = std::env::var_os("PATH").unwrap();
    let program = Program {
        argv: ["sh", "-c", script, "-"].map(OsString::from).to_vec(),
        cwd: std::env::temp_dir(),
        env: [("PATH".into(), path)].into(),
        timeout: std::time::Duration::from_secs(20),
        folder: std::env::temp_dir().join(random_id()),
        clock: Clock::real(),
    };
    Cli::new(preset, None, program)
}

fn ask(preset: Preset, script: &str, turns: &[Turn]) -> String {
    let tools = [plan_tool()];
    shown(cli(preset, script).complete(&request(turns, &tools), &Cancel::default()))
}

fn shown(reply: Result<Reply, ProviderError>) -> String {
    match reply {
        Ok(Reply { text, calls, status, decision, tokens, cost, vendor }) => {
            let calls: Vec<_> =
                calls.iter().map(|it| format!("{} {}", it.tool, it.input)).collect();
            let tokens = [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write];
            let cost = cost.map_or("unknown".to_owned(), |it| it.exact());
            let vendor = vendor.unwrap_or_default();
            format!("{status:?} {text:?} {calls:?} {decision:?} {tokens:?} ${cost} {vendor}")
        }
        Err(why) => format!("error: {why}"),
    }
}

#[test]
fn each_mode_is_said_in_the_programs_own_words() {
    let mut table = String::new();
    for (_, preset) in Preset::WORDS {
        for mode in PermissionMode::ALL {
            let news = "<news>";
            let ask = Ask { mode, model: None, session: None, system: "<system>", news };
            let Start { arguments, env, input } = start(*preset, &ask);
            let arguments = arguments.join(OsString::from(" ").as_os_str());
            let _ = writeln!(table, "{preset:?} {mode}: {}", arguments.to_string_lossy());
            for (name, value) in env {
                let _ = writeln!(table, "  {}={}", name.display(), value.display());
            }
            if mode == PermissionMode::Plan {
                let _ = writeln!(table, "  reads {input:?}");
            }
        }
        let ask = Ask {
            mode: PermissionMode::Default,
            model: Some("m"),
            session: Some("s-1"),
            system: "<system>",
            news: "<news>",
        };
        let Start { arguments, input, .. } = start(*preset, &ask);
        let arguments = arguments.join(OsString::from(" ").as_os_str());
        let _ = writeln!(table, "{preset:?} again: {}", arguments.to_string_lossy());
        let _ = writeln!(table, "  reads {input:?}");
    }
    expect![[r#"
        Claude plan: -p --output-format json --permission-mode plan --append-system-prompt <system>
          reads "<news>"
        Claude default: -p --output-format json --permission-mode default --append-system-prompt <system>
        Claude auto: -p --output-format json --permission-mode acceptEdits --append-system-prompt <system>
        Claude bypass: -p --output-format json --permission-mode bypassPermissions --append-system-prompt <system>
        Claude again: -p --output-format json --permission-mode default --resume s-1 --model m --append-system-prompt <system>
          reads "<news>"
        Codex plan: exec --json --skip-git-repo-check --sandbox read-only -c sandbox_mode="read-only" -c approval_policy="never" -
          reads "<system>\n\n<news>"
        Codex default: exec --json --skip-git-repo-check --sandbox read-only -c sandbox_mode="read-only" -c approval_policy="never" -
        Codex auto: exec --json --skip-git-repo-check --sandbox workspace-write -c sandbox_mode="workspace-write" -c approval_policy="never" -
        Codex bypass: exec --json --skip-git-repo-check --sandbox danger-full-access -c sandbox_mode="danger-full-access" -c approval_policy="never" -
        Codex again: exec --json --skip-git-repo-check --sandbox read-only -c sandbox_mode="read-only" -c approval_policy="never" -m m resume s-1 -
          reads "<news>"
        OpenCode plan: run --format json --agent plan
          OPENCODE_PERMISSION={"*":"deny","bash":"deny","edit":"deny","external_directory":"deny","glob":"allow","grep":"allow","list":"allow","read":"allow","todoread":"allow","todowrite":"allow"}
          reads "<system>\n\n<news>"
        OpenCode default: run --format json --agent plan
          OPENCODE_PERMISSION={"*":"deny","bash":"deny","edit":"deny","external_directory":"deny","glob":"allow","grep":"allow","list":"allow","read":"allow","todoread":"allow","todowrite":"allow"}
        OpenCode auto: run --format json --agent build
          OPENCODE_PERMISSION={"*":"deny","bash":"deny","edit":"allow","external_directory":"deny","glob":"allow","grep":"allow","list":"allow","read":"allow","todoread":"allow","todowrite":"allow"}
        OpenCode bypass: run --format json --agent build --auto
        OpenCode again: run --format json --agent plan -s s-1 -m m
          reads "<news>"
    "#]].assert_eq(&table);
}

#[test]
fn a_long_system_prompt_is_read_from_standard_input() {
    let system = "x".repeat(LONGEST_ARGUMENT + 1);
    let mode = PermissionMode::Plan;
    let ask = Ask { mode, model: None, session: None, system: &system, news: "<news>" };
    let Start { arguments, input, .. } = start(Preset::Claude, &ask);
    assert!(arguments.iter().all(|it| it.len() < 100) && input.starts_with("xxx"));
}

const CLAUDE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"done",
    "session_id":"s-1","total_cost_usd":0.15095600000000003,"num_turns":2,"later":{"x":1},
    "usage":{"input_tokens":10,"output_tokens":20,"cache_creation_input_tokens":30,
    "cache_read_input_tokens":40},"permission_denials":[{"tool_name":"Bash"}]}"#;

#[test]
fn what_claude_prints_is_understood() {
    let mut table = String::new();
    let list = format!(r#"[{{"type":"system","session_id":"s-0"}}, {CLAUDE}]"#);
    for output in [
        CLAUDE,
        &list,
        r#"{"type":"result","subtype":"error_max_turns","is_error":false,"session_id":"s-1","total_cost_usd":1}"#,
        r#"{"type":"result","subtype":"success","is_error":true,"result":"Invalid API key · Please run /login","session_id":"s-1","total_cost_usd":0}"#,
        r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: s-1"]}"#,
        "{}",
        "[]",
        "hello",
        "",
    ] {
        let _ = writeln!(table, "{:?}", claude::printed(output));
    }
    expect![[r#"
        Some(Printed { text: "done", session: Some("s-1"), failure: None, tokens: Tokens { input: 10, output: 20, cache_read: 40, cache_write: 30 }, of_session: None, cost: Some(Cost(150956000000)), refused: Some("claude was not let use: Bash") })
        Some(Printed { text: "done", session: Some("s-1"), failure: None, tokens: Tokens { input: 10, output: 20, cache_read: 40, cache_write: 30 }, of_session: None, cost: Some(Cost(150956000000)), refused: Some("claude was not let use: Bash") })
        Some(Printed { text: "", session: Some("s-1"), failure: Some("error max turns"), tokens: Tokens { input: 0, output: 0, cache_read: 0, cache_write: 0 }, of_session: None, cost: Some(Cost(1000000000000)), refused: None })
        Some(Printed { text: "Invalid API key · Please run /login", session: Some("s-1"), failure: Some("Invalid API key · Please run /login"), tokens: Tokens { input: 0, output: 0, cache_read: 0, cache_write: 0 }, of_session: None, cost: Some(Cost(0)), refused: None })
        Some(Printed { text: "", session: None, failure: Some("No conversation found with session ID: s-1"), tokens: Tokens { input: 0, output: 0, cache_read: 0, cache_write: 0 }, of_session: None, cost: None, refused: None })
        None
        None
        None
        None
    "#]].assert_eq(&table);
}

const CODEX: &str = r#"{"type":"thread.started","thread_id":"t-1"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"i0","type":"agent_message","text":"I look."}}
{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"ls"}}
{"type":"error","message":"Reconnecting... 1/5"}
{"type":"item.completed","item":{"id":"i2","type":"agent_message","text":"done"}}
{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":60,"output_tokens":20}}
"#;

#[test]
fn what_codex_prints_is_understood() {
    let mut table = String::new();
    for output in [
        CODEX,
        "{\"type\":\"thread.started\",\"thread_id\":\"t-1\"}\n{\"type\":\"error\",\"message\":\"quota\"}\n{\"type\":\"turn.failed\",\"error\":{\"message\":\"usage limit\"}}",
        "{\"type\":\"error\",\"message\":\"stream closed\"}",
        "not JSON\n[1]\n",
    ] {
        let _ = writeln!(table, "{:?}", codex::printed(output));
    }
    expect![[r#"
        Some(Printed { text: "done", session: Some("t-1"), failure: None, tokens: Tokens { input: 0, output: 0, cache_read: 0, cache_write: 0 }, of_session: Some(Tokens { input: 40, output: 20, cache_read: 60, cache_write: 0 }), cost: None, refused: None })
        Some(Printed { text: "", session: Some("t-1"), failure: Some("usage limit"), tokens: Tokens { input: 0, output: 0, cache_read: 0, cache_write: 0 }, of_session: None, cost: None, refused: None })
        Some(Printed { text: "", session: None, failure: Some("stream closed"), tokens: Tokens { input: 0, output: 0, cache_read: 0, cache_write: 0 }, of_session: None, cost: None, refused: None })
        None
    "#]].assert_eq(&table);
}

const OPENCODE: &str = r#"{"type":"step_start","sessionID":"ses_1","part":{}}
{"type":"text","sessionID":"ses_1","part":{"text":"I look."}}
{"type":"tool_use","sessionID":"ses_1","part":{"tool":"read"}}
{"type":"step_finish","sessionID":"ses_1","part":{"cost":0.25,"tokens":{"input":1,"output":2,"reasoning":3,"cache":{"read":4,"write":5}}}}
{"type":"step_start","sessionID":"ses_1","part":{}}
{"type":"text","sessionID":"ses_1","part":{"text":"do"}}
{"type":"text","sessionID":"ses_1","part":{"text":"ne"}}
{"type":"step_finish","sessionID":"ses_1","part":{"cost":0.5,"tokens":{"input":10,"output":20}}}
{"type":"done","sessionID":"ses_1","reason":"idle"}
"#;

#[test]
fn what_opencode_prints_is_understood() {
    let mut table = String::new();
    let free = OPENCODE.replace("0.25", "0").replace("0.5", "0");
    for output in [
        OPENCODE,
        &free,
        r#"{"type":"error","sessionID":"ses_1","error":{"name":"APIError","data":{"message":"no credit"}}}"#,
        r#"{"type":"error","error":{"name":"Unknown"}}"#,
        "",
    ] {
        let _ = writeln!(table, "{:?}", opencode::printed(output));
    }
    expect![[r#"
        Some(Printed { text: "do\nne", session: Some("ses_1"), failure: None, tokens: Tokens { input: 11, output: 25, cache_read: 4, cache_write: 5 }, of_session: None, cost: Some(Cost(750000000000)), refused: None })
        Some(Printed { text: "do\nne", session: Some("ses_1"), failure: None, tokens: Tokens { input: 11, output: 25, cache_read: 4, cache_write: 5 }, of_session: None, cost: None, refused: None })
        Some(Printed { text: "", session: Some("ses_1"), failure: Some("no credit"), tokens: Tokens { input: 0, output: 0, cache_read: 0, cache_write: 0 }, of_session: None, cost: None, refused: None })
        Some(Printed { text: "", session: None, failure: Some("Unknown"), tokens: Tokens { input: 0, output: 0, cache_read: 0, cache_write: 0 }, of_session: None, cost: None, refused: None })
        None
    "#]].assert_eq(&table);
}

#[test]
fn a_session_is_told_what_is_new_and_counts_what_is_new() {
    let kept = json!({ "codex": { "session": "t-1", "of_session":
        { "input": 30, "output": 15, "cache_read": 60 } } });
    let turns = [
        mail("m1", None, "first"),
        said("one", Some(kept)),
        said("", None),
        mail("m2", None, "second"),
    ];
    let script = format!(
        r#"cat >&2; case "$*" in *"resume t-1"*) ;; *) exit 9 ;; esac; cat <<'E'
{CODEX}E"#
    );
    expect![[r#"Ok "done" [] None [10, 5, 0, 0] $unknown {"codex":{"of_session":{"cache_read":60,"input":40,"output":20},"session":"t-1"},"command":{"stderr":"<message id=\"m2\" from=\"lead\" kind=\"request\" end=\"vzun51a34r1u\">\nsecond\n</message vzun51a34r1u>"}}"#]].assert_eq(&ask(Preset::Codex, &script, &turns));
}

#[test]
fn a_lost_session_is_begun_anew_once_with_all_that_was_said() {
    let kept = json!({ "claude": { "session": "s-0" } });
    let turns = [mail("m1", None, "first"), said("one", Some(kept)), mail("m2", None, "second")];
    let script = format!(
        r#"case "$*" in *--resume*) echo "No conversation found with session ID: s-0" >&2; exit 1;; esac
           cat >&2; echo '{}'"#,
        CLAUDE.replace('\n', "")
    );
    expect![[r#"Ok "done" [] None [10, 20, 40, 30] $0.150956 {"claude":{"of_session":null,"session":"s-1"},"command":{"stderr":"the session s-0 is gone; a new one was told the whole conversation\n<message id=\"m1\" from=\"lead\" kind=\"request\" end=\"h9liu0mwmawd\">\nfirst\n</message h9liu0mwmawd>\n\n(You answered:)\none\n\n<message id=\"m2\" from=\"lead\" kind=\"request\" end=\"vzun51a34r1u\">\nsecond\n</message vzun51a34r1u>\nclaude was not let use: Bash"}}"#]].assert_eq(&ask(Preset::Claude, &script, &turns));
    let kept = json!({ "opencode": { "session": "ses_0" } });
    let turns = [said("one", Some(kept)), mail("m2", None, "second")];
    let script = format!(
        "case \"$*\" in *ses_0*) echo 'Session not found: ses_0' >&2; exit 0;; esac; cat <<'E'\n{OPENCODE}E"
    );
    expect![[r#"Ok "do\nne" [] None [11, 25, 4, 5] $0.75 {"command":{"stderr":"the session ses_0 is gone; a new one was told the whole conversation"},"opencode":{"of_session":null,"session":"ses_1"}}"#]].assert_eq(&ask(Preset::OpenCode, &script, &turns));
    let script = "echo 'no rollout found for thread id t-0' >&2; exit 1";
    let kept = json!({ "codex": { "session": "t-0" } });
    expect![[r#"
        error: codex ended with exit status: 1; try `codex exec hello` in the workspace by hand
        no rollout found for thread id t-0"#]]
    .assert_eq(&ask(Preset::Codex, script, &[said("", Some(kept))]));
}

#[test]
fn a_failure_says_what_to_do() {
    let turns = [mail("m1", None, "go")];
    let mut table = String::new();
    for (preset, script) in [
        (Preset::Claude, "echo oops >&2; exit 3"),
        (Preset::Claude, "echo hello"),
        (
            Preset::Claude,
            r#"echo '{"is_error":true,"result":"Please run /login","session_id":"s"}'; exit 1"#,
        ),
        (Preset::Claude, r#"echo '{"is_error":false,"result":"","session_id":"s"}'"#),
        (Preset::Codex, "echo 'error: unexpected argument' >&2; exit 2"),
        (Preset::Codex, r#"echo '{"type":"turn.failed","error":{"message":"401 Unauthorized"}}'"#),
        (Preset::OpenCode, "true"),
        (Preset::OpenCode, r#"echo '{"type":"text","sessionID":"s","part":{"text":"x"}}'; exit 1"#),
    ] {
        let _ = writeln!(table, "{}", ask(preset, script, &turns));
    }
    let mut gone = cli(Preset::Codex, "");
    gone.program.argv = vec!["no-such-codex".into()];
    let _ = writeln!(table, "{}", shown(gone.complete(&request(&turns, &[]), &Cancel::default())));
    expect![[r#"
        error: claude ended with exit status: 3; try `claude -p hello` in the workspace by hand
        oops
        error: claude printed none of the JSON that it is asked for; try `claude -p hello` in the workspace by hand
        hello
        Failed "claude has failed: Please run /login; run `claude auth login` once by hand, or set ANTHROPIC_API_KEY" [] None [0, 0, 0, 0] $unknown {"claude":{"of_session":null,"session":"s"}}
        Failed "claude has failed: it ended without an answer; try `claude -p hello` in the workspace by hand" [] None [0, 0, 0, 0] $unknown {"claude":{"of_session":null,"session":"s"}}
        error: codex ended with exit status: 2; try `codex exec hello` in the workspace by hand
        error: unexpected argument
        Failed "codex has failed: 401 Unauthorized; run `codex login` once by hand, or set CODEX_API_KEY" [] None [0, 0, 0, 0] $unknown {"codex":{"of_session":null,"session":null}}
        error: opencode printed none of the JSON that it is asked for; try `opencode run hello` in the workspace by hand
        Failed "opencode has failed: it ended with exit status: 1; try `opencode run hello` in the workspace by hand" [] None [0, 0, 0, 0] $unknown {"opencode":{"of_session":null,"session":"s"}}
        error: the program no-such-codex is not on PATH: install codex, or name its program in "command" of the provider
    "#]].assert_eq(&table);
}

#[test]
fn a_plan_and_a_verdict_are_said_by_the_first_line() {
    let answering = |text: &str| {
        let printed = json!({ "result": text, "session_id": "s" });
        format!("cat <<'E'\n{printed}\nE")
    };
    let mut table = String::new();
    let work = [mail("m1", None, "change it")];
    let question = [mail("m2", Some(Protocol::PlanApproval), "may I?")];
    for (turns, text) in [
        (&work, "PLAN\n1. edit\n2. test"),
        (&work, "PLAN"),
        (&work, "The PLAN\nis"),
        (&work, "APPROVE"),
        (&question, "APPROVE\nfine"),
        (&question, "REJECT\ntoo much"),
        (&question, "approved"),
    ] {
        let _ = writeln!(table, "{}", ask(Preset::Claude, &answering(text), turns));
    }
    expect![[r#"
        Ok "" ["submit_plan {\"plan\":\"1. edit\\n2. test\"}"] None [0, 0, 0, 0] $unknown {"claude":{"of_session":null,"session":"s"}}
        Ok "PLAN" [] None [0, 0, 0, 0] $unknown {"claude":{"of_session":null,"session":"s"}}
        Ok "The PLAN\nis" [] None [0, 0, 0, 0] $unknown {"claude":{"of_session":null,"session":"s"}}
        Ok "APPROVE" [] None [0, 0, 0, 0] $unknown {"claude":{"of_session":null,"session":"s"}}
        Ok "APPROVE\nfine" [] Some(true) [0, 0, 0, 0] $unknown {"claude":{"of_session":null,"session":"s"}}
        Ok "REJECT\ntoo much" [] Some(false) [0, 0, 0, 0] $unknown {"claude":{"of_session":null,"session":"s"}}
        Ok "approved" [] None [0, 0, 0, 0] $unknown {"claude":{"of_session":null,"session":"s"}}
    "#]].assert_eq(&table);
}

#[test]
fn what_is_told_is_framed_and_has_a_limit() {
    let result = ToolResult::new(CallId::derived(&["c"]), Ok("approved".to_owned()));
    let turns = [said("one", None), said("", None), Turn::Result(result)];
    expect![[r#"
        (You answered:)
        one

        (What came of it:)
        approved"#]]
    .assert_eq(&told::told(&turns, false));
    assert_eq!(told::told(&[], false), "(Go on.)");
    let long = "y".repeat(150 * 1024);
    let turns = [mail("m1", None, &long), mail("m2", None, &long), mail("m3", None, "last")];
    let told = told::told(&turns, false);
    assert!(told.starts_with("(What was said before is left out.)\n\n<message id=\"m2\""));
    assert!(told.contains("last") && !told.contains("\"m1\""));
}

#[test]
fn a_session_that_counts_anew_is_taken_as_it_is() {
    let tokens = |input, output| Tokens { input, output, ..Tokens::default() };
    assert_eq!(since(tokens(5, 7), Some(tokens(2, 3))), tokens(3, 4));
    assert_eq!(since(tokens(5, 7), Some(tokens(2, 8))), tokens(5, 7));
    assert_eq!(since(tokens(5, 7), None), tokens(5, 7));
}

#[test]
fn only_what_is_an_id_becomes_an_argument() {
    let turns = |session: &str| [said("", Some(json!({ "claude": { "session": session } })))];
    for (session, is_one) in [("3f-a_b.c:1", true), ("", false), ("--x", false), ("a b", false)] {
        assert_eq!(last_turn(Preset::Claude, &turns(session)).is_some(), is_one, "{session}");
    }
    assert!(last_turn(Preset::Codex, &turns("s")).is_none());
}

#[test]
fn it_is_ended_with_all_that_it_started() {
    let mut cli = cli(Preset::Claude, "setsid sleep 60 & sleep 60");
    cli.program.timeout = std::time::Duration::from_millis(300);
    let why = shown(cli.complete(&request(&[], &[]), &Cancel::default()));
    assert_eq!(why, "error: sh timed out after 0.3 s and was killed");
    assert_eq!(Mark::of_folder(&cli.program.folder).find().unwrap().len(), 0);
}

#[test]
fn what_may_have_been_done_in_part_is_told_so() {
    let told = told::told(&[], true);
    assert!(told.starts_with("(Go on.)\n\n(An earlier run for this was cut off"), "{told}");
}
