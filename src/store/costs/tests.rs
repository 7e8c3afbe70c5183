//! The journal of costs: its lines, what any journal of them comes to, and what its budgets forbid.
#![expect(
    clippy::unused_self,
    clippy::format_push_string,
    clippy::format_collect,
    clippy::string_slice,
    clippy::sliced_string_as_bytes,
    reason = "tests cut texts that they know"
)]

use std::sync::Arc;

use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::{
    base::{Clock, Folder, Scope},
    journal::{JournalName, memory::MemoryJournals},
    model::{AgentName, CallId, Cost, MessageId, RunId, TypeName, read_team},
};

fn call(id: &str, teammate: &str, run: &str, model: &str) -> Call {
    Call {
        call: CallId::new(id).unwrap(),
        teammate: AgentName::new(teammate).unwrap(),
        agent_type: TypeName::new("general-purpose").unwrap(),
        run: RunId::new(run).unwrap(),
        trace: RunId::new("t").unwrap(),
        task: None,
        message: MessageId::new("m").unwrap(),
        model: model.to_owned(),
    }
}

fn by_prices(model: &str) -> PricedBy {
    PricedBy::Prices(vec![model.to_owned()])
}

fn tokens(input: u64, output: u64) -> Tokens {
    Tokens { input, output, ..Tokens::default() }
}

struct Bench {
    journals: Arc<MemoryJournals>,
    store: Store,
    team: Arc<Team>,
    _temp: tempfile::TempDir,
}

const NOON: i64 = 1_796_040_000_000;

impl Bench {
    fn new(team: &str) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::make(&temp.path().canonicalize().unwrap().join(".mailbox")).unwrap();
        let journals = Arc::new(MemoryJournals::default());
        let store = Store::on(journals.clone(), folder, Clock::fake(Timestamp(NOON))).unwrap();
        let team = Arc::new(read_team(team, "t", &|_| Ok(Vec::new())).unwrap());
        Self { journals, store, team, _temp: temp }
    }

    fn costs(&self) -> Costs {
        Costs::open(&self.store, Arc::clone(&self.team)).unwrap()
    }

    fn lines(&self) -> String {
        let bytes = self.journals.journal(&JournalName("state/costs".to_owned())).bytes();
        String::from_utf8(bytes).unwrap()
    }

    /// Makes a call that takes these tokens, or says why there is none.
    fn spend(&self, costs: &Costs, call: Call, tokens: Tokens) -> Result<(), String> {
        let model = call.model.clone();
        let open = costs.begin(call, by_prices(&model)).unwrap()?;
        costs.end(&open, &Usage { tries: vec![(model, tokens)], cost: None }).unwrap();
        Ok(())
    }

    /// Lets time pass.
    fn pass(&self, hours: u64) {
        let scope = Scope::plain(self.store.clock().clone());
        let later = scope.clock.now().after(std::time::Duration::from_secs(hours * 3600));
        let _ = scope.wait::<()>(Some(later), || None);
    }
}

const PRICED: &str = r#""prices": {"m": {"input": 1, "output": 10}}"#;

