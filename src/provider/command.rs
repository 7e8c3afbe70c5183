//! A program for each turn: any script can be a teammate.
//!
//! It gets the conversation and the tools as one JSON object and answers with one, or it gets the
//! text of the work and answers with text. What it prints to standard error is kept beside the
//! answer. Nothing that it started outlives the turn.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    CommandIo, Provider, ProviderError, Reads, Reply, Request, Tokens,
    program::{Ended, Program, beside},
    rounds::{Ids, input_of},
};
use crate::{
    base::Cancel,
    model::{Kind, Mail, Status, ToolCall, ToolSpec, Turn},
};

/// A program that is asked for each turn.
pub struct Command {
    /// The program.
    pub program: Program,
    /// The name that prices know it by, where it has one.
    pub model: Option<String>,
    /// What it reads and writes.
    pub io: CommandIo,
    /// At how many tokens it is asked to sum up a conversation, if at all.
    pub compact_at: Option<u64>,
}

/// What a program answers.
#[derive(Deserialize)]
struct Answer {
    text: Option<String>,
    #[serde(default)]
    calls: Vec<Call>,
    status: Option<Status>,
    decision: Option<bool>,
    #[serde(default)]
    tokens: Count,
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
    tool: String,
    #[serde(default)]
    input: Value,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Count {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Provider for Command {
    /// What a program costs is not known here, unless `prices` says it.
    fn model(&self) -> &str {
        self.model.as_deref().unwrap_or("command")
    }

    /// A program may be no model at all, so only one that wants to be is asked for a summary.
    fn reads(&self) -> Reads {
        self.compact_at.map_or(Reads::Recent, Reads::Tokens)
    }

    fn complete(&self, request: &Request<'_>, cancel: &Cancel) -> Result<Reply, ProviderError> {
        let input = match self.io {
            CommandIo::Json => question(request).to_string(),
            CommandIo::Text => work(request),
        };
        let ended = self.program.run(&input, cancel)?;
        match self.io {
            CommandIo::Json => answered(ended, &mut Ids::of(request.turns)),
            CommandIo::Text => Ok(said(ended)),
        }
    }
}

/// Conversation and tools.
fn question(request: &Request<'_>) -> Value {
    let tool = |it: &ToolSpec| json!({ "name": it.name, "description": it.description, "schema": it.schema });
    json!({
        "system": request.system,
        "turns": request.turns,
        "in_hand": request.in_hand,
        "tools": request.tools.iter().map(tool).collect::<Vec<_>>(),
    })
}

/// The text of the work in hand: that of its requests, or of all that came where there are none.
fn work(request: &Request<'_>) -> String {
    let in_hand = request.turns.get(request.in_hand..).unwrap_or_default();
    let mail = in_hand.iter().filter_map(|turn| match turn {
        Turn::Mail(mail) => Some(mail),
        _ => None,
    });
    let mail: Vec<&Mail> = mail.collect();
    let has_request = mail.iter().any(|it| it.kind == Kind::Request);
    let wanted = mail.iter().filter(|it| !has_request || it.kind == Kind::Request);
    wanted.map(|it| it.text.as_str()).collect::<Vec<_>>().join("\n")
}

fn answered(ended: Ended, ids: &mut Ids<'_>) -> Result<Reply, ProviderError> {
    let fault = |why: String| {
        let errors = ended.errors.trim();
        let errors = if errors.is_empty() { String::new() } else { format!("\n{errors}") };
        ProviderError::Final(format!("the program {why}{errors}"))
    };
    if !ended.status.success() {
        return Err(fault(format!("ended with {}", ended.status)));
    }
    let answer: Answer = serde_json::from_str(&ended.output).map_err(|why| {
        let shape = r#"{"text": "…", "calls": [{"tool": "…", "input": {…}}], "status": "ok"}"#;
        fault(format!("did not answer with an object such as {shape}: {why}"))
    })?;
    if answer.text.is_none() && answer.calls.is_empty() {
        return Err(fault("answered with neither \"text\" nor \"calls\"".to_owned()));
    }
    let calls = answer.calls.into_iter().map(|call| {
        let input = match call.input {
            Value::Null => input_of(""),
            input => input,
        };
        ToolCall { id: ids.take(call.id.as_deref()), tool: call.tool, input }
    });
    let Count { input, output, cache_read, cache_write } = answer.tokens;
    Ok(Reply {
        text: answer.text.unwrap_or_default(),
        calls: calls.collect(),
        status: answer.status.unwrap_or(Status::Ok),
        decision: answer.decision,
        tokens: Tokens { input, output, cache_read, cache_write },
        cost: None,
        vendor: beside(&ended.errors),
    })
}

/// The answer of a program that speaks text.
fn said(ended: Ended) -> Reply {
    let output = ended.output.trim_end();
    let text = match (output, ended.status.success()) {
        ("", false) => format!("{}\n{}", ended.status, ended.errors).trim_end().to_owned(),
        (output, _) => output.to_owned(),
    };
    Reply {
        text,
        calls: Vec::new(),
        status: if ended.status.success() { Status::Ok } else { Status::Failed },
        decision: None,
        tokens: Tokens::default(),
        cost: None,
        vendor: beside(&ended.errors),
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, time::Duration};

    use expect_test::expect;

    use super::*;
    use crate::{
        base::{Clock, hash::random_id, left_overs::Mark, thread::Thread},
        model::{AgentName, MessageId, PermissionMode},
    };

    fn command(script: &str, io: CommandIo, timeout: u64) -> Command {
        let path = std::env::var_os("PATH").unwrap();
        Command {
            program: Program {
                argv: ["sh", "-c", script].map(OsString::from).to_vec(),
                cwd: std::env::temp_dir(),
                env: [("PATH".into(), path)].into(),
                timeout: Duration::from_secs(timeout),
                folder: std::env::temp_dir().join(random_id()),
                clock: Clock::real(),
            },
            model: None,
            io,
            compact_at: None,
        }
    }

    fn mail(id: &str, kind: Kind, text: &str) -> Turn {
        let (id, from) = (MessageId::new(id).unwrap(), AgentName::named("lead"));
        Turn::Mail(Mail { id, from, kind, protocol: None, text: text.to_owned(), hops: 0 })
    }

    fn ask(script: &str, io: CommandIo) -> Result<Reply, ProviderError> {
        let turns = [
            mail("m0", Kind::Request, "before"),
            mail("m1", Kind::Request, "count"),
            mail("m2", Kind::Event, "noise"),
            mail("m3", Kind::Request, "again"),
        ];
        let schema = json!({ "type": "object" });
        let tools = [ToolSpec { name: "bash", description: "Runs.".into(), schema }];
        let request = Request {
            system: "You are x.",
            turns: &turns,
            in_hand: 1,
            tools: &tools,
            told: &|_| {},
            may_be_again: false,
            mode: PermissionMode::Default,
        };
        command(script, io, 20).complete(&request, &Cancel::default())
    }

    fn shown(reply: Result<Reply, ProviderError>) -> String {
        match reply {
            Ok(Reply { text, calls, status, decision, tokens, cost: _, vendor }) => {
                let calls: Vec<_> =
                    calls.iter().map(|it| format!("{} {} {}", it.id, it.tool, it.input)).collect();
                let tokens = (tokens.input, tokens.output, tokens.cache_read, tokens.cache_write);
                let vendor = vendor.unwrap_or_default();
                format!("{status:?} {text:?} {calls:?} {decision:?} {tokens:?} {vendor}")
            }
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn a_program_reads_the_conversation_and_answers_with_an_object() {
        let echo = shown(ask(
            r#"printf '{"text": %s}' "$(cat | sed 's/"/\\"/g; s/^/"/; s/$/"/')""#,
            CommandIo::Json,
        ));
        for part in [r#"in_hand\":1"#, r#"You are x."#, r#"mail\":{"#, r#"\"name\":\"bash\""#] {
            assert!(
                echo.replace(r"\\", "").contains(part) || echo.contains(part),
                "{part}: {echo}"
            );
        }
        let whole = r#"echo note >&2; echo '{"text": "t", "calls": [{"id": "c1", "tool": "bash",
            "input": {"command": "ls"}}, {"tool": "x"}], "status": "failed", "decision": true,
            "tokens": {"input": 3, "output": 4}}'"#;
        expect![[r#"Failed "t" ["c1 bash {\"command\":\"ls\"}", "ew7ikoe3xlkt x {}"] Some(true) (3, 4, 0, 0) {"command":{"stderr":"note"}}"#]].assert_eq(&shown(ask(whole, CommandIo::Json)));
        expect![[r#"Ok "" [] None (0, 0, 0, 0) null"#]]
            .assert_eq(&shown(ask("echo '{\"text\": \"\"}'", CommandIo::Json)));
        expect![[r#"the program answered with neither "text" nor "calls""#]]
            .assert_eq(&shown(ask("echo '{\"txt\": \"\"}'", CommandIo::Json)));
    }

    #[test]
    fn what_is_no_answer_says_what_one_is() {
        expect![[r#"
            the program did not answer with an object such as {"text": "…", "calls": [{"tool": "…", "input": {…}}], "status": "ok"}: expected value at line 1 column 1
            why"#]].assert_eq(&shown(ask("echo hello; echo why >&2", CommandIo::Json)));
        expect![[r#"
            the program ended with exit status: 3
            why"#]]
        .assert_eq(&shown(ask("echo '{}'; echo why >&2; exit 3", CommandIo::Json)));
        let mut missing = command("", CommandIo::Text, 1);
        missing.program.argv = vec!["no-such-program".into()];
        let request = Request {
            system: "",
            turns: &[],
            in_hand: 0,
            tools: &[],
            told: &|_| {},
            may_be_again: false,
            mode: PermissionMode::Default,
        };
        let why = shown(missing.complete(&request, &Cancel::default()));
        assert!(why.starts_with("start no-such-program: No such file"), "{why}");
    }

    #[test]
    fn a_script_that_speaks_text_is_a_teammate() {
        expect![[r#"Ok "count\nagain" [] None (0, 0, 0, 0) null"#]]
            .assert_eq(&shown(ask("cat", CommandIo::Text)));
        expect![[r#"Failed "no" [] None (0, 0, 0, 0) {"command":{"stderr":"why"}}"#]]
            .assert_eq(&shown(ask("echo no; echo why >&2; exit 1", CommandIo::Text)));
        expect![[
            r#"Failed "exit status: 1\nwhy" [] None (0, 0, 0, 0) {"command":{"stderr":"why"}}"#
        ]]
        .assert_eq(&shown(ask("echo why >&2; exit 1", CommandIo::Text)));
    }

    #[test]
    fn it_is_killed_with_its_group_at_its_deadline() {
        let mut command = command("echo late >&2; setsid sleep 60 & sleep 60", CommandIo::Text, 1);
        command.program.timeout = Duration::from_millis(300);
        let request = Request {
            system: "",
            turns: &[],
            in_hand: 0,
            tools: &[],
            told: &|_| {},
            may_be_again: false,
            mode: PermissionMode::Default,
        };
        let why = shown(command.complete(&request, &Cancel::default()));
        assert_eq!(why, "sh timed out after 0.3 s and was killed\nlate");
        assert_eq!(Mark::of_folder(&command.program.folder).find().unwrap().len(), 0);
    }

    #[test]
    fn it_is_killed_when_the_call_is_ended() {
        let command = command("sleep 60", CommandIo::Text, 60);
        let (cancel, clock) = (Cancel::default(), Clock::real());
        let begun = clock.now();
        let fired = cancel.clone();
        let fires = Thread::start("fires", move || fired.fire()).unwrap();
        let request = Request {
            system: "",
            turns: &[],
            in_hand: 0,
            tools: &[],
            told: &|_| {},
            may_be_again: false,
            mode: PermissionMode::Default,
        };
        let ended = command.complete(&request, &cancel);
        assert!(matches!(ended, Err(ProviderError::Passing { .. })));
        fires.join().unwrap();
        assert!(clock.now().since(begun) < Duration::from_secs(5));
        assert_eq!(Mark::of_folder(&command.program.folder).find().unwrap().len(), 0);
    }
}
