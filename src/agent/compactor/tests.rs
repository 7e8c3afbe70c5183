//! Long conversations on a model that counts what it reads, refuses what is too long, and fails the
//! test when a call has no result or two.

use std::{fmt::Write, sync::Arc};

use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::{
    agent::{AutonomousAgent, Desk, Step, tests::Bench, thinkers::Thinker},
    base::{Cancel, hash::derived_id},
    journal::JournalName,
    model::{CallId, PermissionMode, Status, Tokens, ToolCall},
    provider::{Provider, Reply},
};

type Think = dyn Fn(usize) -> Vec<&'static str> + Send + Sync;

/// A model that reads `big.txt` as often as it is told to.
struct Model {
    reads: Reads,
    /// What it refuses to read, in tokens.
    refuses: u64,
    /// How long its summaries are; none where it fails to make one.
    summary: Option<&'static str>,
    /// What it calls in which of its turns; nothing when it is done.
    calls: Box<Think>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    asked: usize,
    turns: usize,
    refused: usize,
    summaries: Vec<String>,
    longest: u64,
    beside: u64,
    last: Vec<Turn>,
}

impl Model {
    fn new(
        compact_at: u64,
        calls: impl Fn(usize) -> Vec<&'static str> + Send + Sync + 'static,
    ) -> Self {
        let (reads, refuses) = (Reads::Tokens(compact_at), u64::MAX);
        let summary = Some("It was all about big.txt.");
        Self { reads, refuses, summary, calls: Box::new(calls), seen: Mutex::default() }
    }

    fn summary(&self, request: &Request<'_>, seen: &mut Seen) -> Result<Reply, ProviderError> {
        let [Turn::Mail(asked)] = request.turns else { panic!("one message: {:?}", request.turns) };
        seen.summaries.push(asked.text.clone());
        match self.summary {
            Some(text) => {
                let status = if text == "FAILED" { Status::Failed } else { Status::Ok };
                Ok(Reply { status, ..reply(text, Vec::new(), 10) })
            }
            None => Err(ProviderError::Final("no summary today".to_owned())),
        }
    }
}

fn reply(text: &str, calls: Vec<ToolCall>, tokens: u64) -> Reply {
    let tokens = Tokens { input: tokens, output: 1, ..Tokens::default() };
    let text = text.to_owned();
    Reply { text, calls, status: Status::Ok, decision: None, tokens, cost: None, vendor: None }
}

/// Counts as the guess does, so that both agree.
fn length(request: &Request<'_>) -> u64 {
    let tools = request.tools.iter().map(|it| it.description.len() + it.schema.to_string().len());
    let beside = request.system.len() + tools.sum::<usize>();
    sizes(request.turns) + crate::model::guessed_tokens(beside)
}

impl Provider for Model {
    #[expect(clippy::unnecessary_literal_bound, reason = "the trait says so")]
    fn model(&self) -> &str {
        "clerk"
    }

    fn reads(&self) -> Reads {
        self.reads
    }

    fn complete(&self, request: &Request<'_>, _: &Cancel) -> Result<Reply, ProviderError> {
        let mut seen = self.seen.lock();
        seen.asked += 1;
        let size = length(request);
        if size > self.refuses {
            seen.refused += 1;
            return Err(ProviderError::TooLong);
        }
        if request.system.starts_with("You keep the memory") {
            return self.summary(request, &mut seen);
        }
        assert_whole(request.turns);
        seen.longest = seen.longest.max(size - seen.beside);
        seen.last = request.turns.to_vec();
        let turn = seen.turns;
        seen.turns += 1;
        let calls = (self.calls)(turn).into_iter().enumerate().map(|(at, path)| ToolCall {
            id: match path.strip_prefix("tell ") {
                // Some servers give the same ids in each turn.
                Some(_) => CallId::new("call_0").unwrap(),
                None => CallId::new(derived_id(&[&turn.to_le_bytes(), &at.to_le_bytes()])).unwrap(),
            },
            tool: if path.starts_with("tell ") { "team_send" } else { "read_file" }.to_owned(),
            input: match path.strip_prefix("tell ") {
                Some(text) => json!({ "to": "user", "content": format!("{text} {turn}") }),
                None => json!({ "path": path }),
            },
        });
        let calls: Vec<ToolCall> = calls.collect();
        Ok(reply(&format!("turn {turn}"), calls, size))
    }
}

fn assert_whole(turns: &[Turn]) {
    let mut open: Vec<CallId> = Vec::new();
    for turn in turns {
        match turn {
            Turn::Model { calls, .. } => {
                assert_eq!(open, [], "calls without a result in {turns:?}");
                open = calls.iter().map(|call| call.id.clone()).collect();
            }
            Turn::Result(result) => {
                let place = open.iter().position(|id| *id == result.call);
                drop(open.remove(place.expect("a result has its call before it")));
            }
            _ => {}
        }
    }
    assert_eq!(open, [], "calls without a result in {turns:?}");
}

