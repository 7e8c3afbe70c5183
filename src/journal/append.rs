//! Writes a line to the end of a file that others append to as well, without a lock.
//!
//! One write carries the line; what is acknowledged is a line of its own, never one that is glued to
//! another writer's unfinished line.

use std::{
    io::{self, Seek, Write},
    os::unix::fs::FileExt,
};

use rustix::io::Errno;

use super::{LONGEST_LINE, split::split};

/// A file opened for appending, by nobody else in this process while this lives.
pub trait Append {
    /// Writes some of `bytes` at the end.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Just behind what was written last.
    fn place(&mut self) -> io::Result<u64>;
    /// The byte at `offset`.
    fn byte(&self, offset: u64) -> io::Result<u8>;
}

impl Append for &std::fs::File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn place(&mut self) -> io::Result<u64> {
        self.stream_position()
    }

    fn byte(&self, offset: u64) -> io::Result<u8> {
        let mut byte = [0];
        self.read_exact_at(&mut byte, offset)?;
        let [byte] = byte;
        Ok(byte)
    }
}

/// What became of a line that is not acknowledged.
#[derive(Debug)]
pub enum Failure {
    /// It is not in the file as a whole.
    Absent(io::Error),
    /// It may be.
    Unknown(io::Error),
}

/// Why `line` may not be appended; nothing if it would be read back as one object.
pub fn objection(line: &str) -> Option<String> {
    if line.len() > LONGEST_LINE {
        return Some(format!("it has {} bytes", line.len()));
    }
    if line.contains('\n') {
        return Some("it holds a newline".to_owned());
    }
    let found = split(line.as_bytes());
    match found.pieces.as_slice() {
        [only] if only.range == (0..line.len()) => only.dead.clone(),
        [] => Some("it is empty".to_owned()),
        [only] if only.dead.is_some() => only.dead.clone(),
        [_] => Some("something stands beside the object".to_owned()),
        pieces => Some(format!("it has {} parts", pieces.len())),
    }
}

/// Appends `line` and gives the place behind its newline. `own_end` is the end of the last line that
/// was appended here.
pub fn append(file: &mut impl Append, line: &str, own_end: Option<u64>) -> Result<u64, Failure> {
    let plain = format!("{line}\n");
    match attempt(file, &plain, line.len()) {
        Attempt::Done(place) => {
            let begin = place.saturating_sub(plain.len() as u64);
            let is_alone = begin == 0
                || own_end == Some(begin)
                || file.byte(begin - 1).map_err(Failure::Unknown)? == b'\n';
            if is_alone { Ok(place) } else { again(file, line, Written::Whole) }
        }
        Attempt::Failed(_, written) => again(file, line, written),
    }
}

/// Appends it behind a newline of its own, since what is before may be part of a line.
fn again(file: &mut impl Append, line: &str, first: Written) -> Result<u64, Failure> {
    match attempt(file, &format!("\n{line}\n"), line.len() + 1) {
        Attempt::Done(place) => Ok(place),
        Attempt::Failed(why, second) if (first, second) == (Written::Part, Written::Part) => {
            Err(Failure::Absent(why))
        }
        Attempt::Failed(why, _) => Err(Failure::Unknown(why)),
    }
}

enum Attempt {
    Done(u64),
    Failed(io::Error, Written),
}

/// How much of the object a failed write may have left in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// A proper part or nothing, which is never an object.
    Part,
    /// All of it, or nobody knows.
    Whole,
}

/// Writes `text` once; its first `whole` bytes hold the object.
fn attempt(file: &mut impl Append, text: &str, whole: usize) -> Attempt {
    let result = loop {
        match file.write(text.as_bytes()) {
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            result => break result,
        }
    };
    match result {
        Ok(count) if count == text.len() => match file.place() {
            Ok(place) => Attempt::Done(place),
            Err(why) => Attempt::Failed(why, Written::Whole),
        },
        Ok(count) => {
            let written = if count < whole { Written::Part } else { Written::Whole };
            let why = format!("only {count} of {} bytes could be written", text.len());
            Attempt::Failed(io::Error::new(io::ErrorKind::WriteZero, why), written)
        }
        Err(why) if wrote_nothing(&why) => Attempt::Failed(why, Written::Part),
        Err(why) => Attempt::Failed(why, Written::Whole),
    }
}

