//! What the README promises: its demo, its script, its team and its verbs are real.

use std::{fs, process::Command};

use crate::team::{Team, has_program};

fn of_repository(path: &str) -> String {
    fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The first block of the README in `language`.
fn block(language: &str) -> String {
    let readme = of_repository("README.md");
    let (_, rest) = readme.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

fn git(team: &Team, args: &[&str]) {
    let identity = ["-c", "user.name=anna", "-c", "user.email=anna@example.com"];
    let mut command = Command::new("git");
    command.args(identity).args(args).current_dir(team.at("."));
    assert!(command.output().unwrap().status.success(), "git {args:?}");
}

#[test]
fn the_demo_reports_on_a_repository() {
    let team = Team::new(&of_repository("teams/demo.json"));
    fs::create_dir(team.at("src")).unwrap();
    fs::write(team.at("src/price.rs"), "// TODO: round to cents\n").unwrap();
    if has_program("git") {
        git(&team, &["init", "--quiet"]);
        git(&team, &["add", "README.md", "src"]);
        git(&team, &["commit", "--quiet", "--message", "Open the shop"]);
    }
    let report = team.run(&["run", "teams/team.json", "--timeout", "60"]).ok();
    for part in ["README.md (9 bytes)", "# A test", "1 .rs", "src/price.rs:1:// TODO: round"] {
        assert!(report.contains(part), "{part} is not in\n{report}");
    }
    let history = if has_program("git") { "Open the shop" } else { "no git history" };
    assert!(report.contains(history), "{report}");
}

#[test]
fn the_demo_reports_on_a_folder_with_nothing_in_it() {
    let team = Team::new(&of_repository("teams/demo.json"));
    fs::remove_file(team.at("README.md")).unwrap();
    let report = team.run(&["run", "--timeout", "60"]).ok();
    for part in ["teams/", "No such file", "1 .json", "no git history", "none"] {
        assert!(report.contains(part), "{part} is not in\n{report}");
    }
}

#[test]
fn the_script_sends_and_waits() {
    assert!(has_program("python3"), "this test runs the README's script, which needs python3");
    let team = Team::new(r#"{"teammates": {"lead": {}, "scout": {}}}"#);
    fs::write(team.at("ask.py"), block("python")).unwrap();
    let _daemon = team.up();
    let ask = |content: &str| {
        let mut command = Command::new("python3");
        command.args(["ask.py", "scout", content]).current_dir(team.at("."));
        let output = command.output().unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        (String::from_utf8(output.stdout).unwrap(), output.status.code())
    };
    assert_eq!(ask("read README.md"), ("# A test\n".to_owned(), Some(0)));
    let (said, code) = ask("read nothing.md");
    assert!(said.contains("No such file") && code == Some(1), "{code:?} {said}");
}

#[test]
fn the_team_with_every_key_is_a_team() {
    let team = Team::new(&block("jsonc"));
    assert!(team.run(&["check"]).ok().contains("fine, 4 teammates led by lead"));
}

#[test]
fn a_task_in_prose_is_not_done_by_running_the_tests() {
    assert!(has_program("make"), "this test needs make");
    let team = Team::new(r#"{"teammates": {"lead": {}}}"#);
    fs::write(team.at("Makefile"), "test:\n\t@echo 3 tests pass\n").unwrap();
    fs::remove_file(team.at("teams/team.json")).unwrap();
    team.run(&["init"]).ok();
    let _daemon = team.up();
    let task = team.run(&["task", "add", "Improve the parser"]).ok();
    assert_eq!(team.run(&["send", "tester", "go", "--wait"]).ok(), "3 tests pass\n");
    let list = team.run(&["task", "list"]).ok();
    assert!(list.contains("pending"), "{list}");
    let given = team.run(&["task", "add", "go", "--assignee", "tester"]).ok();
    assert_ne!(task, given);
    assert_eq!(team.run(&["wait", "--task", given.trim()]).ok(), "3 tests pass\n");
}

#[test]
fn every_verb_is_one() {
    let team = Team::new(r#"{"teammates": {"lead": {}}}"#);
    let mut verbs = 0;
    for (name, text) in
        ["README.md", "CHANGELOG.md", "src/cli/formats.txt"].map(|path| (path, of_repository(path)))
    {
        // A verb stands behind `postroom` where that begins a command.
        for start in ["`postroom ", "$ postroom "] {
            for rest in text.split(start).skip(1) {
                let verb: String = rest.chars().take_while(char::is_ascii_lowercase).collect();
                let help = team.run(&["help", &verb]);
                assert_eq!(help.code, 0, "{name} names `postroom {verb}`: {}", help.err);
                verbs += 1;
            }
        }
    }
    assert!(verbs > 20, "{verbs}");
}

#[test]
fn formats_fit_a_terminal() {
    let team = Team::new(r#"{"teammates": {"lead": {}}}"#);
    for topic in ["formats", "program"] {
        let help = team.run(&["help", topic]).ok();
        assert!(help.lines().count() <= 170, "{topic}");
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
