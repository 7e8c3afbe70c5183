//! Collects the lines that a search finds, file by file, up to what a model is shown.
//!
//! The lines of a file count only at its end, since it may turn out to be a binary file.

use std::{fmt::Write, io};

use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

use super::{SHOWN, excerpt::push_short};

/// How many matching lines are shown.
const MOST: usize = 500;
/// How much of a line is shown, in characters.
pub const WIDTH: usize = 300;

/// All that was found.
#[derive(Default)]
pub struct Found {
    text: String,
    matches: usize,
    /// Whether there is no room for more.
    pub is_full: bool,
    /// How many files could not be searched.
    pub passed_over: usize,
}

impl Found {
    /// The lines, and notes on what is not among them.
    pub fn shown(self) -> String {
        let mut text = self.text;
        if text.is_empty() {
            text.push_str("[no line matches]\n");
        }
        if self.is_full {
            let _ = writeln!(
                text,
                "[{} matching lines shown, there may be more; narrow the pattern, path or glob]",
                self.matches
            );
        }
        if self.passed_over > 0 {
            let _ = writeln!(
                text,
                "[files passed over because they can't be read or have too long lines: {}]",
                self.passed_over
            );
        }
        text
    }
}

/// Takes the lines of one file; they count only if it turns out to be no binary file.
pub struct Lines<'a> {
    path: &'a str,
    text: String,
    matches: usize,
    found: &'a mut Found,
}

impl<'a> Lines<'a> {
    /// Takes the lines of the file that is shown as `path`.
    pub fn new(path: &'a str, found: &'a mut Found) -> Self {
        Self { path, text: String::new(), matches: 0, found }
    }

    fn push(&mut self, number: Option<u64>, mark: char, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let _ = write!(self.text, "{}{mark}{}{mark} ", self.path, number.unwrap_or(0));
        push_short(&mut self.text, line.trim_end_matches(['\r', '\n']), WIDTH);
        self.text.push('\n');
    }

    fn has_room(&self) -> bool {
        self.found.matches + self.matches < MOST && self.found.text.len() + self.text.len() < SHOWN
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if !self.has_room() {
            self.found.is_full = true;
            return Ok(false);
        }
        self.matches += 1;
        self.push(found.line_number(), ':', found.bytes());
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.push(context.line_number(), '-', context.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.text.push_str("--\n");
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        if end.binary_byte_offset().is_none() {
            self.found.text.push_str(&self.text);
            self.found.matches += self.matches;
        }
        Ok(())
    }
}
