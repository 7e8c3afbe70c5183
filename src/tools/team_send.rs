//! `team_send`: a request to one member, whose answer comes as mail.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Post, Prepared, Tool,
    input::{arguments, schema},
};
use crate::{
    base::text::headline,
    model::{Kind, ToolSpec},
};

/// Sends a request.
pub struct TeamSend(pub Post);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Who gets it: a name from team_list, `lead` or `user`.
    to: String,
    /// What it says.
    content: String,
}

impl Tool for TeamSend {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "team_send",
            description: "Sends a message to one member of the team and does not wait: the answer \
                          comes later as mail and starts a turn of yours. To wait for the answer \
                          use team_ask."
                .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, _kit: &Kit, caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let Arguments { to, content } = arguments(input)?;
        let to = self.0.receiver(caller, &to)?;
        let preview = format!("to {to}: {}", headline(&content, 200));
        let letter = self.0.letter(caller, &to, Kind::Request, content)?;
        let post = self.0.clone();
        Ok(Prepared {
            accesses: Vec::new(),
            preview,
            run: Box::new(move |scope| {
                let id = post.send(scope, letter)?;
                Ok(Outcome::Sent { text: format!("sent to {to} as {id}"), id })
            }),
        })
    }
}
