//! `team_broadcast`: a message to everybody else, which nobody answers.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Letter, Outcome, Post, Prepared, Tool,
    input::{arguments, schema},
};
use crate::{
    base::text::{headline, listed},
    model::{Kind, ToolSpec},
};

/// Tells everybody.
pub struct TeamBroadcast(pub Post);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What everybody should know.
    content: String,
}

impl Tool for TeamBroadcast {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "team_broadcast",
            description: "Tells something to every other member of the team. It is context for \
                          their next turn; nobody answers it."
                .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, _kit: &Kit, caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let Arguments { content } = arguments(input)?;
        let post = self.0.clone();
        let others = post.team().teammates.keys().filter(|name| **name != caller.agent);
        let letters: Result<Vec<Letter>, String> =
            others.map(|to| post.letter(caller, to, Kind::Broadcast, content.clone())).collect();
        let (letters, preview) = (letters?, format!("to all: {}", headline(&content, 200)));
        Ok(Prepared {
            accesses: Vec::new(),
            preview,
            run: Box::new(move |scope| {
                let names = listed(letters.iter().map(|letter| letter.envelope.to.clone()));
                for letter in letters {
                    post.send(scope, letter)?;
                }
                Ok(Outcome::Text(format!("told {names}")))
            }),
        })
    }
}
