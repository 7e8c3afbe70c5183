//! A team in a folder of its own, driven through the real binary. Every command's output and exit
//! code are there to be compared; nothing sleeps: waits look at files when an event says so.

use std::{
    fs::{self, OpenOptions},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use postroom::{
    base::{Clock, Folder, Scope, left_overs::Mark},
    journal::{FileJournals, Journals},
    model::{AgentName, RunId},
};
use serde_json::Value;
use tempfile::TempDir;

/// How long a test waits for what has to come.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// A team's folder.
pub struct Team {
    _temp: TempDir,
    root: PathBuf,
    env: Vec<(String, String)>,
}

/// What a command has printed, and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// Exit code; -1 where a signal ended it.
    pub code: i32,
}

impl Ran {
    /// Checks the exit code and gives standard output.
    #[track_caller]
    pub fn ok(self) -> String {
        self.exits(0).out
    }

    /// Checks the exit code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }
}

impl Team {
    /// A team described by `json`, in a folder with a README.md in it.
    pub fn new(json: &str) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap().join("work");
        fs::create_dir_all(root.join("teams")).unwrap();
        fs::write(root.join("README.md"), "# A test\n").unwrap();
        fs::write(root.join("teams/team.json"), json).unwrap();
        fs::create_dir(root.join(".mailbox")).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(root.join(".mailbox"), private).unwrap();
        Self { _temp: temp, root, env: Vec::new() }
    }

    /// Sets a variable for all commands from now on.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
    }

    /// A path in the folder.
    pub fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The mailbox file of `name`.
    pub fn mailbox(&self, name: &str) -> PathBuf {
        self.at(&format!(".mailbox/{name}.jsonl"))
    }

    /// The binary with `args`, ready to be started.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postroom"));
        command.args(args).current_dir(&self.root).stdin(Stdio::null());
        let unset = [
            "POSTROOM_TEAMMATE",
            "POSTROOM_MARK",
            "POSTROOM_MAILBOX",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "CODEX_API_KEY",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ];
        for name in unset {
            command.env_remove(name);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the binary to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        let output = self.command(args).output().unwrap();
        Ran {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap_or(-1),
        }
    }

    /// Starts `up` and returns when it says that it is up.
    pub fn up(&self) -> Daemon {
        self.try_up().unwrap_or_else(|err| panic!("it did not come up: {err}"))
    }

    /// Starts `up` with a team of several, and returns when it says that it is up.
    pub fn up_team(&self, team: &str) -> Daemon {
        self.try_to_start(&["up", team], &[])
            .unwrap_or_else(|err| panic!("it did not come up: {err}"))
    }

    /// Starts `up` with more arguments, and returns when it says that it is up.
    pub fn up_with(&self, more: &[&str]) -> Daemon {
        let args = [&["up"], more].concat();
        self.try_to_start(&args, &[]).unwrap_or_else(|err| panic!("it did not come up: {err}"))
    }

    /// Starts `up`; what it has printed where it ends before it is up.
    pub fn try_up(&self) -> Result<Daemon, String> {
        self.try_to_start(&["up"], &[])
    }

    /// Starts `up` with these variables, which no other command gets.
    pub fn try_up_with(&self, env: &[(&str, &str)]) -> Result<Daemon, String> {
        self.try_to_start(&["up"], env)
    }

    fn try_to_start(&self, args: &[&str], env: &[(&str, &str)]) -> Result<Daemon, String> {
        let mut command = self.command(args);
        command.envs(env.iter().copied());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut printed = BufReader::new(child.stderr.take().unwrap());
        let mut all = String::new();
        loop {
            let mut line = String::new();
            if printed.read_line(&mut line).unwrap() == 0 {
                child.wait().unwrap();
                return Err(all);
            }
            all.push_str(&line);
            if line.starts_with("up: ") {
                break;
            }
        }
        // Its progress has to be read, or it would wait for its reader.
        std::thread::spawn(move || std::io::copy(&mut printed, &mut std::io::sink()));
        Ok(Daemon { child, said: all })
    }

    /// Appends bytes to a mailbox as an outside writer does, in one write.
    pub fn append(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let mut file =
            OpenOptions::new().create(true).append(true).open(self.mailbox(name)).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        file.set_permissions(private).unwrap();
        file.write_all(bytes.as_ref()).unwrap();
    }

    /// All whole lines of a mailbox that are JSON.
    pub fn mail(&self, name: &str) -> Vec<Value> {
        let text = fs::read(self.mailbox(name)).unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// The responses in the user's mailbox.
    pub fn responses(&self) -> Vec<Value> {
        let mail = self.mail("user").into_iter();
        mail.filter(|line| line["msg_type"] == "response").collect()
    }

    /// Waits until `found` gives something; looks when a mailbox changes.
    #[track_caller]
    pub fn until<T>(&self, what: &str, mut found: impl FnMut(&Self) -> Option<T>) -> T {
        let folder = Folder::open(&self.at(".mailbox")).unwrap();
        let scope = Scope::plain(Clock::real());
        let wake = scope.wake.clone();
        let _watch = FileJournals::new(folder).watch(Box::new(move || wake.notify())).unwrap();
        let deadline = scope.clock.now().after(DEADLINE);
        loop {
            if let Some(it) = found(self) {
                return it;
            }
            let now = scope.clock.now();
            assert!(now < deadline, "{what} did not come\n{}", self.everything());
            // Not all that is waited for lies in a mailbox, so it also looks now and then.
            let again = now.after(Duration::from_millis(50)).min(deadline);
            let mut seen = false;
            let _ = scope.wait(Some(again), || std::mem::replace(&mut seen, true).then_some(()));
        }
    }

    /// The responses in the user's mailbox to all but orders to the daemon.
    pub fn answers(&self) -> Vec<Value> {
        self.responses().into_iter().filter(|line| line["from_agent"] != "daemon").collect()
    }

    /// Waits for the response to the request `id` in the user's mailbox.
    #[track_caller]
    pub fn until_answer_to(&self, id: &str) -> Value {
        self.until(&format!("the answer to {id}"), |team| {
            team.responses().into_iter().find(|line| line["in_reply_to"] == id)
        })
    }

    /// Waits until the user has `count` responses, and gives them.
    #[track_caller]
    pub fn until_answered(&self, count: usize) -> Vec<Value> {
        self.until(&format!("{count} answers"), |team| {
            Some(team.responses()).filter(|it| it.len() >= count)
        })
    }

    /// Waits until the status of `name` is `state`.
    #[track_caller]
    pub fn until_state(&self, name: &str, state: &str) {
        self.until(&format!("{name} {state}"), |team| {
            let status = fs::read(team.at(".mailbox/state/status.json")).ok()?;
            let status: Value = serde_json::from_slice(&status).ok()?;
            (status["teammates"][name]["state"] == state).then_some(())
        });
    }

    /// The last record of a teammate's life.
    pub fn life(&self, name: &str) -> Value {
        let text = fs::read_to_string(self.at(&format!(".mailbox/state/agents/{name}.jsonl")));
        let last = text.unwrap_or_default().lines().last().map(str::to_owned);
        last.and_then(|line| serde_json::from_str(&line).ok()).unwrap_or_default()
    }

    /// The file of a teammate's conversation.
    pub fn conversation_file(&self, name: &str) -> PathBuf {
        let run = RunId::of(&AgentName::new(name).unwrap());
        self.at(&format!(".mailbox/state/conversations/{run}.jsonl"))
    }

    /// The turns of a teammate's conversation.
    pub fn conversation(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.conversation_file(name)).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["turn"].clone()).collect()
    }

    /// Copies what lies below `path` to a folder that stays, and says where.
    pub fn everything_below(&self, path: &str) -> String {
        let kept = std::env::temp_dir().join(format!("kept-{}", std::process::id()));
        let _ = Command::new("cp").arg("-r").arg(self.at(path)).arg(&kept).status();
        kept.display().to_string()
    }

    /// Whether all mail of a teammate is dealt with: its cursor is at the end of its mailbox.
    pub fn is_settled(&self, name: &str) -> bool {
        let life = self.life(name);
        let length = fs::metadata(self.mailbox(name)).map_or(0, |file| file.len());
        life["taken"].is_null() && life["cursor"][1].as_u64().unwrap_or_default() == length
    }

    /// How many processes of the team's commands are alive.
    pub fn left_over(&self) -> usize {
        Mark::of_folder(&self.at(".mailbox")).find().unwrap().len()
    }

    /// All mailboxes, for a failing test.
    pub fn everything(&self) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(self.at(".mailbox")).unwrap().flatten() {
            if entry.path().is_file() {
                let content = fs::read(entry.path()).unwrap_or_default();
                let content: String =
                    String::from_utf8_lossy(&content).chars().take(4000).collect();
                text.push_str(&format!("== {}\n{content}\n", entry.path().display()));
            }
        }
        text
    }
}

/// A running `up`; killed when dropped.
pub struct Daemon {
    child: Child,
    /// What it printed until it was up.
    pub said: String,
}

impl Daemon {
    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends it a signal by name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits for its end and gives the exit code; -1 where a signal ended it.
    #[track_caller]
    pub fn wait(&mut self) -> i32 {
        let scope = Scope::plain(Clock::real());
        let deadline = scope.clock.now().after(DEADLINE);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            let now = scope.clock.now();
            assert!(now < deadline, "the daemon does not end");
            let _ = scope.wait::<()>(Some(now.after(Duration::from_millis(10))), || None);
        }
    }

    /// Whether it has ended by now.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Whether the system has a program called `name`.
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(name).is_file())
}
