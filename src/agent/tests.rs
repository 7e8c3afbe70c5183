//! Whole steps of a teammate on journals in memory and a fake clock: what it does with each message,
//! as its mailbox, its conversation and the others' mailboxes tell.

use std::{fmt::Write, sync::Arc, time::Duration};

use expect_test::{Expect, expect};
use serde_json::Value;

use super::{AutonomousAgent, Office, Step};
use crate::{
    base::{Clock, Folder, Stop, Timestamp},
    journal::{JournalName, memory::MemoryJournals},
    model::{AgentName, read_team},
    store::{Rebirth, Store},
};

/// A team without threads.
pub struct Bench {
    pub journals: Arc<MemoryJournals>,
    pub office: Arc<Office>,
    clock: Clock,
    temp: tempfile::TempDir,
}

impl Bench {
    pub fn new(team: &str) -> Self {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("README.md"), "# A test\n").unwrap();
        let folder = Folder::make(&temp.path().canonicalize().unwrap().join(".mailbox")).unwrap();
        let (journals, clock) = (Arc::new(MemoryJournals::default()), Clock::fake(Timestamp(0)));
        let store = Store::on(journals.clone(), folder, clock.clone()).unwrap();
        let team = read_team(team, "team", &|_| Ok(Vec::new())).unwrap();
        let office = Office::open(store, team, Arc::new(|| {})).unwrap();
        Self { journals, office, clock, temp }
    }

    pub fn agent(&self, who: &str) -> AutonomousAgent {
        let (office, stop) = (Arc::clone(&self.office), Stop::root());
        AutonomousAgent::open(office, name(who), &stop, Rebirth::Process).unwrap()
    }

    pub fn file(&self, path: &str, text: &str) {
        std::fs::write(self.temp.path().join(path), text).unwrap();
    }

    pub fn write(&self, to: &str, line: &str) {
        self.journals.journal(&JournalName(to.to_owned())).push(format!("{line}\n").as_bytes());
    }

    /// Lets `who` work until it is idle or has ended, and says how.
    fn work(&self, who: &str) -> Step {
        let mut agent = self.agent(who);
        loop {
            match agent.step().unwrap() {
                Step::Handled(_) | Step::Worked(_) => {}
                step @ (Step::Idle | Step::Ended(_)) => return step,
            }
        }
    }

    /// The mail that lies for `who`: sender, kind, status and text.
    pub fn mail(&self, who: &str) -> Vec<String> {
        let bytes = self.journals.journal(&JournalName(who.to_owned())).bytes();
        let lines = String::from_utf8(bytes).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let shown = |line: Value| {
            let part = |key: &str| line[key].as_str().unwrap_or("-").to_owned();
            let parts = ["from_agent", "msg_type", "status", "content"].map(part);
            parts.join(" ").replace('\n', " / ")
        };
        lines.map(shown).collect()
    }

    fn sees(&self, who: &[&str], expected: &Expect) {
        let mut text = String::new();
        for who in who {
            let _ = writeln!(text, "{who}:");
            for line in self.mail(who) {
                let _ = writeln!(text, "  {line}");
            }
        }
        expected.assert_eq(&text);
    }
}

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

const TWO: &str = r#"{"teammates": {"lead": {}, "scout": {}}}"#;

