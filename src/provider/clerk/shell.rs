//! Tells a shell command from prose by its first word, which has to be a program.
//!
//! It never asks the system itself: whether a word is an installed program is asked of a function.

/// Tells whether a word without `/` is a program.
pub type IsProgram = fn(&str) -> bool;

/// What the shell itself knows.
const BUILT_IN: [&str; 34] = [
    "!", ".", ":", "[", "[[", "{", "case", "cd", "command", "declare", "echo", "eval", "exec",
    "exit", "export", "false", "for", "if", "local", "printf", "pwd", "read", "set", "shopt",
    "source", "test", "time", "trap", "true", "ulimit", "umask", "unset", "until", "while",
];

/// Says why `command` is none, if it is none. A word with `/` is a program by its looks: it may be
/// built by an earlier line, and the shell tells when it is not there.
pub fn check(command: &str, is_program: IsProgram) -> Result<(), String> {
    let mut rest = command.trim_start_matches(['(', ' ', '\t']);
    let mut assigns = false;
    loop {
        let (word, behind) = split_word(rest);
        if is_assignment(&word) {
            assigns = true;
            rest = behind.trim_start_matches([' ', '\t']);
            continue;
        }
        let known = word.contains('/') || BUILT_IN.contains(&word.as_str());
        return match word.as_str() {
            "" if assigns => Ok(()),
            "" => Err("`run` needs a command".to_owned()),
            _ if known || is_program(&word) => Ok(()),
            _ => Err(format!("`{word}` is no program here")),
        };
    }
}

/// The first word, without its quotes, and what stands behind it.
fn split_word(text: &str) -> (String, &str) {
    let mut word = String::new();
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            None if letter.is_whitespace() || ";|&<>()".contains(letter) => {
                return (word, text.get(at..).unwrap_or_default());
            }
            Some(_) | None => word.push(letter),
        }
    }
    (word, "")
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        name.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(command: &str) -> Result<(), String> {
        check(command, |word| ["cargo", "make"].contains(&word))
    }

    #[test]
    fn commands_are_told_from_prose() {
        let commands = [
            "cargo test",
            "make; cargo test",
            "make&&true",
            "cd src && ls",
            "[ -f x ]",
            "if true; then echo; fi",
            "(cd src; ls)",
            "RUST_LOG=\"a b\" CI=1 cargo test",
            "CI=1\ncargo test",
            "CI=1",
            "./deploy now",
            "target/debug/tool",
            "'cargo' test",
        ];
        for command in commands {
            assert_eq!(verdict(command), Ok(()), "{command}");
        }
        for prose in ["the tests please", "", "  ", "$X now", "\"two words\"", "> file", "a=b the"]
        {
            assert!(verdict(prose).is_err(), "{prose}");
        }
    }
}
