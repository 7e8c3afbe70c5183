//! The verbs that begin, end and host, as a person and a script meet them: what they print where,
//! and their exit codes.

use std::fs;

use crate::{
    cli::{TWO, json},
    team::{Team, has_program},
};

/// Without a mailbox folder and a team.
fn bare() -> Team {
    let team = Team::new("{}");
    fs::remove_dir_all(team.at(".mailbox")).unwrap();
    fs::remove_dir_all(team.at("teams")).unwrap();
    team
}

#[test]
fn init_writes_a_team_that_fits_and_works() {
    let rows = [
        ("Cargo.toml", Some("cargo test")),
        ("package.json", Some("npm test")),
        ("pyproject.toml", Some("python3 -m pytest")),
        ("go.mod", Some("go test ./...")),
        ("Makefile", Some("make test")),
        ("notes.txt", None),
    ];
    for (file, tests) in rows {
        let team = bare();
        fs::write(team.at(file), "").unwrap();
        let ran = team.run(&["init"]).exits(0);
        let path = team.at("teams/team.json");
        assert!(
            ran.err.starts_with(&format!("wrote {} and .mailbox\n", path.display())),
            "{ran:?}"
        );
        assert!(ran.err.ends_with("next: postroom run team 'read README.md'\n"), "{ran:?}");
        let text = fs::read_to_string(&path).unwrap();
        let program = tests.map(|command| command.split(' ').next().unwrap());
        let tests = tests.filter(|_| program.is_some_and(has_program));
        if program.is_some() && tests.is_none() {
            assert!(ran.err.contains(&format!("found {file}, but")), "{ran:?}");
        }
        match tests {
            Some(tests) => assert!(text.contains(&format!("\"run {tests}\"")), "{text}"),
            None => assert!(!text.contains("tester"), "{text}"),
        }
        let count = if tests.is_some() { 3 } else { 2 };
        let checked = team.run(&["check"]).ok();
        assert_eq!(checked, format!("{}: fine, {count} teammates led by lead\n", path.display()));
        assert_eq!(team.run(&["run", "team", "read README.md"]).ok(), "# A test\n");
        let again = team.run(&["init"]).exits(2);
        let there = "is there already; edit it, or write another with `postroom init NAME`";
        assert_eq!(again.err, format!("postroom: {} {there}\n", path.display()));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        team.run(&["init", "night"]).ok();
        assert!(team.at("teams/night.json").is_file());
        assert!(team.run(&["up"]).exits(2).err.contains("which team? there are night and team"));
    }
}

#[test]
fn without_a_folder_or_a_team_each_verb_says_what_makes_one() {
    let team = bare();
    for args in [
        &["status"][..],
        &["send", "scout", "x"],
        &["inbox"],
        &["log"],
        &["wait", "abc"],
        &["show", "abc"],
        &["start", "scout"],
        &["stop", "scout"],
        &["restart", "scout"],
        &["down"],
        &["dead", "list"],
    ] {
        let ran = team.run(args).exits(2);
        assert!(ran.err.starts_with("postroom: no .mailbox here or above ("), "{args:?} {ran:?}");
        assert_eq!(ran.out, "");
    }
    for args in [&["up"][..], &["run", "hi there"], &["check"]] {
        let ran = team.run(args).exits(2);
        assert!(ran.err.contains("`postroom init` writes one"), "{args:?} {ran:?}");
    }
    assert!(!team.at(".mailbox").exists());
    let ran = team.run(&["--mailbox", "elsewhere", "status"]).exits(2);
    assert!(ran.err.contains("its name has to be .mailbox"), "{ran:?}");
}

#[test]
fn run_hosts_the_team_meanwhile() {
    let team = Team::new(TWO);
    assert_eq!(team.run(&["run", "answer: x"]).ok(), "x\n");
    assert_eq!(team.run(&["run", "team", "answer: y"]).ok(), "y\n");
    assert_eq!(team.run(&["run", "teams/team.json", "answer: z"]).ok(), "z\n");
    assert_eq!(team.run(&["run", "ask scout: read README.md"]).ok(), "# A test\n");
    let failed = team.run(&["run", "read nothing.md"]).exits(1);
    assert!(failed.out.contains("nothing.md"), "{failed:?}");
    let shown = json(&team.run(&["run", "--json", "answer: x"]).ok());
    assert_eq!((&shown[0]["from"], &shown[0]["content"]), (&"lead".into(), &"x".into()));
    assert!(team.run(&["run"]).exits(2).err.contains("nothing to do: give a message"));
    assert!(team.run(&["run", "nope", "x"]).exits(2).err.contains("there are team"));
    team.run(&["run", "a", "b", "c"]).exits(2);
    team.run(&["status"]).exits(3);
    assert_eq!(team.left_over(), 0);
}

#[test]
fn run_without_a_message_sends_what_the_team_begins_with() {
    let team = Team::new(
        r#"{"teammates": {"lead": {}, "scout": {}},
            "start": [{"to": "lead", "content": "answer: begun"}],
            "tasks": [{"title": "answer: done", "assignee": "scout"}]}"#,
    );
    let ran = team.run(&["run", "team"]).exits(0);
    assert_eq!(ran.out, "begun\ndone\n");
    assert!(ran.err.contains("task 1 (answer: done): done"), "{ran:?}");
    assert_eq!(json(&team.run(&["run", "--json"]).ok()).len(), 2);
}

