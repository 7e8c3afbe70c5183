//! `team_shutdown`: asks a teammate to end. Only the lead is obeyed.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Post, Prepared, Tool,
    input::{arguments, schema},
};
use crate::{
    guard::Access,
    model::{Kind, Protocol, ToolSpec},
};

/// Stops a teammate.
pub struct TeamShutdown(pub Post);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Who shall end.
    name: String,
    /// Why, in a few words.
    reason: Option<String>,
    /// Whether it first works off the mail that lies before this.
    drain: Option<bool>,
}

impl Tool for TeamShutdown {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "team_shutdown",
            description:
                "Stops a teammate until somebody starts it again. Only the lead may. With \
                          drain it first works off its mail. It acknowledges by mail."
                    .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, _kit: &Kit, caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let Arguments { name, reason, drain } = arguments(input)?;
        let team = self.0.team();
        if caller.agent != team.lead {
            return Err(format!("only the lead ({}) may stop a teammate: ask it", team.lead));
        }
        let name = self.0.receiver(caller, &name)?;
        if !team.teammates.contains_key(&name) {
            return Err(format!("{name} is no teammate and has no life to end"));
        }
        let letter = self.0.letter(caller, &name, Kind::Request, reason.unwrap_or_default())?;
        let mut order = letter;
        order.envelope.protocol = Some(Protocol::Shutdown);
        order.envelope.drain = drain.unwrap_or_default();
        let post = self.0.clone();
        Ok(Prepared {
            accesses: vec![Access::Team(name.to_string())],
            preview: format!("stop {name}"),
            run: Box::new(move |scope| {
                let id = post.send(scope, order)?;
                Ok(Outcome::Text(format!("told {name} to stop ({id})")))
            }),
        })
    }
}
