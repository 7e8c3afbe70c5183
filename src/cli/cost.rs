//! `cost`: what the calls of models have taken, by teammate and model, and how far budgets are used.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    context::Context,
    failure::{Code, Failure},
    log::since,
    render::{Printer, SCHEMA},
};
use crate::{
    base::{Timestamp, text::listed},
    store::{Settled, Spending, Spent, budgets_of, read_costs},
};

/// `cost`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this teammate, with its subagents
    pub name: Option<String>,
    /// Only from then on: 90s, 10m, 2h, 1d ago, or a time
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// By task instead of by teammate
    #[arg(long)]
    pub tasks: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What stands before a row: a teammate, or a task, and the model.
type Key = (String, String);

#[derive(Serialize)]
struct Row<'a> {
    schema: u32,
    #[serde(rename = "for")]
    whose: &'a str,
    model: &'a str,
    calls: u64,
    tokens_in: u64,
    tokens_out: u64,
    cached: u64,
    cost_usd: Option<String>,
    unknown_calls: u64,
}

/// Prints what was spent.
pub fn cost(context: &Context, args: &Args, printer: &mut Printer) -> Result<Code, Failure> {
    let (store, now) = (context.store()?, context.clock().wall());
    let from = args.since.as_deref().map(|text| since(text, now)).transpose()?;
    let (mut spending, mut rows) = (Spending::default(), BTreeMap::<Key, Spent>::new());
    let mut names = std::collections::BTreeSet::new();
    read_costs(&store, |at, line| {
        for it in spending.take(at, line) {
            names.insert(it.call.teammate.to_string());
            if let Some(key) = key_of(args, from, &it) {
                rows.entry(key).or_default().add(&it);
            }
        }
    })?;
    let file = context.known_team(&store)?;
    if let Some(name) = &args.name {
        let members = file.iter().flat_map(|file| file.team.teammates.keys());
        names.extend(members.map(ToString::to_string));
        if !names.contains(name) {
            let known = listed(&names);
            return Err(Failure::usage(format!("no teammate is called {name}; there are {known}")));
        }
    }
    for ((whose, model), spent) in &rows {
        print(whose, model, spent, args.json, printer);
    }
    if args.json {
        return Ok(Code::Ok);
    }
    if rows.is_empty() {
        printer.note("no model was called");
    } else {
        let all = rows.values().copied().fold(Spent::default(), Spent::plus);
        print("all", "", &all, false, printer);
    }
    for (whose, budget) in file.iter().flat_map(|file| budgets_of(&file.team)) {
        let spent = spending.in_window(&whose, budget.per.window(now));
        let most = [
            budget.max_cost.map(|most| format!("{} of ${}", spent.cost, most.exact())),
            budget.max_tokens.map(|most| format!("{} of {most} tokens", spent.tokens.total())),
        ];
        let most: Vec<String> = most.into_iter().flatten().collect();
        printer.say(&format!("budget of {whose}, {}: {}", budget.per.as_str(), most.join(", ")));
    }
    Ok(Code::Ok)
}

/// The row that a call belongs to, if it is asked for.
fn key_of(args: &Args, from: Option<Timestamp>, it: &Settled) -> Option<Key> {
    let is_new = from.is_none_or(|from| it.at.is_some_and(|at| at >= from));
    let is_wanted = args.name.as_ref().is_none_or(|name| it.call.teammate.as_str() == name);
    let whose = match &it.call.task {
        _ if !args.tasks => it.call.teammate.to_string(),
        Some(task) => format!("task {task}"),
        None => return None,
    };
    (is_new && is_wanted).then(|| (whose, it.call.model.clone()))
}

/// Calls of which nobody knows what they have taken.
fn unknown_calls(count: u64) -> String {
    let calls = if count == 1 { "1 call".to_owned() } else { format!("{count} calls") };
    format!("{calls} cut off, failed, or with nothing said of what was taken")
}

/// An amount of money as it is shown: what is not known is never nothing.
pub fn money(spent: &Spent) -> String {
    match (spent.cost.is_nothing(), spent.is_known()) {
        (_, true) => spent.cost.to_string(),
        (true, false) => "unknown".to_owned(),
        (false, false) => format!("{} and unknown", spent.cost),
    }
}

fn print(whose: &str, model: &str, spent: &Spent, json: bool, printer: &mut Printer) {
    let tokens = spent.tokens;
    let unknown = spent.unpriced + spent.unknown;
    if json {
        return printer.say_json(&Row {
            schema: SCHEMA,
            whose,
            model,
            calls: spent.calls,
            tokens_in: tokens.read(),
            tokens_out: tokens.output,
            cached: tokens.cache_read,
            cost_usd: spent.is_known().then(|| spent.cost.exact()),
            unknown_calls: unknown,
        });
    }
    let cost = money(spent);
    let why = match (spent.unknown, spent.unpriced) {
        (0, 0) => String::new(),
        (cut, 0) => format!("  ({})", unknown_calls(cut)),
        (0, _) => "  (its price is not known: add it to \"prices\")".to_owned(),
        (cut, _) => format!("  ({}, others have no known price)", unknown_calls(cut)),
    };
    printer.say(&format!(
        "{whose:14} {model:24} {:5} calls {:9} in {:8} out {:9} cached  {cost}{why}",
        spent.calls,
        tokens.read(),
        tokens.output,
        tokens.cache_read
    ));
}