fn team(more: &str) -> String {
    format!(r#"{{{PRICED}, "teammates": {{"a": {{}}, "b": {{}}}}{more}}}"#)
}

#[test]
fn a_call_is_a_line_before_it_and_one_behind_it() {
    let bench = Bench::new(&team(""));
    let costs = bench.costs();
    let first = Call { task: Some("7".to_owned()), ..call("one", "a", "a", "m") };
    let cached = Tokens { cache_read: 5, ..tokens(100, 20) };
    bench.spend(&costs, first, cached).unwrap();
    bench.spend(&costs, call("two", "a", "a", "nobody-knows"), tokens(1, 1)).unwrap();
    let cut = costs.begin(call("three", "b", "b", "clerk"), by_prices("clerk")).unwrap().unwrap();
    costs.end(&cut, &Usage::default()).unwrap();
    let cut = costs.begin(call("four", "b", "b", "m"), by_prices("m")).unwrap().unwrap();
    costs.end(&cut, &Usage::default()).unwrap();
    expect![[r#"
        {"timestamp":"2026-11-30T12:00:00.000Z","event":"started","call":"one","teammate":"a","agent_type":"general-purpose","run":"a","trace":"t","task":"7","message":"m","model":"m"}
        {"timestamp":"2026-11-30T12:00:00.000Z","event":"ended","call":"one","teammate":"a","agent_type":"general-purpose","run":"a","trace":"t","task":"7","message":"m","model":"m","tokens":{"input":100,"output":20,"cache_read":5},"cost_usd":"0.000305"}
        {"timestamp":"2026-11-30T12:00:00.000Z","event":"started","call":"two","teammate":"a","agent_type":"general-purpose","run":"a","trace":"t","message":"m","model":"nobody-knows"}
        {"timestamp":"2026-11-30T12:00:00.000Z","event":"ended","call":"two","teammate":"a","agent_type":"general-purpose","run":"a","trace":"t","message":"m","model":"nobody-knows","tokens":{"input":1,"output":1},"cost_usd":null}
        {"timestamp":"2026-11-30T12:00:00.000Z","event":"started","call":"three","teammate":"b","agent_type":"general-purpose","run":"b","trace":"t","message":"m","model":"clerk"}
        {"timestamp":"2026-11-30T12:00:00.000Z","event":"ended","call":"three","teammate":"b","agent_type":"general-purpose","run":"b","trace":"t","message":"m","model":"clerk","tokens":{"input":0,"output":0},"cost_usd":"0"}
        {"timestamp":"2026-11-30T12:00:00.000Z","event":"started","call":"four","teammate":"b","agent_type":"general-purpose","run":"b","trace":"t","message":"m","model":"m"}
        {"timestamp":"2026-11-30T12:00:00.000Z","event":"ended","call":"four","teammate":"b","agent_type":"general-purpose","run":"b","trace":"t","message":"m","model":"m","tokens":null,"cost_usd":null}
    "#]].assert_eq(&bench.lines());
}

#[test]
fn a_call_that_a_death_cut_off_has_cost_nobody_knows_what() {
    let bench = Bench::new(&team(r#", "budget": {"max_tokens": 100}"#));
    let costs = bench.costs();
    bench.spend(&costs, call("one", "a", "a", "m"), tokens(50, 0)).unwrap();
    costs.begin(call("two", "a", "a", "m"), by_prices("m")).unwrap().unwrap();
    costs.begin(call("clerks", "b", "b", "clerk"), by_prices("clerk")).unwrap().unwrap();
    let whole = bench.lines();
    let journal = bench.journals.journal(&JournalName("state/costs".to_owned()));
    journal.push(b"{\"timestamp\":\"2026-11-");
    {
        let costs = bench.costs();
        let spent = costs
            .spending
            .lock()
            .in_window(&Whose::Team, crate::model::Per::Life.window(Timestamp(NOON)));
        assert_eq!(
            (spent.calls, spent.tokens.total(), spent.unknown, spent.unpriced),
            (3, 50, 1, 0)
        );
        assert_eq!(spent.cost.exact(), "0.00005");
        bench.spend(&costs, call("three", "a", "a", "clerk"), Tokens::default()).unwrap();
    }
    assert!(bench.lines().starts_with(&whole));
    // A call that follows in the same conversation shows it, too, and the line of an end that was
    // appended twice counts once.
    let mut ledger = Ledger::default();
    let started = |id: &str| CostLine::Started(call(id, "a", "a", "m"));
    let ended =
        |id: &str| CostLine::Ended { call: call(id, "a", "a", "m"), charge: Charge::default() };
    assert_eq!(ledger.take(None, started("x")).len(), 0);
    assert_eq!(ledger.take(None, started("y"))[0].call.call.as_str(), "x");
    assert_eq!(ledger.take(None, ended("y")).len(), 1);
    assert_eq!(ledger.take(None, ended("y")).len(), 0);
    assert!(!ledger.has_open());
}

#[test]
fn budgets_refuse_the_call_behind_the_one_that_reached_them() {
    let more = r#", "agents": {"x": {"budget": {"max_tokens": 15, "per": "life"}}},
        "budget": {"max_cost_usd": 0.001, "per": "month"}"#;
    let bench = Bench::new(&format!(
        r#"{{{PRICED}{more}, "teammates": {{"a": {{"budget": {{"max_tokens": 100}}}}, "b": {{}}}}}}"#
    ));
    let costs = bench.costs();
    let of_type = |id: &str, name: &str| Call {
        agent_type: TypeName::named("x"),
        ..call(id, name, name, "m")
    };
    let mut told = String::new();
    let mut attempt = |call: Call, tokens: Tokens| {
        let id = call.call.to_string();
        let said = bench.spend(&costs, call, tokens);
        told.push_str(&format!("{id}: {}\n", said.err().unwrap_or_else(|| "made".to_owned())));
    };
    attempt(call("a1", "a", "a", "m"), tokens(99, 0));
    attempt(call("a2", "a", "a", "m"), tokens(20, 0));
    attempt(call("a3", "a", "a", "m"), tokens(1, 0));
    attempt(call("a4", "a", "a", "clerk"), Tokens::default());
    attempt(of_type("x1", "b"), tokens(15, 0));
    attempt(of_type("x2", "b"), tokens(1, 0));
    attempt(call("b1", "b", "b", "nobody-knows"), tokens(1, 0));
    bench.pass(24);
    attempt(call("a5", "a", "a", "m"), tokens(1, 90));
    attempt(of_type("x3", "b"), tokens(1, 0));
    attempt(call("b2", "b", "b", "m"), tokens(0, 10));
    attempt(call("b3", "b", "b", "m"), tokens(0, 1));
    expect![[r#"
        a1: made
        a2: made
        a3: no further model call: the budget of a is used up (max_tokens 100 a day; spent 119 tokens) until 2026-12-01T00:00:00.000Z; wait until then, or raise `budget` of a in the team file, then `postroom down` and `postroom up`; `postroom cost` shows what was spent on what
        a4: made
        x1: made
        x2: no further model call: the budget of the type x is used up (max_tokens 15 for ever; spent 15 tokens) and never begins anew; raise `budget` of the type x, then `postroom down` and `postroom up`; `postroom cost` shows what was spent on what
        b1: no model call: the budget of the team has max_cost_usd, and the price of the model nobody-knows is not known; add it to the team file, in dollars for a million tokens, such as "prices": {"nobody-knows": {"input": 3.0, "output": 15.0}}, then `postroom down` and `postroom up`
        a5: made
        x3: no further model call: the budget of the type x is used up (max_tokens 15 for ever; spent 15 tokens) and never begins anew; raise `budget` of the type x, then `postroom down` and `postroom up`; `postroom cost` shows what was spent on what
        b2: made
        b3: no further model call: the budget of the team is used up (max_cost_usd 0.001 a month; spent $0.0010) until 2027-01-01T00:00:00.000Z; wait until then, or raise `budget` in the team file, then `postroom down` and `postroom up`; `postroom cost` shows what was spent on what
    "#]].assert_eq(&told);
    let used_up: Vec<String> = costs.used_up().iter().map(ToString::to_string).collect();
    expect![[r#"
        the budget of the team is used up (max_cost_usd 0.001 a month; spent $0.0010) until 2027-01-01T00:00:00.000Z
        the budget of the type x is used up (max_tokens 15 for ever; spent 15 tokens) and never begins anew"#]].assert_eq(&used_up.join("\n"));
    // Another life of the daemon decides by the same lines.
    let again = bench.costs();
    assert_eq!(again.used_up(), costs.used_up());
}

#[test]
fn what_costs_nothing_is_not_stopped_by_money_that_is_spent() {
    let bench = Bench::new(
        r#"{"budget": {"max_cost_usd": 0}, "teammates": {"a": {}},
            "prices": {"m": {"input": 1, "output": 1}, "local": {"input": 0, "output": 0}}}"#,
    );
    let costs = bench.costs();
    assert!(bench.spend(&costs, call("a", "a", "a", "m"), tokens(1, 1)).is_err());
    assert!(bench.spend(&costs, call("b", "a", "a", "local"), tokens(1, 1)).is_ok());
    assert!(bench.spend(&costs, call("c", "a", "a", "clerk"), tokens(0, 0)).is_ok());
}

/// A line of a journal: a start, an end with its tokens, or that a daemon came up.
#[derive(Debug, Clone)]
enum Step {
    Start(u8),
    End(u8, u32, bool),
    Up,
    Nonsense,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..20_u8).prop_map(Step::Start),
        4 => (0..20_u8, any::<u32>(), any::<bool>()).prop_map(|(id, count, priced)| Step::End(id, count, priced)),
        1 => Just(Step::Up),
        1 => Just(Step::Nonsense),
    ];
    proptest::collection::vec(step, 0..60)
}

fn text_of(step: &Step, place: usize) -> String {
    let of =
        |id: u8| call(&format!("c{id}"), ["a", "b"][usize::from(id % 2)], &format!("r{id}"), "m");
    let at = Timestamp(NOON + i64::try_from(place).unwrap() * 7_200_000);
    match step {
        Step::Start(id) => CostLine::Started(of(*id)).to_text(at),
        Step::End(id, count, priced) => {
            let tokens = tokens(u64::from(*count), 1);
            let cost = priced.then(|| Cost::of_micro(u64::from(*count)));
            let charge = Charge { tokens: Some(tokens), cost };
            CostLine::Ended { call: of(*id), charge }.to_text(at)
        }
        Step::Up => CostLine::Opened.to_text(at),
        Step::Nonsense => "{\"event\":\"from a later version\"}".to_owned(),
    }
}

/// The sum by hand: the first end of each call counts, and each start whose call has no end where a
/// daemon comes up.
fn by_hand(steps: &[Step]) -> Spent {
    let (mut ended, mut open) =
        (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    let mut spent = Spent::default();
    for step in steps {
        match step {
            Step::Start(id) => {
                if !ended.contains(id) {
                    open.insert(*id);
                }
            }
            Step::End(id, count, priced) => {
                open.remove(id);
                if ended.insert(*id) {
                    spent.calls += 1;
                    spent.tokens = spent.tokens.plus(tokens(u64::from(*count), 1));
                    let cost = if *priced { u64::from(*count) } else { 0 };
                    spent.cost = spent.cost.plus(Cost::of_micro(cost));
                    spent.unpriced += u64::from(!priced);
                }
            }
            Step::Up => {
                spent.calls += open.len() as u64;
                spent.unknown += open.len() as u64;
                open.clear();
            }
            Step::Nonsense => {}
        }
    }
    spent
}

proptest! {
    #[test]
    fn any_journal_comes_to_the_sum_of_its_lines(steps in steps(), keep in 0.0..=1.0_f64) {
        let lines: Vec<String> =
            steps.iter().enumerate().map(|(place, step)| text_of(step, place)).collect();
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        // Cut anywhere: what is left of the last line is no line.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a short text")]
        let cut = (text.len() as f64 * keep) as usize;
        let whole = text[..cut].matches('\n').count();
        let bench = Bench::new(&team(""));
        bench.journals.journal(&JournalName("state/costs".to_owned())).push(text[..cut].as_bytes());
        let mut spending = Spending::default();
        read_costs(&bench.store, |at, line| drop(spending.take(at, line))).unwrap();
        let life = crate::model::Per::Life.window(Timestamp(NOON));
        let total = spending.in_window(&Whose::Team, life);
        prop_assert_eq!(total, by_hand(&steps[..whole]));
        let of = |name: &str| spending.in_window(&Whose::Teammate(AgentName::new(name).unwrap()), life);
        prop_assert_eq!(of("a").plus(of("b")), total);
    }
}

#[test]
fn what_an_answer_says_of_its_cost_goes_before_prices() {
    let bench = Bench::new(&team(r#", "budget": {"max_cost_usd": 1, "per": "life"}"#));
    let costs = bench.costs();
    let spend = |id: &str, model: &str, cost: Option<f64>| {
        let open = costs.begin(call(id, "a", "a", model), PricedBy::Answer).unwrap()?;
        let cost = cost.and_then(Cost::of_dollars);
        let usage = Usage { tries: vec![(model.to_owned(), tokens(1_000, 0))], cost };
        let charge = costs.end(&open, &usage).unwrap();
        Ok(charge.cost.map(|cost| cost.exact()))
    };
    assert_eq!(spend("one", "m", Some(0.5)), Ok(Some("0.5".to_owned())));
    assert_eq!(spend("two", "m", None), Ok(Some("0.001".to_owned())));
    assert_eq!(spend("three", "nobody-knows", None), Ok(None));
    assert_eq!(spend("four", "nobody-knows", Some(0.5)), Ok(Some("0.5".to_owned())));
    let refused: Result<_, String> = spend("five", "nobody-knows", Some(0.5));
    assert!(refused.unwrap_err().contains("the budget of the team is used up"));
    let priced = costs.begin(call("six", "a", "a", "m"), by_prices("nobody-knows")).unwrap();
    assert!(priced.unwrap_err().contains("is not known"));
}

#[test]
fn all_tries_of_a_call_are_paid_at_the_price_of_their_model() {
    let bench = Bench::new(&team(""));
    let costs = bench.costs();
    let spend = |id: &str, tries: &[(&str, u64)]| {
        let open = costs.begin(call(id, "a", "a", "m"), by_prices("m")).unwrap().unwrap();
        let tries = tries.iter().map(|(model, input)| ((*model).to_owned(), tokens(*input, 0)));
        let charge = costs.end(&open, &Usage { tries: tries.collect(), cost: None }).unwrap();
        (charge.tokens.map(|it| it.input), charge.cost.map(|cost| cost.exact()))
    };
    let paid = |cost: &str| Some(cost.to_owned());
    assert_eq!(spend("one", &[("m", 1_000), ("m", 1_000)]), (Some(2_000), paid("0.002")));
    assert_eq!(spend("two", &[("m", 0), ("m", 1_000)]), (Some(1_000), paid("0.001")));
    assert_eq!(spend("three", &[("m", 1_000), ("nobody-knows", 5)]), (Some(1_005), None));
    assert_eq!(spend("four", &[("m", 0), ("m", 0)]), (None, None));
    assert_eq!(spend("five", &[]), (None, None));
    assert!(bench.lines().contains("\"model\":\"nobody-knows\""));
}
