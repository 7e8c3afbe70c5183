//! Tails, watching and listing, on real folders.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    time::Duration,
};

use super::*;
use crate::{
    base::{Clock, Timestamp, Wake},
    journal::Position,
};

struct Fixture {
    _temp: tempfile::TempDir,
    root: Folder,
    clock: Clock,
    journals: FileJournals,
}

impl Fixture {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = Folder::make(&temp.path().join("box")).unwrap();
        let clock = Clock::fake(Timestamp(0));
        let journals = FileJournals::new(root.clone());
        Self { _temp: temp, root, clock, journals }
    }

    fn at(&self, millis: u64) -> Moment {
        self.clock.now().after(Duration::from_millis(millis))
    }

    fn push(&self, file: &str, bytes: &[u8]) {
        let mut options = OpenOptions::new();
        let path = self.root.path().join(file);
        options.append(true).create(true).open(path).unwrap().write_all(bytes).unwrap();
    }

    fn content(&self, file: &str) -> String {
        fs::read_to_string(self.root.path().join(file)).unwrap()
    }

    fn open(&self, name: &str) -> Arc<dyn Journal> {
        self.journals.open(&JournalName(name.to_owned())).unwrap()
    }
}

#[test]
fn a_whole_tail_is_completed_after_a_quarter_of_a_second() {
    let fixture = Fixture::new();
    fixture.push("scout.jsonl", b"{\"a\":1}");
    assert_eq!(fixture.journals.tick(fixture.at(0), Tick::All), Some(fixture.at(250)));
    assert_eq!(fixture.journals.tick(fixture.at(249), Tick::Changed), Some(fixture.at(250)));
    fixture.push("scout.jsonl", b"{\"b\":2}");
    assert_eq!(fixture.journals.tick(fixture.at(250), Tick::Changed), Some(fixture.at(500)));
    assert_eq!(fixture.content("scout.jsonl"), "{\"a\":1}{\"b\":2}");
    let (wake, scout) = (Wake::default(), fixture.open("scout"));
    let _subscription = scout.subscribe(&wake);
    let seen = wake.seen();
    assert_eq!(fixture.journals.tick(fixture.at(500), Tick::Changed), None);
    assert_ne!(wake.seen(), seen);
    assert_eq!(fixture.content("scout.jsonl"), "{\"a\":1}{\"b\":2}\n");
    assert_eq!(scout.read(Position::ZERO, 10).unwrap().lines.len(), 2);
}

#[test]
fn any_other_tail_gets_its_newline_after_half_a_minute() {
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(crate::journal::LONGEST_LINE));
    for tail in ["{\"a\":", "{} x", "[1]", "\0\0", &long] {
        let fixture = Fixture::new();
        fixture.push("scout.jsonl", tail.as_bytes());
        assert_eq!(fixture.journals.tick(fixture.at(0), Tick::All), Some(fixture.at(30_000)));
        fixture.journals.tick(fixture.at(29_999), Tick::All);
        assert_eq!(fixture.content("scout.jsonl"), tail);
        assert_eq!(fixture.journals.tick(fixture.at(30_000), Tick::Changed), None);
        assert_eq!(fixture.content("scout.jsonl"), format!("{tail}\n"));
    }
}

#[test]
fn an_append_behind_a_tail_leaves_nothing_to_complete() {
    let fixture = Fixture::new();
    fixture.push("scout.jsonl", b"{\"a\":1}");
    assert!(fixture.journals.tick(fixture.at(0), Tick::All).is_some());
    fixture.open("scout").append("{\"b\":2}").unwrap();
    assert_eq!(fixture.journals.tick(fixture.at(250), Tick::All), None);
    let found = fixture.open("scout").read(Position::ZERO, 10).unwrap().lines;
    assert_eq!(found.last().unwrap().body.as_deref(), Ok("{\"b\":2}"));
}

