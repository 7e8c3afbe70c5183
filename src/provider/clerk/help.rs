//! What a clerk says of itself: the lines that it knows, and what it can't do.
//!
//! It promises nothing that the grammar does not keep: a test reads every example.

/// A kind of line: its form, an example, what it does.
struct Form {
    line: &'static str,
    example: &'static str,
    does: &'static str,
}

const fn form(line: &'static str, example: &'static str, does: &'static str) -> Form {
    Form { line, example, does }
}

const FORMS: [Form; 15] = [
    form("read PATH", "read README.md", "Gives a file."),
    form("list [PATH]", "list src", "Lists a folder."),
    form("glob PATTERN", "glob **/*.rs", "Finds files by name."),
    form("grep PATTERN [PATH]", "grep \"fn main\" src", "Finds lines by a regular expression."),
    form("write PATH: TEXT", "write notes.md: All is well.", "Writes a file with just this text."),
    form(
        "write PATH <<END",
        "write notes.md <<END\nOne.\nEND",
        "Writes a file with the lines up to END.",
    ),
    form("edit PATH: OLD => NEW", "edit notes.md: well => better", "Replaces a text in a file."),
    form("run COMMAND", "run cargo test", "Runs a shell command; its first word is a program."),
    form("task: TITLE", "task: Look at the parser", "Adds a task to the team's list."),
    form("tell NAME: TEXT", "tell scout: list src", "Sends a message and goes on."),
    form("ask NAME: TEXT", "ask scout: list src", "Sends a message and waits for the answer."),
    form("delegate TYPE: TEXT", "delegate helper: list src", "Lets a new agent do it; waits."),
    form("plan: TEXT", "plan: Delete the old parser", "Asks for approval and waits."),
    form("tool NAME {json}", "tool read_file {\"path\": \"a.rs\"}", "Calls any tool it has."),
    form("answer: TEXT", "answer: Done.", "Is what the sender is told."),
];

const HEAD: &str = "\
A clerk is an agent without a language model. It needs no key and no network: it carries out lines.
It reads a request whole before it runs anything; when one line is not understood, it runs nothing,
names that line and answers `failed`. It never guesses, and takes no task that it can't read.

LINES
";

const TAIL: &str = "
  Keywords are lower case; Read, List, Glob, Grep and Run may begin with a capital. A word with
  blanks stands in quotes: in \"…\" a quote is written \\\", in '…' everything stands for itself. An
  indented line continues the text of the line above. Blank lines and lines that begin with # are
  passed over. An arrow on a line of its own, => , parts longer texts of an `edit`.

TURNS AND FAILURES
  Each line is a turn. A line that fails ends the program: the answer is `failed`, gives the outputs
  so far, the failure, and the lines that were not run.
  & LINE    joins the turn of the call just above: both are called together.
  - LINE    goes on when this line fails, as in make.

THE ANSWER
  The texts of the `answer:` lines. Without any: the output of a single line, or the outputs of
  several, each behind `$ LINE`.

SCRIPTS
  A teammate may have a script: its program is carried out for each request. In its texts, names and
  paths stand
  {content}  for what the request says      {output}  for all output since the last answer
  {from}     for its sender                 {status}  for ok or failed: the turn before
  A command is never filled in: there the same values are in the environment, as
  \"$POSTROOM_CONTENT\", \"$POSTROOM_FROM\", \"$POSTROOM_OUTPUT\" and \"$POSTROOM_STATUS\".
  A text with {content} that is sent to another clerk is a program there: whoever may write to the
  one then writes for the other.
  on plan: approve       approves every plan that is shown to it
  on plan: reject WHY    rejects it
  A script with `on plan:` lines only leaves each request to its own lines.

EXAMPLES
  A message:
    read Cargo.toml
    & list src
    - run cargo test
  A script that runs the tests at each message:
    - run cargo test --quiet
    answer: The tests: {status}
      {output}
  A script that keeps a log:
    run printf '%s: %s\\n' \"$POSTROOM_FROM\" \"$POSTROOM_CONTENT\" >> log.txt
    answer: Noted, {from}.

WHAT IT CAN'T DO
  Understand prose, decide, choose between ways, or repeat a line until something holds: for these
  there is the shell of a `run` line, or a model.
";

/// Everything about clerks, for people.
pub fn help() -> String {
    let mut help = HEAD.to_owned();
    for it in FORMS {
        help.extend(["  ", &format!("{:<24}", it.line), it.does, "\n"]);
    }
    help.push_str("\n  Each with an example:\n\n");
    for line in forms().lines() {
        help.extend(["  ", line, "\n"]);
    }
    help.push_str(TAIL);
    help
}

/// Each form with an example, for a short answer.
pub fn forms() -> String {
    let row = |it: &Form| {
        let mut lines = it.example.lines();
        let mut row = format!("{:<24}{}\n", it.line, lines.next().unwrap_or_default());
        row.extend(lines.map(|line| format!("{:<24}{line}\n", "")));
        row
    };
    FORMS.iter().map(row).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::program::{Program, Script, Voice};
    use super::*;

    fn is_program(word: &str) -> bool {
        word == "cargo"
    }

    #[test]
    fn every_example_is_understood() {
        for it in FORMS {
            Program::parse(it.example, is_program).unwrap_or_else(|why| panic!("{why}"));
        }
        let examples = help().split_once("EXAMPLES\n").unwrap().1.to_owned();
        let examples = examples.split_once("\nWHAT").unwrap().0.to_owned();
        let blocks = examples.split("\n  A ").map(|block| block.split_once('\n').unwrap().1);
        assert_eq!(blocks.clone().count(), 3);
        for block in blocks {
            let script = Script::parse(block, Voice::Script, is_program);
            script.unwrap_or_else(|why| panic!("{why}"));
        }
    }

    #[test]
    fn no_line_is_too_wide() {
        for line in help().lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
