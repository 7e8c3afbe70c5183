//! What nobody will do by itself is said, to the lead and in the status.

use crate::team::Team;

#[test]
fn a_task_that_nobody_can_do_is_stuck() {
    let team = Team::new(r#"{"teammates": {"lead": {}, "scout": {}}}"#);
    let _daemon = team.up();
    team.run(&["status", "--check"]).exits(0);
    team.run(&["task", "add", "fly to the moon"]).ok();
    let status = team.run(&["status", "--check"]).exits(1).out;
    assert!(status.contains("STUCK"), "{status}");
    assert!(status.contains("nobody here can do task 1"), "{status}");
    let why = team.run(&["wait", "--task", "1", "--timeout", "30"]).exits(1).err;
    assert!(why.contains("nobody here can do task 1"), "{why}");
    let why = team.run(&["wait", "--idle", "--timeout", "30"]).exits(1).err;
    assert!(why.contains("nobody works, and nobody here can do task 1"), "{why}");
    team.run(&["task", "cancel", "1"]).ok();
    team.run(&["status", "--check"]).exits(0);
    team.run(&["wait", "--idle", "--timeout", "30"]).ok();
}

#[test]
fn a_task_that_waits_for_a_failed_one_is_told_to_the_lead() {
    let team = Team::new(r#"{"teammates": {"lead": {}, "scout": {}}}"#);
    let _daemon = team.up();
    team.run(&["task", "add", "read nothing.md"]).ok();
    team.run(&["wait", "--task", "1"]).exits(1);
    // What is told of the second task depends on whether the end of the first was taken up before.
    team.until("the news of the first", |team| {
        team.mail("user").iter().any(|line| line["task_id"] == "1").then_some(())
    });
    team.run(&["task", "add", "list", "--depends-on", "1"]).ok();
    let told = team.until("the lead's event", |team| {
        team.mail("lead").into_iter().find(|line| line["msg_type"] == "event")
    });
    assert_eq!(told["content"], "task 2 (list) waits for what will not be done: 1");
    team.until_state("scout", "idle");
    assert!(team.run(&["status", "--check"]).exits(1).out.contains("STUCK"));
    let lead = team.mail("lead").len();
    assert_eq!(lead, 1, "{}", team.everything());
}
