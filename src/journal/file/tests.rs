//! What outside writers do to a file, and what a journal makes of it.

use std::{
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::Write,
    path::PathBuf,
};

use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::{base::thread::beside, journal::Line};

struct Fixture {
    temp: tempfile::TempDir,
    root: Folder,
    journal: FileJournal,
}

impl Fixture {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = Folder::make(&temp.path().join("box")).unwrap();
        let journal = FileJournal::new(place(&root));
        Self { temp, root, journal }
    }

    fn with(bytes: &[u8]) -> Self {
        let fixture = Self::new();
        fixture.push(bytes);
        fixture
    }

    /// The same file, seen by a new process.
    fn reopened(&self) -> FileJournal {
        FileJournal::new(place(&self.root))
    }

    fn path(&self) -> PathBuf {
        self.root.path().join("scout.jsonl")
    }

    fn push(&self, bytes: &[u8]) {
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create(true).open(self.path()).unwrap();
        file.write_all(bytes).unwrap();
    }

    fn content(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    fn read(&self, after: Position) -> Batch {
        self.journal.read(after, 1000).unwrap()
    }
}

fn place(root: &Folder) -> Place {
    Place { root: root.clone(), folders: Vec::new(), name: "scout.jsonl".to_owned() }
}

fn bodies(lines: &[Line]) -> Vec<&str> {
    lines.iter().map(|line| line.body.as_deref().unwrap_or_else(|dead| &dead.reason)).collect()
}

/// What a lost reader is told.
fn lost(result: Result<Batch, ReadError>) -> (String, Position) {
    let why = result.unwrap_err();
    let text = why.to_string();
    let ReadError::Lost { resume, .. } = why else { panic!("{text}") };
    (text, resume)
}

/// All lines, read `at_most` at a time, and the NULs.
fn all(journal: &dyn Journal, at_most: usize) -> (Vec<Line>, u64) {
    let (mut lines, mut nuls, mut next) = (Vec::new(), 0, Position::ZERO);
    loop {
        let batch = journal.read(next, at_most).unwrap();
        nuls += batch.nuls;
        let is_end = batch.next == next;
        next = batch.next;
        lines.extend(batch.lines);
        if is_end {
            return (lines, nuls);
        }
    }
}

