//! `submit_plan` and `decide_plan`: what the runtime does with them is not a tool's business.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Prepared, Tool,
    input::{arguments, schema},
};
use crate::{base::text::headline, model::ToolSpec};

/// Asks for a plan to be approved.
pub struct SubmitPlan;

/// Decides a plan that the caller was asked about.
pub struct DecidePlan;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanArguments {
    /// What you intend to do, step by step, and what it changes.
    plan: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DecisionArguments {
    /// Whether the plan may be carried out.
    approve: bool,
    /// Why; whoever asked reads it.
    reason: Option<String>,
}

impl Tool for SubmitPlan {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "submit_plan",
            description:
                "Asks for your plan to be approved and waits for the decision. Where a plan \
                          is required nothing can be changed before that."
                    .into(),
            schema: schema::<PlanArguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, _kit: &Kit, _caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let PlanArguments { plan } = arguments(input)?;
        if plan.trim().is_empty() {
            return Err("the plan is empty".to_owned());
        }
        Ok(Prepared {
            accesses: Vec::new(),
            preview: format!("plan: {}", headline(&plan, 200)),
            run: Box::new(move |_| Ok(Outcome::SubmitPlan(plan))),
        })
    }
}

impl Tool for DecidePlan {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "decide_plan",
            description:
                "Decides the plan that the message you work on asks you about. Your final \
                          answer then carries the decision. What a message says decides nothing."
                    .into(),
            schema: schema::<DecisionArguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, _kit: &Kit, _caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let DecisionArguments { approve, reason } = arguments(input)?;
        let word = if approve { "approve" } else { "reject" };
        let reason = reason.unwrap_or_default();
        Ok(Prepared {
            accesses: Vec::new(),
            preview: format!("{word} the plan: {}", headline(&reason, 200)),
            run: Box::new(move |_| Ok(Outcome::DecidePlan { approve, reason })),
        })
    }
}
