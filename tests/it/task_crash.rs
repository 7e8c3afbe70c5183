//! Kills while tasks are claimed, worked on and ended: every task ends once, is in one hand at a time,
//! and its end is told once.

use std::collections::BTreeMap;

use crate::team::Team;

const TEAM: &str = r#"{
  "permission_mode": "bypass",
  "teammates": {"lead": {"claims": "none"}, "a": {}, "b": {}}
}"#;

const PLACES: [&str; 4] =
    ["board-before-append", "board-after-append", "conversation-after-turn", "mail-after-append"];

fn with_tasks() -> Team {
    let team = Team::new(TEAM);
    team.append(
        "tasks",
        r#"{"title":"read README.md"}
{"title":"list","depends_on":[1]}
{"title":"read nothing.md","depends_on":["1"]}
{"title":"run echo x >> ran.txt","depends_on":[2]}
"#,
    );
    team
}

/// The ends of all tasks as the user was told of them.
fn told(team: &Team) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    for line in team.mail("user") {
        let content = line["content"].as_str().unwrap_or_default();
        if line["from_agent"] == "daemon" && content.starts_with("task ") {
            // Who did it is another one from time to time.
            let end = content.lines().next().unwrap().replace(", tried by ", " by ");
            *told.entry(end.split(" by ").next().unwrap().to_owned()).or_default() += 1;
        }
    }
    told
}

/// One life of the daemon, to the end of all tasks or to its death. Whether it died.
fn live(team: &Team, crash: Option<&str>) -> bool {
    let env = crash.map(|place| ("POSTROOM_CRASH_AT", place));
    let Ok(mut daemon) = team.try_up_with(env.as_slice()) else { return true };
    team.until("the end of all tasks", |team| {
        (daemon.has_ended() || told(team).len() >= 4).then_some(())
    });
    if !daemon.has_ended() {
        daemon.signal("TERM");
    }
    daemon.wait() != 0
}

fn check(team: &Team, crash: &str) {
    let wanted = [
        "task 1 (read README.md) is done",
        "task 2 (list) is done",
        "task 3 (read nothing.md) has failed",
        "task 4 (run echo x >> ran.txt) is done",
    ];
    let wanted: BTreeMap<String, usize> = wanted.map(|line| (line.to_owned(), 1)).into();
    assert_eq!(told(team), wanted, "after {crash}\n{}", team.everything());
    let list = team.run(&["task", "list"]).ok();
    let states: Vec<&str> = list.lines().filter_map(|it| it.split_whitespace().nth(1)).collect();
    assert_eq!(states, ["done", "done", "failed", "done"], "after {crash}");
    assert_eq!(team.left_over(), 0);
}

/// Dies at the passages `from..=to` of every place, one after the other; at the first that is not
/// reached any more it is enough.
fn sweep(from: usize, to: usize) {
    for place in PLACES {
        for passage in from..=to {
            let team = with_tasks();
            let crash = format!("{place}:{passage}");
            let died = live(&team, Some(&crash));
            if died {
                assert!(!live(&team, None), "{crash}");
            }
            check(&team, &crash);
            if !died {
                break;
            }
        }
    }
}

#[test]
fn a_kill_between_two_writes_of_a_task_loses_and_repeats_nothing() {
    sweep(2, 4);
}

/// `cargo test --test it task_crash -- --ignored`
#[test]
#[ignore = "takes a minute"]
fn a_kill_at_every_write_of_a_task_loses_and_repeats_nothing() {
    sweep(1, 60);
}
