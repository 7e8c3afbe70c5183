//! A teammate's life: what ends it, what does not, and what each start makes of a SHUTDOWN.

use std::fmt::Write;

use serde_json::Value;

use crate::team::{Daemon, Team};

const TEAM: &str = r#"{
  "permission_mode": "bypass",
  "limits": {"grace_s": 1},
  "teammates": {"lead": {}, "scout": {}, "other": {}},
  "outside": ["ci"]
}"#;

const SHUTDOWN: &str = "{\"id\":\"halt\",\"protocol\":\"shutdown\"}\n";

/// How a life of the daemon ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Down,
    Term,
    Crash,
    KillDuringDown,
}

/// When a SHUTDOWN is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Before,
    During,
    After,
}

/// A life that ends with a SHUTDOWN about it, and what a start makes of it.
fn cell(end: End, when: When, starts_first: bool) -> String {
    let team = Team::new(TEAM);
    let mut daemon = team.up();
    if when == When::Before {
        team.append("scout", SHUTDOWN);
        team.until_state("scout", "stopped");
    }
    if end != End::Crash {
        // Something in hand makes the end last for the grace.
        team.append("other", "{\"id\":\"long\",\"content\":\"run sleep 60\"}\n");
        team.until("the long command", |team| (team.left_over() > 0).then_some(()));
    }
    end_life(&team, &mut daemon, end, when == When::During);
    if when == When::After {
        team.append("scout", SHUTDOWN);
    }
    team.append("scout", "{\"id\":\"mail\",\"content\":\"answer: here\"}\n");
    if starts_first {
        team.run(&["start", "scout"]).ok();
    }
    let mut daemon = team.up();
    let answer = |team: &Team, id: &str| {
        let mut all = team.responses().into_iter();
        all.find(|line| line["in_reply_to"] == id).map(|line| line["status"].clone())
    };
    let halt = team.until("the answer to the SHUTDOWN", |team| answer(team, "halt"));
    let runs = team.until("scout runs or is stopped", |team| {
        let is_stopped = team.life("scout")["desired"] == "stopped";
        (is_stopped || answer(team, "mail").is_some()).then_some(!is_stopped)
    });
    if !runs {
        assert_eq!(answer(&team, "mail"), None);
        team.until_state("scout", "stopped");
        team.run(&["start", "scout"]).ok();
    }
    let mail = team.until("the mail's answer", |team| answer(team, "mail"));
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    let count = team.responses().iter().filter(|line| line["from_agent"] == "scout").count();
    assert_eq!(count, 2, "{}", team.everything());
    assert_eq!(team.left_over(), 0);
    let runs = if runs { "runs" } else { "stays stopped, until it is started" };
    format!("SHUTDOWN {}, {runs}, mail {}", halt.as_str().unwrap(), mail.as_str().unwrap())
}

fn end_life(team: &Team, daemon: &mut Daemon, end: End, shutdown: bool) {
    let write = || {
        if shutdown {
            team.append("scout", SHUTDOWN);
        }
    };
    match end {
        End::Down | End::Term => {
            if end == End::Down {
                team.append("daemon", "{\"id\":\"order\",\"content\":\"down\"}\n");
            } else {
                daemon.signal("TERM");
            }
            team.until_state("lead", "stopped");
            write();
            assert_eq!(daemon.wait(), 0);
        }
        End::Crash => {
            // Nobody can obey what is written to a daemon that stands still.
            daemon.signal("STOP");
            write();
            daemon.kill();
        }
        End::KillDuringDown => {
            daemon.signal("TERM");
            team.until_state("lead", "stopped");
            daemon.signal("STOP");
            write();
            daemon.kill();
        }
    }
}

fn table(end: End) -> String {
    let mut table = String::new();
    for (name, when) in [("before", When::Before), ("during", When::During), ("after", When::After)]
    {
        for (verb, starts_first) in [("up", false), ("start, up", true)] {
            let _ = writeln!(table, "{name}; {verb}: {}", cell(end, when, starts_first));
        }
    }
    table
}

/// A SHUTDOWN that the life could obey is obeyed; one from after its end is stale.
const IN_ORDER: &str = "\
before; up: SHUTDOWN stopped, stays stopped, until it is started, mail ok
before; start, up: SHUTDOWN stopped, runs, mail ok
during; up: SHUTDOWN stopped, stays stopped, until it is started, mail ok
during; start, up: SHUTDOWN stopped, runs, mail ok
after; up: SHUTDOWN denied, runs, mail ok
after; start, up: SHUTDOWN denied, runs, mail ok
";

