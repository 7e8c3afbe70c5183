//! `task_update`: changes a task on the board, if it still stands as the caller thinks.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Prepared, Tool, ToolError,
    input::{arguments, schema},
};
use crate::{
    guard::Access,
    model::{AgentName, MessageId, StateWord, Task, TaskId, TaskState, ToolSpec, Void, state_word},
    store::{BoardLine, TaskBoard},
};

fn is_of(task: &Task, name: &AgentName) -> bool {
    let owns = matches!(&task.state, TaskState::InProgress { owner, .. } if owner == name);
    owns || task.added_by == *name
}

/// Changes a task.
pub struct TaskUpdate(pub TaskBoard);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The task's id.
    id: String,
    /// How the task stands as you know it: pending, in_progress, done, failed or cancelled.
    expected_status: String,
    /// How it shall stand: in_progress claims it, done and failed end your own claim, pending gives
    /// it back or retries a failed one, cancelled takes it off the board.
    status: String,
    /// The present attempt, from task_get; needed to end or give back a claim.
    attempt: Option<u64>,
    /// What came of it.
    result: Option<String>,
    /// How many seconds a claim holds. Default: 900.
    lease_s: Option<u64>,
}

impl Tool for TaskUpdate {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "task_update",
            description: "Changes a task on the team's board, if it still stands as you expect; \
                          else you are told how it stands. The tasks you are given to work on are \
                          claimed and ended for you: use this to cancel or retry, or to take one \
                          by hand."
                .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, _kit: &Kit, caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let Arguments { id, expected_status, status, attempt, result, lease_s } = arguments(input)?;
        let id = TaskId::new(id).map_err(|why| why.to_string())?;
        let (expected, status) = (state_word(&expected_status)?, state_word(&status)?);
        let preview = format!("task {id}: {} → {}", expected.as_str(), status.as_str());
        let line = BoardLine {
            op: "update",
            id: Some(id.clone()),
            expected_status: Some(expected.as_str()),
            status: Some(status.as_str()),
            attempt,
            owner: (status == StateWord::InProgress).then(|| caller.agent.clone()),
            lease_s,
            result,
            by: Some(caller.agent.clone()),
            event: Some(MessageId::derived(&["task", caller.call.as_str()])),
            ..BoardLine::default()
        };
        let board = self.0.clone();
        // To take what others have added or have in hand from the board, or to put it back, is to
        // change what the team does.
        let is_own = board.look(|it| it.get(&id).is_some_and(|it| is_of(it, &caller.agent)));
        let meddles = matches!(status, StateWord::Cancelled | StateWord::Pending);
        let accesses = match is_own {
            Ok(false) | Err(_) if meddles => vec![Access::Team(preview.clone())],
            Ok(_) | Err(_) => Vec::new(),
        };
        Ok(Prepared {
            accesses,
            preview,
            run: Box::new(move |_| match board.record(line) {
                Ok(Ok((_, task))) => Ok(Outcome::Text(format!(
                    "task {} is {}, attempt {}",
                    task.id,
                    task.state.as_str(),
                    task.attempt
                ))),
                Ok(Err(Void::Repeated(Some(id)))) => {
                    Ok(Outcome::Text(format!("task {id} was changed so before")))
                }
                Ok(Err(void)) => Err(ToolError::Failed(format!("nothing is changed: {void}"))),
                Err(why) => Err(ToolError::Failed(why.to_string())),
            }),
        })
    }
}
