//! Which rules are about an access. Pure.
//!
//! A rule that allows a command has to match all of it, and a command with anything in it that a
//! shell would act upon is never allowed by a rule; a rule that denies or asks matches any part.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use super::Access;
use crate::model::{Pattern, Rule, Ruling, counts_as};

/// The strictest of `rules` that is about `access` of the tool called `tool`.
pub fn rule_about<'a>(rules: &'a [Rule], tool: &str, access: &Access) -> Option<&'a Rule> {
    let about = |rule: &&Rule| {
        (is_of(&rule.pattern, tool) || is_of_kind(rule, access)) && matches(rule, access)
    };
    rules.iter().filter(about).max_by_key(|rule| rule.ruling)
}

/// The strictest of `rules` that is about all that `tool` does.
pub fn rule_about_tool<'a>(rules: &'a [Rule], tool: &str) -> Option<&'a Rule> {
    let about = |rule: &&Rule| rule.pattern.of.is_none() && is_of(&rule.pattern, tool);
    rules.iter().filter(about).max_by_key(|rule| rule.ruling)
}

/// Whether a rule keeps from reading or writing some paths: that it names one tool for it makes no
/// other a way round it. One that allows is about the tool that it names.
fn is_of_kind(rule: &Rule, access: &Access) -> bool {
    let tools: &[&str] = match access {
        Access::Read(_) => &["read_file"],
        Access::Write(_) => &["write_file", "edit_file"],
        Access::Run(_) | Access::Team(_) => &[],
    };
    rule.ruling != Ruling::Allow
        && rule.pattern.of.is_some()
        && tools.contains(&rule.pattern.tool.as_str())
}

/// The patterns of paths that nothing may read.
pub fn unreadable(rules: &[Rule]) -> impl Iterator<Item = &str> {
    let denied = rules.iter().filter(|rule| rule.ruling != Ruling::Allow);
    let of_reading = denied.filter(|rule| rule.pattern.tool == "read_file");
    of_reading.filter_map(|rule| rule.pattern.of.as_deref())
}

/// Whether a pattern is about a tool, or about the one that the tool counts as.
fn is_of(pattern: &Pattern, tool: &str) -> bool {
    pattern.tool == tool || pattern.tool == counts_as(tool)
}

/// Whether a tool is confined to patterns and an access is none of them.
pub fn is_outside(only: &[Pattern], tool: &str, access: &Access) -> bool {
    let mut about = only.iter().filter(|pattern| is_of(pattern, tool)).peekable();
    let fits = |pattern: &Pattern| {
        matches(&Rule { ruling: Ruling::Allow, pattern: pattern.clone() }, access)
    };
    about.peek().is_some() && !about.any(fits)
}

fn matches(rule: &Rule, access: &Access) -> bool {
    let Pattern { of: Some(of), .. } = &rule.pattern else {
        // A rule about a whole tool is about all that it does.
        return true;
    };
    if let Some(exact) = of.strip_prefix('=') {
        return exact == text_of(access);
    }
    match access {
        Access::Read(path) | Access::Write(path) => {
            // A folder is searched as a whole by a pattern of all that is in it.
            let is_folder = of.strip_suffix("/**").is_some_and(|it| Path::new(it) == path);
            is_folder || path_glob(of).is_some_and(|glob| glob.is_match(path))
        }
        Access::Run(command) => match rule.ruling {
            Ruling::Allow => is_simple(command) && Words::of(of).begin(&words(command)),
            Ruling::Ask | Ruling::Deny => is_part(&Words::of(of), command),
        },
        Access::Team(name) => of == name,
    }
}

/// What a pattern of paths matches; none where it is no such pattern.
pub fn path_glob(pattern: &str) -> Option<GlobMatcher> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.ok().map(|glob| glob.compile_matcher())
}

/// The pattern that is about just this access, for somebody who has read it and says `always`: no
/// star in it means more than itself, and it may hold what a shell acts upon.
pub fn exactly(tool: &str, access: &Access) -> Pattern {
    Pattern { tool: tool.to_owned(), of: Some(format!("={}", text_of(access))) }
}

fn text_of(access: &Access) -> String {
    match access {
        Access::Read(path) | Access::Write(path) => path.display().to_string(),
        Access::Run(command) => command.clone(),
        Access::Team(name) => name.clone(),
    }
}

/// The words of a pattern.
struct Words<'a> {
    words: Vec<&'a str>,
    /// With `:*` (or ` *`) behind them they are the beginning of a command, else all of it.
    is_beginning: bool,
}

impl<'a> Words<'a> {
    fn of(pattern: &'a str) -> Self {
        let beginning = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
        let is_beginning = beginning.is_some();
        Self { words: words(beginning.unwrap_or(pattern)), is_beginning }
    }

