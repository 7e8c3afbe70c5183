//! Tables of the grammar: texts, and what is understood of them.

use std::fmt::Write;

use expect_test::{Expect, expect};

use super::{
    line::Deed,
    program::{Program, Script, Voice},
    template::Values,
};
use crate::model::{AgentName, Status};

fn is_program(word: &str) -> bool {
    ["cargo", "make"].contains(&word)
}

fn understood(program: &Program) -> String {
    let from = AgentName::new("lead").unwrap();
    let values =
        Values { content: "<it>", from: &from, output: "<out>".into(), status: Status::Ok };
    let mut told = String::new();
    for (turn, lines) in program.turns().enumerate() {
        for line in lines {
            let goes_on = if line.prefix.goes_on { " -" } else { "" };
            let _ = match &line.deed {
                Deed::Answer(text) => writeln!(told, "  answer {:?}", text.filled(&values)),
                Deed::Call(..) | Deed::Run(_) | Deed::Tool(..) => {
                    let (tool, input) = line.deed.call(&values).unwrap();
                    writeln!(told, "  {turn}{goes_on} {tool} {input}")
                }
            };
        }
    }
    told
}

fn table(texts: &[&str], voice: Voice, expected: Expect) {
    let mut told = String::new();
    for text in texts {
        let _ = writeln!(told, "{text:?}");
        match Script::parse(text, voice, is_program) {
            Ok(script) => {
                told.push_str(&script.program.as_ref().map(understood).unwrap_or_default());
                if let Some(verdict) = script.on_plan {
                    let _ = writeln!(told, "  {verdict:?}");
                }
            }
            Err(why) => {
                let _ = writeln!(told, "  ✗ {why}");
            }
        }
    }
    expected.assert_eq(&told);
}

