//! What holds for a clerk at every text and at every cut.

use expect_test::expect;
use proptest::prelude::*;

use super::{
    Clerk,
    desk::{Desk, ask, clerk, is_program, mail},
    program::Program,
};
use crate::model::{AgentName, Kind, Next, Status, ToolResult, Turn};

#[test]
fn long_outputs_are_shortened() {
    let mut desk = Desk::new(None, mail("m1", Kind::Request, "list\nlist b"));
    for _ in 0..2 {
        let turn = desk.ask(desk.conversation.tally().turns);
        desk.conversation.push(turn);
        let Next::RunTool(call) = desk.conversation.next() else { panic!("a call is due") };
        let call = call.id.clone();
        let text = "x".repeat(200_000);
        desk.conversation.push(Turn::Result(ToolResult::new(call, Ok(text))));
    }
    let end = desk.run();
    assert!(end.text.chars().count() < 51_000);
    assert!(end.text.contains("$ list b"));
}

#[test]
fn a_fault_of_the_script_has_its_line() {
    let name = AgentName::new("desk").unwrap();
    let text = "list\nrun echo {content}".to_owned();
    let why = Clerk::knowing(name, Some(text), is_program).unwrap_err();
    expect![[r#"the script is not understood: line 2, `run echo {content}`: a command is not filled in: for {content} use "$POSTROOM_CONTENT""#]].assert_eq(&why.to_string());
}

#[test]
fn a_program_that_was_begun_goes_on_without_its_programs() {
    let mut desk = Desk::new(None, mail("m1", Kind::Request, "run make a\nrun make b"));
    let turn = desk.ask(0);
    desk.conversation.push(turn);
    desk.clerk.is_program = |_| false;
    assert_eq!(desk.run().status, Status::Ok);
}

fn lines() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("read a".to_owned()),
        Just("& list".to_owned()),
        Just("- run make".to_owned()),
        Just("  more".to_owned()),
        Just("write a <<END".to_owned()),
        Just("END".to_owned()),
        Just("answer: {output}".to_owned()),
        "[-& ]{0,2}(read|run|edit|tell|tool|on|plan)[ :]{0,2}.{0,12}",
        "\\PC{0,20}",
    ];
    prop::collection::vec(line, 0..6).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn nothing_is_called_unless_the_whole_is_understood(text in prop_oneof![lines(), ".*"]) {
        let turns = [Turn::Mail(mail("m1", Kind::Request, &text))];
        let reply = ask(&clerk(None), &turns, 0);
        let understood = Program::parse(&text, is_program).is_ok();
        prop_assert!(understood || (reply.calls.is_empty() && reply.status == Status::Failed));
        let name = AgentName::new("desk").unwrap();
        if let Ok(clerk) = Clerk::knowing(name, Some(text), is_program) {
            ask(&clerk, &[Turn::Mail(mail("m1", Kind::Request, "x"))], 0);
        }
    }

    #[test]
    fn a_broken_line_anywhere_stops_all(text in lines(), at in 0_usize..6) {
        prop_assume!(!text.contains("<<"));
        let mut lines: Vec<&str> = text.lines().collect();
        lines.insert(at.min(lines.len()), "and then some");
        let turns = [Turn::Mail(mail("m1", Kind::Request, &lines.join("\n")))];
        prop_assert!(ask(&clerk(None), &turns, 0).calls.is_empty());
    }
}
