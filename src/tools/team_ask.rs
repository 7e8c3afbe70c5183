//! `team_ask`: a request to one member, and a wait for its answer.

use std::time::Duration;

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

/// How long an answer is waited for, in seconds, unless the call says otherwise.
const WAIT_S: u64 = 600;

/// Asks and waits.
pub struct TeamAsk(pub Post);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Who is asked: a name from team_list, `lead` or `user`.
    to: String,
    /// What is asked.
    content: String,
    /// How many seconds to wait for the answer. Default: 600.
    timeout_s: Option<u64>,
}

impl Tool for TeamAsk {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "team_ask",
            description:
                "Sends a message to one member of the team and waits for the answer, which \
                          is the result."
                    .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, _kit: &Kit, caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let Arguments { to, content, timeout_s } = arguments(input)?;
        let to = self.0.receiver(caller, &to)?;
        let at_most = Duration::from_secs(timeout_s.unwrap_or(WAIT_S).max(1));
        let preview = format!("ask {to}: {}", headline(&content, 200));
        let letter = self.0.letter(caller, &to, Kind::Request, content)?;
        Ok(Prepared {
            accesses: Vec::new(),
            preview,
            run: Box::new(move |_| Ok(Outcome::Ask { letter, at_most })),
        })
    }
}
