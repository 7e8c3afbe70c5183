//! `task_create`: puts a task on the board.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Post, Prepared, Tool, ToolError,
    input::{arguments, schema},
};
use crate::{
    base::text::headline,
    model::{AgentName, MessageId, TaskId, ToolSpec, Void},
    store::{BoardLine, TaskBoard},
};

/// Adds a task.
pub struct TaskCreate(pub TaskBoard, pub Post);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What is to be done, in a few words.
    title: String,
    /// The work in full, where the title does not say it all.
    description: Option<String>,
    /// Ids of tasks that have to be done first.
    depends_on: Option<Vec<String>>,
    /// Who shall do it, a teammate or whoever is of a type; else whoever is free.
    assignee: Option<String>,
    /// As what agent type it shall be done; else as what whoever takes it is.
    #[serde(alias = "subagent_type")]
    agent_type: Option<String>,
}

impl Tool for TaskCreate {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "task_create",
            description: "Puts a task on the team's board. A teammate takes it when all that it \
                          depends on is done; you are told by mail when it has ended."
                .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, _kit: &Kit, caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let Arguments { title, description, depends_on, assignee, agent_type } = arguments(input)?;
        let depends_on: Result<Vec<TaskId>, _> =
            depends_on.unwrap_or_default().into_iter().map(TaskId::new).collect();
        let team = self.1.team();
        let assignee = assignee.map(AgentName::new).transpose().map_err(|why| why.to_string())?;
        let assignee = assignee.map(|name| team.resolve(name));
        if let Some(name) = assignee.as_ref().filter(|it| !team.is_assignable(it)) {
            let known = crate::base::text::listed(team.members());
            return Err(format!("nobody is called {name}, and no type; there are {known}"));
        }
        let agent_type = agent_type.map(|given| team.spawnable(&given).map(|it| it.name.clone()));
        let agent_type = agent_type.transpose().map_err(|why| why.to_string())?;
        let preview = format!("add the task: {}", headline(&title, 200));
        let event = MessageId::derived(&["task", caller.call.as_str()]);
        let line = BoardLine {
            op: "create",
            title: Some(title),
            description,
            depends_on: depends_on.map_err(|why| why.to_string())?,
            assignee,
            agent_type,
            by: Some(caller.agent.clone()),
            event: Some(event),
            ..BoardLine::default()
        };
        let board = self.0.clone();
        Ok(Prepared {
            accesses: Vec::new(),
            preview,
            run: Box::new(move |_| match board.record(line) {
                Ok(Ok((_, task))) => Ok(Outcome::Text(format!("added as task {}", task.id))),
                // The call was made before and cut off: the task is there.
                Ok(Err(Void::Repeated(Some(id)))) => {
                    Ok(Outcome::Text(format!("added as task {id}")))
                }
                Ok(Err(void)) => Err(ToolError::Failed(format!("not added: {void}"))),
                Err(why) => Err(ToolError::Failed(why.to_string())),
            }),
        })
    }
}
