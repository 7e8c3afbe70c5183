//! `bash`: runs a command line in the workspace.
//!
//! Output goes straight to a file, so a command can print without end in flat memory and no
//! grandchild holds a pipe open. Nothing that it started outlives the call.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt::Write,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::ExitStatus,
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Prepared, SHOWN, Tool, ToolError,
    content::size,
    input::{arguments, schema},
};
use crate::{
    base::{Child, Interrupted, Launch, Moment, Scope, left_overs::Mark, text::shorten},
    guard::Access,
    model::ToolSpec,
};

/// Longest command in bytes: the system takes no longer argument.
const LONGEST: usize = 128 * 1024 - 1;
/// The most output of a command in bytes; then it is killed.
const MOST_OUTPUT: u64 = 256 << 20;
/// How often the size of the output is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// The most of a command that a preview shows, in characters.
const PREVIEW: usize = 2_000;

/// Runs a command.
pub struct Bash;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The command line.
    command: String,
    /// After how many seconds it is killed. Default and maximum: the team's limit.
    timeout_s: Option<u64>,
    /// More environment variables; their names begin with `POSTROOM_`.
    env: Option<BTreeMap<String, String>>,
}

impl Tool for Bash {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "bash",
            description: "Runs a command line with bash in the root of the workspace. Gives what \
                          it prints to standard output and standard error. Each call starts anew: \
                          `cd` and variables do not last, there is no input to read, and all \
                          processes that a command leaves in the background are killed when the \
                          command ends."
                .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    fn prepare(&self, kit: &Kit, caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let Arguments { command, timeout_s, env } = arguments(input)?;
        check(&command)?;
        let env = environment(kit, env.unwrap_or_default())?;
        let limit = kit.command_timeout;
        let timeout = match timeout_s {
            Some(0) => return Err("timeout_s is 1 or more".to_owned()),
            Some(seconds) => Duration::from_secs(seconds).min(limit),
            None => limit,
        };
        let preview = shorten(&command, PREVIEW);
        let accesses = vec![Access::Run(command.clone())];
        let job = Job { command, timeout, env, kit: kit.clone(), caller: caller.clone() };
        Ok(Prepared { accesses, preview, run: Box::new(move |scope| job.run(scope)) })
    }
}

fn check(command: &str) -> Result<(), String> {
    if command.trim().is_empty() {
        return Err("the command is empty".to_owned());
    }
    if command.contains('\0') {
        return Err("a command holds no NUL".to_owned());
    }
    if command.len() > LONGEST {
        return Err(format!(
            "the command has {} bytes, at most {LONGEST} fit; write a script with write_file and \
             run that",
            command.len()
        ));
    }
    Ok(())
}

/// The kit's environment and what the call adds to it, which can't take the place of anything.
fn environment(
    kit: &Kit,
    added: BTreeMap<String, String>,
) -> Result<BTreeMap<OsString, OsString>, String> {
    let mut env = (*kit.env).clone();
    for (name, value) in added {
        let plain = |it: char| it.is_ascii_alphanumeric() || it == '_';
        if !name.starts_with("POSTROOM_") || !name.chars().all(plain) || value.contains('\0') {
            return Err(format!("env: `{name}` can't be set; names begin with POSTROOM_"));
        }
        if env.contains_key(OsStr::new(&name)) || name == Mark::VARIABLE {
            return Err(format!("env: `{name}` is set by postroom"));
        }
        env.insert(name.into(), value.into());
    }
    Ok(env)
}

struct Job {
    command: String,
    timeout: Duration,
    env: BTreeMap<OsString, OsString>,
    kit: Kit,
    caller: Caller,
}

/// How a command ended.
enum End {
    Exit(ExitStatus),
    Late,
    TooMuch,
}

impl Job {
    fn run(self, scope: &Scope) -> Result<Outcome, ToolError> {
        if !self.kit.workspace.is_in_place() {
            let path = self.kit.workspace.path().display();
            return Err(ToolError::Failed(format!("{path} is no longer the workspace")));
        }
        let name = format!("{}.txt", self.caller.call.as_str().replace(':', "_"));
        // A call that is made again after a crash begins with an empty file.
        self.kit.outputs.remove(&name)?;
        let output = self.kit.outputs.make_file(&name)?;
        let failed = |why: io::Error| ToolError::Failed(format!("run the command: {why}"));
        let child = self.start(&output, scope).map_err(failed)?;
        let end = self.wait(child, &output, scope)?;
        let text = shown(output, &self.kit.outputs.path().join(name), &self.kit).map_err(failed)?;
        self.result(&end, text)
    }

