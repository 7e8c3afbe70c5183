//! A task as a person or a model reads it.

use std::fmt::Write;

use super::{Board, StateWord, Task, TaskState, Team};

/// Reads the word for a state.
pub fn state_word(word: &str) -> Result<StateWord, String> {
    let found = StateWord::ALL.iter().find(|(name, _)| *name == word);
    found.map(|(_, state)| *state).ok_or_else(|| {
        let valid = crate::base::text::listed(StateWord::ALL.iter().map(|(name, _)| *name));
        format!("{word:?} is no status; valid are {valid}")
    })
}

/// A task on one line, as far as its team is known with what keeps everybody from doing it.
pub fn task_line(board: &Board, team: Option<&Team>, task: &Task) -> String {
    let waits = board.waits_for(task);
    let note = match &task.state {
        TaskState::InProgress { .. } | TaskState::Done(_) => {
            worker(team, task).map_or_else(String::new, |it| format!(" by {it}"))
        }
        TaskState::Failed(_) | TaskState::Cancelled => {
            worker(team, task).map_or_else(String::new, |it| format!(" (tried by {it})"))
        }
        TaskState::Pending => match team.and_then(|team| team.fault_of(task)) {
            Some(fault) => format!(" ({fault})"),
            None if waits.is_empty() => meant_for(task),
            None => format!(" (waits for {})", crate::base::text::listed(waits)),
        },
    };
    format!("{}  {}{note}  {}", task.id, task.state.as_str(), task.title)
}

/// Who works on a task or did so last, and as far as their team is known as what.
pub fn worker(team: Option<&Team>, task: &Task) -> Option<String> {
    let name = &task.worker.as_ref()?.name;
    let as_what = team.and_then(|team| team.worked_as(task));
    Some(as_what.map_or_else(|| name.to_string(), |it| format!("{name} as {it}")))
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
pub fn task_text(board: &Board, team: Option<&Team>, task: &Task) -> String {
    let mut text = task_line(board, team, task);
    let _ = write!(text, "\nadded by {}, attempt {}", task.added_by, task.attempt);
    if let Some(by) = worker(team, task) {
        let trace = task.worker.as_ref().and_then(|it| it.trace.as_ref());
        let trace = trace.map_or_else(String::new, |id| format!("; `postroom trace {id}`"));
        let _ = write!(text, "\nworked on by {by}{trace}");
    }
    if !task.depends_on.is_empty() {
        let _ = write!(text, "\ndepends on {}", crate::base::text::listed(&task.depends_on));
    }
    if !task.description.is_empty() {
        let _ = write!(text, "\n\n{}", task.description);
    }
    if task.state == TaskState::Pending && team.is_some_and(|team| team.fault_of(task).is_some()) {
        let _ = write!(text, "\n\n{}", way_out(task));
    }
    match &task.state {
        TaskState::Done(result) => drop(write!(text, "\n\nresult:\n{result}")),
        TaskState::Failed(why) => drop(write!(text, "\n\nfailed:\n{why}")),
        TaskState::Pending | TaskState::InProgress { .. } | TaskState::Cancelled => {}
    }
    text
}

/// What a person can do about a task that nobody can do.
pub fn way_out(task: &Task) -> String {
    format!("`postroom task cancel {}` takes it off the board; then add it anew", task.id)
}
