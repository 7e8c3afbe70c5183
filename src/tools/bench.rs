//! A workspace of its own for a test of a tool, and the short way from an input to a result.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;

use super::{Attempt, Caller, Kit, Outcome, Prepared, Tool, ToolError, Workspace};
use crate::{
    base::{Clock, Folder, Scope, left_overs::Mark},
    model::{AgentName, CallId},
};

/// A folder with a workspace `app` in it, which holds a mailbox folder.
pub struct Bench {
    pub temp: tempfile::TempDir,
    pub kit: Kit,
    pub scope: Scope,
}

impl Bench {
    pub fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("app");
        fs::create_dir(&root).unwrap();
        let mailbox = Folder::make(&root.join(".mailbox")).unwrap();
        let outputs = mailbox.inside("state").unwrap().inside("outputs").unwrap();
        fs::write(root.join(".mailbox/lead.jsonl"), "secret mail\n").unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let kit = Kit {
            workspace: Workspace::open(&root).unwrap(),
            outputs,
            env: Arc::new([("PATH".into(), path)].into()),
            command_timeout: Duration::from_mins(1),
            hidden: Arc::default(),
            max_file_size: None,
        };
        Self { temp, kit, scope: Scope::plain(Clock::real()) }
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.temp.path().join("app").join(path)
    }

    /// Writes a file after making its folders.
    pub fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn get(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    pub fn link(&self, path: &str, to: impl AsRef<Path>) {
        std::os::unix::fs::symlink(to, self.at(path)).unwrap();
    }

    pub fn caller(&self) -> Caller {
        let run = self.temp.path().to_string_lossy().into_owned();
        let mark = Mark { folder: self.kit.outputs.path().to_path_buf(), run };
        let agent = AgentName::new("scout").unwrap();
        Caller { agent, mark, call: CallId::new("c:1").unwrap(), hops: 0, attempt: Attempt::First }
    }

    pub fn prepare(&self, tool: &dyn Tool, input: Value) -> Result<Prepared, String> {
        tool.prepare(&self.kit, &self.caller(), &input)
    }

    /// Prepares and runs; what went wrong comes back as its text.
    pub fn call(&self, tool: &dyn Tool, input: Value) -> Result<String, String> {
        let prepared = self.prepare(tool, input)?;
        match (prepared.run)(&self.scope) {
            Ok(Outcome::Text(text) | Outcome::Sent { text, .. }) => Ok(text),
            Ok(other) => Ok(format!("{other:?}")),
            Err(ToolError::Failed(text)) => Err(text),
            Err(ToolError::Interrupted(why)) => Err(format!("{why:?}")),
        }
    }
}
