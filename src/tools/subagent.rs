//! `subagent` and `subagent_send`: a piece of work for a new agent of some type, and more for one that
//! has finished. The runtime carries both out.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Prepared, Tool,
    input::{arguments, schema},
};
use crate::{
    base::text::headline,
    model::{OnUnknownType, Team, ToolSpec, TypeName, UnknownType},
};

/// Lets a new agent do something.
pub struct Subagent(pub Arc<Team>);

/// Goes on with one that has finished.
pub struct SubagentSend;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The task, whole: a subagent knows nothing of this conversation.
    #[serde(alias = "prompt")]
    task: String,
    /// What it shall be; one of the types that are listed above.
    #[serde(alias = "subagent_type")]
    agent_type: Option<String>,
    /// The task in three to five words, for people.
    description: Option<String>,
    /// Whether to go on at once; its end then comes as mail.
    #[serde(default)]
    run_in_background: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SendArguments {
    /// The subagent: its `sub_trace_id`, or what it was called when it was started in the background.
    id: String,
    /// What it shall do now; it knows what was said before.
    message: String,
}

impl Tool for Subagent {
    fn spec(&self) -> ToolSpec {
        let types = self.0.types.values().filter(|it| it.may_be_spawned());
        let lines = types.map(|it| format!("\n- {}: {}", it.name, it.description));
        let description = format!(
            "Lets a new agent do a piece of work in a context of its own and gives its last \
             message. It has at most your tools and rights. Types:{}\nWithout a type it is \
             {}.",
            lines.collect::<String>(),
            self.0.default_type
        );
        let schema = schema::<Arguments>();
        ToolSpec { name: "subagent", description: description.into(), schema }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, _kit: &Kit, _caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let Arguments { task, agent_type, description, run_in_background } = arguments(input)?;
        if task.trim().is_empty() {
            return Err("the task is empty".to_owned());
        }
        let agent_type = self.resolve(agent_type.as_deref())?;
        let preview = format!("{agent_type}: {}", headline(&task, 200));
        let wish =
            Outcome::Delegate { task, agent_type, description, in_background: run_in_background };
        Ok(Prepared { accesses: Vec::new(), preview, run: Box::new(move |_| Ok(wish)) })
    }
}

impl Subagent {
    /// The type that is meant, the default where none is; the error names those that there are.
    fn resolve(&self, given: Option<&str>) -> Result<TypeName, String> {
        let team = &self.0;
        let default = || team.spawnable(team.default_type.as_str());
        let found = match given.filter(|it| !it.trim().is_empty()).map(|it| team.spawnable(it)) {
            None => default(),
            Some(Err(UnknownType::NoType { .. }))
                if team.on_unknown_type == OnUnknownType::Default =>
            {
                default()
            }
            Some(found) => found,
        };
        found.map(|it| it.name.clone()).map_err(|why| why.to_string())
    }
}

impl Tool for SubagentSend {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "subagent_send",
            description:
                "Gives more work to a subagent of yours that has finished: it goes on with \
                          its own conversation. Waits, and gives its last message."
                    .into(),
            schema: schema::<SendArguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, _kit: &Kit, _caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let SendArguments { id, message } = arguments(input)?;
        if message.trim().is_empty() {
            return Err("the message is empty".to_owned());
        }
        let preview = format!("{}: {}", headline(&id, 80), headline(&message, 200));
        let wish = Outcome::SendToSubagent { id, message };
        Ok(Prepared { accesses: Vec::new(), preview, run: Box::new(move |_| Ok(wish)) })
    }
}
