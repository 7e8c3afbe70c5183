//! Texts with `{content}`, `{from}`, `{output}` and `{status}` in them.
//!
//! They are filled in once: what is put in is never looked at again.

use super::{history::Outcome, program::Voice};
use crate::{
    base::text,
    model::{AgentName, Status},
};

/// The most characters of `{output}`.
const OUTPUT: usize = 50_000;
/// The most characters of output in one variable: the kernel takes no variable over 128 KiB.
const OUTPUT_VARIABLE: usize = 30_000;

/// A text, perhaps with places to fill in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Hole(Hole),
}

/// A place to fill in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hole {
    /// What the request says.
    Content,
    /// Who sent it.
    From,
    /// What the lines since the last answer gave.
    Output,
    /// Whether the turn before worked.
    Status,
}

/// What the places are filled with.
pub struct Values<'a> {
    /// What the request says.
    pub content: &'a str,
    /// Who sent it.
    pub from: &'a AgentName,
    /// What the lines since the last answer gave.
    pub output: String,
    /// Whether the turn before worked.
    pub status: Status,
}

impl Hole {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Content, Self::From, Self::Output, Self::Status];

    /// How it is written in a text.
    pub fn written(self) -> &'static str {
        match self {
            Self::Content => "{content}",
            Self::From => "{from}",
            Self::Output => "{output}",
            Self::Status => "{status}",
        }
    }

    /// The environment variable that has its value in a `run` line.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Content => "POSTROOM_CONTENT",
            Self::From => "POSTROOM_FROM",
            Self::Output => "POSTROOM_OUTPUT",
            Self::Status => "POSTROOM_STATUS",
        }
    }
}

impl Template {
    /// Reads `text`. Only a script has places: a message means what it says.
    pub fn new(text: &str, voice: Voice) -> Self {
        match voice {
            Voice::Message => Self(vec![Piece::Text(text.to_owned())]),
            Voice::Script => Self(pieces(text)),
        }
    }

    /// The first place to fill in.
    pub fn hole(&self) -> Option<Hole> {
        self.0.iter().find_map(|piece| match piece {
            Piece::Hole(hole) => Some(*hole),
            Piece::Text(_) => None,
        })
    }

    /// The text with its places filled in.
    pub fn filled(&self, values: &Values<'_>) -> String {
        let filled = self.0.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Hole(hole) => values.text(*hole),
        });
        filled.collect()
    }
}

impl Values<'_> {
    /// Takes what a call gave.
    pub fn take(&mut self, outcome: Outcome<'_>) {
        if !self.output.is_empty() && !self.output.ends_with('\n') {
            self.output.push('\n');
        }
        self.output.push_str(outcome.text);
        if outcome.failed {
            self.status = Status::Failed;
        }
    }

    /// The value of a variable. A content that is too long for one is not cut: a command that
    /// judges it would judge something else, so the call has to fail.
    pub fn variable(&self, hole: Hole) -> String {
        match hole {
            Hole::Output => text::shorten(&self.output, OUTPUT_VARIABLE),
            Hole::Content | Hole::From | Hole::Status => self.text(hole),
        }
    }

    fn text(&self, hole: Hole) -> String {
        match hole {
            Hole::Content => self.content.to_owned(),
            Hole::From => self.from.to_string(),
            Hole::Output => text::shorten(&self.output, OUTPUT),
            Hole::Status if self.status == Status::Ok => "ok".to_owned(),
            Hole::Status => "failed".to_owned(),
        }
    }
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let first = |rest: &str| {
        let places = Hole::ALL.map(|hole| (rest.find(hole.written()), hole));
        places.into_iter().filter_map(|(at, hole)| Some((at?, hole))).min_by_key(|(at, _)| *at)
    };
    while let Some((_, hole)) = first(rest)
        && let Some((before, behind)) = rest.split_once(hole.written())
    {
        pieces.extend([Piece::Text(before.to_owned()), Piece::Hole(hole)]);
        rest = behind;
    }
    pieces.push(Piece::Text(rest.to_owned()));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_is_not_looked_at_again() {
        let from = AgentName::new("lead").unwrap();
        let mut values = Values {
            content: "say {output} and {from}",
            from: &from,
            output: String::new(),
            status: Status::Ok,
        };
        values.take(Outcome { text: "{content}", failed: true });
        let text = "<{content}|{output}|{from}|{status}|{other}>";
        let filled = Template::new(text, Voice::Script).filled(&values);
        assert_eq!(filled, "<say {output} and {from}|{content}|lead|failed|{other}>");
        assert_eq!(Template::new(text, Voice::Message).filled(&values), text);
    }
}
