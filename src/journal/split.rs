//! What one line holds: whole objects, and the dead parts between them. Pure.
//!
//! The meaning of a place in a line depends on the bytes behind it alone, never on those before: so
//! a newline that comes early behind a whole object changes nothing.

use std::{ops::Range, str};

use serde_json::{Deserializer, value::RawValue};

/// How deep an object may be nested.
pub const DEEPEST: usize = 128;

/// At how many later places a whole object is looked for, so that no line costs more than that many
/// looks.
const CANDIDATES: usize = 16;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A whole object, or a part that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its bytes.
    pub range: Range<usize>,
    /// Why it is dead; places in the reason are bytes of the piece, the first being 1.
    pub dead: Option<String>,
}

/// All that is in a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Split {
    /// In the line's order.
    pub pieces: Vec<Piece>,
    /// How many NUL bytes were passed over.
    pub nuls: u64,
}

impl Split {
    /// Whether there is an object and nothing dead.
    pub fn is_whole(&self) -> bool {
        !self.pieces.is_empty() && self.pieces.iter().all(|piece| piece.dead.is_none())
    }
}

/// Splits `line`, which has no newline.
pub fn split(line: &[u8]) -> Split {
    let (mut found, mut at) = (Split::default(), 0);
    loop {
        let (blank, nuls) = passed_over(behind(line, at));
        found.nuls += nuls;
        at += blank;
        if at == line.len() {
            return found;
        }
        let piece = first_piece(behind(line, at));
        let range = at..at + piece.range.end;
        at = range.end;
        found.pieces.push(Piece { range, dead: piece.dead });
    }
}

/// How many bytes from the beginning on mean nothing, and how many of them are NUL.
pub fn passed_over(bytes: &[u8]) -> (usize, u64) {
    let (mut rest, mut nuls) = (bytes, 0);
    loop {
        rest = match rest {
            [b' ' | b'\t' | b'\r', behind @ ..] => behind,
            [0, behind @ ..] => {
                nuls += 1;
                behind
            }
            _ => match rest.strip_prefix(BYTE_ORDER_MARK) {
                Some(behind) => behind,
                None => return (bytes.len() - rest.len(), nuls),
            },
        }
    }
}

/// The piece that `rest` begins with. `rest` goes to the line's end, is not empty and begins with
/// nothing that is passed over.
pub fn first_piece(rest: &[u8]) -> Piece {
    let is_object = rest.first() == Some(&b'{');
    match value_length(rest) {
        Ok(length) if is_object => object(before(rest, length)),
        Ok(length) => dead(length, format!("not an object: {}", kind(rest))),
        Err(why) if is_object => {
            // An object may have begun inside the damaged part, so nothing behind it is believed.
            let part = trimmed(rest);
            dead(part.len(), broken(part, &why) + &candidate(part))
        }
        Err(why) => {
            // No object can begin before the first brace.
            let brace = rest.iter().position(|byte| *byte == b'{').unwrap_or(rest.len());
            let part = trimmed(before(rest, brace));
            dead(part.len(), broken(part, &why))
        }
    }
}

/// The object that `bytes` begin with, where they hold all of it. For lines that are too long to be
/// loaded: the objects they begin with would have been delivered had a newline come behind them.
pub fn first_object(bytes: &[u8]) -> Option<Piece> {
    if bytes.first() != Some(&b'{') {
        return None;
    }
    value_length(bytes).ok().map(|length| object(before(bytes, length)))
}

fn object(text: &[u8]) -> Piece {
    let too_deep = depth(text) > DEEPEST;
    let dead = too_deep.then(|| format!("over {DEEPEST} deep"));
    Piece { range: 0..text.len(), dead }
}

fn dead(length: usize, reason: String) -> Piece {
    Piece { range: 0..length, dead: Some(reason) }
}

/// The length of the whole JSON value that `bytes` begin with.
fn value_length(bytes: &[u8]) -> serde_json::Result<usize> {
    // A raw value keeps numbers unparsed: whether 1e999 will do is for the reader of a field to say.
    let mut values = Deserializer::from_slice(bytes).into_iter::<&RawValue>();
    match values.next() {
        Some(Err(why)) => Err(why),
        Some(Ok(_)) | None => Ok(values.byte_offset()),
    }
}

fn kind(value: &[u8]) -> &'static str {
    match value.first() {
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a truth value",
        Some(b'n') => "null",
        _ => "a number",
    }
}

fn broken(part: &[u8], why: &serde_json::Error) -> String {
    if str::from_utf8(part).is_err() {
        return "not UTF-8".to_owned();
    }
    let text = why.to_string();
    let what = text.split_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("broken JSON at byte {}: {what}", why.column())
}

/// A note on the first whole object inside the broken `part`, or nothing.
fn candidate(part: &[u8]) -> String {
    let braces = part.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'{');
    let mut looked_at = braces.map(|(at, _)| at).take(CANDIDATES);
    let found = looked_at.find(|at| value_length(behind(part, *at)).is_ok());
    found.map_or_else(String::new, |at| {
        format!("; a whole object stands at byte {} and was not taken", at + 1)
    })
}

/// How deep the valid JSON `text` is nested.
fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn trimmed(part: &[u8]) -> &[u8] {
    let mut kept = part;
    while let [before @ .., b' ' | b'\t' | b'\r'] = kept {
        kept = before;
    }
    kept
}

fn before(bytes: &[u8], end: usize) -> &[u8] {
    bytes.get(..end).unwrap_or(bytes)
}

fn behind(bytes: &[u8], start: usize) -> &[u8] {
    bytes.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests;
