//! Questions: they reach somebody, outlive a stop and a kill, and their answers are carried out once.

use std::{
    fs,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{
    plans::{decide, end, send, steps, until_asked},
    team::{Ran, Team, has_program},
};

const TEAM: &str = r#"{
  "limits": {"grace_s": 60},
  "teammates": {"lead": {}, "impl": {"permission_mode": "bypass", "plan_required": true}}
}"#;

fn lines(team: &Team, file: &str) -> usize {
    fs::read_to_string(team.at(file)).unwrap_or_default().lines().count()
}

/// The copies of a question in the user's mailbox.
fn copies(team: &Team, question: &str) -> usize {
    team.mail("user").iter().filter(|line| line["id"] == *question).count()
}

fn approvals(team: &Team) -> Vec<String> {
    let lines = team.run(&["approvals", "--json"]).ok();
    let views = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    views.map(|view| view["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_question_outlives_a_stop_and_is_carried_out_once_after_the_start() {
    let team = Team::new(TEAM);
    let daemon = team.up();
    for (name, work) in
        [("impl", "plan: write\nrun echo x >> impl.txt"), ("lead", "run echo x >> lead.txt")]
    {
        send(&team, name, &format!("m-{name}"), work);
        let question = until_asked(&team, name, 1);
        // A stop ends the wait at once, whatever the grace is.
        team.run(&["stop", name]).ok();
        assert_eq!(approvals(&team), [&*question]);
        team.run(&["approve", &question]).ok();
        assert!(approvals(&team).is_empty());
        team.run(&["start", name]).ok();
        assert_eq!(team.until_answer_to(&format!("m-{name}"))["status"], "ok");
        assert_eq!(lines(&team, &format!("{name}.txt")), 1);
        assert_eq!((steps(&team, name, "asked").len(), copies(&team, &question)), (1, 1));
    }
    end(&team, daemon);
}

#[test]
fn a_question_outlives_a_kill_and_an_answer_meanwhile_counts() {
    for yes in [true, false] {
        let team = Team::new(TEAM);
        let mut daemon = team.up();
        send(&team, "impl", "m", "plan: write\nrun echo x >> impl.txt");
        send(&team, "lead", "n", "run echo x >> lead.txt");
        let questions = ["impl", "lead"].map(|name| until_asked(&team, name, 1));
        daemon.kill();
        assert_eq!(approvals(&team).len(), 2);
        for (name, question) in ["impl", "lead"].iter().zip(&questions) {
            decide(&team, name, "user", &format!("d-{name}"), question, yes);
        }
        assert!(approvals(&team).is_empty());
        let daemon = team.up();
        let status = if yes { "ok" } else { "failed" };
        assert_eq!(team.until_answer_to("m")["status"], status);
        assert_eq!(team.until_answer_to("n")["status"], status);
        for (name, question) in ["impl", "lead"].iter().zip(&questions) {
            assert_eq!(lines(&team, &format!("{name}.txt")), usize::from(yes));
            assert_eq!((steps(&team, name, "asked").len(), copies(&team, question)), (1, 1));
        }
        end(&team, daemon);
    }
}

#[test]
fn a_kill_while_nobody_answers_asks_the_same_question_on() {
    let team = Team::new(TEAM);
    send(&team, "lead", "n", "run echo x >> lead.txt");
    let mut daemon = team.up();
    let question = until_asked(&team, "lead", 1);
    daemon.kill();
    let daemon = team.up();
    team.until_state("lead", "waiting");
    assert_eq!(approvals(&team), [&*question]);
    team.run(&["approve", &question]).ok();
    assert_eq!(team.until_answer_to("n")["status"], "ok");
    assert_eq!((lines(&team, "lead.txt"), copies(&team, &question)), (1, 1));
    end(&team, daemon);
}

#[test]
fn a_question_of_a_task_that_a_kill_gave_back_is_open_no_more() {
    let team = Team::new(r#"{"teammates": {"lead": {"claims": "any"}}}"#);
    team.append("tasks", "{\"title\":\"run echo x >> task.txt\"}\n");
    let mut daemon = team.up();
    let first = until_asked(&team, "lead", 1);
    daemon.kill();
    decide(&team, "lead", "user", "late", &first, true);
    let daemon = team.up();
    let second = until_asked(&team, "lead", 2);
    let is_told = |line: &Value| line["in_reply_to"] == "late";
    assert!(team.mail("user").iter().any(is_told), "the answer to the first changes nothing");
    assert_eq!(approvals(&team), [&*second]);
    team.run(&["approve", &first]).exits(1);
    team.run(&["approve", &second]).ok();
    team.run(&["wait", "--task", "1", "--timeout", "30"]).ok();
    assert_eq!(lines(&team, "task.txt"), 1);
    end(&team, daemon);
}

#[test]
fn always_lets_the_same_happen_until_the_next_explicit_start() {
    let team = Team::new(TEAM);
    let mut daemon = team.up();
    let work = "run echo x >> same.txt";
    send(&team, "lead", "1", work);
    team.run(&["approve", &until_asked(&team, "lead", 1), "--always"]).ok();
    team.until_answer_to("1");
    send(&team, "lead", "2", work);
    assert_eq!(team.until_answer_to("2")["status"], "ok");
    daemon.kill();
    daemon = team.up();
    send(&team, "lead", "3", work);
    assert_eq!(team.until_answer_to("3")["status"], "ok");
    assert_eq!(steps(&team, "lead", "asked").len(), 1, "a kill forgets nothing");
    send(&team, "lead", "4", "run echo y >> other.txt");
    team.run(&["approve", &until_asked(&team, "lead", 2)]).ok();
    team.until_answer_to("4");
    team.run(&["stop", "lead"]).ok();
    team.run(&["start", "lead"]).ok();
    send(&team, "lead", "5", work);
    team.run(&["reject", &until_asked(&team, "lead", 3), "not any more"]).ok();
    let refused = team.until_answer_to("5");
    assert!(refused["content"].as_str().unwrap().contains("not any more"), "{refused}");
    assert_eq!(lines(&team, "same.txt"), 3);
    end(&team, daemon);
}

#[test]
fn rules_allow_ask_and_deny() {
    let team = Team::new(
        r#"{"rules": {"allow": ["write_file(free/**)", "bash(echo:*)"], "ask": ["edit_file"],
            "deny": ["bash(touch:*)"]},
          "teammates": {"lead": {}, "auto": {"permission_mode": "auto"},
            "free": {"permission_mode": "bypass"}}}"#,
    );
    let daemon = team.up();
    send(&team, "lead", "1", "run echo free\nwrite free/a.txt: a");
    assert_eq!(team.until_answer_to("1")["status"], "ok");
    for name in ["lead", "auto", "free"] {
        send(&team, name, &format!("d-{name}"), "run touch no.txt");
        let denied = team.until_answer_to(&format!("d-{name}"));
        assert!(denied["content"].as_str().unwrap().contains("the rule `deny"), "{denied}");
    }
    assert!(approvals(&team).is_empty());
    send(&team, "auto", "2", "edit README.md: test => rule");
    team.run(&["approve", &until_asked(&team, "auto", 1)]).ok();
    assert_eq!(team.until_answer_to("2")["status"], "ok");
    send(&team, "lead", "3", "write other.txt: a");
    team.run(&["reject", &until_asked(&team, "lead", 1), "no"]).ok();
    assert_eq!(team.until_answer_to("3")["status"], "failed");
    assert!(!team.at("no.txt").exists() && !team.at("other.txt").exists());
    end(&team, daemon);
}

#[test]
fn a_run_where_nobody_can_be_asked_refuses_unless_it_shall_wait() {
    let team = Team::new(TEAM);
    let refused = team.run(&["run", "run echo x >> lead.txt"]).exits(5);
    assert!(refused.err.contains("--wait-approvals"), "{}", refused.err);
    assert!(refused.out.contains("nobody is here to be asked"), "{}", refused.out);
    assert_eq!(lines(&team, "lead.txt"), 0);
    let mut waiting = team.command(&["run", "--wait-approvals", "run echo x >> lead.txt"]);
    let waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let question = until_asked(&team, "lead", 1);
    team.run(&["approve", &question]).ok();
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(lines(&team, "lead.txt"), 1);
}

#[test]
fn an_open_question_needs_you_and_no_teammate_decides_it() {
    let team = Team::new(TEAM);
    let daemon = team.up();
    team.run(&["status", "--check"]).exits(0);
    send(&team, "lead", "n", "run echo x >> lead.txt");
    let question = until_asked(&team, "lead", 1);
    team.until_state("lead", "waiting");
    let status = team.run(&["status"]).ok();
    assert!(status.contains("NEEDS YOU"), "{status}");
    assert!(status.contains(&format!("next: postroom approve {question}")), "{status}");
    assert!(status.contains("for user to decide"), "{status}");
    team.run(&["status", "--check"]).exits(5);
    assert!(team.run(&["approvals"]).ok().contains("echo x >> lead.txt"));
    for args in [&["approve", &question][..], &["reject", &question, "no"], &["attach"]] {
        let output = team.command(args).env("POSTROOM_TEAMMATE", "lead").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("can't decide questions"));
    }
    // A word for it in other places decides nothing.
    send(&team, "lead", "free", "answer: approved");
    assert_eq!(approvals(&team), [&*question]);
    team.run(&["approve", &question]).ok();
    assert_eq!(team.until_answer_to("n")["status"], "ok");
    team.until_answer_to("free");
    team.run(&["status", "--check"]).exits(0);
    end(&team, daemon);
}

