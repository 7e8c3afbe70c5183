//! All paths: where what is kept.

use std::path::{Path, PathBuf};

use crate::{
    journal::JournalName,
    model::{AgentName, RunId},
};

/// The folder that is looked for upwards, as git looks for its own.
pub const MAILBOX_FOLDER: &str = ".mailbox";
/// What a person need not read.
pub const STATE: &str = "state";
/// Folder of the conversations.
pub const CONVERSATIONS: &str = "state/conversations";
/// Folder of the traces.
pub const TRACES: &str = "traces";
/// Folder of the lives.
pub const LIVES: &str = "state/agents";

/// The mailbox of `name`.
pub fn mailbox(name: &AgentName) -> JournalName {
    JournalName(name.to_string())
}

/// The file of the mailbox of `name`, in the mailbox folder.
pub fn mailbox_file(name: &AgentName) -> String {
    format!("{}.jsonl", mailbox(name))
}

/// The life of `name`.
pub fn life(name: &AgentName) -> JournalName {
    JournalName(format!("{LIVES}/{name}"))
}

/// The conversation of a run.
pub fn conversation(run: &RunId) -> JournalName {
    JournalName(format!("{CONVERSATIONS}/{run}"))
}

/// The trace of a run.
pub fn trace(id: &RunId) -> JournalName {
    JournalName(format!("{TRACES}/{id}"))
}

/// The board.
pub fn tasks() -> JournalName {
    JournalName("tasks".to_owned())
}

/// The dead letters.
pub fn dead_letters() -> JournalName {
    JournalName("state/dead".to_owned())
}

/// What the calls of models have cost.
pub fn costs() -> JournalName {
    JournalName("state/costs".to_owned())
}

/// The nearest folder from `start` upwards that holds a mailbox folder.
pub fn find_root(start: &Path) -> Option<PathBuf> {
    let holds = |folder: &&Path| folder.join(MAILBOX_FOLDER).symlink_metadata().is_ok();
    start.ancestors().find(holds).map(Path::to_path_buf)
}