    fn start(&self, output: &File, scope: &Scope) -> io::Result<Child> {
        match self.start_with("bash", output, scope) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                self.start_with("sh", output, scope)
            }
            started => started,
        }
    }

    fn start_with(&self, shell: &str, output: &File, scope: &Scope) -> io::Result<Child> {
        let argv = [shell, "-c", &self.command].map(OsString::from).to_vec();
        let launch = Launch {
            argv,
            cwd: self.kit.workspace.path().to_path_buf(),
            env: self.env.clone(),
            input: None,
            output: output.try_clone()?,
            errors: None,
            mark: self.caller.mark.clone(),
        };
        Child::start(launch, scope)
    }

    /// Waits for the end, looking now and then at how much was printed. However the wait ends,
    /// nothing of the command is left: the child ends with this function.
    fn wait(&self, child: Child, output: &File, scope: &Scope) -> Result<End, ToolError> {
        let deadline = scope.clock.now().after(self.timeout);
        loop {
            let next: Moment = scope.clock.now().after(LOOK).min(deadline);
            match child.watch(scope, Some(next)) {
                Ok(Ok(status)) => return Ok(End::Exit(status)),
                Ok(Err(why)) => return Err(ToolError::Failed(format!("wait for it: {why}"))),
                Err(Interrupted::Late) if length(output) > MOST_OUTPUT => return Ok(End::TooMuch),
                Err(Interrupted::Late) if next >= deadline => return Ok(End::Late),
                Err(Interrupted::Late) => {}
                Err(why) => return Err(ToolError::Interrupted(why)),
            }
        }
    }

    fn result(&self, end: &End, output: String) -> Result<Outcome, ToolError> {
        let why = match end {
            End::Exit(status) if status.success() => return Ok(Outcome::Text(output)),
            End::Exit(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit code {code}"),
                (None, Some(signal)) => format!("killed by signal {signal}"),
                (None, None) => "it did not end by itself".to_owned(),
            },
            End::Late => format!("timed out after {} s and was killed", self.timeout.as_secs_f32()),
            End::TooMuch => {
                format!("printed more than {} and was killed", size(MOST_OUTPUT))
            }
        };
        Err(ToolError::Failed(format!("{why}\n{output}")))
    }
}

fn length(output: &File) -> u64 {
    output.metadata().map_or(0, |it| it.len())
}

/// The output, or its beginning and end and where the whole is. Reads no more than it needs.
fn shown(mut output: File, path: &Path, kit: &Kit) -> io::Result<String> {
    let length = output.metadata()?.len();
    if length == 0 {
        return Ok("[no output]".to_owned());
    }
    // No character has more than four bytes, so what fits lies within these.
    let enough = 4 * SHOWN as u64;
    output.seek(SeekFrom::Start(0))?;
    let head = lossy(&output, enough)?;
    if length <= enough && head.chars().count() <= SHOWN {
        return Ok(head);
    }
    output.seek(SeekFrom::Start(length.saturating_sub(enough)))?;
    let tail = lossy(&output, enough)?;
    let (first, last) = (SHOWN * 3 / 4, SHOWN / 4);
    let mut text: String = head.chars().take(first).collect();
    let named = path.strip_prefix(kit.workspace.path()).unwrap_or(path);
    let _ = writeln!(
        text,
        "\n[… a part is left out; the whole output, {}, is in {} …]",
        size(length),
        named.display()
    );
    text.extend(tail.chars().skip(tail.chars().count().saturating_sub(last)));
    Ok(text)
}