/// Runs the binary on a terminal where somebody types `answers`.
fn at_terminal(team: &Team, answers: &[&str], args: &[&str]) -> Ran {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/terminal.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(answers.join("\n")).arg(env!("CARGO_BIN_EXE_postroom")).args(args);
    let output = command.current_dir(team.at(".")).stdin(Stdio::null()).output().unwrap();
    Ran {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap_or(-1),
    }
}

#[test]
fn a_run_on_a_terminal_asks_there() {
    if !has_program("python3") {
        return;
    }
    let team = Team::new(TEAM);
    let long = "x".repeat(900);
    let write = format!("run echo {long}y >> long.txt");
    let yes = at_terminal(&team, &["what?", "d", "y"], &["run", &write]).exits(0).out;
    assert!(yes.contains("lead asks about leave for a call:"), "{yes}");
    assert!(yes.contains("type y, a, n"), "{yes}");
    assert!(yes.contains(&format!("{long}y")), "details are whole: {yes}");
    assert_eq!(lines(&team, "long.txt"), 1);
    let no = at_terminal(&team, &["n use the other file"], &["run", "run echo x >> no.txt"]);
    assert!(no.exits(1).out.contains("refused by the user: use the other file"));
    assert_eq!(lines(&team, "no.txt"), 0);
    let twice = "run echo x >> twice.txt\nrun echo x >> twice.txt";
    let always = at_terminal(&team, &["always"], &["run", twice]).exits(0).out;
    assert_eq!(always.matches("[y]es").count(), 1, "{always}");
    assert_eq!(lines(&team, "twice.txt"), 2);
}

