//! One call of a model: paid for, traced, and ended as soon as its teammate has to.

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use super::{Run, programs::mode_for_program};
use crate::{
    base::{Interrupted, text::shorten},
    model::{CallId, guessed_tokens},
    provider::{Course, ProviderError, Reply, Request, Told},
    store::{Call, OpenCall, PricedBy, StoreError, Usage},
};

/// The most bytes of a turn's words, calls and vendor's blocks as JSON: together they fit into a line.
const MOST_WORDS: usize = 400 << 10;
const MOST_CALLS: usize = 400 << 10;
const MOST_BLOCKS: usize = 200 << 10;
/// The most calls of one turn.
const MOST_AT_ONCE: usize = 256;

/// How a call of a model ended.
pub enum Asked {
    /// It has answered.
    Reply(Reply),
    /// It was not asked, because a budget is spent.
    Refused(String),
    /// It can't answer.
    Failed(ProviderError),
    /// Somebody wants something else.
    Interrupted(Interrupted),
}

/// Asks the model how the work goes on.
pub fn ask(run: &mut Run<'_>) -> Result<Asked, StoreError> {
    ask_with(run, None)
}

/// Asks the model something beside the work.
pub fn ask_aside(run: &mut Run<'_>, request: &Request<'_>) -> Result<Asked, StoreError> {
    ask_with(run, Some(request))
}

/// About how many tokens the model is told beside the turns.
pub fn beside(run: &Run<'_>) -> u64 {
    let tools = run.desk.tools.specs();
    let tools = tools.iter().map(|it| it.description.len() + it.schema.to_string().len());
    guessed_tokens(run.desk.system.len() + tools.sum::<usize>())
}

fn ask_with(run: &mut Run<'_>, aside: Option<&Request<'_>>) -> Result<Asked, StoreError> {
    let call = match run.insist(|run| run.office.costs.begin(call_of(run), priced_by(run)))? {
        Ok(call) => call,
        Err(refusal) => return Ok(Asked::Refused(refusal)),
    };
    run.trace.model_call_started();
    let started = run.scope.clock.now();
    let (asked, usage) = call_model(run, aside);
    run.memo.has_asked |= aside.is_none();
    charge(run, &call, &usage)?;
    let reply = match asked {
        Ok(Ok(reply)) => match fitting(without_keys(run, reply)) {
            Ok(reply) => reply,
            Err(why) => return Ok(Asked::Failed(why)),
        },
        Ok(Err(why)) => {
            return Ok(Asked::Failed(why.with_words(|words| run.office.secrets.hide(words))));
        }
        Err(why) => return Ok(Asked::Interrupted(why)),
    };
    let milliseconds = run.scope.clock.now().since(started).as_millis();
    let tokens = (reply.tokens.read(), reply.tokens.output);
    run.trace.model_call(tokens, milliseconds, &reply.text);
    let complaints = reply.vendor.as_ref().and_then(|it| it.pointer("/command/stderr")?.as_str());
    if let Some(complaints) = complaints.filter(|it| !it.trim().is_empty()) {
        run.trace.error(complaints);
    }
    Ok(Asked::Reply(reply))
}

/// Makes the call; gives what came of it, and what all its tries have taken.
fn call_model(
    run: &Run<'_>,
    aside: Option<&Request<'_>>,
) -> (Result<Result<Reply, ProviderError>, Interrupted>, Usage) {
    let (conversation, tries) = (run.kept.conversation(), Mutex::new(Vec::new()));
    let told: &Told<'_> = &|course| match course {
        Course::Waits(why) => hold(run, Some(why)),
        Course::Goes => hold(run, None),
        Course::Took(model, tokens) => tries.lock().push((model.to_owned(), tokens)),
    };
    let to_go_on = Request {
        system: &run.desk.system,
        turns: conversation.turns(),
        in_hand: conversation.in_hand_from(),
        tools: run.desk.tools.specs(),
        told,
        may_be_again: run.has_died && !run.memo.has_asked,
        mode: mode_for_program(&run.rights(), &run.desk.tools),
    };
    let request = aside.map_or(to_go_on, |aside| Request { told, ..*aside });
    let provider = &run.desk.provider;
    let asked = run.scope.call("model", |cancel| provider.complete(&request, cancel));
    hold(run, None);
    let mut usage = Usage { tries: tries.into_inner(), cost: None };
    if let Ok(Ok(reply)) = &asked {
        usage.cost = reply.cost;
        if usage.tries.is_empty() {
            usage.tries.push((provider.model().to_owned(), reply.tokens));
        }
    }
    (asked, usage)
}

