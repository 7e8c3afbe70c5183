//! The verbs that send and show, as a person and a script meet them: what they print where, and
//! their exit codes.

use std::process::Command;

use serde_json::Value;

use crate::team::{Ran, Team};

/// A lead, a scout, and one whose every answer takes a minute.
pub const TWO: &str = r#"{
  "teammates": {"lead": {}, "scout": {}, "slow": {"permission_mode": "bypass", "script": "run sleep 60"}},
  "outside": ["ci"]
}"#;

/// What a verb has printed with `--json`.
pub fn json(text: &str) -> Vec<Value> {
    let values: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(values.iter().all(|it| it["schema"] == 1), "{text}");
    values
}

/// What a script prints in which `postroom` is the program.
fn shell(team: &Team, script: &str) -> Ran {
    let program = env!("CARGO_BIN_EXE_postroom");
    let mut shell = Command::new("sh");
    let output = shell
        .args(["-c", &script.replace("postroom", program)])
        .current_dir(team.at("."))
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    Ran {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap_or(-1),
    }
}

#[test]
fn send_prints_the_id_alone_and_wait_the_answer() {
    let team = Team::new(TWO);
    let sent = team.run(&["send", "scout", "answer: x"]).exits(0);
    let id = sent.out.trim_end().to_owned();
    assert_eq!((id.len(), sent.out.len()), (12, 13));
    assert_eq!(
        sent.err,
        "no daemon is up: the message is kept, and `postroom up` has it answered\n"
    );
    let down = team.run(&["wait", &id]).exits(3);
    assert!(down.err.contains(&format!("no daemon is here to answer {id}")), "{down:?}");
    let daemon = team.up();
    assert_eq!(
        team.run(&["wait", &id[..5]]).exits(0),
        Ran { out: "x\n".into(), err: String::new(), code: 0 }
    );
    assert_eq!(json(&team.run(&["wait", "--json", &id]).ok())[0]["in_reply_to"], id.as_str());
    let sent = json(&team.run(&["send", "--json", "scout", "answer: y"]).ok());
    assert_eq!(sent[0]["to"], "scout");
    for (args, code, out) in [
        (&["send", "scout", "answer: y", "--wait"][..], 0, "y\n"),
        (&["send", "team-lead", "answer: y", "--wait"], 0, "y\n"),
        (&["send", "scout", "answer: y", "--wait", "--from", "ci"], 0, "y\n"),
        (&["send", "scout", "answer: y", "--wait", "--from", "stranger"], 0, "y\n"),
        (&["send", "scout", "answer: y", "--wait", "--id", "mine:1"], 0, "y\n"),
        (&["send", "scout", "answer: y", "--wait", "--id", "mine:1"], 0, "y\n"),
        (&["wait", "mine:1"], 0, "y\n"),
        (&["send", "scout", "answer: y", "--id", "../x"], 2, ""),
        (&["send", "nobody", "x"], 2, ""),
        (&["send", "scout", "x", "--from", "lead"], 2, ""),
        (&["send", "scout", "x", "--from", "daemon"], 2, ""),
        (&["send", "scout", "x", "--timeout", "1"], 2, ""),
        (&["wait", "zz"], 2, ""),
        (&["wait", "zzzz"], 1, ""),
        (&["send", "slow", "x", "--wait", "--timeout", "0"], 124, ""),
        (&["send", "scout", "answer: y", "--wait", "--timeout", "18446744073709551615"], 0, "y\n"),
    ] {
        let ran = team.run(args).exits(code);
        assert_eq!(ran.out, out, "{args:?} {}", ran.err);
        assert_eq!(ran.err.is_empty(), code == 0, "{args:?} {}", ran.err);
    }
    let known = "nobody is called nobody; there are ci, lead, scout, slow and user";
    assert!(team.run(&["send", "nobody", "x"]).err.contains(known));
    let late = team.run(&["send", "slow", "x", "--wait", "--timeout", "0"]).err;
    assert!(late.contains("is not answered; `postroom wait` goes on waiting"), "{late}");
    let letters = "head -c 200000 /dev/zero | tr '\\0' x";
    let long = shell(&team, &format!("{letters} | postroom send scout -")).exits(0);
    let sent = team.mail("scout").into_iter().find(|it| it["id"] == long.out.trim_end()).unwrap();
    assert_eq!(sent["content"].as_str().unwrap(), "x".repeat(200_000));
    let bad = shell(&team, "printf '\\377' | postroom send scout -").exits(2);
    assert_eq!(bad.err, "postroom: standard input is not UTF-8\n");
    drop(daemon);
}