/// A teammate that thinks with `model`, in a workspace with a big file.
struct Desks {
    bench: Bench,
    model: Arc<Model>,
}

impl Desks {
    /// The limits of `model` are those of the turns: what it is told beside them comes on top.
    fn new(mut model: Model) -> Self {
        let bench = Bench::new(r#"{"teammates": {"lead": {}}}"#);
        bench.file("big.txt", &"a line of some length\n".repeat(200));
        bench.file("small.txt", "small\n");
        let desk = bench.office.desk(&AgentName::new("lead").unwrap());
        let request = Request {
            system: &desk.system,
            turns: &[],
            in_hand: 0,
            tools: desk.tools.specs(),
            told: &|_| {},
            may_be_again: false,
            mode: PermissionMode::Plan,
        };
        let beside = length(&request);
        if let Reads::Tokens(most) = &mut model.reads {
            *most += beside;
        }
        model.refuses = model.refuses.saturating_add(beside);
        model.seen.get_mut().beside = beside;
        Self { bench, model: Arc::new(model) }
    }

    fn agent(&self) -> AutonomousAgent {
        let mut agent = self.bench.agent("lead");
        let desk = Arc::clone(&agent.desk);
        let model = Thinker { mind: desk.mind.clone(), provider: Arc::clone(&self.model) as _ };
        agent.desk = Arc::new(Desk::narrowed(&desk, &desk.agent_type, &desk.rights, model));
        agent
    }

    /// Lets it answer a message, in a life of its own.
    fn asks(&self, id: &str) -> AutonomousAgent {
        self.bench.write("lead", &json!({"id": id, "content": "read it all"}).to_string());
        let mut agent = self.agent();
        while agent.step().unwrap() != Step::Idle {}
        agent
    }

    fn answers(&self) -> String {
        self.bench.mail("user").iter().fold(String::new(), |mut all, line| {
            let _ = writeln!(all, "{line}");
            all
        })
    }

    fn transcript(&self) -> String {
        let journal = JournalName("state/conversations/lead".to_owned());
        String::from_utf8(self.bench.journals.journal(&journal).bytes()).unwrap()
    }
}

fn reads(times: usize) -> impl Fn(usize) -> Vec<&'static str> {
    move |turn| if turn < times { vec!["big.txt", "small.txt"] } else { Vec::new() }
}

#[test]
fn above_the_threshold_old_results_shrink_and_the_last_three_stay() {
    let desks = Desks::new(Model::new(12_000, reads(10)));
    let agent = desks.asks("a");
    assert!(desks.answers().contains("response ok turn 10"), "{}", desks.answers());
    let seen = desks.model.seen.lock();
    assert_eq!((seen.turns, seen.summaries.len()), (11, 0));
    assert!(seen.longest < 12_000 + 2_000, "{}", seen.longest);
    let long =
        seen.last.iter().filter(|it| matches!(it, Turn::Result(it) if it.text.len() > 1_000));
    assert!((2..9).contains(&long.count()));
    // The file keeps the whole transcript.
    assert_eq!(desks.transcript().matches(&"a line of some length\\n".repeat(200)).count(), 10);
    assert_eq!(agent.kept.conversation().in_hand().len(), 0);
}

#[test]
fn then_a_summary_stands_for_the_older_part_and_a_restart_goes_on_with_it() {
    let desks = Desks::new(Model::new(9_000, reads(90)));
    drop(desks.asks("a"));
    assert!(desks.answers().contains("response ok turn 90"), "{}", desks.answers());
    let (count, longest) = {
        let seen = desks.model.seen.lock();
        assert!(seen.summaries[0].contains("read it all"), "{:?}", seen.summaries);
        assert!(seen.summaries[1].contains("It was all about big.txt."), "{:?}", seen.summaries);
        (seen.summaries.len(), seen.longest)
    };
    assert!((3..20).contains(&count), "{count}");
    assert!(longest < 9_000 + 2 * 1_500, "{longest}");
    // What a life reads again from its file is what the life before has shown.
    let again = desks.agent();
    let before = desks.model.seen.lock().last.clone();
    let turns = again.kept.conversation().turns();
    assert_eq!(turns.get(..before.len()), Some(before.as_slice()));
    assert!(matches!(&turns[0], Turn::Summary(it) if it.text.contains("all about big.txt")));
    assert!(matches!(&turns[1], Turn::Mail(it) if it.text == "read it all"));
}

