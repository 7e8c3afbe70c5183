//! The words that lines begin with.
//!
//! They are lower case. Those that read, and `run`, whose command is looked at, may begin with a
//! capital as a sentence does; those that write or send may not, so that no sentence does so.

/// What a line of a program begins with. Each stands for its own word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keyword {
    /// Gives a file.
    Read,
    /// Lists a folder.
    List,
    /// Finds files.
    Glob,
    /// Finds lines.
    Grep,
    /// Writes a file.
    Write,
    /// Changes a file.
    Edit,
    /// Runs a command.
    Run,
    /// Adds a task.
    Task,
    /// Sends a message.
    Tell,
    /// Sends a message and waits for the answer.
    Ask,
    /// Lets a new agent work.
    Delegate,
    /// Asks for approval.
    Plan,
    /// Calls a tool by its name.
    Tool,
    /// Is the answer.
    Answer,
}

/// A blank or the end stands behind these.
const BEFORE_BLANK: [(&str, Keyword); 16] = [
    ("read", Keyword::Read),
    ("Read", Keyword::Read),
    ("list", Keyword::List),
    ("List", Keyword::List),
    ("glob", Keyword::Glob),
    ("Glob", Keyword::Glob),
    ("grep", Keyword::Grep),
    ("Grep", Keyword::Grep),
    ("run", Keyword::Run),
    ("Run", Keyword::Run),
    ("write", Keyword::Write),
    ("edit", Keyword::Edit),
    ("tell", Keyword::Tell),
    ("ask", Keyword::Ask),
    ("delegate", Keyword::Delegate),
    ("tool", Keyword::Tool),
];

/// A colon stands behind these.
const BEFORE_COLON: [(&str, Keyword); 3] =
    [("task", Keyword::Task), ("plan", Keyword::Plan), ("answer", Keyword::Answer)];

impl Keyword {
    /// The keyword that `text` begins with, and what stands behind it and its colon.
    pub fn split(text: &str) -> Option<(Self, &str)> {
        let ends = |rest: &str| rest.is_empty() || rest.starts_with(char::is_whitespace);
        let before_blank = BEFORE_BLANK.into_iter().find_map(|(word, keyword)| {
            let rest = text.strip_prefix(word).filter(|rest| ends(rest))?;
            Some((keyword, rest))
        });
        before_blank.or_else(|| {
            BEFORE_COLON.into_iter().find_map(|(word, keyword)| {
                let rest = text.strip_prefix(word)?.trim_start_matches([' ', '\t']);
                Some((keyword, rest.strip_prefix(':')?))
            })
        })
    }
}