#[test]
fn a_missing_file_is_empty_and_made_by_the_first_append() {
    let fixture = Fixture::new();
    assert_eq!(fixture.read(Position::ZERO).lines, []);
    assert_eq!(fixture.journal.end().unwrap(), Position::ZERO);
    fixture.journal.sync().unwrap();
    assert!(!fixture.path().exists());
    let place = fixture.journal.append(r#"{"a":1}"#).unwrap();
    let batch = fixture.read(Position::ZERO);
    assert_eq!(bodies(&batch.lines), [r#"{"a":1}"#]);
    assert_eq!((batch.next, fixture.journal.end().unwrap()), (place, place));
    fixture.journal.sync().unwrap();
}

#[test]
fn folders_are_made_by_the_first_append_only() {
    let fixture = Fixture::new();
    let folders = vec!["state".to_owned(), "agents".to_owned()];
    let journal = FileJournal::new(Place { folders, ..place(&fixture.root) });
    assert_eq!(journal.read(Position::ZERO, 1).unwrap().lines, []);
    assert!(!fixture.root.path().join("state").exists());
    journal.append("{}").unwrap();
    journal.sync().unwrap();
    assert_eq!(journal.read(Position::ZERO, 1).unwrap().lines.len(), 1);
}

#[test]
fn what_is_no_line_yet_is_not_read() {
    let fixture = Fixture::with(b"{\"a\":1}\n{\"b\":2}");
    let batch = fixture.read(Position::ZERO);
    assert_eq!((bodies(&batch.lines), batch.next.offset), (vec![r#"{"a":1}"#], 8));
    fixture.push(b"\n");
    assert_eq!(bodies(&fixture.read(batch.next).lines), [r#"{"b":2}"#]);
}

#[test]
fn the_dead_are_told_with_their_places() {
    let fixture = Fixture::with(b"\0\0{\"a\":1}{\"b\":2} xyz\r\n\n[1]\n");
    let mut table = String::new();
    for line in fixture.read(Position::ZERO).lines {
        let (at, after) = (line.at.offset, line.after.offset);
        let text = match line.body {
            Ok(text) => text,
            Err(dead) => format!("{}: {}", dead.reason, dead.raw.escape_ascii()),
        };
        writeln!(table, "{at}..{after} {text}").unwrap();
    }
    expect![[r#"
        2..9 {"a":1}
        9..16 {"b":2}
        17..22 broken JSON at byte 1: expected value: xyz
        23..27 not an object: an array: [1]
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_line_over_1_mib_is_dead_by_reference() {
    let fits = format!("{{\"a\":\"{}\"}}", "x".repeat(crate::journal::LONGEST_LINE - 8));
    let over = fits.replace('a', "ab");
    let lines = format!("{fits}\r\n{over}\n{{\"last\":1}}{over}\n");
    let (found, _) = all(&Fixture::with(lines.as_bytes()).journal, 1000);
    assert_eq!(bodies(&found), [&fits, "over 1 MiB", r#"{"last":1}"#, "over 1 MiB"]);
    let dead = found[1].body.as_ref().unwrap_err();
    assert_eq!((dead.length, dead.raw.len()), (1 + (1 << 20), 1 << 10));
}

#[test]
fn a_long_line_of_objects_gives_them_all() {
    let line = "{\"a\":1}".repeat(200_000) + "\n";
    let fixture = Fixture::with(line.as_bytes());
    let (found, _) = all(&fixture.journal, 10_000);
    assert_eq!(found.len(), 200_000);
    assert!(found.iter().all(|line| line.body.is_ok()));
}

#[test]
fn an_object_behind_many_nuls_is_read() {
    let nuls = vec![0; 5 << 20];
    let fixture = Fixture::with(&[&nuls[..], b"{\"a\":1}\n"].concat());
    let batch = fixture.read(Position::ZERO);
    assert_eq!((bodies(&batch.lines), batch.nuls), (vec![r#"{"a":1}"#], 5 << 20));
}

#[test]
fn a_sparse_file_of_1_tib_opens_at_once() {
    let fixture = Fixture::with(b"{\"a\":1}\n");
    let hole = 1 << 40;
    OpenOptions::new().write(true).open(fixture.path()).unwrap().set_len(hole).unwrap();
    let batch = fixture.read(Position::ZERO);
    assert_eq!((batch.lines.len(), batch.next.offset), (1, 8));
    assert_eq!(fixture.journal.end().unwrap().offset, 8);
    fixture.push(b"{\"b\":2}\n");
    let batch = fixture.read(batch.next);
    assert_eq!((bodies(&batch.lines), batch.nuls), (vec![r#"{"b":2}"#], hole - 8));
}

#[test]
fn a_long_line_that_grows_is_scanned_once_and_never_held() {
    let fixture = Fixture::new();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        fixture.push(&piece);
        assert_eq!(fixture.read(Position::ZERO).lines, []);
    }
    fixture.push(b"\n{}\n");
    let batch = fixture.read(Position::ZERO);
    assert_eq!(bodies(&batch.lines), ["over 1 MiB", "{}"]);
    assert_eq!(batch.lines[0].body.as_ref().unwrap_err().length, 100 << 20);
}

#[test]
fn a_line_is_never_glued_to_a_foreign_part() {
    let fixture = Fixture::with(b"{\"foreign\":");
    let place = fixture.journal.append(r#"{"own":1}"#).unwrap();
    assert_eq!(place.offset, fixture.content().len() as u64);
    let found = fixture.read(Position::ZERO);
    assert_eq!((bodies(&found.lines).len(), found.next), (2, place));
    assert_eq!(found.lines[1].body.as_deref(), Ok(r#"{"own":1}"#));
    assert!(fixture.content().ends_with("\n{\"own\":1}\n"));
}

#[test]
fn contending_writers_keep_all_lines_and_places() {
    fn nest(left: usize, write: &(dyn Fn(usize) + Sync)) {
        if left > 0 {
            beside("writer", || write(left), || nest(left - 1, write));
        }
    }
    let fixture = Fixture::new();
    let places = Mutex::new(Vec::new());
    let shared = fixture.reopened();
    nest(8, &|writer| {
        let own = fixture.reopened();
        for count in 0..50 {
            let line = format!("{{\"writer\":{writer},\"count\":{count}}}");
            let journal = if count % 2 == 0 { &own } else { &shared };
            let place = journal.append(&line).unwrap();
            places.lock().push((place.offset, line));
        }
    });
    let (found, _) = all(&fixture.journal, 1000);
    let found: Vec<_> =
        found.into_iter().map(|line| (line.after.offset, line.body.unwrap())).collect();
    let mut places = places.into_inner();
    places.sort();
    assert_eq!(found, places);
    assert_eq!(found.len(), 400);
}

#[test]
fn an_invalid_line_is_not_written() {
    let fixture = Fixture::new();
    for line in ["", "[1]", "{}{}", "{}\n", "{\"a\":"] {
        let why = fixture.journal.append(line).unwrap_err();
        assert!(matches!(why, AppendError::Invalid(_)), "{why}");
    }
    assert!(!fixture.path().exists());
}

#[test]
fn a_file_that_was_cut_replaced_or_deleted_begins_a_generation() {
    let fixture = Fixture::with(b"{\"a\":1}\n{\"b\":2}\n");
    let end = fixture.read(Position::ZERO).next;
    let half = fixture.journal.read(Position::ZERO, 1).unwrap().next;
    let mut told = String::new();
    let mut tell = |what: &str, after: Position| {
        let (text, resume) = lost(fixture.journal.read(after, 10));
        writeln!(told, "{what}: {text}; generation {}", resume.generation).unwrap();
        assert_eq!(fixture.journal.start().unwrap(), resume);
        resume
    };

    OpenOptions::new().write(true).open(fixture.path()).unwrap().set_len(0).unwrap();
    let start = tell("cut", half);
    tell("cut, another reader", end);
    fixture.push(b"{\"c\":3}\n");
    assert_eq!(bodies(&fixture.read(start).lines), [r#"{"c":3}"#]);

    fs::remove_file(fixture.path()).unwrap();
    let start = tell("deleted", start);
    assert_eq!(fixture.read(start).lines, []);

    fixture.push(b"{\"d\":4}\n");
    let end = fixture.read(start).next;
    fs::rename(fixture.path(), fixture.temp.path().join("elsewhere")).unwrap();
    fixture.push(b"{\"e\":5}\n{\"f\":6}\n");
    let start = tell("replaced", end);
    let end = fixture.read(start).next;

    fs::write(fixture.path(), "{\"g\":7,\"longer\":\"than before\"}\n").unwrap();
    tell("rewritten in place", end);
    expect![[r"
        cut: the journal was truncated; 8 unread bytes are lost; generation 1
        cut, another reader: the journal was truncated; 0 unread bytes are lost; generation 1
        deleted: the journal was deleted; 8 unread bytes are lost; generation 2
        replaced: the journal was replaced; 0 unread bytes are lost; generation 3
        rewritten in place: the journal was replaced; 15 unread bytes are lost; generation 4
    "]]
    .assert_eq(&told);
}

#[test]
fn a_later_process_goes_on_in_the_kept_generation() {
    let fixture = Fixture::with(b"{\"a\":1}\n{\"b\":2}\n");
    let kept = Position { generation: 7, ..fixture.journal.read(Position::ZERO, 1).unwrap().next };
    let later = fixture.reopened();
    later.anchor(kept).unwrap();
    assert_eq!(later.start().unwrap().generation, 7);
    let batch = later.read(kept, 10).unwrap();
    assert_eq!((bodies(&batch.lines), batch.next.generation), (vec![r#"{"b":2}"#], 7));

    let unanchored = fixture.reopened();
    assert_eq!(unanchored.read(kept, 10).unwrap().lines.len(), 1);

    fs::write(fixture.path(), "{\"x\":1}\n").unwrap();
    let (text, resume) = lost(fixture.reopened().read(kept, 10));
    assert_eq!((text.contains("replaced"), resume.generation), (true, 8));
    fs::remove_file(fixture.path()).unwrap();
    let after_all = fixture.reopened();
    after_all.anchor(kept).unwrap();
    assert_eq!(after_all.start().unwrap().generation, 8);
}

#[test]
fn a_replaced_journal_is_a_new_generation() {
    let fixture = Fixture::with(b"{\"a\":1}\n{\"b\":2}\n");
    let read = fixture.journal.read(Position::ZERO, 1).unwrap().next;
    fixture.journal.replace(r#"{"c":3}"#).unwrap();
    assert_eq!(fixture.content(), "{\"c\":3}\n");
    let (_, resume) = lost(fixture.journal.read(read, 10));
    assert_eq!(bodies(&fixture.read(resume).lines), [r#"{"c":3}"#]);
    fixture.journal.append(r#"{"d":4}"#).unwrap();
    assert_eq!(fixture.content(), "{\"c\":3}\n{\"d\":4}\n");
    let missing = Fixture::new();
    missing.journal.replace("{}").unwrap();
    assert_eq!(missing.content(), "{}\n");
}

#[test]
fn places_farther_back_lie_between_lines() {
    let fixture = Fixture::with(b"{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
    let end = fixture.journal.end().unwrap();
    let back = |bytes| fixture.journal.back(end, bytes).unwrap().offset;
    assert_eq!([0, 7, 8, 9, 16, 23, 24, 99].map(back), [24, 24, 16, 16, 8, 8, 0, 0]);
}

#[test]
fn an_unfinished_line_is_closed() {
    let fixture = Fixture::with(b"{\"a\":1}\n{\"b\":2}");
    fixture.journal.close_tail().unwrap();
    fixture.journal.close_tail().unwrap();
    assert_eq!(fixture.content(), "{\"a\":1}\n{\"b\":2}\n");
}

#[test]
fn what_is_no_file_of_its_own_is_neither_read_nor_written() {
    let fixture = Fixture::new();
    fs::write(fixture.temp.path().join("elsewhere"), "secret").unwrap();
    std::os::unix::fs::symlink(fixture.temp.path().join("elsewhere"), fixture.path()).unwrap();
    assert!(matches!(fixture.journal.read(Position::ZERO, 1), Err(ReadError::Failed(_))));
    assert!(matches!(fixture.journal.append("{}"), Err(AppendError::NotAppended(_))));
    assert_eq!(fs::read_to_string(fixture.temp.path().join("elsewhere")).unwrap(), "secret");
}

fn fragments() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let fragment = prop_oneof![
        Just(b"{\"a\":1}".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"{\"b\":2}\n".to_vec()),
        Just(b" xyz ".to_vec()),
        Just(b"\0\0\0".to_vec()),
        Just(b"{".to_vec()),
        Just(b"[1]".to_vec()),
        Just(b"\xEF\xBB\xBF".to_vec()),
        prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(fragment, 0..16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn lines_are_the_same_however_they_come_and_are_read(fragments in fragments()) {
        let (whole, growing) = (Fixture::with(&fragments.concat()), Fixture::with(b""));
        let (mut lines, mut nuls, mut next) = (Vec::new(), 0, Position::ZERO);
        for fragment in &fragments {
            growing.push(fragment);
            let batch = growing.journal.read(next, 1000).unwrap();
            (next, nuls) = (batch.next, nuls + batch.nuls);
            lines.extend(batch.lines);
        }
        prop_assert_eq!(&all(&whole.journal, 1000), &(lines, nuls));
        prop_assert_eq!(all(&whole.journal, 1), all(&whole.journal, 1000));
        prop_assert_eq!(next, whole.journal.end().unwrap());
        prop_assert_eq!(next.check, whole.journal.end().unwrap().check);
    }

    #[test]
    fn memory_gives_what_a_file_gives(fragments in fragments()) {
        let (file, memory) = (Fixture::new(), crate::journal::memory::MemoryJournal::default());
        for fragment in &fragments {
            file.push(fragment);
            memory.push(fragment);
            prop_assert_eq!(
                file.journal.append("{}").unwrap(),
                memory.append("{}").unwrap()
            );
        }
        prop_assert_eq!(all(&file.journal, 3), all(&memory, 1000));
    }
}
