//! What summing up and shrinking leave as it was, whatever the conversation.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::model::CallId;

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

fn mail(id: usize, kind: Kind) -> Turn {
    let id = MessageId::new(format!("m{id}")).unwrap();
    Turn::Mail(Mail {
        id,
        from: name("user"),
        kind,
        protocol: None,
        text: "go".repeat(50),
        hops: 0,
    })
}

fn call(id: String) -> ToolCall {
    ToolCall { id: CallId::new(id).unwrap(), tool: "bash".to_owned(), input: json!({"a": 1}) }
}

fn model(calls: Vec<ToolCall>, tokens: u64) -> Turn {
    Turn::Model {
        text: "so".to_owned(),
        calls,
        status: Status::Ok,
        decision: None,
        tokens: Tokens { input: tokens, output: 3, ..Tokens::default() },
        vendor: None,
    }
}

fn result(call: &ToolCall, length: usize, plan: Option<bool>) -> Turn {
    Turn::Result(ToolResult { plan, ..ToolResult::new(call.id.clone(), Ok("x".repeat(length))) })
}

/// One piece of work after the other: how many rounds each has, and how long their results are. The
/// last is in hand.
fn conversation(works: &[Vec<(usize, usize)>]) -> Conversation {
    let mut all = Conversation::default();
    for (at, rounds) in works.iter().enumerate() {
        all.push(mail(at * 100, Kind::Event));
        all.push(mail(at * 100 + 1, Kind::Request));
        for (round, (calls, length)) in rounds.iter().enumerate() {
            let calls: Vec<_> = (0..*calls).map(|n| call(format!("c{at}-{round}-{n}"))).collect();
            all.push(model(calls.clone(), 10));
            for (n, call) in calls.iter().enumerate() {
                all.push(result(call, *length, (n == 1).then_some(round % 2 == 0)));
            }
            if round % 3 == 2 {
                all.push(mail(at * 100 + 2 + round, Kind::Request));
            }
        }
        if at + 1 < works.len() {
            all.push(model(Vec::new(), 10));
            all.push(Turn::Final(Final::told(Status::Ok, "done".to_owned())));
        }
    }
    all
}

/// Every result stands behind its call in the same round, and every call has one.
fn is_whole(turns: &[Turn]) -> bool {
    let mut open: Vec<&CallId> = Vec::new();
    turns.iter().all(|turn| match turn {
        Turn::Model { calls, .. } => {
            let is_clean = open.is_empty();
            open = calls.iter().map(|call| &call.id).collect();
            is_clean
        }
        Turn::Result(result) => {
            let place = open.iter().position(|id| **id == result.call);
            place.map(|place| open.remove(place)).is_some()
        }
        _ => true,
    }) && open.is_empty()
}

fn requests(turns: &[Turn]) -> Vec<&Mail> {
    let mail = turns.iter().filter_map(|turn| match turn {
        Turn::Mail(mail) if mail.kind == Kind::Request => Some(mail),
        _ => None,
    });
    mail.collect()
}

fn summed_up(conversation: &Conversation, stands_for: usize) -> Conversation {
    let mut shorter = conversation.clone();
    let of_work = conversation.turns().get(conversation.in_hand_from()..stands_for);
    let tally = Tally::of(of_work.unwrap_or_default());
    let text = "in short".to_owned();
    shorter.push(Turn::Summary(Summary { text, stands_for, work: None, tally }));
    shorter
}

fn works() -> impl Strategy<Value = Vec<Vec<(usize, usize)>>> {
    let round = (1_usize..4, prop_oneof![Just(10_usize), Just(900), Just(5_000)]);
    proptest::collection::vec(proptest::collection::vec(round, 0..8), 1..5)
}

proptest! {
    #[test]
    fn a_summary_parts_no_call_from_its_result_and_forgets_nothing_that_counts(
        works in works(), keep in 0_u64..20_000, again in 0_u64..3_000,
    ) {
        let before = conversation(&works);
        prop_assert!(is_whole(before.turns()));
        let Some(count) = before.older(keep) else { return Ok(()) };
        let mut after = summed_up(&before, count);
        if let Some(count) = after.older(again) {
            after = summed_up(&after, count);
        }
        prop_assert!(is_whole(after.turns()), "{:?}", after.turns());
        prop_assert_eq!(after.tally(), before.tally());
        prop_assert_eq!(after.next(), before.next());
        prop_assert_eq!(requests(after.in_hand()), requests(before.in_hand()));
        prop_assert!(sizes(after.turns()) < sizes(before.turns()) + 60);
        // The end of the work finds all that it has to answer and to count.
        let (mut ended, mut plain) = (after.clone(), before.clone());
        for it in [&mut ended, &mut plain] {
            it.push(model(Vec::new(), 10));
            it.push(Turn::Final(Final::told(Status::Ok, "done".to_owned())));
        }
        let id = MessageId::new(format!("m{}", (works.len() - 1) * 100 + 1)).unwrap();
        let (turns, end) = ended.concluded(&name("user"), &id).unwrap();
        let (all, plain_end) = plain.concluded(&name("user"), &id).unwrap();
        prop_assert_eq!(end, plain_end);
        prop_assert_eq!(Tally::of(turns), Tally::of(all));
        prop_assert_eq!(requests(turns), requests(all));
    }

    #[test]
    fn the_newest_stay(works in works(), keep in 0_u64..20_000) {
        let before = conversation(&works);
        let Some(count) = before.older(keep) else { return Ok(()) };
        let stay = before.turns().len() - count;
        let last = before.in_hand().iter().rposition(|it| matches!(it, Turn::Model { .. }));
        let last = last.map(|last| before.turns().len() - before.in_hand_from() - last);
        prop_assert!(stay >= last.unwrap_or(1));
        let after = summed_up(&before, count);
        prop_assert_eq!(after.turns().last(), before.turns().last());
    }

    #[test]
    fn shrinking_frees_old_results_and_leaves_the_newest(works in works(), stay in 0_usize..5) {
        let before = conversation(&works);
        let Some(count) = before.shrinkable(stay, 0) else { return Ok(()) };
        let mut after = before.clone();
        after.push(Turn::Shrunk { before: count });
        prop_assert!(is_whole(after.turns()));
        let results = |it: &Conversation| -> Vec<usize> {
            let texts = it.turns().iter().rev().filter_map(|turn| match turn {
                Turn::Result(result) => Some(result.text.len()),
                _ => None,
            });
            texts.collect()
        };
        let (old, new) = (results(&before), results(&after));
        prop_assert_eq!(&old[..stay.min(old.len())], &new[..stay.min(new.len())]);
        prop_assert!(new.iter().skip(stay).all(|length| *length <= 2 * SHRUNK));
        prop_assert!(new.iter().sum::<usize>() < old.iter().sum::<usize>());
        prop_assert_eq!(after.shrinkable(stay, 0), None);
    }
}

#[test]
fn what_the_model_has_counted_goes_before_what_is_guessed() {
    let mut all = Conversation::default();
    all.push(mail(1, Kind::Request));
    assert_eq!(all.size(500), 500 + 54);
    let asked = call("c".to_owned());
    all.push(model(vec![asked.clone()], 2_000));
    assert_eq!(all.size(500), 2_003);
    all.push(result(&asked, 3_000, None));
    assert_eq!(all.size(500), 2_003 + 1_020);
    // What it has counted before the results were shrunk counts no longer.
    all.push(Turn::Shrunk { before: 3 });
    let shrunk = all.size(500);
    assert!((600..1_000).contains(&shrunk), "{shrunk}");
    all.push(model(Vec::new(), 700));
    assert_eq!(all.size(500), 703);
}
