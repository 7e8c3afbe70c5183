//! Reads lines out of bytes that may grow while it reads. It holds about two lines' worth of them,
//! however many there are, and walks over holes without reading them.

use std::{
    io::{self, BufRead},
    str,
};

use super::{
    Batch, Dead, LONGEST_LINE, Line, Position,
    source::{CHUNK, Source, Window},
    split::{first_object, first_piece, passed_over, split},
};
use crate::base::hash::fingerprint;

/// How many bytes before a position its check tells of.
const CHECKED: u64 = 64;
/// A batch ends behind the line that brings it to this size.
const FULL_BATCH: usize = 4 << 20;
/// How much of a dead part is kept, and how much of one that is over 1 MiB.
const MOST_RAW: usize = 64 << 10;
const MOST_RAW_OF_LONG: usize = 1 << 10;

/// What earlier reads found out, so that a long tail is not scanned anew at each look. Each is
/// believed only while the bytes before its end are the same.
#[derive(Debug, Default)]
pub struct Hints {
    clear: Option<Clear>,
    /// Behind a newline, with the check there.
    line_end: Option<(u64, u32)>,
}

/// A stretch without a newline.
#[derive(Debug, Clone, Copy)]
struct Clear {
    from: u64,
    to: u64,
    check: u32,
}

/// One look at a source, which ends where the source ended when the look began.
pub struct Reader<'a, S> {
    source: &'a S,
    hints: &'a mut Hints,
    generation: u64,
    length: u64,
    window: Window,
}

impl<'a, S: Source> Reader<'a, S> {
    /// A look at `source`, whose positions are of `generation`.
    pub fn new(source: &'a S, hints: &'a mut Hints, generation: u64) -> io::Result<Self> {
        let length = source.length()?;
        Ok(Self { source, hints, generation, length, window: Window::default() })
    }

    /// Where the look ends.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The position at `offset`.
    pub fn position(&mut self, offset: u64) -> io::Result<Position> {
        let check = self.check(offset)?;
        Ok(Position { generation: self.generation, offset, check })
    }

    /// The fingerprint of the bytes before `offset`.
    pub fn check(&mut self, offset: u64) -> io::Result<u32> {
        if offset == 0 {
            return Ok(0);
        }
        let from = offset.saturating_sub(CHECKED);
        self.bytes(from, offset - from).map(fingerprint)
    }

    /// The lines behind `after`, about `at_most` of them.
    pub fn batch(&mut self, after: Position, at_most: usize) -> io::Result<Batch> {
        let mut batch = Batch { lines: Vec::new(), next: after, nuls: 0 };
        let (mut held, mut line_end) = (0, None);
        while batch.lines.len() < at_most && held < FULL_BATCH {
            let from = batch.next.offset;
            let known = line_end.filter(|newline| from <= *newline);
            let Some(newline) = known.map_or_else(|| self.newline(from), |at| Ok(Some(at)))? else {
                break;
            };
            line_end = Some(newline);
            let (first, nuls) = self.pass_over(from, newline)?;
            batch.nuls += nuls;
            if first == newline {
                batch.next = self.position(newline + 1)?;
                continue;
            }
            let (end, body) = self.piece(first, newline)?;
            held += body.as_ref().map_or_else(|dead| dead.raw.len(), String::len);
            let (rest, nuls) = self.pass_over(end, newline)?;
            let is_last = rest == newline;
            batch.nuls += if is_last { nuls } else { 0 };
            batch.next = self.position(if is_last { newline + 1 } else { end })?;
            batch.lines.push(Line { at: self.position(first)?, after: batch.next, body });
        }
        Ok(batch)
    }

    /// Behind the last newline; 0 where there is none.
    pub fn line_end(&mut self) -> io::Result<u64> {
        let (mut end, check) = self.hints.line_end.unwrap_or_default();
        if !self.is_same(end, check)? {
            end = 0;
        }
        let mut at = self.behind_clear(end)?;
        while let Some(chunk) = self.data(&mut at)? {
            let length = chunk.len() as u64;
            if chunk.contains(&b'\n') {
                let last = chunk.iter().rposition(|byte| *byte == b'\n').unwrap_or_default();
                end = at + last as u64 + 1;
            }
            at += length;
        }
        self.hints.line_end = Some((end, self.check(end)?));
        self.note_clear(end, self.length)?;
        Ok(end)
    }

