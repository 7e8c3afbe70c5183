//! The verbs that start and end, the signals, and what goes wrong in between.

use std::fs;

use crate::team::Team;

const TEAM: &str = r#"{
  "permission_mode": "bypass",
  "limits": {"grace_s": 1},
  "teammates": {"lead": {}, "scout": {}, "other": {}}
}"#;

fn long_command(team: &Team, name: &str) {
    team.append(name, "{\"id\":\"long\",\"content\":\"run sleep 60\"}\n");
    team.until("the command", |team| (team.left_over() > 0).then_some(()));
}

#[test]
fn stop_and_start_with_the_daemon_up() {
    let team = Team::new(TEAM);
    let mut daemon = team.up();
    let ran = team.run(&["stop", "scout"]).exits(0);
    assert_eq!(ran.err, "scout: stopped; no unread mail is left\n");
    assert_eq!(team.run(&["stop", "scout"]).exits(0).err, "scout is stopped\n");
    team.append("scout", "{\"id\":\"m\",\"content\":\"answer: here\"}\n");
    assert_eq!(team.run(&["start", "scout"]).exits(0).err, "scout is started\n");
    assert_eq!(team.run(&["start", "scout"]).exits(0).err, "scout is running\n");
    assert_eq!(team.until_answer_to("m")["content"], "here");
    let ran = team.run(&["start", "scot"]).exits(2);
    assert!(ran.err.contains("no teammate is called scot; there are "), "{}", ran.err);
    let down = team.run(&["down"]).exits(0);
    assert_eq!(down.err, "down; `postroom up` goes on where it left off\n");
    assert_eq!(daemon.wait(), 0);
    assert_eq!(team.run(&["down"]).exits(0).err, "no daemon is up\n");
}

#[test]
fn stop_and_start_with_the_daemon_down() {
    let team = Team::new(TEAM);
    let mut first = team.up();
    team.run(&["down"]).ok();
    assert_eq!(first.wait(), 0);
    let ran = team.run(&["stop", "scout"]).exits(0);
    assert_eq!(ran.err, "no daemon is up: scout stays stopped at the next `postroom up`\n");
    team.append("scout", "{\"id\":\"m\",\"content\":\"answer: here\"}\n");
    let mut daemon = team.up();
    assert!(daemon.said.contains("scout stays stopped, as it was"), "{}", daemon.said);
    daemon.signal("INT");
    assert_eq!(daemon.wait(), 0);
    assert_eq!(team.answers().len(), 0);
    let ran = team.run(&["start", "scout"]).exits(0);
    assert_eq!(ran.err, "no daemon is up: scout runs from the next `postroom up` on\n");
    let _daemon = team.up();
    assert_eq!(team.until_answer_to("m")["content"], "here");
}

#[test]
fn restart_is_a_down_and_an_up_and_loses_nothing() {
    let team = Team::new(TEAM);
    for life in 1..=5 {
        let mut daemon = team.up();
        team.append("scout", "{\"content\":\"answer: here\"}\n");
        team.run(&["down"]).ok();
        assert_eq!(daemon.wait(), 0);
        assert_eq!(team.life("scout")["life"], life);
    }
    let answers = team.answers();
    assert!(answers.iter().all(|line| line["content"] == "here"));
    let mut daemon = team.up();
    team.until("five answers", |team| (team.answers().len() >= 5).then_some(()));
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    assert_eq!(team.answers().len(), 5);
}

#[test]
fn down_with_drain_works_off_all_mail() {
    let team = Team::new(TEAM);
    let mut daemon = team.up();
    for id in 0..20 {
        team.append("scout", format!("{{\"id\":\"m{id}\",\"content\":\"run sleep 0.02\"}}\n"));
    }
    team.run(&["down", "--drain"]).ok();
    assert_eq!(daemon.wait(), 0);
    assert_eq!(team.answers().iter().filter(|it| it["status"] == "ok").count(), 20);
}

