//! `task_list` and `task_get`: what is on the board. They change nothing.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Post, Prepared, Tool, ToolError,
    input::{arguments, schema},
};
use crate::{
    model::{Board, StateWord, TaskId, Team, ToolSpec, state_word, task_line, task_text},
    store::TaskBoard,
};

/// How many tasks are listed.
const MOST: usize = 200;

/// Lists tasks.
pub struct TaskList(pub TaskBoard, pub Post);

/// Shows one task.
pub struct TaskGet(pub TaskBoard, pub Post);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// Only tasks that are pending, in_progress, done, failed or cancelled.
    status: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetArguments {
    /// The task's id.
    id: String,
}

impl Tool for TaskList {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "task_list",
            description: "Lists the tasks on the team's board: id, status, who has it, what it \
                          waits for, title."
                .into(),
            schema: schema::<ListArguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, _kit: &Kit, _caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let ListArguments { status } = arguments(input)?;
        let wanted = status.map(|word| state_word(&word)).transpose()?;
        let (board, post) = (self.0.clone(), self.1.clone());
        let list = move || board.look(|board| list(board, post.team(), wanted));
        Ok(Prepared {
            accesses: Vec::new(),
            preview: "list the tasks".to_owned(),
            run: Box::new(move |_| match list() {
                Ok(text) => Ok(Outcome::Text(text)),
                Err(why) => Err(ToolError::Failed(why.to_string())),
            }),
        })
    }
}

impl Tool for TaskGet {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "task_get",
            description: "Shows a task on the team's board whole, with its present attempt.".into(),
            schema: schema::<GetArguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, _kit: &Kit, _caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let GetArguments { id } = arguments(input)?;
        let id = TaskId::new(id).map_err(|why| why.to_string())?;
        let (board, post, preview) = (self.0.clone(), self.1.clone(), format!("show task {id}"));
        Ok(Prepared {
            accesses: Vec::new(),
            preview,
            run: Box::new(move |_| {
                let text = |board: &Board| {
                    board.get(&id).map(|task| task_text(board, Some(post.team()), task))
                };
                let shown = board.look(text);
                match shown {
                    Ok(Some(text)) => Ok(Outcome::Text(text)),
                    Ok(None) => Err(ToolError::Failed(format!("there is no task {id}"))),
                    Err(why) => Err(ToolError::Failed(why.to_string())),
                }
            }),
        })
    }
}

fn list(board: &Board, team: &Team, wanted: Option<StateWord>) -> String {
    let all = board.all();
    let chosen: Vec<_> = all
        .into_iter()
        .filter(|task| wanted.is_none_or(|wanted| StateWord::from(&task.state) == wanted))
        .collect();
    if chosen.is_empty() {
        return "[no tasks]".to_owned();
    }
    let mut text = String::new();
    for task in chosen.iter().take(MOST) {
        let _ = writeln!(text, "{}", task_line(board, Some(team), task));
    }
    if chosen.len() > MOST {
        let _ = writeln!(text, "[{MOST} of {} shown]", chosen.len());
    }
    text
}