    fn begin(&self, given: &[&str]) -> bool {
        let given = if self.is_beginning { given.get(..self.words.len()) } else { Some(given) };
        given == Some(self.words.as_slice())
    }

    /// The same with the program's name alone: `/bin/rm` is `rm`.
    fn begin_by_name(&self, given: &[&str]) -> bool {
        let Some((path, rest)) = given.split_first() else { return false };
        let Some((_, name)) = path.rsplit_once('/') else { return false };
        let some = rest.iter().copied().take(self.words.len());
        self.begin(&[name].into_iter().chain(some).collect::<Vec<_>>())
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Whether a shell does nothing with a command but start one program with these words.
fn is_simple(command: &str) -> bool {
    let plain = |it: char| it.is_alphanumeric() || " \t_-./:,=@%+".contains(it);
    let first = command.split_whitespace().next().unwrap_or_default();
    command.chars().all(plain) && !first.contains('=')
}

/// Whether the words stand in a command, from any word on between what separates commands. A quoted
/// text is read as a command of its own, and as the part of a word that a shell makes of it.
fn is_part(wanted: &Words<'_>, command: &str) -> bool {
    let is_quote = |it: char| "\"'\\".contains(it);
    let is_end = |it: char| ";|&\n(){}`$<>".contains(it);
    let bare: String = command.replace("\\\n", "").chars().filter(|it| !is_quote(*it)).collect();
    let is_in = |piece: &str| {
        let words = words(piece);
        (0..words.len())
            .filter_map(|from| words.get(from..))
            .any(|part| wanted.begin(part) || wanted.begin_by_name(part))
    };
    command.split(|it| is_end(it) || is_quote(it)).any(is_in) || bare.split(is_end).any(is_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(rules: &[(Ruling, &str)], tool: &str, access: &Access) -> Option<Ruling> {
        let rules: Vec<Rule> = rules
            .iter()
            .map(|(ruling, text)| Rule { ruling: *ruling, pattern: Pattern::parse(text).unwrap() })
            .collect();
        rule_about(&rules, tool, access).map(|rule| rule.ruling)
    }

    #[test]
    fn always_is_about_one_access_and_no_other() {
        for command in ["rm *", "cargo test:*", "echo x >> a.txt", "a && b", "echo $(date)"] {
            let pattern = exactly("bash", &Access::Run(command.to_owned())).to_string();
            let allows = |other: &str| {
                let access = Access::Run(other.to_owned());
                verdict(&[(Ruling::Allow, &pattern)], "bash", &access).is_some()
            };
            assert!(allows(command), "{pattern}");
            for other in ["rm -rf a", "cargo test -q", "echo x >> a.txt; b", "a", "echo  $(date)"] {
                assert!(!allows(other), "{pattern} allows {other}");
            }
        }
        let star = exactly("write_file", &Access::Write("a*[1].txt".into())).to_string();
        let writes = |path: &str| {
            verdict(&[(Ruling::Allow, &star)], "write_file", &Access::Write(path.into())).is_some()
        };
        assert!(writes("a*[1].txt") && !writes("ab1.txt"));
    }

    #[test]
    fn commands_are_matched_by_words() {
        let rules = [
            (Ruling::Allow, "bash(git status)"),
            (Ruling::Allow, "bash(cargo test:*)"),
            (Ruling::Deny, "bash(rm:*)"),
            (Ruling::Deny, "bash(git push:*)"),
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
            ("/bin/rm x", Some(Ruling::Deny)),
            ("\\rm x", Some(Ruling::Deny)),
            ("r\"\"m x", Some(Ruling::Deny)),
            ("'rm' x", Some(Ruling::Deny)),
            ("true && \\\n  rm x", Some(Ruling::Deny)),
            ("git \\\n  \"push\"", Some(Ruling::Deny)),
            ("echo rmx farm", None),
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
    fn a_long_command_is_judged_at_once() {
        let command = Access::Run("a ".repeat(200_000));
        assert_eq!(verdict(&[(Ruling::Deny, "bash(rm:*)")], "bash", &command), None);
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
        let writes = |path: &str| verdict(&rules, "write_file", &Access::Write(path.into()));
        // What is asked for and denied is so for all that writes; what is allowed is not.
        assert_eq!(writes("notes.md"), None);
        assert_eq!(writes("src/a/b.rs"), Some(Ruling::Ask));
        assert_eq!(writes("src/secret.rs"), Some(Ruling::Deny));
        let rules = [(Ruling::Deny, "read_file(secrets/**)")];
        let reads = |tool: &str, path: &str| verdict(&rules, tool, &Access::Read(path.into()));
        for tool in ["read_file", "grep", "glob", "list_files"] {
            assert_eq!(reads(tool, "secrets/key"), Some(Ruling::Deny), "{tool}");
            assert_eq!(reads(tool, "src"), None, "{tool}");
        }
    }
}