fn lossy(output: &File, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    output.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::{
        base::{Haste, thread::Thread},
        tools::bench::Bench,
    };

    fn run(bench: &Bench, command: &str) -> Result<String, String> {
        bench.call(&Bash, json!({ "command": command }))
    }

    fn left_over(bench: &Bench) -> usize {
        bench.caller().mark.find().unwrap().len()
    }

    #[test]
    fn a_command_gives_its_output_and_how_it_ended() {
        let bench = Bench::new();
        bench.put("a.txt", "here\n");
        assert_eq!(run(&bench, "cat a.txt; echo err >&2").unwrap(), "here\nerr\n");
        assert_eq!(run(&bench, "true").unwrap(), "[no output]");
        assert_eq!(run(&bench, "echo no; exit 3").unwrap_err(), "exit code 3\nno\n");
        assert_eq!(run(&bench, "kill -TERM $$").unwrap_err(), "killed by signal 15\n[no output]");
        assert_eq!(run(&bench, "printf 'a\\377b'").unwrap(), "a\u{fffd}b");
        assert_eq!(run(&bench, "cat").unwrap(), "[no output]");
        let root = bench.kit.workspace.path().display().to_string();
        assert_eq!(run(&bench, "pwd").unwrap(), format!("{root}\n"));
        let prepared = bench.prepare(&Bash, json!({"command": "ls"})).unwrap();
        assert_eq!(prepared.accesses, [Access::Run("ls".to_owned())]);
    }

    #[test]
    fn what_can_not_run_is_refused_before() {
        let bench = Bench::new();
        let error =
            |command: &str| bench.prepare(&Bash, json!({"command": command})).err().unwrap();
        assert!(error("  \n").contains("empty"));
        assert!(error("echo a\0b").contains("NUL"));
        assert!(error(&"x".repeat(1 << 20)).contains("write a script"));
        let zero = json!({"command": "ls", "timeout_s": 0});
        assert!(bench.prepare(&Bash, zero).err().unwrap().contains("1 or more"));
        assert_eq!(run(&bench, &format!(": {}", "x".repeat(LONGEST - 2))).unwrap(), "[no output]");
    }

    #[test]
    fn long_output_is_cut_in_the_middle_and_kept_whole() {
        let bench = Bench::new();
        let shown = run(&bench, "printf 'first\\n%060000d\\nlast\\n' 0").unwrap();
        assert!(shown.starts_with("first\n000") && shown.ends_with("000\nlast\n"));
        assert!(shown.chars().count() < SHOWN + 200, "{}", shown.len());
        let note = "the whole output, 60.0 kB, is in .mailbox/state/outputs/c_1.txt";
        assert!(shown.contains(note));
        assert_eq!(bench.get(".mailbox/state/outputs/c_1.txt").len(), 60_012);
        let wide = run(&bench, "yes é | head -c 1500001").unwrap();
        assert!(wide.contains("1.5 MB") && wide.chars().count() < SHOWN + 200);
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed() {
        let mut bench = Bench::new();
        bench.kit.command_timeout = Duration::from_millis(300);
        let late = bench.call(&Bash, json!({"command": "echo begun; sleep 60", "timeout_s": 9}));
        assert_eq!(late.unwrap_err(), "timed out after 0.3 s and was killed\nbegun\n");
        assert_eq!(left_over(&bench), 0);
    }

    #[test]
    fn a_command_that_prints_without_end_is_killed() {
        let bench = Bench::new();
        let much = run(&bench, "truncate -s 300M /proc/self/fd/1; sleep 60").unwrap_err();
        assert!(much.starts_with("printed more than 268.4 MB and was killed\n"));
        assert!(much.len() < 5 * SHOWN);
    }

    #[test]
    fn nothing_outlives_a_command() {
        let bench = Bench::new();
        let command =
            "sleep 60 & setsid sleep 60 & (setsid sh -c 'sleep 60; echo late' &) ; echo done";
        assert_eq!(run(&bench, command).unwrap(), "done\n");
        assert_eq!(left_over(&bench), 0);
    }

    #[test]
    fn a_stop_ends_a_command_at_once() {
        let bench = Bench::new();
        let prepared = bench.prepare(&Bash, json!({"command": "sleep 60"})).unwrap();
        let stop = bench.scope.stop.clone();
        let outputs = bench.kit.outputs.clone();
        let stopper = Thread::start("stopper", move || {
            while outputs.open_file("c_1.txt").unwrap().is_none() {
                std::thread::yield_now();
            }
            stop.request(Haste::Now);
        });
        let ended = (prepared.run)(&bench.scope);
        assert_eq!(ended, Err(ToolError::Interrupted(Interrupted::Stopping)));
        stopper.unwrap().join().unwrap();
        assert_eq!(left_over(&bench), 0);
    }

    #[test]
    fn the_environment_is_what_was_given() {
        let bench = Bench::new();
        let shown = run(&bench, "tr '\\0' '\\n' < /proc/$$/environ | cut -d= -f1 | sort").unwrap();
        assert_eq!(shown, "PATH\nPOSTROOM_MARK\n");
    }
}