/// After a crash nobody knows whether the life had ended: each SHUTDOWN is obeyed, unless somebody
/// has started the teammate since.
const CUT_OFF: &str = "\
before; up: SHUTDOWN stopped, stays stopped, until it is started, mail ok
before; start, up: SHUTDOWN stopped, runs, mail ok
during; up: SHUTDOWN stopped, stays stopped, until it is started, mail ok
during; start, up: SHUTDOWN denied, runs, mail ok
after; up: SHUTDOWN stopped, stays stopped, until it is started, mail ok
after; start, up: SHUTDOWN denied, runs, mail ok
";

#[test]
fn shutdown_about_a_down() {
    assert_eq!(table(End::Down), IN_ORDER);
}

#[test]
fn shutdown_about_a_sigterm() {
    assert_eq!(table(End::Term), IN_ORDER);
}

#[test]
fn shutdown_about_a_crash() {
    assert_eq!(table(End::Crash), CUT_OFF);
}

#[test]
fn shutdown_about_a_kill_during_a_down() {
    assert_eq!(table(End::KillDuringDown), CUT_OFF);
}

/// Appends a SHUTDOWN and waits for the response to it, which it gives with the events before.
fn shut_down(team: &Team, name: &str) -> Vec<(Value, Value)> {
    team.append(name, SHUTDOWN);
    team.until("the response", |team| {
        let about = team.mail("user").into_iter().filter(|line| line["in_reply_to"] == "halt");
        let about: Vec<_> =
            about.map(|line| (line["msg_type"].clone(), line["content"].clone())).collect();
        about.iter().any(|(kind, _)| kind == "response").then_some(about)
    })
}

fn stopped(left: &str) -> Vec<(Value, Value)> {
    let response = format!("stopped; {left}");
    vec![("event".into(), "stopping".into()), ("response".into(), response.into())]
}

#[test]
fn a_shutdown_ends_a_command_and_its_message_is_handled_at_the_next_start() {
    let team = Team::new(TEAM);
    let daemon = team.up();
    team.append("scout", "{\"id\":\"long\",\"content\":\"run sleep 60\"}\n");
    team.append("scout", "{\"id\":\"next\",\"content\":\"answer: next\"}\n");
    team.until("the command", |team| (team.left_over() > 0).then_some(()));
    let said = shut_down(&team, "scout");
    assert_eq!(said, stopped("2 unread messages are left for its next start"));
    team.until_state("scout", "stopped");
    assert_eq!(team.left_over(), 0);
    let life = team.life("scout");
    assert_eq!((&life["taken"], &life["cursor"][1]), (&Value::Null, &0.into()));
    team.run(&["start", "scout"]).ok();
    team.until_answer_to("next");
    let answers = team.answers();
    let told: Vec<_> = answers.iter().map(|it| (&it["in_reply_to"], &it["status"])).collect();
    let expected: [(Value, Value); 3] = [
        ("halt".into(), "stopped".into()),
        ("long".into(), "failed".into()),
        ("next".into(), "ok".into()),
    ];
    assert_eq!(told, expected.each_ref().map(|(id, status)| (id, status)));
    let text = answers[1]["content"].as_str().unwrap();
    assert!(text.contains("interrupted: the teammate was stopped during this call"), "{text}");
    drop(daemon);
}

#[test]
fn a_shutdown_ends_a_wait_for_an_answer_and_the_question_is_asked_once() {
    let team = Team::new(TEAM);
    let _daemon = team.up();
    team.run(&["stop", "other"]).ok();
    team.append("scout", "{\"id\":\"asks\",\"content\":\"ask other: read README.md\"}\n");
    team.until_state("scout", "waiting");
    let said = shut_down(&team, "scout");
    assert_eq!(said, stopped("1 unread message is left for its next start"));
    team.until_state("scout", "stopped");
    team.run(&["start", "scout"]).ok();
    team.until_state("scout", "waiting");
    team.run(&["start", "other"]).ok();
    let answer = team.until_answer_to("asks");
    assert_eq!((&answer["status"], &answer["content"]), (&"ok".into(), &"# A test".into()));
    let asked = team.mail("other").iter().filter(|line| line["from_agent"] == "scout").count();
    assert_eq!(asked, 1);
}

#[test]
fn an_idle_teammate_is_stopped_once_by_ten_thousand_shutdowns() {
    let team = Team::new(TEAM);
    let mut daemon = team.up();
    let mut lines = String::new();
    for count in 0..10_000 {
        let _ = writeln!(lines, "{{\"id\":\"halt{count}\",\"protocol\":\"shutdown\"}}");
    }
    team.append("scout", lines);
    let answers = team.until_answered(10_000);
    assert!(answers.iter().all(|line| line["status"] == "stopped"));
    team.until_state("scout", "stopped");
    assert_eq!(team.life("scout")["life"], 1);
    team.run(&["start", "scout"]).ok();
    team.append("scout", "answer: here\n{\"id\":\"m\",\"content\":\"answer: here\"}\n");
    let answer = team.until_answer_to("m");
    assert_eq!(answer["content"], "here");
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    assert_eq!(team.answers().len(), 10_001);
}