fn wrote_nothing(why: &io::Error) -> bool {
    let refusals = [Errno::NOSPC, Errno::DQUOT, Errno::FBIG, Errno::ROFS, Errno::BADF];
    Errno::from_io_error(why).is_some_and(|errno| refusals.contains(&errno))
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, fmt::Write as _};

    use expect_test::expect;

    use super::*;

    type Script<'a> = &'a [Result<usize, Errno>];

    /// A file whose writes end as scripted: so many bytes, or an error; then they succeed.
    struct Scripted {
        bytes: Vec<u8>,
        script: VecDeque<Result<usize, Errno>>,
    }

    impl Append for Scripted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = self.script.pop_front().unwrap_or(Ok(usize::MAX))?.min(bytes.len());
            self.bytes.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn place(&mut self) -> io::Result<u64> {
            Ok(self.bytes.len() as u64)
        }

        fn byte(&self, offset: u64) -> io::Result<u8> {
            Ok(self.bytes[usize::try_from(offset).unwrap()])
        }
    }

    #[test]
    fn every_end_of_a_write_is_told_apart() {
        let none = Errno::NOSPC;
        let rows: &[(&str, &str, Script)] = &[
            ("alone", "", &[]),
            ("behind a line", "{}\n", &[]),
            ("behind a foreign part", "{\"b", &[]),
            ("interrupted", "", &[Err(Errno::INTR)]),
            ("part, then all", "", &[Ok(3)]),
            ("all but the newline, then all", "", &[Ok(7)]),
            ("no space", "", &[Err(none), Err(none)]),
            ("part, then no space", "", &[Ok(3), Err(none)]),
            ("part, then part", "", &[Ok(3), Ok(3)]),
            ("part, then all but the newline", "", &[Ok(3), Ok(8)]),
            ("all but the newline, then no space", "", &[Ok(7), Err(none)]),
            ("glued, then no space", "{\"b", &[Ok(8), Err(none)]),
            ("an error of the disk", "", &[Err(Errno::IO), Err(none)]),
        ];
        let mut table = String::new();
        for (name, before, script) in rows {
            let bytes = before.as_bytes().to_vec();
            let mut file = Scripted { bytes, script: script.iter().copied().collect() };
            let outcome = match append(&mut file, r#"{"a":1}"#, None) {
                Ok(place) => format!("at {place}"),
                Err(Failure::Absent(_)) => "absent".to_owned(),
                Err(Failure::Unknown(_)) => "unknown".to_owned(),
            };
            let bytes = String::from_utf8(file.bytes).unwrap().replace('\n', "|");
            writeln!(table, "{name}: {outcome} {bytes}").unwrap();
        }
        expect![[r#"
            alone: at 8 {"a":1}|
            behind a line: at 11 {}|{"a":1}|
            behind a foreign part: at 20 {"b{"a":1}||{"a":1}|
            interrupted: at 8 {"a":1}|
            part, then all: at 12 {"a|{"a":1}|
            all but the newline, then all: at 16 {"a":1}|{"a":1}|
            no space: absent 
            part, then no space: absent {"a
            part, then part: absent {"a|{"
            part, then all but the newline: unknown {"a|{"a":1}
            all but the newline, then no space: unknown {"a":1}
            glued, then no space: unknown {"b{"a":1}|
            an error of the disk: unknown 
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn only_one_object_may_be_appended() {
        let mut table = String::new();
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(LONGEST_LINE));
        for line in ["{}", "", " {}", "{} ", "{}{}", "{}\n{}", "[1]", "{\"a\":", "{} x", &long] {
            let objection = objection(line).unwrap_or_else(|| "none".to_owned());
            let line = if line.len() > 20 { "<long>" } else { line };
            writeln!(table, "{line:?}: {objection}").unwrap();
        }
        expect![[r#"
            "{}": none
            "": it is empty
            " {}": something stands beside the object
            "{} ": something stands beside the object
            "{}{}": it has 2 parts
            "{}\n{}": it holds a newline
            "[1]": not an object: an array
            "{\"a\":": broken JSON at byte 5: EOF while parsing a value
            "{} x": it has 2 parts
            "<long>": it has 1048584 bytes
        "#]]
        .assert_eq(&table);
    }
}
