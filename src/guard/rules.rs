//! Which rules are about an access. Pure.
//!
//! A rule that allows a command has to match all of it, and a command with anything in it that a
//! shell would act upon is never allowed by a rule; a rule that denies or asks matches any part.

use globset::GlobBuilder;

use super::Access;
use crate::model::{Pattern, Rule, Ruling};

/// The strictest of `rules` that is about `access` of the tool called `tool`.
pub fn ruling(rules: &[Rule], tool: &str, access: &Access) -> Option<Ruling> {
    let about = |rule: &&Rule| rule.pattern.tool == tool && matches(rule, access);
    rules.iter().filter(about).map(|rule| rule.ruling).max()
}

fn matches(rule: &Rule, access: &Access) -> bool {
    let Pattern { of: Some(of), .. } = &rule.pattern else {
        // A rule about a whole tool is about all that it does.
        return true;
    };
    match access {
        Access::Read(path) | Access::Write(path) => {
            let glob = GlobBuilder::new(of).literal_separator(true).build();
            glob.is_ok_and(|glob| glob.compile_matcher().is_match(path))
        }
        Access::Run(command) => match rule.ruling {
            Ruling::Allow => is_simple(command) && begins(of, command),
            Ruling::Ask | Ruling::Deny => parts(command).any(|part| begins(of, &part)),
        },
        Access::Team(name) => of == name,
    }
}

/// The pattern that allows just this access, for somebody who says `always`. None where no pattern
/// says just this: a command that a shell would act upon is asked about each time.
pub fn pattern_of(tool: &str, access: &Access) -> Option<Pattern> {
    let of = match access {
        Access::Read(path) | Access::Write(path) => globset::escape(&path.display().to_string()),
        Access::Run(command) if is_simple(command) && !command.ends_with(':') => command.clone(),
        Access::Run(_) => return None,
        Access::Team(name) => name.clone(),
    };
    Some(Pattern { tool: tool.to_owned(), of: Some(of) })
}

/// `words` alone, or with `:*` (or ` *`) behind it as the beginning of a command, by whole words.
fn begins(pattern: &str, command: &str) -> bool {
    let words =
        |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    let prefix = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
    let (wanted, given) = (words(prefix.unwrap_or(pattern)), words(command));
    if prefix.is_some() { given.starts_with(&wanted) } else { given == wanted }
}

/// Whether a shell does nothing with a command but start one program with these words.
fn is_simple(command: &str) -> bool {
    let plain = |it: char| it.is_alphanumeric() || " \t_-./:,=@%+".contains(it);
    let first = command.split_whitespace().next().unwrap_or_default();
    command.chars().all(plain) && !first.contains('=')
}

/// The pieces between what separates commands, each from any of its words on.
fn parts(command: &str) -> impl Iterator<Item = String> {
    let separators = |it: char| ";|&\n(){}`$<>\"'".contains(it);
    let pieces = command.split(separators).map(str::to_owned);
    pieces.flat_map(|piece| {
        let words: Vec<String> = piece.split_whitespace().map(str::to_owned).collect();
        (0..words.len()).map(move |from| words.get(from..).unwrap_or_default().join(" "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(rules: &[(Ruling, &str)], tool: &str, access: &Access) -> Option<Ruling> {
        let rules: Vec<Rule> = rules
            .iter()
            .map(|(ruling, text)| Rule { ruling: *ruling, pattern: Pattern::parse(text).unwrap() })
            .collect();
        ruling(&rules, tool, access)
    }

    #[test]
    fn commands_are_matched_by_words() {
        let rules = [
            (Ruling::Allow, "bash(git status)"),
            (Ruling::Allow, "bash(cargo test:*)"),
            (Ruling::Deny, "bash(rm:*)"),
        ];
        let rows = [
            ("git status", Some(Ruling::Allow)),
            ("git  status", Some(Ruling::Allow)),
            ("git status -s", None),
            ("git statusx", None),
            ("cargo test", Some(Ruling::Allow)),
            ("cargo test --lib a::b", Some(Ruling::Allow)),
            ("cargo testx", None),
            ("cargo test; rm -rf .", Some(Ruling::Deny)),
            ("cargo test && curl x", None),
            ("cargo test > f", None),
            ("cargo test $(x)", None),
            ("cargo test `rm x`", Some(Ruling::Deny)),
            ("X=1 cargo test", None),
            ("env rm x", Some(Ruling::Deny)),
            ("bash -c 'rm x'", Some(Ruling::Deny)),
            ("cargo test\nrm x", Some(Ruling::Deny)),
            ("cargo test &", None),
            ("./cargo test", None),
        ];
        for (command, wanted) in rows {
            let access = Access::Run(command.to_owned());
            assert_eq!(verdict(&rules, "bash", &access), wanted, "{command}");
        }
    }

    #[test]
    fn paths_are_matched_by_wildcards_and_the_strictest_rule_wins() {
        let rules = [
            (Ruling::Allow, "edit_file"),
            (Ruling::Ask, "edit_file(src/**)"),
            (Ruling::Deny, "edit_file(src/secret.rs)"),
        ];
        let of = |path: &str| verdict(&rules, "edit_file", &Access::Write(path.into()));
        assert_eq!(of("notes.md"), Some(Ruling::Allow));
        assert_eq!(of("src/a/b.rs"), Some(Ruling::Ask));
        assert_eq!(of("src/secret.rs"), Some(Ruling::Deny));
        assert_eq!(verdict(&rules, "write_file", &Access::Write("notes.md".into())), None);
    }
}