#[test]
fn a_shutdown_with_drain_takes_its_turn() {
    let team = Team::new(TEAM);
    let _daemon = team.up();
    team.append(
        "scout",
        "{\"id\":\"one\",\"content\":\"run sleep 0.2\"}\n\
         {\"id\":\"two\",\"content\":\"answer: two\"}\n\
         {\"id\":\"halt\",\"protocol\":\"shutdown\",\"drain\":true}\n\
         {\"id\":\"three\",\"content\":\"answer: three\"}\n",
    );
    team.until_state("scout", "stopped");
    let order: Vec<_> = team.responses().iter().map(|it| it["in_reply_to"].clone()).collect();
    assert_eq!(order, ["one", "two", "halt"]);
    team.run(&["start", "scout"]).ok();
    assert_eq!(team.until_answer_to("three")["content"], "three");
}

#[test]
fn a_drain_that_a_down_overtakes_is_a_stop_all_the_same() {
    let team = Team::new(TEAM);
    let mut daemon = team.up();
    team.append("scout", "{\"id\":\"long\",\"content\":\"run sleep 60\"}\n");
    team.until("the command", |team| (team.left_over() > 0).then_some(()));
    team.append("scout", "{\"id\":\"halt\",\"protocol\":\"shutdown\",\"drain\":true}\n");
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    assert_eq!(team.life("scout")["desired"], "stopped");
    assert_eq!(team.responses()[0]["status"], "stopped");
}

#[test]
fn a_shutdown_stops_the_owner_of_its_mailbox_and_counts_from_few() {
    let team = Team::new(TEAM);
    let _daemon = team.up();
    // From a teammate that does not lead; from the lead by name, without its seal, from an outsider.
    team.append(
        "scout",
        "{\"id\":\"peer\",\"from_agent\":\"other\",\"protocol\":\"shutdown\"}\n\
         {\"id\":\"forged\",\"from_agent\":\"lead\",\"protocol\":\"shutdown\"}\n\
         {\"id\":\"m\",\"content\":\"answer: here\"}\n",
    );
    team.until_answer_to("m");
    let denied = |name: &str| {
        let mail = team.mail(name).into_iter().filter(|line| line["from_agent"] == "scout");
        mail.map(|line| line["status"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(denied("other"), ["denied"]);
    assert_eq!(denied("lead"), ["denied"]);
    team.append("scout", "{\"from_agent\":\"ci\",\"protocol\":\"shutdown\"}\n");
    team.until_state("scout", "stopped");
    // One that names somebody else is no message for whoever it lies with.
    team.append("other", "{\"to_agent\":\"lead\",\"protocol\":\"shutdown\"}\n");
    team.append("other", "{\"id\":\"n\",\"content\":\"answer: here\"}\n");
    team.until_answer_to("n");
    assert_eq!(team.life("lead")["desired"], "running");
    assert_eq!(team.life("other")["desired"], "running");
}

#[test]
fn a_shutdown_in_the_older_form_is_one() {
    let team = Team::new(TEAM);
    let _daemon = team.up();
    team.append(
        "scout",
        "{\"from_agent\":\"user\",\"content\":\"{\\\"protocol\\\":\\\"shutdown\\\"}\"}\n",
    );
    team.until_state("scout", "stopped");
    assert_eq!(team.responses()[0]["status"], "stopped");
}

#[test]
fn the_lead_stops_a_teammate() {
    let team = Team::new(TEAM);
    let _daemon = team.up();
    team.append("lead", "{\"content\":\"tool team_shutdown {\\\"name\\\": \\\"scout\\\"}\"}\n");
    team.until_state("scout", "stopped");
    team.until_answered(1);
    let response = team.until("the acknowledgement", |team| {
        team.mail("lead").into_iter().find(|line| line["msg_type"] == "response")
    });
    assert_eq!(
        (&response["from_agent"], &response["status"]),
        (&"scout".into(), &"stopped".into())
    );
}

#[test]
fn a_command_that_a_crash_cut_off_is_not_run_again_after_a_stop() {
    let team = Team::new(TEAM);
    let mut daemon = team.up();
    let line = "{\"id\":\"m\",\"content\":\"run echo x >> ran.txt; sleep 60\"}\n";
    team.append("scout", line);
    team.until("the command", |team| team.at("ran.txt").exists().then_some(()));
    daemon.signal("STOP");
    team.append("scout", SHUTDOWN);
    daemon.kill();
    let mut daemon = team.up();
    team.until_state("scout", "stopped");
    team.run(&["start", "scout"]).ok();
    let answer = team.until_answer_to("m");
    assert_eq!(std::fs::read_to_string(team.at("ran.txt")).unwrap(), "x\n");
    let text = answer["content"].as_str().unwrap();
    assert!(text.contains("unknown: the daemon stopped during this call"), "{text}");
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
}