#[test]
fn mail_is_shown_and_never_consumed() {
    let team = Team::new(TWO);
    let _daemon = team.up();
    let id = team.run(&["send", "scout", "answer: one\n  two"]).ok().trim_end().to_owned();
    team.run(&["wait", &id]).exits(0);
    let inbox = team.run(&["inbox"]).ok();
    assert!(inbox.contains(&format!("from scout ok to {id} (")), "{inbox}");
    assert_eq!(team.run(&["inbox"]).ok(), inbox);
    let shown = json(&team.run(&["inbox", "scout", "--json"]).ok());
    assert_eq!((&shown[0]["id"], &shown[0]["sealed"]), (&id.as_str().into(), &false.into()));
    assert_eq!(team.run(&["inbox", "ci"]).exits(0).err, "no mail for ci\n");
    assert!(team.run(&["inbox", "nobody"]).exits(2).err.contains("there are ci, lead"));
    let log = json(&team.run(&["log", "--json"]).ok());
    assert_eq!(log.len(), 2);
    let plain = team.run(&["log", "scout", "--since", "1h"]).ok();
    assert!(plain.lines().next().unwrap().ends_with("user → scout  request  answer: one…"));
    assert!(team.run(&["log", "--since", "noon"]).exits(2).err.contains("is no time"));
    let nothing = "no mail from or to nobody; there are ci, lead, scout, slow and user\n";
    assert_eq!(team.run(&["log", "nobody"]).exits(0).err, nothing);
    let all = team.run(&["log", "-n", "18446744073709551615"]).ok();
    assert_eq!(all.lines().count(), 2);
    let show = team.run(&["show", &id[..4]]).ok();
    assert!(show.contains("from     user (as the line says)"), "{show}");
    assert!(show.contains("answered by scout, ok:") && show.contains(".mailbox/traces/"), "{show}");
    let show = json(&team.run(&["show", "--json", &id]).ok());
    assert_eq!(show[0]["about_it"][0]["content"], "one\ntwo");
    assert!(team.at(show[0]["trace"].as_str().unwrap()).is_file());
    assert!(team.run(&["show", "ab"]).exits(2).err.contains("too short"));
    assert!(team.run(&["show", "zzzz"]).exits(1).err.contains("no message has an id"));
}

#[test]
fn as_many_lines_are_shown_as_were_asked_for() {
    let team = Team::new(TWO);
    for number in 0..60 {
        let text = format!("{number} {}", "x".repeat(8000));
        team.append("user", format!("{}\n", serde_json::json!({"content": text, "from": "ci"})));
    }
    for count in [0, 1, 20, 59, 60] {
        for verb in [&["inbox", "user"][..], &["log"]] {
            let wanted = count.to_string();
            let args = [verb, &["--json", "-n", &wanted]].concat();
            let shown = json(&team.run(&args).ok());
            assert_eq!(shown.len(), count, "{args:?}");
            let first = shown.first().map(|it| it["content"].as_str().unwrap());
            let expected = format!("{} ", 60 - count);
            assert!(first.is_none_or(|text| text.starts_with(&expected)), "{args:?}");
        }
    }
}

