//! `background_run` and `background_check`: a command beside the work. For types, rules and modes both
//! are `bash`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Prepared, Tool,
    bash::Bash,
    input::{arguments, schema},
};
use crate::model::ToolSpec;

/// Starts a command.
pub struct BackgroundRun;

/// Looks at what runs.
pub struct BackgroundCheck;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What was started, as it was called then; all if absent.
    id: Option<String>,
}

impl Tool for BackgroundRun {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "background_run",
            description: "Starts a command as bash does and goes on at once. How it ends and what \
                          it prints comes as mail."
                .into(),
            schema: Bash.spec().schema,
        }
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    /// The very call of bash is judged here, and run by the runtime.
    fn prepare(&self, kit: &Kit, caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let bash = Bash.prepare(kit, caller, input)?;
        let wish = Outcome::RunInBackground { command: bash.preview.clone(), input: input.clone() };
        Ok(Prepared { run: Box::new(move |_| Ok(wish)), ..bash })
    }
}

impl Tool for BackgroundCheck {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "background_check",
            description: "Tells how commands and subagents stand that you have started in the \
                          background. Their ends come as mail all the same: there is no need to \
                          wait for them with this."
                .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, _kit: &Kit, _caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let Arguments { id } = arguments(input)?;
        let preview = id.clone().unwrap_or_else(|| "all".to_owned());
        let wish = Outcome::CheckBackground(id);
        Ok(Prepared { accesses: Vec::new(), preview, run: Box::new(move |_| Ok(wish)) })
    }
}