#[test]
fn lines_are_understood() {
    let texts = [
        "read README.md",
        "Read 'my file.md'",
        "list",
        "list src",
        "glob **/*.rs",
        "grep \"fn \\w+\" src",
        "write a.md: Hello: you\n  # Head\n\n    deep\n\n",
        "write \"a b.md\": {content}",
        "write a.md:",
        "write a.md <<END\nread x\n  two\n\nEND\nlist",
        "write a.md: <<END\nEND",
        "edit a.rs: x == 1 => x == 2",
        "edit a.rs: old =>",
        "edit a.rs:\n  a => b\n  c\n  =>\n  d",
        "run cargo test",
        "run cd src &&\n  make all\n  echo \"$POSTROOM_FROM\"",
        "run echo {content}",
        "task: Look at it",
        "tell scout: go\n  and come back",
        "ask scout: list src",
        "delegate helper: read a.md",
        "plan:\n  1. stop\n  2. go",
        "tool custom {\"a\": [1, \"{from}\"],\n  \"b\": null}",
        "answer: Done, {from}",
        "\n# comment\n\nlist a\n# comment\n  \n& list b\n-run make\n&- list c\n- & list d\nanswer: x",
        "  list a\n  list b\r\n",
    ];
    table(
        &texts,
        Voice::Message,
        expect![[r#"
        "read README.md"
          0 read_file {"path":"README.md"}
        "Read 'my file.md'"
          0 read_file {"path":"my file.md"}
        "list"
          0 list_files {}
        "list src"
          0 list_files {"path":"src"}
        "glob **/*.rs"
          0 glob {"pattern":"**/*.rs"}
        "grep \"fn \\w+\" src"
          0 grep {"path":"src","pattern":"fn \\w+"}
        "write a.md: Hello: you\n  # Head\n\n    deep\n\n"
          0 write_file {"content":"Hello: you\n# Head\n\n  deep","path":"a.md"}
        "write \"a b.md\": {content}"
          0 write_file {"content":"{content}","path":"a b.md"}
        "write a.md:"
          0 write_file {"content":"","path":"a.md"}
        "write a.md <<END\nread x\n  two\n\nEND\nlist"
          0 write_file {"content":"read x\n  two\n\n","path":"a.md"}
          1 list_files {}
        "write a.md: <<END\nEND"
          0 write_file {"content":"","path":"a.md"}
        "edit a.rs: x == 1 => x == 2"
          0 edit_file {"new":"x == 2","old":"x == 1","path":"a.rs"}
        "edit a.rs: old =>"
          0 edit_file {"new":"","old":"old","path":"a.rs"}
        "edit a.rs:\n  a => b\n  c\n  =>\n  d"
          0 edit_file {"new":"d","old":"a => b\nc","path":"a.rs"}
        "run cargo test"
          0 bash {"command":"cargo test"}
        "run cd src &&\n  make all\n  echo \"$POSTROOM_FROM\""
          0 bash {"command":"cd src &&\nmake all\necho \"$POSTROOM_FROM\"","env":{"POSTROOM_FROM":"lead"}}
        "run echo {content}"
          0 bash {"command":"echo {content}"}
        "task: Look at it"
          0 task_create {"title":"Look at it"}
        "tell scout: go\n  and come back"
          0 team_send {"content":"go\nand come back","to":"scout"}
        "ask scout: list src"
          0 team_ask {"content":"list src","to":"scout"}
        "delegate helper: read a.md"
          0 subagent {"agent_type":"helper","task":"read a.md"}
        "plan:\n  1. stop\n  2. go"
          0 submit_plan {"plan":"1. stop\n2. go"}
        "tool custom {\"a\": [1, \"{from}\"],\n  \"b\": null}"
          0 custom {"a":[1,"{from}"],"b":null}
        "answer: Done, {from}"
          answer "Done, {from}"
        "\n# comment\n\nlist a\n# comment\n  \n& list b\n-run make\n&- list c\n- & list d\nanswer: x"
          0 list_files {"path":"a"}
          0 list_files {"path":"b"}
          1 - bash {"command":"make"}
          1 - list_files {"path":"c"}
          1 - list_files {"path":"d"}
          answer "x"
        "  list a\n  list b\r\n"
          0 list_files {"path":"a"}
          1 list_files {"path":"b"}
    "#]],
    );
}

#[test]
fn scripts_have_places() {
    let texts = [
        "read {content}\nwrite 'out of {from}': {output}\ntell {from}: {status}",
        "run make test=\"$POSTROOM_CONTENT\" # $POSTROOM_STATUS",
        "answer: {content}{other}",
        "edit a: {from} => {content}",
        "on plan: approve",
        "list\non plan: reject No, {from}",
        "on plan: reject",
        "",
        "run echo {content}",
        "tool bash {\"command\": \"echo {output}\"}",
        "tell x{from}: a",
        "on plan: maybe",
        "- on plan: approve",
        "on plan: approve\non plan: reject",
    ];
    table(
        &texts,
        Voice::Script,
        expect![[r#"
        "read {content}\nwrite 'out of {from}': {output}\ntell {from}: {status}"
          0 read_file {"path":"<it>"}
          1 write_file {"content":"<out>","path":"out of lead"}
          2 team_send {"content":"ok","to":"lead"}
        "run make test=\"$POSTROOM_CONTENT\" # $POSTROOM_STATUS"
          0 bash {"command":"make test=\"$POSTROOM_CONTENT\" # $POSTROOM_STATUS","env":{"POSTROOM_CONTENT":"<it>","POSTROOM_STATUS":"ok"}}
        "answer: {content}{other}"
          answer "<it>{other}"
        "edit a: {from} => {content}"
          0 edit_file {"new":"<it>","old":"lead","path":"a"}
        "on plan: approve"
          Approve
        "list\non plan: reject No, {from}"
          0 list_files {}
          Reject(Template([Text("No, "), Hole(From), Text("")]))
        "on plan: reject"
          Reject(Template([Text("rejected")]))
        ""
        "run echo {content}"
          ✗ line 1, `run echo {content}`: a command is not filled in: for {content} use "$POSTROOM_CONTENT"
        "tool bash {\"command\": \"echo {output}\"}"
          ✗ line 1, `tool bash {"command": "echo {output}"}`: JSON is not filled in: {output} has no place there
        "tell x{from}: a"
          ✗ line 1, `tell x{from}: a`: "x{from}" is no name: use 1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit
        "on plan: maybe"
          ✗ line 1, `on plan: maybe`: write `on plan: approve` or `on plan: reject WHY`
        "- on plan: approve"
          ✗ line 1, `- on plan: approve`: `on plan:` takes no prefix
        "on plan: approve\non plan: reject"
          ✗ line 2, `on plan: reject`: there is an `on plan:` line already
    "#]],
    );
}

#[test]
fn what_is_not_understood_is_named() {
    let texts = [
        "Please read README.md",
        "read README.md\nand tell me",
        "read the file",
        "read",
        "read ''",
        "read 'a",
        "reading a",
        "read: a",
        "list all the files",
        "grep",
        "write the report: now",
        "write a.md",
        "write a.md <<END\nx",
        "write a.md <<END\nx\nEND\n  more",
        "edit a.md: b",
        "edit a.md:  => b",
    ];
    table(
        &texts,
        Voice::Message,
        expect![[r#"
        "Please read README.md"
          ✗ line 1, `Please read README.md`: no line begins so
        "read README.md\nand tell me"
          ✗ line 2, `and tell me`: no line begins so
        "read the file"
          ✗ line 1, `read the file`: there are words too many: one with blanks is put in quotes
        "read"
          ✗ line 1, `read`: a word is missing
        "read ''"
          ✗ line 1, `read ''`: a word is empty
        "read 'a"
          ✗ line 1, `read 'a`: the quote `'` is not closed
        "reading a"
          ✗ line 1, `reading a`: no line begins so
        "read: a"
          ✗ line 1, `read: a`: no line begins so
        "list all the files"
          ✗ line 1, `list all the files`: there are words too many: one with blanks is put in quotes
        "grep"
          ✗ line 1, `grep`: a word is missing
        "write the report: now"
          ✗ line 1, `write the report: now`: write `write PATH: TEXT` or `write PATH <<END`, with one word before the colon
        "write a.md"
          ✗ line 1, `write a.md`: write `write PATH: TEXT` or `write PATH <<END`, with one word before the colon
        "write a.md <<END\nx"
          ✗ line 1, `write a.md <<END`: no line `END` ends its text
        "write a.md <<END\nx\nEND\n  more"
          ✗ line 1, `write a.md <<END`: nothing indented may stand behind its text
        "edit a.md: b"
          ✗ line 1, `edit a.md: b`: write `edit PATH: OLD => NEW`
        "edit a.md:  => b"
          ✗ line 1, `edit a.md:  => b`: write `edit PATH: OLD => NEW`
    "#]],
    );
}

#[test]
fn what_would_act_is_read_strictly() {
    let texts = [
        "run the tests please",
        "run",
        "task:",
        "Task: look at it",
        "tell Bob: hi",
        "tell bob hi",
        "tell {from}: hi",
        "delegate a b: c",
        "tool x",
        "tool x [1]",
        "answer:",
        "- answer: x",
        "& list",
        "answer: x\n& list",
        "& & list",
        "-",
        "on plan: approve",
        "- point one\n- point two",
    ];
    table(
        &texts,
        Voice::Message,
        expect![[r#"
        "run the tests please"
          ✗ line 1, `run the tests please`: `the` is no program here
        "run"
          ✗ line 1, `run`: `run` needs a command
        "task:"
          ✗ line 1, `task:`: the text is missing
        "Task: look at it"
          ✗ line 1, `Task: look at it`: no line begins so
        "tell Bob: hi"
          ✗ line 1, `tell Bob: hi`: "Bob" is no name: use 1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit
        "tell bob hi"
          ✗ line 1, `tell bob hi`: write `tell NAME: TEXT` or `ask NAME: TEXT`, with one word before the colon
        "tell {from}: hi"
          ✗ line 1, `tell {from}: hi`: "{from}" is no name: use 1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit
        "delegate a b: c"
          ✗ line 1, `delegate a b: c`: write `delegate TYPE: TEXT`, with one word before the colon
        "tool x"
          ✗ line 1, `tool x`: write `tool NAME {json}`: the input is no JSON object: EOF while parsing a value at line 1 column 0
        "tool x [1]"
          ✗ line 1, `tool x [1]`: write `tool NAME {json}`: the input is no JSON object: invalid type: sequence, expected a map at line 1 column 0
        "answer:"
          ✗ line 1, `answer:`: the text is missing
        "- answer: x"
          ✗ line 1, `- answer: x`: `answer:` takes no prefix
        "& list"
          ✗ line 1, `& list`: `&` joins the call just before it, and there is none
        "answer: x\n& list"
          ✗ line 2, `& list`: `&` joins the call just before it, and there is none
        "& & list"
          ✗ line 1, `& & list`: no line begins so
        "-"
          ✗ line 1, `-`: no line begins so
        "on plan: approve"
          ✗ line 1, `on plan: approve`: `on plan:` belongs in a script
        "- point one\n- point two"
          ✗ line 1, `- point one`: no line begins so
    "#]],
    );
}

#[test]
fn an_empty_message_is_no_program() {
    let why = Program::parse(" \n# only this\n", is_program).unwrap_err();
    expect!["line 1, `# only this`: there is no line in it"].assert_eq(&why.to_string());
}