/// A reply without the keys that it may have seen. A vendor's own blocks can't be changed, so they go
/// where they hold one.
fn without_keys(run: &Run<'_>, reply: Reply) -> Reply {
    let secrets = &run.office.secrets;
    let mut reply = Reply { text: secrets.hide(reply.text), ..reply };
    let complaints = reply.vendor.as_mut().and_then(|it| it.pointer_mut("/command/stderr"));
    if let Some(Value::String(complaints)) = complaints {
        *complaints = secrets.hide(std::mem::take(complaints));
    }
    reply.vendor.take_if(|blocks| secrets.are_in(&blocks.to_string()));
    for call in &mut reply.calls {
        let input = call.input.to_string();
        if secrets.are_in(&input) {
            call.input = serde_json::from_str(&secrets.hide(input)).unwrap_or_default();
        }
    }
    reply
}

/// A reply that fits into a line of its conversation, and whose words fit into a message.
fn fitting(reply: Reply) -> Result<Reply, ProviderError> {
    let mut reply = reply;
    let mut most = MOST_WORDS;
    while length(&reply.text) > MOST_WORDS {
        reply.text = shorten(&reply.text, most);
        most /= 2;
    }
    reply.vendor.take_if(|blocks| length(blocks) > MOST_BLOCKS);
    let count = reply.calls.len();
    if count > MOST_AT_ONCE || length(&reply.calls) > MOST_CALLS {
        let why = format!(
            "the model wants {count} calls at once; at most {MOST_AT_ONCE} of together at most \
             {MOST_CALLS} bytes are made"
        );
        return Err(ProviderError::Final(why));
    }
    Ok(reply)
}

/// How many bytes something is as JSON.
fn length(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len())
}

/// Says what the call waits for, if for anything.
fn hold(run: &Run<'_>, why: Option<String>) {
    run.office.statuses.hold(run.name, &run.lineage.run, why);
}

fn priced_by(run: &Run<'_>) -> PricedBy {
    let provider = &run.desk.provider;
    if provider.states_cost() {
        return PricedBy::Answer;
    }
    PricedBy::Prices(provider.models().into_iter().map(str::to_owned).collect())
}

/// The call that a run is going to make of its model.
fn call_of(run: &Run<'_>) -> Call {
    let work = &run.work.envelope;
    Call {
        call: CallId::random(),
        teammate: run.name.clone(),
        agent_type: run.desk.agent_type.name.clone(),
        run: run.lineage.run.clone(),
        trace: run.trace.id().clone(),
        task: work.task_id.clone(),
        message: work.id.clone(),
        model: run.desk.provider.model().to_owned(),
    }
}

/// Writes down what a call has taken.
fn charge(run: &mut Run<'_>, call: &OpenCall, usage: &Usage) -> Result<(), StoreError> {
    let charge = run.insist(|run| run.office.costs.end(call, usage))?;
    run.office.statuses.update(run.name, |status| {
        let tokens = charge.tokens.unwrap_or_default();
        status.tokens_in = status.tokens_in.saturating_add(tokens.read());
        status.tokens_out = status.tokens_out.saturating_add(tokens.output);
        status.cost = status.cost.plus(charge.cost.unwrap_or_default());
        status.unknown_costs += u64::from(charge.cost.is_none());
    });
    Ok(())
}