#[test]
fn attach_asks_for_a_daemon_elsewhere() {
    if !has_program("python3") {
        return;
    }
    let team = Team::new(TEAM);
    let mut daemon = team.up();
    send(&team, "lead", "n", "run echo x >> lead.txt");
    until_asked(&team, "lead", 1);
    std::thread::scope(|scope| {
        let attached = scope.spawn(|| at_terminal(&team, &["yes of course"], &["attach"]));
        assert_eq!(team.until_answer_to("n")["status"], "ok");
        daemon.signal("TERM");
        assert_eq!(daemon.wait(), 0);
        let shown = attached.join().unwrap().exits(0).out;
        assert!(shown.contains("attached: questions come"), "{shown}");
    });
    assert_eq!(lines(&team, "lead.txt"), 1);
}

#[test]
fn a_question_says_which_subagent_or_task_it_is_about() {
    let team = Team::new(r#"{"teammates": {"lead": {}, "worker": {}}}"#);
    let _daemon = team.up();
    team.append("lead", "{\"id\":\"m\",\"content\":\"delegate general: run touch a\"}\n");
    team.run(&["task", "add", "run touch b", "--assignee", "worker"]).ok();
    let open = team.until("both questions", |team| {
        let listed = team.run(&["approvals", "--json"]).ok();
        let read = listed.lines().map(|it| serde_json::from_str(it).unwrap());
        Some(read.collect::<Vec<Value>>()).filter(|it| it.len() == 2)
    });
    let (run, id) = (open[0]["trace_id"].as_str().unwrap(), open[0]["id"].as_str().unwrap());
    let lead = format!("lead (general, subagent-{})", &run[..8]);
    assert_eq!((&open[0]["asker"], &open[0]["by"]), (&"lead".into(), &lead.as_str().into()));
    assert_eq!(open[1]["by"], "worker (general-purpose, task 1)");
    let listed = team.run(&["approvals"]).ok();
    assert!(listed.contains(&format!("{id} {lead} asks since ")), "{listed}");
    let status = team.run(&["status"]).ok();
    assert!(status.contains(&format!("  {lead} asks: ")), "{status}");
    assert!(status.contains("  worker (general-purpose, task 1) asks: "), "{status}");
    let copy = |team: &Team| team.mail("user").into_iter().find(|it| it["id"] == id);
    let copy = team.until("its copy", copy);
    assert!(copy["content"].as_str().unwrap().starts_with(&format!("{lead} asks: ")), "{copy}");
    let waits = format!("waits for `postroom approve {id}`");
    let tree = team.run(&["trace", "lead"]).ok();
    assert_eq!(tree.matches(&waits).count(), 1, "{tree}");
    assert!(tree.lines().any(|it| it.contains(&run[..8]) && it.contains(&waits)), "{tree}");
    team.run(&["approve", id]).ok();
    team.until_answer_to("m");
    assert!(team.at("a").exists() && !team.run(&["trace", "lead"]).ok().contains(&waits));
}