#[test]
fn down_ends_a_command_after_the_grace_and_force_at_once() {
    for how in [&["down"][..], &["down", "--force"]] {
        let team = Team::new(TEAM);
        let mut daemon = team.up();
        long_command(&team, "scout");
        team.run(how).ok();
        daemon.wait();
        assert_eq!(team.left_over(), 0, "{how:?}");
        assert_eq!(team.life("scout")["desired"], "running");
        let _daemon = team.up();
        let answer = team.until_answer_to("long");
        assert_eq!(answer["status"], "failed", "{answer}");
        assert_eq!(team.answers().iter().filter(|it| it["in_reply_to"] == "long").count(), 1);
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    let team = Team::new(&TEAM.replace("\"grace_s\": 1", "\"grace_s\": 600"));
    let mut daemon = team.up();
    long_command(&team, "scout");
    daemon.signal("INT");
    team.until_state("lead", "stopped");
    daemon.signal("INT");
    assert_eq!(daemon.wait(), 130);
    assert_eq!(team.left_over(), 0);
}

#[test]
fn orders_older_than_the_daemon_are_void() {
    let team = Team::new(TEAM);
    team.append(
        "daemon",
        "{\"id\":\"d\",\"content\":\"down\"}\n{\"id\":\"s\",\"content\":\"start scout\"}\n",
    );
    let _daemon = team.up();
    for id in ["d", "s"] {
        let answer = team.until_answer_to(id);
        assert_eq!(answer["status"], "denied", "{answer}");
        assert!(answer["content"].as_str().unwrap().starts_with("void: "), "{answer}");
    }
    team.append("scout", "{\"id\":\"m\",\"content\":\"answer: here\"}\n");
    assert_eq!(team.until_answer_to("m")["content"], "here");
}

#[test]
fn orders_come_from_outside_the_team_only() {
    let team = Team::new(TEAM);
    let _daemon = team.up();
    team.append("daemon", "{\"id\":\"d\",\"from_agent\":\"scout\",\"content\":\"down\"}\n");
    let denied = team.until("the refusal", |team| {
        team.mail("scout").into_iter().find(|line| line["in_reply_to"] == "d")
    });
    assert_eq!(denied["status"], "denied");
}

#[test]
fn what_a_killed_daemon_has_left_running_is_ended_by_the_next() {
    let team = Team::new(TEAM);
    let mut daemon = team.up();
    let content = "run setsid sleep 61 & sleep 62 & sleep 63";
    team.append("scout", format!("{{\"id\":\"m\",\"content\":\"{content}\"}}\n"));
    team.until("four processes", |team| (team.left_over() >= 4).then_some(()));
    daemon.kill();
    assert!(team.left_over() >= 4);
    let daemon = team.up();
    assert!(daemon.said.contains("that an earlier life had left were ended"), "{}", daemon.said);
    assert_eq!(team.left_over(), 0);
    let answer = team.until_answer_to("m");
    assert!(answer["content"].as_str().unwrap().contains("unknown: "), "{answer}");
}

#[test]
fn an_interrupt_ends_the_tool_in_hand_and_the_run_goes_on() {
    let team = Team::new(TEAM);
    let _daemon = team.up();
    let content = "- run sleep 60\\nanswer: went on";
    team.append("scout", format!("{{\"id\":\"m\",\"content\":\"{content}\"}}\n"));
    team.until("the command", |team| (team.left_over() > 0).then_some(()));
    team.append("scout", "{\"id\":\"i\",\"content\":\"answer: hello\",\"interrupt\":true}\n");
    let first = team.until_answer_to("m");
    assert_eq!((&first["status"], &first["content"]), (&"ok".into(), &"went on".into()));
    assert_eq!(team.left_over(), 0);
    assert_eq!(team.until_answer_to("i")["content"], "hello");
}

#[test]
fn a_damaged_conversation_stops_one_teammate_and_says_what_to_mend() {
    let team = Team::new(TEAM);
    let mut daemon = team.up();
    team.append("scout", "{\"id\":\"m\",\"content\":\"answer: one\"}\n");
    team.until_answer_to("m");
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), 0);
    let file = team.conversation_file("scout");
    let good = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{{\"turn\":\"nonsense\"}}\n{good}")).unwrap();
    let _daemon = team.up();
    team.until_state("scout", "failed");
    let told = team.until("the notice", |team| {
        let mut mail = team.mail("user").into_iter();
        mail.find(|line| line["msg_type"] == "event" && line["from_agent"] == "daemon")
    });
    let text = told["content"].as_str().unwrap();
    assert!(text.starts_with("scout does not run any more: "), "{text}");
    assert!(text.contains("postroom start scout"), "{text}");
    team.append("other", "{\"id\":\"o\",\"content\":\"answer: others run\"}\n");
    assert_eq!(team.until_answer_to("o")["content"], "others run");
    team.append("scout", "{\"id\":\"later\",\"content\":\"answer: mended\"}\n");
    // It is stopped without a wait for somebody who can't answer.
    let stop = team.run(&["stop", "scout"]);
    assert_ne!(stop.code, 0, "{stop:?}");
    assert!(stop.err.contains("scout does not run"), "{stop:?}");
    fs::write(&file, good).unwrap();
    team.run(&["start", "scout"]).ok();
    assert_eq!(team.until_answer_to("later")["content"], "mended");
}

#[test]
fn a_command_that_kills_its_daemon_is_not_run_again() {
    let team = Team::new(TEAM);
    let mut daemon = team.up();
    let content = "run kill -9 $PPID";
    team.append("scout", format!("{{\"id\":\"m\",\"content\":\"{content}\"}}\n"));
    team.until("its death", |_| daemon.has_ended().then_some(()));
    let _daemon = team.up();
    let answer = team.until_answer_to("m");
    assert!(answer["content"].as_str().unwrap().contains("unknown: "), "{answer}");
}

#[test]
fn a_down_that_only_the_next_daemon_reads_ends_all_the_same() {
    let team = Team::new(TEAM);
    let mut first = team.up();
    first.signal("STOP");
    let mut down = team.command(&["down"]).spawn().unwrap();
    team.until("the order", |team| (!team.mail("daemon").is_empty()).then_some(()));
    first.kill();
    let mut second = team.up();
    team.until("the end of `down`", |_| down.try_wait().unwrap());
    assert!(!second.has_ended());
}
