//! Subagents as users of a team see them: what they get, how deep they go, what runs beside, and what
//! a kill leaves of them.

use std::fs;

use serde_json::Value;

use crate::team::Team;

const ONE: &str = r#"{"permission_mode": "bypass", "teammates": {"lead": {}}}"#;

/// The runs with a conversation of their own: all but the teammates'.
fn runs(team: &Team) -> Vec<String> {
    let entries = fs::read_dir(team.at(".mailbox/state/conversations")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().replace(".jsonl", ""));
    let mut runs: Vec<String> = names.filter(|name| name.len() == 12).collect();
    runs.sort();
    runs
}

/// The lines of a run's conversation.
fn lines(team: &Team, run: &str) -> Vec<Value> {
    let path = team.at(&format!(".mailbox/state/conversations/{run}.jsonl"));
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn turns<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter_map(|line| line["turn"].get(kind)).collect()
}

/// The events that tell of runs in the background.
fn ends(team: &Team) -> Vec<String> {
    let mail = team.mail("lead").into_iter();
    let events = mail.filter(|it| it["msg_type"] == "event" && it["trace_id"].is_string());
    events.map(|it| it["content"].as_str().unwrap().to_owned()).collect()
}

/// What a turn that begins `count` commands in the background says.
fn begin(count: usize, task: &str) -> String {
    let input = |number: usize| {
        let task = task.replace("{n}", &number.to_string());
        serde_json::json!({"task": task, "agent_type": "general", "run_in_background": true})
    };
    let lines: Vec<String> = (0..count).map(|it| format!("tool subagent {}", input(it))).collect();
    lines.join("\n- ")
}

fn send(team: &Team, id: &str, content: &str) {
    let line = serde_json::json!({"id": id, "content": content});
    team.append("lead", format!("{line}\n"));
}

#[test]
fn a_subagent_starts_with_its_task_alone_and_tells_its_last_words_and_what_it_took() {
    let team = Team::new(ONE);
    let said = team.run(&["run", "read README.md\ndelegate explore: read README.md"]).ok();
    assert_eq!(
        said,
        "$ read README.md\n# A test\n\n$ delegate explore: read README.md\n# A test\n"
    );
    let [run] = runs(&team).try_into().unwrap();
    let child = lines(&team, &run);
    assert_eq!(child[0]["run"]["agent_type"], "explore");
    assert_eq!(child[0]["run"]["parent"], "lead");
    let mail = turns(&child, "mail");
    assert_eq!((mail.len(), &mail[0]["text"]), (1, &Value::from("read README.md")));
    let told = team.conversation("lead").into_iter().filter_map(|it| it.get("result").cloned());
    let told = told.collect::<Vec<_>>().pop().unwrap()["text"].as_str().unwrap().to_owned();
    let metadata = format!(
        "\n\n<task_metadata>\nsub_trace_id: {run}\ntotal_steps: 2\ntool_calls: read_file×1\n\
         tokens: 0 in, 0 out\n</task_metadata>"
    );
    assert!(told.ends_with(&metadata), "{told}");
}

#[test]
fn the_fourth_level_is_refused_and_so_is_a_ring() {
    let team = Team::new(ONE);
    let nest = |levels: usize, last: &str| {
        let line = |level: usize| format!("{}delegate general-purpose:\n", "  ".repeat(level));
        let lines: String = (0..levels).map(line).collect();
        format!("{lines}{}{last}", "  ".repeat(levels))
    };
    let said = team.run(&["run", &nest(3, "read README.md")]).ok();
    assert!(said.contains("# A test"), "{said}");
    let refused = team.run(&["run", &nest(4, "read README.md")]).exits(1).out;
    let text = "Subagent refused: recursion depth 4 exceeds limit 3.";
    assert!(refused.contains(text), "{refused}");
    let ring = team.run(&["run", "tool subagent {\"task\":\"x\",\"agent_type\":\"nope\"}"]);
    let text = "no type is called \"nope\"; valid types are analyst, code-review, explore, \
                general, general-purpose and plan";
    assert!(ring.exits(1).out.contains(text));
}

