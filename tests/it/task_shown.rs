//! What a person sees of the tasks on a board: as what each is done, by whom it was, and why nobody
//! does it.

use serde_json::Value;

use crate::team::Team;

const TEAM: &str = r#"{"permission_mode": "bypass", "teammates": {"lead": {}, "worker": {}},
  "agents": {"boss": {"mode": "primary"}}, "outside": ["ci"]}"#;

#[test]
fn an_agent_type_counts_in_each_of_its_spellings() {
    let team = Team::new(TEAM);
    for key in ["type", "agent_type", "agentType", "subagent_type", "subagentType"] {
        team.append("tasks", format!("{{\"title\":\"run x\",\"{key}\":\"explore\"}}\n"));
    }
    team.append("tasks", "{\"title\":\"run x\",\"type\":\"plan\",\"agentType\":\"explore\"}\n");
    let listed = team.run(&["task", "list"]).ok();
    assert_eq!(listed.matches("pending (as explore)  run x").count(), 5, "{listed}");
    assert_eq!(listed.lines().count(), 5, "two spellings in a line are none: {listed}");
}

#[test]
fn a_task_of_a_type_that_is_none_says_so_wherever_it_is_shown() {
    let team = Team::new(TEAM);
    let refused = team.run(&["task", "add", "list", "--agent-type", "exlpore"]).exits(2).err;
    let why = "no type is called \"exlpore\"; did you mean explore?";
    assert!(refused.starts_with(&format!("postroom: {why}; valid types are ")), "{refused}");
    let _daemon = team.up();
    team.append("tasks", "{\"title\":\"list\",\"type\":\"exlpore\"}\n");
    team.append("tasks", "{\"title\":\"list\",\"type\":\"boss\",\"by\":\"lead\"}\n");
    team.append("tasks", "{\"title\":\"list\",\"assignee\":\"wroker\",\"by\":\"lead\"}\n");
    let status = team.until("three that nobody can do", |team| {
        let status = team.run(&["status"]).ok();
        let all = status.contains("STUCK") && status.matches("nobody here can do").count() == 3;
        all.then_some(status)
    });
    assert!(status.contains(&format!("nobody here can do task 1: {why}\n")), "{status}");
    let listed = team.run(&["task", "list"]).ok();
    assert!(listed.starts_with(&format!("1  pending ({why})  list\n")), "{listed}");
    assert!(listed.contains("2  pending (boss is a primary type: "));
    assert!(
        listed.contains("3  pending (nobody is called wroker, and no type; there are ci, lead, ")
    );
    let way_out = "`postroom task cancel 1` takes it off the board; then add it anew";
    let shown = team.run(&["task", "show", "1"]).ok();
    assert!(shown.contains(why) && shown.ends_with(&format!("\n{way_out}\n")), "{shown}");
    let json = team.run(&["task", "show", "1", "--json"]).ok();
    assert!(json.contains(r#""fault":"no type is called \"exlpore\"; did "#), "{json}");
    let told = |team: &Team, name: &str| {
        let mail = team.mail(name).into_iter().filter(|line| line["msg_type"] == "event");
        mail.map(|line| line["content"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    team.until("the lead's events", |team| (told(team, "lead").len() == 2).then_some(()));
    assert_eq!(told(&team, "user"), [format!("task 1 (list) can't be done: {why}\n\n{way_out}")]);
}

#[test]
fn who_did_a_task_and_as_what_is_kept() {
    let team = Team::new(TEAM);
    let _daemon = team.up();
    team.run(&["task", "add", "run echo done", "--agent-type", "general"]).ok();
    team.run(&["wait", "--task", "1"]).ok();
    team.run(&["task", "add", "read nothing.md"]).ok();
    team.run(&["wait", "--task", "2"]).exits(1);
    team.run(&["task", "add", "fly", "--assignee", "ci"]).ok();
    team.run(&["task", "claim", "3", "--as", "ci"]).ok();
    let listed = team.run(&["task", "list"]).ok();
    assert_eq!(
        listed,
        "1  done by worker as general  run echo done\n\
         2  failed (tried by worker as general-purpose)  read nothing.md\n\
         3  in_progress by ci  fly\n"
    );
    let shown = |id: &str| -> Value {
        serde_json::from_str(&team.run(&["task", "show", id, "--json"]).ok()).unwrap()
    };
    let (one, three) = (shown("1"), shown("3"));
    assert_eq!((&one["worker"], &one["worked_as"]), (&"worker".into(), &"general".into()));
    assert_eq!((&three["worker"], &three["trace_id"]), (&"ci".into(), &Value::Null));
    let trace = one["trace_id"].as_str().unwrap();
    let text = team.run(&["task", "show", "1"]).ok();
    let way = format!("\nworked on by worker as general; `postroom trace {trace}`\n");
    assert!(text.contains(&way), "{text}");
    assert!(team.run(&["trace", trace]).ok().starts_with("worker · general · subagent-"));
    let told = team.until("both ends", |team| {
        let mail = team.mail("user").into_iter().filter(|it| it["from_agent"] == "daemon");
        Some(mail.collect::<Vec<_>>()).filter(|it| it.len() == 2)
    });
    let (one, two) = (&told[0], told[1]["content"].as_str().unwrap());
    assert_eq!(one["content"], "task 1 (run echo done) is done by worker as general\n\ndone");
    assert_eq!(one["trace_id"], trace);
    let failed = "task 2 (read nothing.md) has failed, tried by worker as general-purpose\n";
    assert!(two.starts_with(failed), "{two}");
    // A snapshot holds it, too.
    team.run(&["down"]).ok();
    assert!(team.run(&["task", "list"]).ok().starts_with("1  done by worker as general  "));
}
