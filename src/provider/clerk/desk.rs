//! A desk to try a clerk at: made-up tools, and the loop of a teammate.

use std::fmt::Write;

use expect_test::Expect;
use serde_json::Value;

use super::{Clerk, help};
use crate::{
    base::Cancel,
    model::{
        AgentName, Conversation, Final, Kind, Mail, MessageId, Next, PermissionMode, ToolCall,
        ToolResult, ToolSpec, Turn,
    },
    provider::{Provider, Reply, Request},
};

const TOOLS: [&str; 6] =
    ["read_file", "list_files", "write_file", "bash", "team_send", "submit_plan"];

/// The programs of this world.
pub fn is_program(word: &str) -> bool {
    ["cargo", "make"].contains(&word)
}

/// Mail from the lead.
pub fn mail(id: &str, kind: Kind, text: &str) -> Mail {
    let (id, from) = (MessageId::new(id).unwrap(), AgentName::new("lead").unwrap());
    Mail { id, from, kind, protocol: None, text: text.to_owned(), hops: 0 }
}

/// A clerk by the name of desk.
pub fn clerk(script: Option<&str>) -> Clerk {
    let name = AgentName::new("desk").unwrap();
    Clerk::knowing(name, script.map(str::to_owned), is_program).unwrap()
}

/// The clerk's next turn.
pub fn ask(clerk: &Clerk, turns: &[Turn], in_hand: usize) -> Reply {
    let spec = |name| ToolSpec { name, description: "".into(), schema: Value::Null };
    let tools = TOOLS.map(spec);
    let request = Request {
        system: "",
        turns,
        in_hand,
        tools: &tools,
        told: &|_| {},
        may_be_again: false,
        mode: PermissionMode::Default,
    };
    clerk.complete(&request, &Cancel::default()).unwrap()
}

/// What the made-up tools give: whatever is called bad does not work.
fn result(call: &ToolCall) -> ToolResult {
    let input = call.input.to_string();
    let is_error = input.contains("bad");
    let text = match call.tool.as_str() {
        _ if is_error => format!("no good: {input}"),
        "write_file" => String::new(),
        tool => format!("{tool} gave something"),
    };
    ToolResult::new(call.id.clone(), if is_error { Err(text) } else { Ok(text) })
}

/// A team's one teammate, for as long as one piece of work.
pub struct Desk {
    /// Who sits there.
    pub clerk: Clerk,
    /// What was said and done.
    pub conversation: Conversation,
    /// Mail that joins before the model is asked for the n-th time.
    joins: Vec<(usize, Mail)>,
    told: String,
}

impl Desk {
    /// A desk with a first message on it.
    pub fn new(script: Option<&str>, first: Mail) -> Self {
        let mut conversation = Conversation::default();
        conversation.push(Turn::Mail(first));
        Self { clerk: clerk(script), conversation, joins: Vec::new(), told: String::new() }
    }

    /// Lets `mail` join before the model is asked for the n-th time.
    pub fn joining(mut self, before: usize, mail: Mail) -> Self {
        self.joins.push((before, mail));
        self
    }

    /// Goes on until the end is written.
    pub fn run(&mut self) -> Final {
        loop {
            let asked = self.conversation.tally().turns;
            let turn = match self.conversation.next() {
                Next::AskModel => self.ask(asked),
                Next::RunTool(call) => Turn::Result(result(call)),
                Next::Conclude { status, text, decision } => {
                    let late = self.joins.iter().position(|(before, _)| *before <= asked);
                    let Some(at) = late else {
                        let end = Final {
                            status,
                            text: text.to_owned(),
                            decision,
                            places: std::collections::BTreeMap::new(),
                        };
                        self.conversation.push(Turn::Final(end.clone()));
                        return end;
                    };
                    Turn::Mail(self.joins.remove(at).1)
                }
            };
            self.conversation.push(turn);
        }
    }

    /// The next turn: mail that joins, else the clerk's.
    pub fn ask(&mut self, asked: usize) -> Turn {
        if let Some(at) = self.joins.iter().position(|(before, _)| *before == asked) {
            return Turn::Mail(self.joins.remove(at).1);
        }
        let conversation = &self.conversation;
        let reply = ask(&self.clerk, conversation.turns(), conversation.in_hand_from());
        for call in &reply.calls {
            let _ = writeln!(self.told, "{asked} {} {} {}", call.id, call.tool, call.input);
        }
        let Reply { text, calls, status, decision, vendor, tokens, cost: _ } = reply;
        Turn::Model { text, calls, status, decision, vendor, tokens }
    }

    /// Compares what was called and answered, with the clerk's forms left out.
    pub fn transcript(mut self, expected: Expect) {
        let end = self.run();
        let decision = end.decision.map(|it| format!(" {it}")).unwrap_or_default();
        let _ = writeln!(self.told, "=> {:?}{decision}\n{}", end.status, end.text);
        expected.assert_eq(&self.told.replace(&help::forms(), "(the forms)"));
        self.every_cut_goes_on_the_same();
    }

    /// What the clerk said at each place is what it says when it is asked there again.
    fn every_cut_goes_on_the_same(&self) {
        for (at, turn) in self.conversation.turns().iter().enumerate() {
            if let Turn::Model { text, calls, status, decision, .. } = turn {
                let reply = ask(&self.clerk, &self.conversation.turns()[..at], 0);
                assert_eq!((&reply.text, &reply.calls), (text, calls));
                assert_eq!((&reply.status, &reply.decision), (status, decision));
            }
        }
    }
}