#[test]
fn a_request_and_a_follow_up_to_it_are_one_piece_of_work() {
    let bench = Bench::new(TWO);
    bench.write("scout", r#"{"id":"a","content":"read README.md"}"#);
    bench.write("scout", r#"{"id":"b","content":"answer: and this","in_reply_to":"a"}"#);
    bench.write("scout", r#"{"id":"c","content":"answer: later"}"#);
    assert_eq!(bench.work("scout"), Step::Idle);
    bench.sees(&["user"], &expect![[r#"
        user:
          scout response ok To the request a from user: / # A test /  / To the request b from user: / and this
          scout response ok To the request a from user: / # A test /  / To the request b from user: / and this
          scout response ok later
    "#]]);
}

#[test]
fn a_shutdown_from_before_the_birth_is_stale_and_one_from_behind_it_is_obeyed() {
    let bench = Bench::new(TWO);
    bench.write("scout", r#"{"id":"old","protocol":"shutdown"}"#);
    let mut log = bench.office.store.lives().open(&name("scout")).unwrap();
    let birth = bench.office.bus.end_of(&name("scout")).unwrap();
    log.record(|life| life.birth = birth).unwrap();
    bench.write("scout", r#"{"id":"a","content":"answer: here"}"#);
    assert_eq!(bench.work("scout"), Step::Idle);
    bench.write("scout", r#"{"id":"b","content":"answer: not read"}"#);
    bench.write("scout", r#"{"id":"new","protocol":"shutdown"}"#);
    assert_eq!(bench.work("scout"), Step::Ended(super::Ending::Stopped));
    bench.sees(&["user"], &expect![[r#"
        user:
          scout response denied stale: it was written before scout was last started; send it again to stop it now
          scout response ok here
          scout response stopped stopped; 1 unread message is left for its next start
    "#]]);
}

#[test]
fn a_chain_of_messages_ends_after_sixteen() {
    let bench = Bench::new(TWO);
    bench.write("scout", r#"{"id":"a","content":"tell lead: answer: x","hops":15}"#);
    bench.write("scout", r#"{"id":"b","content":"tell lead: answer: x","hops":16}"#);
    assert_eq!(bench.work("scout"), Step::Idle);
    bench.sees(&["lead", "user"], &expect![[r#"
        lead:
          scout request - answer: x
        user:
          scout response ok sent to lead as 2qebo6rk94zq
          scout response failed FAILED: tell lead: answer: x / refused: 16 messages of agents have led to this one, and the chain ends here; answer instead of sending on
    "#]]);
}

#[test]
fn a_question_that_would_close_a_ring_is_sent_and_not_waited_for() {
    let bench = Bench::new(TWO);
    let waiting = bench.office.asks.begin(&name("lead"), &name("scout")).ok().unwrap();
    bench.write("scout", r#"{"id":"a","content":"ask lead: answer: x"}"#);
    assert_eq!(bench.work("scout"), Step::Idle);
    drop(waiting);
    bench.sees(&["lead", "user"], &expect![[r#"
        lead:
          scout request - answer: x
        user:
          scout response failed FAILED: ask lead: answer: x / lead is waiting for you (lead → scout): answer first, then ask; your message was sent all the same and its answer will come as mail
    "#]]);
}

#[test]
fn a_question_that_nobody_answers_ends_with_its_deadline() {
    let bench = Bench::new(TWO);
    bench.write("scout", r#"{"id":"a","content":"ask lead: answer: x"}"#);
    let start = bench.clock.now();
    assert_eq!(bench.work("scout"), Step::Idle);
    assert_eq!(bench.clock.now().since(start), Duration::from_mins(10));
    bench.sees(&["user"], &expect![[r#"
        user:
          scout response failed FAILED: ask lead: answer: x / lead has not answered within 600 s; it may answer by mail
    "#]]);
}

#[test]
fn whoever_sends_too_much_waits_for_its_turn() {
    let team = r#"{"limits": {"mail_per_minute": 2}, "teammates": {"lead": {}, "scout": {}}}"#;
    let bench = Bench::new(team);
    let content = ["tell lead: answer: x"; 5].join("\\n");
    bench.write("scout", &format!("{{\"id\":\"a\",\"content\":\"{content}\"}}"));
    let start = bench.clock.now();
    assert_eq!(bench.work("scout"), Step::Idle);
    assert_eq!(bench.clock.now().since(start), Duration::from_mins(2));
    assert_eq!(bench.mail("lead").len(), 5);
}

#[test]
fn a_life_that_is_taken_up_again_asks_and_answers_nothing_twice() {
    let bench = Bench::new(TWO);
    bench.write("scout", r#"{"id":"a","content":"tell lead: answer: x"}"#);
    bench.write("scout", r#"{"id":"a","content":"tell lead: answer: x"}"#);
    bench.write("scout", r#"{"id":"a","content":"tell lead: answer: other"}"#);
    for _ in 0..3 {
        assert_eq!(bench.work("scout"), Step::Idle);
    }
    bench.sees(
        &["lead", "user"],
        &expect![[r#"
            lead:
              scout request - answer: x
            user:
              scout response ok sent to lead as 2qebo6rk94zq
        "#]],
    );
}