    /// Behind the first newline from `from` on, and not behind `latest`, which is behind one, too.
    pub fn line_start(&mut self, from: u64, latest: u64) -> io::Result<u64> {
        let Some(before) = from.checked_sub(1) else { return Ok(0) };
        let newline = self.newline(before)?;
        Ok(newline.map_or(latest, |newline| latest.min(newline + 1)))
    }

    /// Whether what lies behind `start` is one object or several, and nothing else.
    pub fn is_whole_from(&mut self, start: u64) -> io::Result<bool> {
        let length = self.length - start;
        if length > LONGEST_LINE as u64 {
            return Ok(false);
        }
        self.bytes(start, length).map(|tail| split(tail).is_whole())
    }

    /// The bytes from `from` on, `length` of them.
    pub fn bytes(&mut self, from: u64, length: u64) -> io::Result<&[u8]> {
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.load(from, length)?;
        let held = self.window.from(from).and_then(|held| held.get(..length));
        held.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// The object or dead part at `first`, and its end.
    fn piece(&mut self, first: u64, newline: u64) -> io::Result<(u64, Result<String, Dead>)> {
        let (length, longest) = (newline - first, LONGEST_LINE as u64);
        let bytes = self.bytes(first, length.min(longest))?;
        let found = if length <= longest { Some(first_piece(bytes)) } else { first_object(bytes) };
        let Some(piece) = found else {
            let raw = bytes.get(..MOST_RAW_OF_LONG).unwrap_or(bytes).to_vec();
            return Ok((newline, Err(Dead { reason: "over 1 MiB".to_owned(), length, raw })));
        };
        let part = bytes.get(piece.range).unwrap_or_default();
        let dead = |reason| {
            let raw = part.get(..MOST_RAW).unwrap_or(part).to_vec();
            Dead { reason, length: part.len() as u64, raw }
        };
        let body = match piece.dead {
            Some(reason) => Err(dead(reason)),
            None => match str::from_utf8(part) {
                Ok(text) => Ok(text.to_owned()),
                Err(_) => Err(dead("not UTF-8".to_owned())),
            },
        };
        Ok((first + part.len() as u64, body))
    }

    /// The first newline from `from` on.
    fn newline(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut at = self.behind_clear(from)?;
        while let Some(chunk) = self.data(&mut at)? {
            let length = chunk.len() as u64;
            if let Some(place) = newline_in(chunk) {
                let found = at + place as u64;
                self.note_clear(from, found)?;
                return Ok(Some(found));
            }
            at += length;
        }
        self.note_clear(from, self.length)?;
        Ok(None)
    }

    /// The first place from `at` on, before `end`, that means something, and the NULs before it.
    fn pass_over(&mut self, mut at: u64, end: u64) -> io::Result<(u64, u64)> {
        let mut nuls = 0;
        while at < end {
            if self.window.from(at).is_none() {
                let data = self.source.next_data(at)?.min(end);
                nuls += data - at;
                at = data;
            }
            // A byte order mark has three bytes, which must not be seen in parts.
            self.load(at, usize::try_from(end - at).unwrap_or(3).min(3))?;
            let held = self.window.from(at).unwrap_or_default();
            let most = usize::try_from(end - at).unwrap_or(usize::MAX);
            let (passed, found) = passed_over(held.get(..most).unwrap_or(held));
            if passed == 0 {
                break;
            }
            nuls += found;
            at += passed as u64;
        }
        Ok((at, nuls))
    }

    /// What is held from `at` on, after moving `at` over a hole; `None` at the end.
    fn data(&mut self, at: &mut u64) -> io::Result<Option<&[u8]>> {
        if *at < self.length && self.window.from(*at).is_none() {
            *at = self.source.next_data(*at)?;
        }
        if *at >= self.length {
            return Ok(None);
        }
        self.load(*at, 1)?;
        Ok(self.window.from(*at))
    }

    fn load(&mut self, from: u64, length: usize) -> io::Result<()> {
        if self.window.from(from).is_some_and(|held| held.len() >= length) {
            return Ok(());
        }
        // A check needs bytes before the place that is asked for.
        let from_check = from.saturating_sub(CHECKED);
        let wanted = length.saturating_add(usize::try_from(from - from_check).unwrap_or_default());
        self.window.fill(self.source, from_check, wanted, self.length)
    }

    /// `from`, or the end of a stretch around it that is known to hold no newline.
    fn behind_clear(&mut self, from: u64) -> io::Result<u64> {
        match self.hints.clear {
            Some(clear) if clear.from <= from && from < clear.to => {
                let is_clear = self.is_same(clear.to, clear.check)?;
                Ok(if is_clear { clear.to } else { from })
            }
            Some(_) | None => Ok(from),
        }
    }

    fn note_clear(&mut self, from: u64, to: u64) -> io::Result<()> {
        // Short stretches are scanned again in less time than a note takes.
        if to.saturating_sub(from) > CHUNK as u64 {
            self.hints.clear = Some(Clear { from, to, check: self.check(to)? });
        }
        Ok(())
    }

    fn is_same(&mut self, offset: u64, check: u32) -> io::Result<bool> {
        Ok(offset <= self.length && self.check(offset)? == check)
    }
}

fn newline_in(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    let passed = rest.skip_until(b'\n').unwrap_or_default();
    let last = passed.checked_sub(1)?;
    (bytes.get(last) == Some(&b'\n')).then_some(last)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Counts the bytes that are read.
    #[derive(Default)]
    struct Counted {
        bytes: Vec<u8>,
        read: Cell<usize>,
    }

    impl Source for Counted {
        fn length(&self) -> io::Result<u64> {
            self.bytes.length()
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            let count = self.bytes.read_at(buffer, offset)?;
            self.read.set(self.read.get() + count);
            Ok(count)
        }

        fn next_data(&self, offset: u64) -> io::Result<u64> {
            self.bytes.next_data(offset)
        }
    }

    #[test]
    fn a_growing_line_is_read_once_and_little_is_held() {
        let (mut source, mut hints) = (Counted::default(), Hints::default());
        for round in 0..64 {
            source.bytes.resize((round + 1) << 18, b'x');
            let mut reader = Reader::new(&source, &mut hints, 0).unwrap();
            assert_eq!(reader.batch(Position::ZERO, 10).unwrap().next.offset, 0);
            assert_eq!(reader.line_end().unwrap(), 0);
        }
        assert!(source.read.get() < source.bytes.len() * 3 / 2, "{}", source.read.get());
        source.bytes.push(b'\n');
        let mut reader = Reader::new(&source, &mut hints, 0).unwrap();
        assert_eq!(reader.batch(Position::ZERO, 10).unwrap().lines.len(), 1);
        assert!(reader.window.capacity() <= 3 * LONGEST_LINE);
    }

    #[test]
    fn a_hint_is_not_believed_when_the_bytes_before_it_changed() {
        let mut hints = Hints::default();
        let long = vec![b'x'; 3 * CHUNK];
        let mut reader = Reader::new(&long, &mut hints, 0).unwrap();
        assert_eq!(reader.batch(Position::ZERO, 10).unwrap().lines, []);
        let other = [&b"{}\n"[..], &vec![b'y'; 4 * CHUNK]].concat();
        let mut reader = Reader::new(&other, &mut hints, 0).unwrap();
        assert_eq!(reader.batch(Position::ZERO, 10).unwrap().lines.len(), 1);
    }

    #[test]
    fn newlines_are_found() {
        let rows: [(&[u8], _); 4] =
            [(b"", None), (b"ab", None), (b"\n", Some(0)), (b"ab\nc\n", Some(2))];
        for (bytes, place) in rows {
            assert_eq!(newline_in(bytes), place);
        }
    }
}