#[test]
fn nobody_has_a_tool_or_a_right_that_its_caller_lacks() {
    let team = Team::new(
        r#"{"permission_mode": "bypass", "rules": {"deny": ["bash(rm:*)"]}, "teammates":
            {"lead": {}, "reader": {"permission_mode": "plan"}}}"#,
    );
    let said = team.run(&["run", "delegate general: run rm README.md"]).exits(1).out;
    assert!(said.contains("the rule `deny"), "{said}");
    let said = team.run(&["run", "delegate explore: write a: b"]).exits(1).out;
    assert!(said.contains("needs the tool `write_file`, which I do not have"), "{said}");
    let said = team.run(&["run", "delegate general: delegate explore: list"]).exits(1).out;
    assert!(said.contains("needs the tool `subagent`, which I do not have"), "{said}");
    let daemon = team.up();
    let said = team.run(&["send", "reader", "delegate general: write a: b", "--wait"]).exits(1).out;
    assert!(said.contains("`permission_mode: plan`: no side effects"), "{said}");
    let said = team.run(&[
        "send",
        "reader",
        "delegate general:\n  tool background_run {\"command\": \"touch b\"}",
        "--wait",
    ]);
    assert!(said.exits(1).out.contains("`permission_mode: plan`: no side effects"));
    drop(daemon);
    assert!(team.at("README.md").exists() && !team.at("a").exists() && !team.at("b").exists());
}

