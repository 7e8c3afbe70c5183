//! `trace`: what teammates have done and spent, as a tree, and on as it happens.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    approvals::{OpenQuestion, open_questions},
    args::Trace as Args,
    context::Context,
    failure::{Code, Failure},
    find::by_beginning,
    render::Printer,
    trace_draw::{View, draw},
    trace_follow::Following,
};
use crate::{
    base::{Scope, text::listed},
    model::{AgentName, MessageId, RunId},
    store::{Ledger, MessageBus, Spent, Store, Trace, TraceNode, read_costs},
};

/// What stands before the short id of a run that is no teammate's life.
pub const RUN: &str = "subagent-";
/// How much of an id is shown.
const SHORT: usize = 8;

/// A trace that was asked for.
pub struct Root {
    /// Its id; none where a teammate has not run yet.
    pub id: Option<RunId>,
    /// Whose life it is, and which, where it was asked for by the teammate.
    pub life: Option<(AgentName, u64)>,
}

/// Shows traces.
pub fn trace(context: &Context, args: &Args, printer: &mut Printer) -> Result<Code, Failure> {
    let store = context.store()?;
    let (bus, file) = context.bus(&store)?;
    let scope = Scope::plain(context.clock().clone());
    let wake = scope.wake.clone();
    // From before the first look on, so that nothing falls between that and what follows.
    let _watch =
        args.follow.then(|| store.watch_traces(Box::new(move || wake.notify()))).transpose()?;
    let roots = match &args.id {
        Some(given) => vec![find(&store, &bus, given)?],
        None => all_teammates(context, &store)?,
    };
    // An id means one trace, of which all is shown.
    let whole = roots.iter().find(|it| it.life.is_none()).and_then(|it| it.id.clone());
    let roots = if args.all { with_earlier_lives(&store, roots)? } else { roots };
    let now = context.is_up().then(|| context.clock().wall());
    let spent = spent_by_trace(&store)?;
    let asking = asking(&open_questions(&store, &bus, file.as_ref())?);
    let view = View { now, spent: &spent, whole: whole.as_ref(), asking: &asking };
    let mut trees: Vec<TraceNode> = Vec::new();
    for root in &roots {
        let Some(id) = &root.id else { continue };
        let tree = store.trace_tree(id)?;
        match &root.life {
            Some((name, life)) if tree.is_missing => {
                printer.say(&format!("{name}  the trace of life {life} is missing"));
            }
            _ => printer.say(&draw(&tree, view)),
        }
        trees.push(tree);
    }
    if trees.is_empty() {
        printer.note("nobody has run yet; `postroom up` starts the team");
    }
    if args.follow {
        let goes_on = args.id.is_none();
        let mut following = Following::new(&store, &roots, trees, goes_on)?;
        return following.go_on(&scope, printer);
    }
    Ok(Code::Ok)
}

/// The traces that wait for a decision.
fn asking(questions: &[OpenQuestion]) -> BTreeMap<RunId, MessageId> {
    let lines = questions.iter().map(|it| &it.message.envelope);
    let named = lines.filter_map(|it| Some((RunId::new(it.trace_id.as_deref()?).ok()?, &it.id)));
    named.map(|(trace, question)| (trace, question.clone())).collect()
}

/// What the calls in each trace have taken.
fn spent_by_trace(store: &Store) -> Result<BTreeMap<RunId, Spent>, Failure> {
    let (mut ledger, mut spent) = (Ledger::default(), BTreeMap::<RunId, Spent>::new());
    read_costs(store, |at, line| {
        for it in ledger.take(at, line) {
            spent.entry(it.call.trace.clone()).or_default().add(&it);
        }
    })?;
    Ok(spent)
}

/// How the id of a run is shown: a life's by its beginning, that of any other run with a word.
pub fn short_id(id: &RunId, is_life: bool) -> String {
    let short: String = id.as_str().chars().take(SHORT).collect();
    if is_life { short } else { format!("{RUN}{short}") }
}

/// The latest life of every teammate.
fn all_teammates(context: &Context, store: &Store) -> Result<Vec<Root>, Failure> {
    let names = match context.known_team(store)? {
        Some(file) => file.team.teammates.keys().cloned().collect(),
        None => store.lives().names()?,
    };
    names.into_iter().map(|name| latest_life(store, name)).collect()
}

/// The latest life of `name`.
fn latest_life(store: &Store, name: AgentName) -> Result<Root, Failure> {
    let life = life_of(store, &name)?;
    let id = (life > 0).then(|| Trace::id_of(&name, life));
    Ok(Root { id, life: Some((name, life)) })
}

/// The same, behind the earlier lives of each teammate that have left a trace.
fn with_earlier_lives(store: &Store, roots: Vec<Root>) -> Result<Vec<Root>, Failure> {
    let there: BTreeSet<RunId> = store.traces()?.into_iter().collect();
    let before = |(name, life): &(AgentName, u64)| {
        (1..*life).map(|number| Trace::id_of(name, number)).collect::<Vec<_>>()
    };
    let with_them = roots.into_iter().flat_map(|root| {
        let earlier = root.life.as_ref().map(before).unwrap_or_default();
        let earlier = earlier.into_iter().filter(|id| there.contains(id));
        let earlier: Vec<Root> = earlier.map(|id| Root { id: Some(id), life: None }).collect();
        earlier.into_iter().chain([root])
    });
    Ok(with_them.collect())
}

/// The number of the life that `name` has or had last; 0 where it has not run yet.
pub fn life_of(store: &Store, name: &AgentName) -> Result<u64, Failure> {
    Ok(store.lives().open(name)?.life().life)
}

/// What `given` means: a teammate, or a trace.
fn find(store: &Store, bus: &MessageBus, given: &str) -> Result<Root, Failure> {
    let lives = store.lives().names()?;
    if let Ok(name) = AgentName::new(given) {
        let name = bus.roster().resolve(name);
        if lives.contains(&name) {
            return match latest_life(store, name.clone())? {
                root @ Root { id: Some(_), .. } => Ok(root),
                Root { id: None, .. } => Err(not_run(&name)),
            };
        }
        if bus.roster().members.contains(&name) {
            return Err(not_run(&name));
        }
    }
    let traces = store.traces()?;
    let count = traces.len();
    let beginning = given.strip_prefix(RUN).unwrap_or(given);
    let id = by_beginning(beginning, traces, RunId::as_str, || {
        Failure::usage(format!(
            "no trace is called {given:?}, and no teammate; there are the teammates {} and {count} \
             traces in .mailbox/traces; `postroom trace` shows the latest of each teammate",
            listed(&lives)
        ))
    })?;
    Ok(Root { id: Some(id), life: None })
}

fn not_run(name: &AgentName) -> Failure {
    Failure::usage(format!(
        "{name} has no trace, for it has not run; `postroom trace` shows who has"
    ))
}
