//! A task as a person or a model reads it.

use std::fmt::Write;

use super::{Board, StateWord, Task, TaskState};

/// Reads the word for a state.
pub fn state_word(word: &str) -> Result<StateWord, String> {
    let found = StateWord::ALL.iter().find(|(name, _)| *name == word);
    found.map(|(_, state)| *state).ok_or_else(|| {
        let valid = crate::base::text::listed(StateWord::ALL.iter().map(|(name, _)| *name));
        format!("{word:?} is no status; valid are {valid}")
    })
}

/// A task on one line.
pub fn task_line(board: &Board, task: &Task) -> String {
    let waits = board.waits_for(task);
    let note = match &task.state {
        TaskState::InProgress { owner, .. } => format!(" by {owner}"),
        TaskState::Pending if !waits.is_empty() => {
            format!(" (waits for {})", crate::base::text::listed(waits))
        }
        TaskState::Pending => meant_for(task),
        TaskState::Done(_) | TaskState::Failed(_) | TaskState::Cancelled => String::new(),
    };
    format!("{}  {}{note}  {}", task.id, task.state.as_str(), task.title)
}

/// For whom it is, and as what.
fn meant_for(task: &Task) -> String {
    match (&task.assignee, &task.agent_type) {
        (None, None) => String::new(),
        (Some(name), None) => format!(" (for {name})"),
        (None, Some(kind)) => format!(" (as {kind})"),
        (Some(name), Some(kind)) => format!(" (for {name}, as {kind})"),
    }
}

/// A task whole.
pub fn task_text(board: &Board, task: &Task) -> String {
    let mut text = task_line(board, task);
    let _ = write!(text, "\nadded by {}, attempt {}", task.added_by, task.attempt);
    if !task.depends_on.is_empty() {
        let _ = write!(text, "\ndepends on {}", crate::base::text::listed(&task.depends_on));
    }
    if !task.description.is_empty() {
        let _ = write!(text, "\n\n{}", task.description);
    }
    match &task.state {
        TaskState::Done(result) => drop(write!(text, "\n\nresult:\n{result}")),
        TaskState::Failed(why) => drop(write!(text, "\n\nfailed:\n{why}")),
        TaskState::Pending | TaskState::InProgress { .. } | TaskState::Cancelled => {}
    }
    text
}
