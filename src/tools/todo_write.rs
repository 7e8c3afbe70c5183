//! `todo_write`: the list of what an agent wants to do. The result is the list; nothing is kept
//! elsewhere, since the model finds it in its conversation.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Prepared, Tool,
    input::{arguments, schema},
};
use crate::model::ToolSpec;

/// The most items of a list.
const MOST: usize = 200;

/// Keeps a list of steps.
pub struct TodoWrite;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The whole list; it takes the place of the one before.
    todos: Vec<Todo>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Todo {
    /// What is to be done, in a line.
    content: String,
    /// How far it is; at most one item is in progress.
    status: Status,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

impl Tool for TodoWrite {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "todo_write",
            description: "Keeps your list of steps for work that has several. Give the whole list \
                          each time: mark a step in_progress before you begin it, one at a time, \
                          and completed as soon as it is done."
                .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, _kit: &Kit, _caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let Arguments { todos } = arguments(input)?;
        let begun = todos.iter().filter(|todo| todo.status == Status::InProgress).count();
        if begun > 1 {
            return Err(format!("{begun} items are in_progress; at most one is"));
        }
        if todos.len() > MOST {
            return Err(format!("a list has at most {MOST} items, this one has {}", todos.len()));
        }
        if todos.iter().any(|todo| todo.content.trim().is_empty()) {
            return Err("an item has no content".to_owned());
        }
        let list = checklist(&todos);
        Ok(Prepared {
            accesses: Vec::new(),
            preview: list.clone(),
            run: Box::new(move |_| Ok(Outcome::Text(list))),
        })
    }
}

fn checklist(todos: &[Todo]) -> String {
    if todos.is_empty() {
        return "[the list is empty]".to_owned();
    }
    let done = todos.iter().filter(|todo| todo.status == Status::Completed).count();
    let mut list = format!("{done} of {} done\n", todos.len());
    for todo in todos {
        let mark = match todo.status {
            Status::Pending => ' ',
            Status::InProgress => '>',
            Status::Completed => 'x',
        };
        let words: Vec<&str> = todo.content.split_whitespace().collect();
        let _ = writeln!(list, "[{mark}] {}", words.join(" "));
    }
    list
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tools::bench::Bench;

    fn write(todos: Value) -> Result<String, String> {
        Bench::new().call(&TodoWrite, json!({ "todos": todos }))
    }

    #[test]
    fn the_list_comes_back_as_a_checklist() {
        let list = write(json!([
            {"content": "read the code", "status": "completed"},
            {"content": "write\nthe test", "status": "in_progress"},
            {"content": "run it", "status": "pending"},
        ]));
        let wanted = "1 of 3 done\n[x] read the code\n[>] write the test\n[ ] run it\n";
        assert_eq!(list.unwrap(), wanted);
        assert_eq!(write(json!([])).unwrap(), "[the list is empty]");
    }

    #[test]
    fn a_list_that_makes_no_sense_is_refused() {
        let begun = json!({"content": "a", "status": "in_progress"});
        assert!(write(json!([begun, begun])).unwrap_err().contains("2 items are in_progress"));
        let odd = write(json!([{"content": "a", "status": "done"}])).unwrap_err();
        assert!(odd.contains("`pending`, `in_progress`, `completed`"), "{odd}");
        assert!(write(json!([{"content": " ", "status": "pending"}])).is_err());
    }
}
