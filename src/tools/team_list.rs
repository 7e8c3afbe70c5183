//! `team_list`: who is in the team and what they are doing. It changes nothing.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Post, Prepared, Tool,
    input::{arguments, schema},
};
use crate::model::{AgentName, ToolSpec};

/// Lists the team.
pub struct TeamList(pub Post);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {}

impl Tool for TeamList {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "team_list",
            description:
                "Lists the team: who there is, what each is there for, what each is doing \
                          now, who leads, and who outside the team can be written to."
                    .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, _kit: &Kit, caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let Arguments {} = arguments(input)?;
        let (post, me) = (self.0.clone(), caller.agent.clone());
        Ok(Prepared {
            accesses: Vec::new(),
            preview: "list the team".to_owned(),
            run: Box::new(move |_| Ok(Outcome::Text(list(&post, &me)))),
        })
    }
}

fn list(post: &Post, me: &AgentName) -> String {
    let (team, doing) = (post.team(), post.statuses().all());
    let mut shown = String::new();
    for (name, teammate) in &team.teammates {
        let mut notes = Vec::new();
        if *name == team.lead {
            notes.push("leads");
        }
        if name == me {
            notes.push("you");
        }
        let notes =
            if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        let state = doing.get(name).map_or("not started", |status| status.state.as_str());
        let role = if teammate.role.is_empty() { "" } else { " — " };
        let _ = writeln!(shown, "{name}{notes}: {state}{role}{}", teammate.role);
    }
    for name in &team.outside {
        let _ = writeln!(shown, "{name}: outside the team");
    }
    shown
}