#[test]
fn what_runs_beside_tells_of_its_end_by_mail_which_its_caller_acts_on() {
    let team = Team::new(ONE);
    let _daemon = team.up();
    send(&team, "a", &begin(1, "read README.md"));
    let said = team.until_answer_to("a")["content"].as_str().unwrap().to_owned();
    let name = said.split_whitespace().find(|word| word.starts_with("subagent-")).unwrap();
    assert_eq!(said, format!("Subagent {name} started in the background."));
    assert_eq!(name.len(), "subagent-".len() + 8);
    team.until("its end", |team| (ends(team).len() == 1 && team.is_settled("lead")).then_some(()));
    let end = &ends(&team)[0];
    assert!(
        end.starts_with(&format!("Subagent {name} (general: read README.md) done:\n\n# A test"))
    );
    // The event is in the conversation with a turn of the model behind it.
    let turns = team.conversation("lead");
    let at = turns.iter().position(|it| it["mail"]["kind"] == "event").unwrap();
    assert!(turns[at..].iter().any(|it| it.get("final").is_some()), "{turns:#?}");
    // Its conversation goes on.
    let more = serde_json::json!({"id": name, "message": "answer: and more"});
    send(&team, "b", &format!("tool subagent_send {more}"));
    assert_eq!(team.until_answer_to("b")["content"], "and more");
    let both = team.run(&["trace", name]).ok();
    let works = ["task: read README.md\n", "   ok: # A test\n", "then: answer: and more\n"];
    assert!(works.iter().all(|it| both.contains(it)), "{both}");
    assert!(both.trim_end().ends_with("ok: and more") && both.contains("  read_file {"), "{both}");
    let [run] = runs(&team).try_into().unwrap();
    assert_eq!(turns_of(&team, &run, "mail"), 2);
    let check = format!("tool background_check {}", serde_json::json!({"id": name}));
    send(&team, "c", &check);
    let told = team.until_answer_to("c")["content"].as_str().unwrap().to_owned();
    assert!(told.contains("done after") && told.contains("# A test"), "{told}");
    send(&team, "d", r#"tool subagent_send {"id":"subagent-zzzzzzzz","message":"x"}"#);
    let told = team.until_answer_to("d");
    assert!(told["content"].as_str().unwrap().contains("no subagent of yours"), "{told}");
}

fn turns_of(team: &Team, run: &str, kind: &str) -> usize {
    turns(&lines(team, run), kind).len()
}

#[test]
fn a_command_runs_beside_the_work_and_is_bash_to_every_rule() {
    let team = Team::new(
        r#"{"permission_mode": "bypass", "rules": {"deny": ["bash(touch:*)"]},
            "teammates": {"lead": {}}}"#,
    );
    let _daemon = team.up();
    send(&team, "a", r#"tool background_run {"command": "echo here; exit 3"}"#);
    let said = team.until_answer_to("a")["content"].as_str().unwrap().to_owned();
    assert!(said.starts_with("Command command-") && said.ends_with(" started in the background."));
    team.until("its end", |team| (!ends(team).is_empty()).then_some(()));
    assert!(ends(&team)[0].contains("failed:\n\nexit code 3\nhere\n"), "{:?}", ends(&team));
    send(&team, "b", r#"tool background_run {"command": "touch x"}"#);
    let told = team.until_answer_to("b");
    assert!(told["content"].as_str().unwrap().contains("the rule `deny"), "{told}");
    assert!(!team.at("x").exists());
}

#[test]
fn eight_run_beside_the_ninth_is_refused_and_a_shutdown_accounts_for_all() {
    let team = Team::new(ONE);
    let mut daemon = team.up();
    send(&team, "a", &begin(9, "run touch begun-{n}; sleep 1000"));
    let said = team.until_answer_to("a")["content"].as_str().unwrap().to_owned();
    assert_eq!(said.matches("started in the background.").count(), 8, "{said}");
    assert!(said.contains("8 runs are in the background already and `max_children` is 8"));
    team.until("all commands", |team| {
        (0..8).all(|it| team.at(&format!("begun-{it}")).exists()).then_some(())
    });
    team.until("the status", |team| {
        team.run(&["status"]).ok().contains("8 in the background").then_some(())
    });
    team.run(&["stop", "lead"]).ok();
    let told = ends(&team);
    assert_eq!(told.len(), 8, "{told:#?}");
    assert!(told.iter().all(|it| it.contains("cancelled:\n\nits teammate, or the task")));
    assert_eq!(team.life("lead")["background"], Value::Null);
    assert_eq!(team.left_over(), 0);
    let threads = fs::read_dir(format!("/proc/{}/task", daemon.id())).unwrap().flatten();
    let names = threads.map(|it| fs::read_to_string(it.path().join("comm")).unwrap_or_default());
    assert_eq!(names.filter(|name| name.starts_with("beside:")).count(), 0);
    team.run(&["down"]).ok();
    assert_eq!(daemon.wait(), 0);
}

#[test]
fn a_kill_in_the_middle_of_a_subagent_goes_on_with_the_same_one() {
    let team = Team::new(ONE);
    let mut daemon = team.up();
    send(
        &team,
        "a",
        "delegate general:\n  read README.md\n  - run touch begun; sleep 1000\n  answer: went on",
    );
    team.until("the command", |team| team.at("begun").exists().then_some(()));
    daemon.kill();
    let _daemon = team.up();
    let answer = team.until_answer_to("a");
    assert_eq!((&answer["status"], &answer["content"]), (&"ok".into(), &"went on".into()));
    let [run] = runs(&team).try_into().unwrap();
    let child = lines(&team, &run);
    let results: Vec<&str> =
        turns(&child, "result").iter().map(|it| it["text"].as_str().unwrap()).collect();
    let unknown = "unknown: the daemon stopped during this call; inspect before repeating it";
    assert_eq!(results, ["# A test\n", unknown]);
    assert_eq!(turns(&child, "mail").len(), 1);
    assert_eq!(team.left_over(), 0);
}

#[test]
fn what_a_kill_cuts_off_beside_the_work_is_told_as_failed_once() {
    let team = Team::new(ONE);
    let mut daemon = team.up();
    send(&team, "a", &begin(2, "run touch begun-{n}; sleep 1000"));
    team.until_answer_to("a");
    team.until("both", |team| {
        (0..2).all(|it| team.at(&format!("begun-{it}")).exists()).then_some(())
    });
    daemon.kill();
    let mut daemon = team.up();
    team.until("both ends", |team| {
        (ends(team).len() == 2 && team.is_settled("lead")).then_some(())
    });
    daemon.kill();
    let _daemon = team.up();
    send(&team, "b", "answer: here");
    team.until_answer_to("b");
    let told = ends(&team);
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told.iter().all(|it| it.contains("failed:\n\nthe daemon stopped during it")));
    assert_eq!(team.left_over(), 0);
}

#[test]
fn a_task_is_done_as_its_type_and_may_be_meant_for_one() {
    let team =
        Team::new(r#"{"permission_mode": "bypass", "teammates": {"lead": {}, "worker": {}}}"#);
    let _daemon = team.up();
    let id = team.run(&["task", "add", "write a: b", "--agent-type", "explore"]).ok();
    team.run(&["wait", "--task", id.trim()]).exits(1);
    let shown = team.run(&["task", "show", id.trim()]).ok();
    assert!(shown.contains("needs the tool `write_file`, which I do not have"), "{shown}");
    let id = team.run(&["task", "add", "write a: b", "--assignee", "general-purpose"]).ok();
    team.run(&["wait", "--task", id.trim()]).ok();
    assert!(team.at("a").exists());
    let refused = team.run(&["task", "add", "x", "--agent-type", "nope"]).exits(2).err;
    assert!(refused.contains("valid types are analyst, code-review"), "{refused}");
}

#[test]
fn types_of_the_team_bound_what_their_subagents_do() {
    let team = Team::new(
        r#"{"permission_mode": "bypass", "teammates": {"lead": {}}, "limits": {"max_children": 0},
            "on_unknown_type": "default", "default_agent": "reader", "agents": {
            "reader": {"permissions": {"paths": {"secret": "deny"}, "limits": {"max_file_size": 20}}},
            "boss": {"mode": "primary"},
            "differ": {"tools": "Read, Bash(git diff:*)"},
            "hasty": {"permissions": {"limits": {"timeout_seconds": 1, "max_retries": 1}}},
            "asker": {"permissionMode": "dontAsk"},
            "careful": {"plan_required": true}}}"#,
    );
    fs::create_dir(team.at("secret")).unwrap();
    fs::write(team.at("secret/key"), "sesame\n").unwrap();
    fs::write(team.at("long"), "x".repeat(21)).unwrap();
    let lead = format!(
        "{{\"permission_mode\": \"bypass\", {}",
        &fs::read_to_string(team.at("teams/team.json")).unwrap()
            ["{\"permission_mode\": \"bypass\", ".len()..]
    );
    let lead = lead.replace("\"lead\": {}", "\"lead\": {\"type\": \"general-purpose\"}");
    fs::write(team.at("teams/team.json"), lead).unwrap();
    let fails = |content: &str| team.run(&["run", content]).exits(1).out;
    let beside =
        r#"tool subagent {"task": "list", "agent_type": "reader", "run_in_background": true}"#;
    let said = fails(beside);
    let text = "Subagent background execution unavailable: background manager is not configured.";
    assert!(said.contains(text), "{said}");
    assert!(fails("delegate boss: list").contains("boss is a primary type"));
    assert!(fails("delegate reader: read secret/key").contains("rule"));
    assert!(fails("delegate reader: read long").contains("`max_file_size` of its type allows 20"));
    assert!(
        fails("delegate reader: write a: xxxxxxxxxxxxxxxxxxxxxxxxxxx").contains("max_file_size")
    );
    let found = team.run(&["run", "delegate reader: grep sesame"]).ok();
    assert!(!found.contains("sesame\n"), "{found}");
    let said = team.run(&["run", "delegate nope: read README.md"]).ok();
    assert!(said.contains("# A test"), "{said}");
    let said = fails("delegate differ: run touch a");
    assert!(said.contains("only for bash(git diff:*)"), "{said}");
    assert!(fails("delegate asker: write a: b").contains("nothing can be asked for here"));
    assert!(!team.at("a").exists());
    let said = fails("delegate careful: write a: b");
    assert!(said.contains("a plan has to be approved first"), "{said}");
    let said = fails("delegate hasty: run echo again >> tries; sleep 1000");
    assert!(said.contains("timed out after 1 s without a final answer"), "{said}");
    assert_eq!(fs::read_to_string(team.at("tries")).unwrap(), "again\nagain\n");
    assert_eq!(team.left_over(), 0);
}

#[test]
fn mail_is_answered_between_the_calls_of_a_tasks_subagent() {
    let team = Team::new(
        r#"{"permission_mode": "bypass", "teammates": {"lead": {}, "worker": {"claims": "any"}}}"#,
    );
    let _daemon = team.up();
    let work = "delegate general:\n  run touch begun; until [ -e go ]; do sleep 0.02; done\n  run echo once >> twice\n  answer: both";
    let id = team
        .run(&["task", "add", "two commands", "--description", work, "--assignee", "worker"])
        .ok();
    team.until("the first command", |team| team.at("begun").exists().then_some(()));
    team.append("worker", "{\"id\":\"a\",\"content\":\"read README.md\"}\n");
    fs::write(team.at("go"), "").unwrap();
    assert_eq!(team.until_answer_to("a")["content"], "# A test");
    team.run(&["wait", "--task", id.trim()]).ok();
    assert_eq!(fs::read_to_string(team.at("twice")).unwrap(), "once\n");
    let board = fs::read_to_string(team.at(".mailbox/tasks.jsonl")).unwrap();
    assert!(board.contains("\"result\":\"both\""), "{board}");
}

#[test]
fn what_runs_beside_gets_the_answers_that_it_waits_for() {
    let team = Team::new(
        r#"{"permission_mode": "bypass", "teammates": {"lead": {}, "slow":
            {"script": "run until [ -e go ]; do sleep 0.02; done\nanswer: at last"}}}"#,
    );
    let _daemon = team.up();
    send(&team, "a", &begin(2, "ask slow: {n}"));
    team.until_answer_to("a");
    team.until("the questions", |team| (team.mail("slow").len() == 2).then_some(()));
    fs::write(team.at("go"), "").unwrap();
    team.until("both ends", |team| {
        (ends(team).len() == 2 && team.is_settled("lead")).then_some(())
    });
    assert!(ends(&team).iter().all(|it| it.contains("done:\n\nat last")), "{:?}", ends(&team));
}