#[test]
fn dead_letters_are_listed_shown_sent_again_and_dropped() {
    let team = Team::new(TWO);
    assert_eq!(team.run(&["dead", "list"]).exits(0).err, "no dead letters\n");
    let _daemon = team.up();
    team.append("scout", "{\"content\":\"answer: x\",\"id\":\"a1b\"}\n");
    team.append("scout", "{\"content\":\"answer: y\",\"id\":\"a1b\"}\nnonsense\n");
    let list = team.until("two dead letters", |team| {
        let list = json(&team.run(&["dead", "list", "--json"]).ok());
        (list.len() == 2).then_some(list)
    });
    let ids: Vec<&str> = list.iter().map(|it| it["id"].as_str().unwrap()).collect();
    let shown = team.run(&["dead", "show", &ids[1][..6]]).ok();
    assert!(shown.contains("mailbox  scout.jsonl") && shown.ends_with("nonsense\n"), "{shown}");
    let again = team.run(&["dead", "retry", ids[0]]).ok();
    assert_eq!(team.run(&["wait", again.trim_end()]).ok(), "y\n");
    let failed = team.run(&["dead", "retry", ids[1]]).exits(1).err;
    assert!(failed.contains("still can't be read"), "{failed}");
    let dropped = team.run(&["dead", "drop", ids[1]]).exits(0).err;
    assert_eq!(dropped, format!("{} is struck from the list\n", ids[1]));
    team.run(&["dead", "show", ids[1]]).exits(1);
    assert_eq!(team.run(&["status", "--check"]).exits(0).err, "");
}

#[test]
fn help_and_completions_are_data() {
    let team = Team::new(TWO);
    for topic in ["clerk", "send", "dead"] {
        let ran = team.run(&["help", topic]).exits(0);
        assert!(ran.err.is_empty() && ran.out.lines().count() > 5, "{topic}: {ran:?}");
    }
    assert!(
        team.run(&["help", "nothing"]).exits(2).err.contains("`postroom help` lists the verbs")
    );
    for shell in ["bash", "zsh", "fish"] {
        assert!(team.run(&["completions", shell]).ok().contains("postroom"));
    }
    assert!(team.run(&["--version"]).ok().starts_with("postroom "));
    assert_eq!(team.run(&[]).exits(2).out, "");
    assert!(team.run(&["frobnicate"]).exits(2).err.contains("frobnicate"));
}

#[test]
fn a_reader_that_goes_away_is_no_fault() {
    let team = Team::new(TWO);
    for number in 0..2000 {
        team.append("user", format!("{{\"content\":\"{number}\",\"from\":\"ci\"}}\n"));
    }
    for verb in [
        "help formats",
        "help",
        "completions bash",
        "log -n 5000",
        "inbox -n 5000 --json",
        "log -f -n 5000",
        "--help",
    ] {
        let ran = shell(&team, &format!("postroom {verb} | head -1"));
        assert_eq!((ran.out.lines().count(), ran.err.as_str(), ran.code), (1, "", 0), "{verb}");
    }
    assert!(!shell(&team, "NO_COLOR=1 postroom status; postroom status").out.contains('\u{1b}'));
}

#[test]
fn commands_of_teammates_may_not_do_what_people_may() {
    let mut team = Team::new(TWO);
    let _daemon = team.up();
    team.set_env("POSTROOM_TEAMMATE", "scout");
    for args in [
        &["stop", "lead"][..],
        &["start", "lead"],
        &["restart", "lead"],
        &["down"],
        &["up"],
        &["run", "x"],
        &["send", "lead", "x", "--from", "user"],
        &["send", "lead", "x", "--interrupt"],
        &["dead", "retry", "abc"],
        &["dead", "drop", "abc"],
    ] {
        let ran = team.run(args).exits(2);
        assert!(
            ran.err.starts_with("postroom: scout is a teammate, and its commands can't "),
            "{ran:?}"
        );
    }
    team.run(&["send", "lead", "answer: x"]).ok();
    assert_eq!(team.mail("lead")[0]["from_agent"], "scout");
    team.run(&["send", "daemon", "down"]).ok();
    team.until("a denial", |team| {
        team.mail("scout").iter().find(|it| it["status"] == "denied").cloned()
    });
    team.run(&["status"]).exits(0);
}