#[test]
fn a_full_tick_tells_what_no_event_told() {
    let fixture = Fixture::new();
    let (wake, scout) = (Wake::default(), fixture.open("scout"));
    let _subscription = scout.subscribe(&wake);
    let is_told = |what| {
        let seen = wake.seen();
        fixture.journals.tick(fixture.at(0), what);
        wake.seen() != seen
    };
    is_told(Tick::All);
    assert!(!is_told(Tick::All));
    fixture.push("scout.jsonl", b"{}\n");
    assert!(!is_told(Tick::Changed));
    assert!(is_told(Tick::All));
    assert!(!is_told(Tick::All));
    fs::remove_file(fixture.root.path().join("scout.jsonl")).unwrap();
    assert!(is_told(Tick::All));
}

#[test]
fn what_may_not_be_opened_does_not_keep_ticks_from_others() {
    let fixture = Fixture::new();
    std::os::unix::fs::symlink("/nowhere", fixture.root.path().join("a.jsonl")).unwrap();
    fs::create_dir(fixture.root.path().join("b.jsonl")).unwrap();
    fixture.push("c.jsonl", b"{}");
    assert_eq!(fixture.journals.tick(fixture.at(0), Tick::All), Some(fixture.at(250)));
}

#[test]
fn a_foreign_append_wakes_the_reader() {
    let fixture = Fixture::new();
    let (told, real) = (Wake::default(), Clock::real());
    let changed = told.clone();
    let watch = fixture.journals.watch(Box::new(move || changed.notify())).unwrap();
    if !watch.is_watching() {
        return;
    }
    let (wake, scout) = (Wake::default(), fixture.open("scout"));
    let _subscription = scout.subscribe(&wake);
    let (seen, seen_told) = (wake.seen(), told.seen());
    fixture.push("scout.jsonl", b"{}\n");
    let deadline = real.now().after(Duration::from_secs(20));
    for (wake, seen) in [(&wake, seen), (&told, seen_told)] {
        while wake.seen() == seen && real.now() < deadline {
            wake.wait(&real, seen, Some(deadline));
        }
        assert_ne!(wake.seen(), seen);
    }
    assert_eq!(scout.read(Position::ZERO, 10).unwrap().lines.len(), 1);
}

#[test]
fn a_folder_below_is_watched_by_itself() {
    let fixture = Fixture::new();
    let (told, real) = (Wake::default(), Clock::real());
    let changed = told.clone();
    let watch =
        fixture.journals.watch_folder("traces", Box::new(move || changed.notify())).unwrap();
    if !watch.is_watching() {
        return;
    }
    let seen = told.seen();
    fixture.open("traces/a").append("{}").unwrap();
    let deadline = real.now().after(Duration::from_secs(20));
    while told.seen() == seen && real.now() < deadline {
        told.wait(&real, seen, Some(deadline));
    }
    assert_ne!(told.seen(), seen);
}

#[test]
fn one_journal_a_name_whoever_asks() {
    let fixture = Fixture::new();
    for name in ["scout", "state/agents/scout"] {
        let (one, other) = (fixture.open(name), fixture.open(name));
        assert!(Arc::ptr_eq(&one, &other), "{name}");
        one.append("{}").unwrap();
    }
    for odd in ["", "../x", "a//b", ".hidden", "/etc/passwd"] {
        assert!(fixture.journals.open(&JournalName(odd.to_owned())).is_err(), "{odd}");
    }
    let below = fixture.journals.list("state/agents").unwrap();
    assert_eq!(below.journals, [JournalName("state/agents/scout".to_owned())]);
}

#[test]
fn journals_and_strays_are_told_apart() {
    let fixture = Fixture::new();
    for file in ["b.jsonl", "a.jsonl", "a.json", "notes", ".hidden.jsonl"] {
        fixture.push(file, b"");
    }
    fs::create_dir(fixture.root.path().join("state")).unwrap();
    let listing = fixture.journals.list("").unwrap();
    assert_eq!(listing.journals, ["a", "b"].map(|name| JournalName(name.to_owned())));
    assert_eq!(listing.strays, ["a.json", "notes"]);
    assert_eq!(fixture.journals.list("traces").unwrap(), Listing::default());
    assert!(!fixture.root.path().join("traces").exists());
}
