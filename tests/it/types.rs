//! What agents may be, as `types` shows it, and the schema of the file that says so.

use std::{collections::BTreeSet, fs};

use expect_test::expect;
use serde_json::{Value, json};

use crate::{
    cli,
    model_server::{ModelServer, Play},
    models::{BOTH, said, team_with},
    team::{Ran, Team},
};

/// A folder without a mailbox and without any team file.
fn bare() -> Team {
    let team = Team::new("");
    fs::remove_dir_all(team.at("teams")).unwrap();
    fs::remove_dir(team.at(".mailbox")).unwrap();
    team
}

#[test]
fn without_a_team_the_built_in_types_are_listed() {
    let team = bare();
    let ran = team.run(&["types"]).exits(0);
    expect![[r"
        analyst          all        25 turns  the caller's  3 tools    built in  Gathers facts from files and pages and weighs …
        code-review      all        50 turns  plan          16 tools   built in  Reads code and reports faults in it. Changes n…
        explore          all        50 turns  plan          16 tools   built in  Finds and reads files, and answers questions a…
        general          all        20 turns  the caller's  21 tools   built in  Small work of few steps, with all tools but de…
        general-purpose  all       200 turns  the caller's  all tools  built in  Any work of several steps; has the tools and r…
        plan             all        50 turns  plan          16 tools   built in  Reads what matters and lays out the steps of a…
    "]]
    .assert_eq(&ran.out);
    assert_eq!(ran.err, "");
    let all = cli::json(&team.run(&["types", "--json"]).ok());
    let names: Vec<&str> = all.iter().map(|it| it["name"].as_str().unwrap()).collect();
    let in_text = ran.out.lines().map(|line| line.split(' ').next().unwrap());
    assert_eq!(in_text.collect::<Vec<_>>(), names);
    assert!(!team.at(".mailbox").exists());
}

#[test]
fn one_type_is_shown_whole() {
    let team = bare();
    expect![[r"
        name         explore
        description  Finds and reads files, and answers questions about them. Changes nothing.
        origin       built in
        borne by     teammates and subagents (all)
        turns        50
        mode         plan
        fail closed  no
        nesting      no
        plan first   no
        provider     the caller's
        model        the caller's
        tools        read_file list_files glob grep todo_write submit_plan decide_plan team_list team_send team_broadcast team_ask team_shutdown task_create task_list task_get task_update
        disallowed   write_file, edit_file, bash, subagent

        You search and read; you change nothing. Look broadly first, then read what matters. Answer with what you found and where: paths with line numbers.
    "]]
    .assert_eq(&team.run(&["types", "explore"]).ok());
    let analyst = team.run(&["types", "analyst"]).ok();
    assert!(analyst.contains("to come      web_search fetch_url\n"), "{analyst}");
    let one = cli::json(&team.run(&["types", "analyst", "--json"]).ok());
    assert_eq!(one[0]["tools"], serde_json::json!(["read_file", "list_files", "grep"]));
    assert_eq!(one.len(), 1);
}

#[test]
fn an_unknown_type_is_told_with_the_nearest_one() {
    let team = bare();
    for (name, err) in [
        ("nope", "postroom: no type is called \"nope\""),
        ("explor", "postroom: no type is called \"explor\"; did you mean explore?"),
        ("\u{1b}[2J", "postroom: no type is called \"\\u{1b}[2J\""),
    ] {
        let valid =
            "; valid types are analyst, code-review, explore, general, general-purpose and plan\n";
        let wanted = Ran { out: String::new(), err: format!("{err}{valid}"), code: 2 };
        assert_eq!(team.run(&["types", name]), wanted);
    }
}

#[test]
fn of_several_teams_one_has_to_be_named() {
    let team = Team::new(r#"{"teammates": {"lead": {}}}"#);
    assert_eq!(team.run(&["types"]).exits(0).err, "");
    fs::write(team.at("teams/other.json"), r#"{"teammates": {"lead": {}}}"#).unwrap();
    let ran = team.run(&["types"]).exits(0);
    assert_eq!(ran.out.lines().count(), 6);
    expect!["built-in types alone: there are the teams other and team; `--team NAME` picks one\n"]
        .assert_eq(&ran.err);
    assert_eq!(team.run(&["types", "--team", "other"]).exits(0).err, "");
    assert!(team.run(&["types", "--team", "third"]).exits(2).err.contains("other and team"));
    fs::write(team.at("teams/other.json"), "{").unwrap();
    assert!(team.run(&["types", "--team", "other"]).exits(2).err.contains("other.json:1:"));
}

/// All objects of a schema that say what may stand at a place, each with its path.
fn parts(at: &str, part: &Value, found: &mut Vec<(String, Value)>) {
    found.push((at.to_owned(), part.clone()));
    for holder in ["properties", "$defs"] {
        for (key, below) in part[holder].as_object().into_iter().flatten() {
            parts(&format!("{at}/{key}"), below, found);
        }
    }
    for holder in ["items", "additionalProperties"] {
        if part[holder].is_object() {
            parts(&format!("{at}/{holder}"), &part[holder], found);
        }
    }
}

#[test]
fn the_schema_describes_each_key() {
    let schema: Value = serde_json::from_str(&bare().run(&["schema"]).ok()).unwrap();
    let mut all = Vec::new();
    parts("", &schema, &mut all);
    assert!(all.len() > 80, "{}", all.len());
    for (at, part) in &all {
        assert!(part["description"].as_str().is_some_and(|it| it.len() > 5), "{at}: {part}");
        if let Some(name) = part["$ref"].as_str() {
            assert!(schema.pointer(&name[1..]).is_some(), "{at}: {name}");
        }
        let is_open = part["additionalProperties"].is_null();
        assert!(!is_open || part["properties"].is_null(), "{at} lets any key in");
        if let Some(required) = part["required"].as_array() {
            let has = |key: &Value| !part["properties"][key.as_str().unwrap()].is_null();
            assert!(required.iter().all(has), "{at}: {required:?}");
        }
    }
}

#[test]
fn the_schema_knows_what_the_demo_says() {
    let schema: Value = serde_json::from_str(&bare().run(&["schema"]).ok()).unwrap();
    let keys = |at: &str| -> BTreeSet<String> {
        schema.pointer(at).unwrap().as_object().unwrap().keys().cloned().collect()
    };
    let demo = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/teams/demo.json")).unwrap();
    let plain = demo.lines().filter(|line| !line.trim_start().starts_with("//"));
    let demo: Value = serde_json::from_str(&plain.collect::<String>()).unwrap();
    let used =
        |it: &Value| -> BTreeSet<String> { it.as_object().unwrap().keys().cloned().collect() };
    assert!(used(&demo).is_subset(&keys("/properties")));
    for teammate in demo["teammates"].as_object().unwrap().values() {
        assert!(used(teammate).is_subset(&keys("/$defs/teammate/properties")));
    }
    assert!(used(&demo["start"][0]).is_subset(&keys("/$defs/errand/properties")));
}

#[test]
fn the_schema_has_the_keys_that_the_reader_knows() {
    use postroom::model;
    let schema: Value = serde_json::from_str(&Team::new("{}").run(&["schema"]).ok()).unwrap();
    let keys = |path: &str| -> BTreeSet<String> {
        let at = schema.pointer(path).unwrap();
        at["properties"].as_object().unwrap().keys().cloned().collect()
    };
    let known = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<BTreeSet<_>>();
    for (path, fields) in [
        ("", model::TEAM_KEYS),
        ("/$defs/teammate", model::TEAMMATE_KEYS),
        ("/$defs/type", &model::type_keys()),
        ("/$defs/provider_entry", model::PROVIDER_KEYS),
        ("/$defs/budget", model::BUDGET_KEYS),
        ("/$defs/price", model::PRICE_KEYS),
        ("/$defs/permissions", model::PERMISSION_FIELDS),
        ("/$defs/permissions/properties/network", model::NETWORK_FIELDS),
        ("/$defs/permissions/properties/limits", model::LIMIT_FIELDS),
        ("/$defs/limits", model::TEAM_LIMIT_KEYS),
        ("/$defs/task", model::TASK_KEYS),
    ] {
        assert_eq!(keys(path), known(fields), "{path}");
    }
}

#[test]
fn agent_files_of_a_users_folder_are_types_of_the_team() {
    let team = Team::new(
        r#"{"agent_folders": [".claude/agents"], "teammates": {"lead": {}, "reviewer": {}}}"#,
    );
    fs::create_dir_all(team.at(".claude/agents/deep")).unwrap();
    let file = "---\nname: reviewer\ndescription: Use for code: review\ntools: Read, Grep\n---\nBe strict.\n";
    fs::write(team.at(".claude/agents/deep/reviewer.md"), file).unwrap();
    fs::write(team.at(".claude/agents/bad.md"), b"---\nname: \xff\n---\n").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", team.at(".claude/agents/link.md")).unwrap();
    let ran = team.run(&["types", "--team", "team"]).exits(0);
    assert!(ran.out.contains(".claude/agents/deep/reviewer.md"), "{}", ran.out);
    for note in [
        ".claude/agents/bad.md: not used: it is not UTF-8",
        ".claude/agents/link.md: not used: it is no regular file",
        ".claude/agents/deep/reviewer.md: its front matter is no YAML",
    ] {
        assert!(ran.err.contains(note), "{}", ran.err);
    }
    let _daemon = team.up();
    let refused = team.run(&["send", "reviewer", "write a: b", "--wait"]).exits(1).out;
    assert!(refused.contains("My tools: read_file and grep."), "{refused}");
    let said = team.run(&["send", "lead", "delegate reviewer: read README.md", "--wait"]).ok();
    assert_eq!(said, "# A test\n");
}

#[test]
fn what_a_teammate_is_told_can_be_read() {
    let team = Team::new(
        r#"{"outside": ["ci"], "teammates": {"lead": {"role": "leads"}, "scout": {"type": "explore",
            "system_prompt": "Be brief."}}}"#,
    );
    fs::write(team.at("AGENTS.md"), "Use tabs.\n").unwrap();
    let told = team.run(&["types", "--prompt", "scout"]).ok();
    for part in [
        "You are scout, a teammate of the team team.",
        "You search and read; you change nothing.",
        "Be brief.",
        "- lead, who leads: leads",
        "- outside: ci",
        "you can't change anything",
        "<message id=",
        "From AGENTS.md of the workspace:\n\nUse tabs.",
    ] {
        assert!(told.contains(part), "{part} is not in\n{told}");
    }
    let of_type = team.run(&["types", "--prompt", "plan"]).ok();
    assert!(of_type.starts_with("You are lead,") && of_type.contains("You plan a change"));
    let unknown = team.run(&["types", "--prompt", "nobody"]).exits(2).err;
    assert!(unknown.contains("there are lead, scout, analyst"), "{unknown}");
}

#[test]
fn a_slip_in_what_a_type_forbids_keeps_it_from_being_used() {
    let team = Team::new(r#"{"teammates": {"lead": {}}}"#);
    fs::create_dir_all(team.at("teams/agents")).unwrap();
    let write = |name: &str, line: &str| {
        let text = format!("---\nname: {name}\ndescription: Works.\n{line}\n---\nWork.\n");
        fs::write(team.at(&format!("teams/agents/{name}.md")), text).unwrap();
    };
    write("bsh", "permissions: {tools: {bsh: deny}}");
    write("one-tool", "tool: Read");
    write("part", "permissions: {tools: {subagent(explore): ask}}");
    write("free", "permissions: {limits: {max_iterations: 500}}");
    let ran = team.run(&["check"]).exits(0);
    expect![[r#"
        teams/agents/bsh.md: bsh is not used: no tool is called bsh; did you mean bash?
        teams/agents/one-tool.md: one-tool is not used: "tool" is written "tools"
        teams/agents/part.md: part is not used: what is said of subagent is said of all of it: write "subagent"
    "#]].assert_eq(&ran.err);
    let ran = team.run(&["types", "one-tool"]).exits(2);
    assert!(ran.err.contains("(teams/agents/one-tool.md: one-tool is not used: "), "{}", ran.err);
    assert!(!team.run(&["types", "tool"]).exits(2).err.contains("one-tool.md"));
    let free = team.run(&["types", "free"]).ok();
    assert!(free.contains("turns        500\n"), "{free}");
}

#[test]
fn a_default_that_no_subagent_may_be_is_a_fault_of_the_team_file() {
    let team = Team::new(
        r#"{"default_agent": "boss", "teammates": {"lead": {}},
            "agents": {"boss": {"mode": "primary"}}}"#,
    );
    let ran = team.run(&["check"]).exits(2);
    let wanted = "team.json:1:19: \"default_agent\": boss is a primary type";
    assert!(ran.err.contains(wanted), "{}", ran.err);
}

#[test]
fn a_task_in_hand_of_a_type_that_nobody_may_be_fails_and_names_those_that_there_are() {
    let team = Team::new(
        r#"{"teammates": {"lead": {}, "worker": {"permission_mode": "bypass"}},
            "agents": {"boss": {"mode": "primary"}}}"#,
    );
    let claimed = |id: &str, agent_type: &str| {
        let run = id.repeat(16);
        let create = json!({"title": "write ran: x", "id": id, "type": agent_type});
        let claim = json!({"op": "update", "id": id, "expected_status": "pending",
            "status": "in_progress", "by": "worker", "owner": "worker", "run": run});
        format!("{create}\n{claim}\n")
    };
    let _daemon = team.up();
    team.append("tasks", claimed("a1", "nope") + &claimed("a2", "boss"));
    for (id, why) in [("a1", "no type is called \"nope\""), ("a2", "boss is a primary type")] {
        team.run(&["wait", "--task", id]).exits(1);
        let told = team.run(&["task", "show", id]).ok();
        let valid =
            "valid types are analyst, code-review, explore, general, general-purpose and plan";
        assert!(told.contains(why) && told.contains(valid), "{told}");
    }
    assert!(!team.at("ran").exists());
}

#[test]
fn a_subagent_thinks_with_its_callers_provider_and_model() {
    for wire in BOTH {
        let server = ModelServer::start(wire, |asked| {
            let is_lead =
                !asked.system().contains("gather facts") && !asked.system().contains("Be small");
            let call = |kind: &str| ("subagent", json!({"task": "look", "agent_type": kind}));
            Play::Say(match (is_lead, asked.results()) {
                (true, 0) => (String::new(), vec![call("analyst"), call("small")]),
                _ => said("done"),
            })
        });
        let rest = r#""agents": {"small": {"model": "tiny", "system_prompt": "Be small."}},
            "teammates": {"lead": {"provider": "local", "model": "big"}}"#;
        let team = team_with(&server, rest);
        let text = fs::read_to_string(team.at("teams/team.json")).unwrap();
        let text =
            text.replace(r#""provider": "local", "prices""#, r#""provider": "clerk", "prices""#);
        fs::write(team.at("teams/team.json"), text).unwrap();
        let _daemon = team.up();
        assert_eq!(team.run(&["send", "lead", "what do we know?", "--wait"]).ok(), "done\n");
        let seen = server.seen();
        let asked: Vec<String> =
            seen.iter().map(|it| format!("{} {}", it["model"], it["temperature"])).collect();
        let wanted = [r#""big" null"#, r#""big" 0.3"#, r#""tiny" null"#, r#""big" null"#];
        assert_eq!(asked, wanted);
        server.is_content();
    }
}
