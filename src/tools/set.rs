//! The tools that an agent has, by name. A name that is none of them is answered with those that
//! are.

use std::sync::Arc;

use super::{
    Post, Tool,
    background::{BackgroundCheck, BackgroundRun},
    bash::Bash,
    edit_file::EditFile,
    glob::Glob,
    grep::Grep,
    list_files::ListFiles,
    read_file::ReadFile,
    subagent::{Subagent, SubagentSend},
    submit_plan::{DecidePlan, SubmitPlan},
    task_create::TaskCreate,
    task_list::{TaskGet, TaskList},
    task_update::TaskUpdate,
    team_ask::TeamAsk,
    team_broadcast::TeamBroadcast,
    team_list::TeamList,
    team_send::TeamSend,
    team_shutdown::TeamShutdown,
    todo_write::TodoWrite,
    write_file::WriteFile,
};
use crate::{
    base::text::{headline, listed},
    model::{AgentType, Team, ToolSpec},
    store::TaskBoard,
};

/// The tools for files and commands.
pub fn built_in() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(ReadFile),
        Arc::new(WriteFile),
        Arc::new(EditFile),
        Arc::new(ListFiles),
        Arc::new(Glob),
        Arc::new(Grep),
        Arc::new(Bash),
        Arc::new(BackgroundRun),
        Arc::new(BackgroundCheck),
        Arc::new(TodoWrite),
        Arc::new(SubmitPlan),
        Arc::new(DecidePlan),
    ]
}

/// The tools for delegation.
pub fn of_subagents(team: &Arc<Team>) -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Subagent(Arc::clone(team))), Arc::new(SubagentSend)]
}

/// The tools for the team.
pub fn of_team(post: &Post) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(TeamList(post.clone())),
        Arc::new(TeamSend(post.clone())),
        Arc::new(TeamBroadcast(post.clone())),
        Arc::new(TeamAsk(post.clone())),
        Arc::new(TeamShutdown(post.clone())),
    ]
}

/// The tools for the board.
pub fn of_board(board: &TaskBoard, post: &Post) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(TaskCreate(board.clone(), post.clone())),
        Arc::new(TaskList(board.clone(), post.clone())),
        Arc::new(TaskGet(board.clone(), post.clone())),
        Arc::new(TaskUpdate(board.clone())),
    ]
}

/// Tools in the order in which a model is told of them; clones share them.
#[derive(Clone)]
pub struct ToolSet {
    tools: Vec<Arc<dyn Tool>>,
    specs: Vec<ToolSpec>,
}

impl ToolSet {
    /// A set of `tools`, whose names have to differ.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let specs = tools.iter().map(|tool| tool.spec()).collect();
        Self { tools, specs }
    }

    /// Those that a type leaves: a subset, whatever the type says.
    #[must_use]
    pub fn narrowed(&self, it: &AgentType) -> Self {
        let pairs = self.tools.iter().zip(&self.specs);
        let left = pairs.filter(|(_, spec)| it.lets(spec.name)).map(|(tool, _)| Arc::clone(tool));
        Self::new(left.collect())
    }

    /// What a model is told.
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// The tool called `name`; the error names those there are, and the one that was likely meant.
    pub fn find(&self, name: &str) -> Result<&dyn Tool, String> {
        let mut pairs = self.specs.iter().zip(&self.tools);
        if let Some((_, tool)) = pairs.find(|(spec, _)| spec.name == name) {
            return Ok(&**tool);
        }
        let known = listed(self.specs.iter().map(|spec| spec.name));
        let shown = headline(name, 80);
        Err(match self.likely(name) {
            Some(meant) => {
                format!(
                    "no tool is called `{shown}`; did you mean `{meant}`? The tools are {known}"
                )
            }
            None => format!("no tool is called `{shown}`; the tools are {known}"),
        })
    }

    fn likely(&self, name: &str) -> Option<&'static str> {
        let wrong = plain(name);
        let longest = self.specs.iter().map(|spec| spec.name.len()).max().unwrap_or(0);
        if wrong.len() < 2 || wrong.len() > longest + FAR {
            return None;
        }
        let distances = self.specs.iter().map(|spec| {
            let right = plain(spec.name);
            let within = right.contains(&wrong) || wrong.contains(&right);
            (if within { 1 } else { strsim::levenshtein(&right, &wrong) }, spec.name)
        });
        distances.filter(|(far, _)| *far < FAR).min().map(|(_, name)| name)
    }
}

/// From how many edits on a name is another.
const FAR: usize = 3;

/// Lower case without what separates words: `ReadFile` and `read-file` are both `readfile`.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|it| it.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_found_by_name_and_guessed_by_likeness() {
        let set = ToolSet::new(built_in());
        for spec in set.specs() {
            assert_eq!(set.find(spec.name).ok().unwrap().spec().name, spec.name);
        }
        let error = |name: &str| set.find(name).err().unwrap();
        for (wrong, right) in [
            ("Read", "read_file"),
            ("readFile", "read_file"),
            ("wirte_file", "write_file"),
            ("edit-file", "edit_file"),
            ("BASH", "bash"),
            ("gerp", "grep"),
            ("TodoWrite", "todo_write"),
        ] {
            assert!(error(wrong).contains(&format!("did you mean `{right}`?")), "{wrong}");
        }
        let all = "read_file, write_file, edit_file, list_files, glob, grep, bash, background_run, \
                   background_check, todo_write, submit_plan and decide_plan";
        assert_eq!(error("fetch"), format!("no tool is called `fetch`; the tools are {all}"));
        assert!(error(&"x".repeat(100_000)).len() < 300);
    }

    #[test]
    fn what_changes_something_is_not_repeated() {
        let set = ToolSet::new(built_in());
        let repeatable = |name: &str| set.find(name).ok().unwrap().is_repeatable();
        for name in ["read_file", "list_files", "glob", "grep", "todo_write"] {
            assert!(repeatable(name), "{name}");
        }
        for name in ["write_file", "edit_file", "bash"] {
            assert!(!repeatable(name), "{name}");
        }
    }
}
