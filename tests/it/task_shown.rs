//! What a person sees of the tasks on a board: as what each is done, by whom it was, and why nobody
//! does it.

use crate::team::Team;

const TEAM: &str = r#"{"permission_mode": "bypass", "teammates": {"lead": {}, "worker": {}},
  "agents": {"boss": {"mode": "primary"}}}"#;

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