#[test]
fn a_refusal_as_too_long_shortens_and_asks_once_more() {
    let desks = Desks::new(Model { refuses: 9_000, ..Model::new(100_000, reads(12)) });
    drop(desks.asks("a"));
    assert!(desks.answers().contains("response ok turn 12"), "{}", desks.answers());
    let seen = desks.model.seen.lock();
    assert!(seen.refused >= 1);
    assert_eq!(seen.asked, 13 + seen.refused + seen.summaries.len());
}

#[test]
fn what_stays_too_long_fails_and_says_what_to_do() {
    let desks = Desks::new(Model { refuses: 600, ..Model::new(100_000, reads(1)) });
    desks.bench.file("big.txt", &"x".repeat(20_000));
    drop(desks.asks("a"));
    assert!(desks.answers().contains("response ok turn 1"), "{}", desks.answers());
    let long = "what is this? ".repeat(300);
    desks.bench.write("lead", &json!({"id": "b", "content": long}).to_string());
    // Whoever asks next has an answer all the same: what was too long is summed up as far as it goes.
    drop(desks.asks("c"));
    let answers = desks.answers();
    let answers: Vec<&str> = answers.lines().collect();
    let failed = "lead response failed the request or its last results are longer";
    assert!(answers[1].starts_with(failed), "{answers:?}");
    assert!(answers[2].starts_with("lead response ok turn 2"), "{answers:?}");
}

#[test]
fn a_failed_summary_leaves_the_conversation_as_it_was() {
    let desks = Desks::new(Model { summary: None, ..Model::new(9_000, reads(60)) });
    let agent = desks.asks("a");
    assert!(desks.answers().contains("response ok turn 60"), "{}", desks.answers());
    assert!(!desks.transcript().contains("summary\":"));
    assert_eq!(agent.kept.conversation().tally().turns, 0);
    let trace = JournalName(format!("traces/{}", agent.trace.id()));
    let told = String::from_utf8(desks.bench.journals.journal(&trace).bytes()).unwrap();
    assert!(told.contains("stays as it is: no summary today"), "{told}");
}

#[test]
fn a_thousand_turns_take_no_more_memory_than_fifty() {
    let desks = Desks::new(Model::new(20_000, reads(1_000)));
    let mut agent = desks.agent();
    Arc::get_mut(&mut agent.desk).unwrap().agent_type.max_turns = usize::MAX;
    desks.bench.write("lead", &json!({"id": "a", "content": "read it all"}).to_string());
    while agent.step().unwrap() != Step::Idle {}
    assert!(desks.answers().contains("response ok turn 1000"), "{}", desks.answers());
    let seen = desks.model.seen.lock();
    assert!(seen.longest < 24_000, "{}", seen.longest);
    assert!(seen.last.len() < 200, "{}", seen.last.len());
    assert!(seen.summaries.len() < 200, "{}", seen.summaries.len());
}

#[test]
fn calls_with_the_same_id_are_others_once_the_first_is_summed_up() {
    let model = Model::new(9_000, |turn| match turn {
        80.. => Vec::new(),
        turn if turn % 2 == 0 => vec!["tell it is"],
        _ => vec!["big.txt", "small.txt", "big.txt"],
    });
    let desks = Desks::new(model);
    drop(desks.asks("a"));
    let told = desks.bench.mail("user");
    let told: Vec<&String> = told.iter().filter(|it| it.contains(" request - it is ")).collect();
    assert!(desks.model.seen.lock().summaries.len() > 1);
    assert_eq!(told.len(), 40, "{told:?}");
}

#[test]
fn an_answer_that_was_cut_or_refused_is_no_summary() {
    let desks = Desks::new(Model { summary: Some("FAILED"), ..Model::new(9_000, reads(60)) });
    let agent = desks.asks("a");
    assert!(desks.answers().contains("response ok turn 60"), "{}", desks.answers());
    assert!(!desks.transcript().contains("{\"summary\":"));
    // It is not tried before each turn.
    assert!((1..20).contains(&desks.model.seen.lock().summaries.len()));
    drop(agent);
}

#[test]
fn what_is_long_past_is_forgotten_where_nobody_sums_it_up() {
    let desks = Desks::new(Model { reads: Reads::Recent, ..Model::new(0, |_| Vec::new()) });
    let mut agent = desks.agent();
    for id in 0..700 {
        desks.bench.write("lead", &json!({"id": format!("m{id}"), "content": "go"}).to_string());
    }
    while agent.step().unwrap() != Step::Idle {}
    assert_eq!(desks.bench.mail("user").len(), 700);
    assert!(agent.kept.conversation().turns().len() < 1_100);
    assert_eq!(desks.model.seen.lock().asked, 700);
}