#[test]
fn a_rule_denies_a_tool_that_touches_nothing_too() {
    let team = Team::new(
        r#"{"permission_mode": "bypass", "rules": {"deny": ["Task", "task_create"]},
            "teammates": {"lead": {}, "w": {}}}"#,
    );
    for content in [
        "delegate explore: list",
        "task: list",
        "tool subagent_send {\"id\":\"abc\",\"message\":\"x\"}",
    ] {
        let said = team.run(&["run", content]).exits(1).out;
        assert!(said.contains("the rule `deny"), "{said}");
    }
    fs::write(
        team.at("teams/team.json"),
        r#"{"rules": {"deny": ["bsh", "team_send(w)", "subagnet"]}, "teammates": {"lead": {}}}"#,
    )
    .unwrap();
    let faults = team.run(&["check"]).exits(2).err;
    for part in [
        "no tool is called bsh; did you mean bash?",
        "write \"team_send\"",
        "did you mean subagent?",
    ] {
        assert!(faults.contains(part), "{faults}");
    }
}

#[test]
fn a_drain_lets_what_runs_beside_end_and_a_types_time_is_its_commands_time() {
    let team = Team::new(
        r#"{"permission_mode": "bypass", "teammates": {"lead": {}},
            "agents": {"hasty": {"permissions": {"limits": {"timeout_seconds": 1}}}}}"#,
    );
    let _daemon = team.up();
    send(
        &team,
        "a",
        r#"tool background_run {"command": "until [ -e go ]; do sleep 0.02; done; touch out"}"#,
    );
    team.until_answer_to("a");
    send(&team, "b", "delegate hasty: tool background_run {\"command\": \"sleep 1000\"}");
    team.until_answer_to("b");
    team.until("the late one", |team| {
        ends(team).iter().any(|it| it.contains("failed:\n\ntimed out after 1 s")).then_some(())
    });
    let begun =
        serde_json::json!({"task": "sleep", "agent_type": "hasty", "run_in_background": true});
    send(
        &team,
        "c",
        &format!("tool subagent {}", begun.to_string().replace("\"sleep\"", "\"run sleep 1000\"")),
    );
    team.until("the late subagent", |team| {
        let late = "timed out after 1 s without a final answer";
        ends(team).iter().any(|it| it.contains(late)).then_some(())
    });
    team.append("lead", "{\"id\":\"stop\",\"protocol\":\"shutdown\",\"drain\":true}\n");
    team.until_state("lead", "waiting");
    fs::write(team.at("go"), "").unwrap();
    assert_eq!(team.until_answer_to("stop")["status"], "stopped");
    assert!(team.at("out").exists());
    assert!(ends(&team).iter().any(|it| it.contains("done:\n\n[no output]")), "{:?}", ends(&team));
}

#[test]
fn what_may_not_be_read_is_not_found_by_searching_either() {
    let team = Team::new(
        r#"{"permission_mode": "bypass", "teammates": {"lead": {}},
            "rules": {"deny": ["read_file(secrets/**)", "write_file(kept/**)"]}}"#,
    );
    for (path, text) in [("secrets/key.txt", "hush\n"), ("kept/a.txt", "hush\n")] {
        fs::create_dir(team.at(path).parent().unwrap()).unwrap();
        fs::write(team.at(path), text).unwrap();
    }
    let _daemon = team.up();
    let said = |work: &str| team.run(&["send", "lead", work, "--wait"]);
    assert_eq!(said("grep hush").ok(), "kept/a.txt:1: hush\n");
    assert!(!said("glob **/*.txt").ok().contains("secrets"));
    for work in ["grep hush secrets/key.txt", "list secrets", "read secrets/key.txt"] {
        let told = said(work).exits(1).out;
        assert!(told.contains("`deny read_file(secrets/**)` of the team file"), "{told}");
    }
    let told = said("edit kept/a.txt: hush => loud").exits(1).out;
    assert!(told.contains("`deny write_file(kept/**)` of the team file"), "{told}");
}
