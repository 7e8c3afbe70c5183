//! Cuts a text into statements: a line with its prefix and all that continues it.
//!
//! It knows where a statement ends and not what it means.

use super::{program::Complaint, word};

/// A line and all that continues it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The number of its first line, from 1.
    pub number: usize,
    /// Its first line as it was written.
    pub source: String,
    /// The marks before it.
    pub prefix: Prefix,
    /// What stands behind the prefix, with the indented lines that continue it.
    pub text: String,
    /// The lines between `<<END` and `END`.
    pub block: Option<String>,
}

/// The marks before a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Prefix {
    /// `&`: it joins the turn before it.
    pub joins: bool,
    /// `-`: the program goes on when it fails.
    pub goes_on: bool,
}

impl Prefix {
    /// Takes the marks off a line.
    pub fn split(line: &str) -> (Self, &str) {
        let mut prefix = Self::default();
        let mut rest = line.trim();
        loop {
            if let Some(behind) = rest.strip_prefix('&').filter(|_| !prefix.joins) {
                prefix.joins = true;
                rest = behind.trim_start();
            } else if let Some(behind) = rest.strip_prefix('-').filter(|_| !prefix.goes_on) {
                prefix.goes_on = true;
                rest = behind.trim_start();
            } else {
                return (prefix, rest);
            }
        }
    }
}

/// Cuts `text` into statements. Blank lines and comments are passed over; a text that is indented
/// as a whole is read as if it were not.
pub fn split(text: &str) -> Result<Vec<Statement>, Complaint> {
    let lines: Vec<&str> = text.lines().collect();
    let mut lines = dedented(&lines).into_iter().zip(1..);
    let mut drafts: Vec<Draft<'_>> = Vec::new();
    while let Some((line, number)) = lines.next() {
        let continues = line.trim().is_empty() || line.starts_with([' ', '\t']);
        match drafts.last_mut() {
            Some(draft) if continues => draft.more.push(line),
            _ if line.trim().is_empty() || line.trim_start().starts_with('#') => {}
            _ => {
                let block = block_end(line).map(|end| block(&end, line, number, &mut lines));
                let block = block.transpose()?;
                drafts.push(Draft { number, line, more: Vec::new(), block });
            }
        }
    }
    Ok(drafts.into_iter().map(Draft::finished).collect())
}

struct Draft<'a> {
    number: usize,
    line: &'a str,
    more: Vec<&'a str>,
    block: Option<String>,
}

impl Draft<'_> {
    fn finished(self) -> Statement {
        let (prefix, head) = Prefix::split(self.line);
        let mut text = head.to_owned();
        let used = self.more.iter().rposition(|line| !line.trim().is_empty());
        let more = self.more.get(..used.map_or(0, |last| last + 1)).unwrap_or_default();
        for line in dedented(more) {
            text.push('\n');
            text.push_str(line.trim_end());
        }
        let source = self.line.trim().to_owned();
        Statement { number: self.number, source, prefix, text, block: self.block }
    }
}

/// The word that ends the block which `line` begins: `END` of `write PATH <<END`.
fn block_end(line: &str) -> Option<String> {
    let (_, rest) = Prefix::split(line);
    let rest = rest.strip_prefix("write")?.strip_prefix([' ', '\t'])?;
    let (_, rest) = word::split_first(rest).ok()??;
    let end = rest.trim().strip_prefix("<<")?;
    let plain = !end.is_empty() && end.chars().all(|it| it.is_alphanumeric() || it == '_');
    plain.then(|| end.to_owned())
}

fn block<'a>(
    end: &str,
    line: &str,
    number: usize,
    lines: &mut impl Iterator<Item = (&'a str, usize)>,
) -> Result<String, Complaint> {
    let mut block = String::new();
    for (line, _) in lines {
        if line == end {
            return Ok(block);
        }
        block.push_str(line);
        block.push('\n');
    }
    let why = format!("no line `{end}` ends its text");
    Err(Complaint { line: number, text: line.trim().to_owned(), why })
}

/// The lines without the blanks that all of them begin with.
fn dedented<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let indent = |line: &&str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let common = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min();
    let common = common.unwrap_or_default();
    lines.iter().map(|line| line.get(common..).unwrap_or_default()).collect()
}
