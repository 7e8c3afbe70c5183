//! Who has a connection when, and what a server sees of it.

use std::sync::Arc;

use super::*;
use crate::{
    base::{Cancel, Clock, thread::Thread},
    provider::{
        Limiter,
        bench::{
            ask, ask_until, by_anthropic, by_openai, once, short_anthropic, short_openai, shown,
        },
        http::{Bounds, Http},
        openai::OpenAi,
        test_server::{Play, TestServer},
        wire::Wire,
    },
};

const HELLO: &str = r#"Ok "hello" [7, 2, 0, 0]"#;

fn make() -> Agent {
    Agent::new_with_defaults()
}

#[test]
fn a_connection_is_lent_to_one_call_at_a_time() {
    let lanes = Lanes::default();
    let (first, second) = (lanes.lend(make), lanes.lend(make));
    assert_eq!(lanes.kept(), 0);
    drop((first, second));
    assert_eq!(lanes.kept(), 2);
    let again = lanes.lend(|| panic!("one is kept"));
    assert_eq!(lanes.kept(), 1);
    drop(again);
    drop((0..20).map(|_| lanes.lend(make)).collect::<Vec<_>>());
    assert_eq!(lanes.kept(), MOST);
}

#[test]
fn the_end_of_a_call_ends_no_other() {
    let lanes = Lanes::default();
    let over = lanes.lend(make).ender();
    let next = lanes.lend(|| panic!("one is kept"));
    over.end();
    assert!(next.agent().is_some());
    let ender = next.ender();
    ender.end();
    assert!(next.agent().is_none());
    drop(next);
    assert_eq!(lanes.kept(), 0);
}

#[test]
fn few_answers_are_waited_for_to_their_end() {
    let lanes = Lanes::default();
    let all: Vec<Lease> = (0..=MOST).map(|_| lanes.lend(make)).collect();
    all.iter().for_each(Lease::is_ending);
    let ended: Vec<bool> = all.iter().map(|lease| lease.agent().is_none()).collect();
    assert_eq!(ended.iter().position(|is_ended| *is_ended), Some(0));
    assert_eq!(ended.iter().filter(|is_ended| **is_ended).count(), 1);
}

/// A model that is called by `http`.
fn by(url: &str, http: Http) -> OpenAi {
    let (clock, url) = (Clock::real(), format!("{url}/v1/chat/completions"));
    let limiter = Limiter::new(clock.clone(), 4);
    OpenAi::new(Wire { url, key: None, http, limiter, clock }, "model-1", &once())
}

#[test]
fn calls_one_after_the_other_share_a_connection() {
    let whole = || Play::stream(short_openai());
    let half = short_openai()[..60].to_vec();
    let in_one_piece = Play::Answer(200, Vec::new(), short_openai());
    let script = [whole(), Play::refusal(500, "no"), in_one_piece, whole(), Play::Broken(half)];
    let server = TestServer::start([script.as_slice(), &[whole(), whole()]].concat());
    let http = Http::new(Clock::real(), Bounds::default(), None);
    let provider = by(&server.url(), http.clone());
    let mut connections = Vec::new();
    for _ in 0..7 {
        let _ = ask(&provider);
        // The end of an answer is read aside.
        while http.kept() == 0 {
            std::thread::yield_now();
        }
        connections.push(server.connections());
    }
    assert_eq!(connections, [1, 1, 1, 1, 1, 2, 2]);
}

#[test]
fn what_comes_behind_a_whole_answer_is_not_waited_for() {
    assert_eq!(by_openai(Play::Stalled(short_openai())), HELLO);
    assert_eq!(by_anthropic(Play::Stalled(short_anthropic())), HELLO);
}

#[test]
fn a_call_that_is_ended_takes_no_other_with_it() {
    let part = short_openai()[..60].to_vec();
    let script = [Play::Stalled(part.clone()), Play::Stalled(part), Play::stream(short_openai())];
    let server = TestServer::start(script);
    let provider = by(&server.url(), Http::new(Clock::real(), Bounds::default(), None));
    let provider = Arc::new(provider);
    let cancels = [Cancel::default(), Cancel::default()];
    let asked = cancels.clone().map(|cancel| {
        let provider = Arc::clone(&provider);
        let before = server.seen().len();
        let asks = Thread::start("asks", move || shown(ask_until(&*provider, &cancel))).unwrap();
        while server.seen().len() == before {
            std::thread::yield_now();
        }
        asks
    });
    let [first, second] = asked;
    cancels[0].fire();
    assert!(!first.join().unwrap().starts_with("Ok"));
    assert_eq!(shown(ask(&*provider)), HELLO);
    cancels[1].fire();
    assert!(!second.join().unwrap().starts_with("Ok"));
    assert_eq!(server.connections(), 3);
}