#[test]
fn run_on_a_running_team_leaves_it_running() {
    let team = Team::new(TWO);
    fs::write(team.at("teams/else.json"), r#"{"teammates": {"lead": {}}}"#).unwrap();
    let daemon = team.up_team("team");
    assert_eq!(team.run(&["run", "team", "answer: x"]).ok(), "x\n");
    assert_eq!(team.run(&["status"]).exits(0).out.lines().next().unwrap().find("fine"), Some(11));
    let other = team.run(&["run", "else", "answer: x"]).exits(4);
    assert!(other.err.contains("another team holds the folder: team from"), "{other:?}");
    team.run(&["stop", "lead"]).ok();
    let stopped = team.run(&["run", "team", "answer: x"]).exits(1);
    let why = "lead is stopped, so nothing was sent; `postroom start lead` starts it";
    assert_eq!(
        (stopped.err.lines().last().unwrap(), stopped.out.as_str()),
        (format!("postroom: {why}").as_str(), "")
    );
    drop(daemon);
}

#[test]
fn teammates_are_stopped_and_started_with_the_daemon_up() {
    let team = Team::new(&TWO.replace("\"outside\"", "\"limits\": {\"grace_s\": 1}, \"outside\""));
    let _daemon = team.up();
    let stopped = team.run(&["stop", "scout"]).exits(0);
    assert_eq!(stopped.err, "scout: stopped; no unread mail is left\n");
    assert_eq!(team.run(&["stop", "scout"]).exits(0).err, "scout is stopped\n");
    let sent = team.run(&["send", "scout", "answer: kept"]).exits(0);
    let note =
        "scout is stopped: the message is kept, and `postroom start scout` has it answered\n";
    assert_eq!(sent.err, note);
    team.run(&["status"]).exits(0);
    let stuck = team.run(&["status", "--check"]).exits(1).out;
    assert!(stuck.contains("STUCK") && stuck.contains("scout is stopped and has 1 unread"));
    assert!(stuck.ends_with("next: postroom start scout\n"), "{stuck}");
    assert_eq!(team.run(&["start", "scout"]).exits(0).err, "scout is started\n");
    assert_eq!(team.run(&["wait", sent.out.trim_end()]).ok(), "kept\n");
    assert_eq!(team.run(&["start", "scout"]).exits(0).err, "scout is running\n");
    let again = team.run(&["restart", "scout"]).exits(0).err;
    assert_eq!(again, "scout: stopped; no unread mail is left\nscout is started\n");
    // Started while it is still stopping, it runs in the end.
    team.append("slow", "{\"content\":\"x\"}\n");
    team.until_state("slow", "working");
    team.append("slow", "{\"protocol\":\"SHUTDOWN\"}\n");
    team.until("the announcement", |team| {
        team.mail("user")
            .iter()
            .any(|it| it["content"] == "stopping" && it["from_agent"] == "slow")
            .then_some(())
    });
    assert_eq!(team.run(&["start", "slow"]).exits(0).err, "slow is started\n");
    assert_eq!(team.life("slow")["desired"], "running");
    for verb in ["start", "stop", "restart"] {
        let ran = team.run(&[verb, "nobody"]).exits(2);
        assert!(ran.err.contains("no teammate is called nobody; there are lead, scout and slow"));
        team.run(&[verb, "ci"]).exits(2);
    }
    assert_eq!(team.run(&["down"]).exits(0).err, "down; `postroom up` goes on where it left off\n");
    team.run(&["status"]).exits(3);
}

#[test]
fn teammates_are_stopped_and_started_with_the_daemon_down() {
    let team = Team::new(TWO);
    assert_eq!(team.run(&["down"]).exits(0).err, "no daemon is up\n");
    let stopped = team.run(&["stop", "scout"]).exits(0).err;
    assert_eq!(stopped, "no daemon is up: scout stays stopped at the next `postroom up`\n");
    let daemon = team.up();
    assert!(daemon.said.contains("scout stays stopped, as it was"), "{}", daemon.said);
    team.run(&["down"]).ok();
    drop(daemon);
    let started = team.run(&["start", "scout"]).exits(0).err;
    assert_eq!(started, "no daemon is up: scout runs from the next `postroom up` on\n");
    let _daemon = team.up();
    assert_eq!(team.run(&["send", "scout", "answer: x", "--wait"]).ok(), "x\n");
}

#[test]
fn a_bad_team_file_is_told_whole_before_anything_starts() {
    let bad = "{\n  \"colour\": \"red\",\n  \"teammates\": {\n    \"lead\": {\"typo\": 1},\n    \
               \"Bad\": {},\n    \"s\": {\"script\": \"run the tests\\nfly\"}\n  }\n}";
    let team = Team::new(bad);
    let file = team.at("teams/team.json").display().to_string();
    for args in [&["check"][..], &["up"], &["run", "answer: x"], &["up", "-d"]] {
        let ran = team.run(args).exits(2);
        for (line, part) in [(2, "colour"), (4, "typo"), (5, "Bad")] {
            let place = format!("{file}:{line}:");
            let is_there = ran.err.lines().any(|it| it.contains(&place) && it.contains(part));
            assert!(is_there, "{args:?} {place} {part}: {}", ran.err);
        }
        assert_eq!(ran.out, "");
    }
    fs::write(
        team.at("teams/team.json"),
        bad.replace("\"typo\": 1", "").replace("Bad", "good").replace("\"colour\": \"red\",", ""),
    )
    .unwrap();
    for args in [&["check"][..], &["up"], &["run", "answer: x"]] {
        let ran = team.run(args).exits(2);
        assert!(
            ran.err.contains(&format!("{file}:6:")) && ran.err.contains("the script of s"),
            "{ran:?}"
        );
    }
    fs::write(team.at("teams/team.json"), "{").unwrap();
    assert!(team.run(&["check"]).exits(2).err.contains(&format!("{file}:1:")));
}
