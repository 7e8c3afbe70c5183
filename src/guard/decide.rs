//! The judgement over a prepared call: mode × access, the strictest verdict wins.
//!
//! Pure: no file is opened and nothing is run to judge a call.

use super::{
    Access, Rights, Verdict,
    paths::rule_of,
    protected::{kept_from_reading, kept_from_writing},
    rules::{is_outside, rule_about, rule_about_tool},
};
use crate::{
    base::text::{headline, listed},
    model::{PathGrant, PermissionMode, Ruling, counts_as},
};

/// Longest part of a command that a verdict repeats, in characters.
const COMMAND_SHOWN: usize = 120;

/// Judges a call of the tool `tool` by all that it will touch, in all layers of `rights`: the strictest
/// verdict. Of layers that are equally strict the outermost is named, since the others stand on it.
pub fn decide(rights: &Rights, tool: &str, accesses: &[Access]) -> Verdict {
    let verdicts = rights.layers().map(|layer| in_layer(layer, tool, accesses));
    let strictest = verdicts.max_by_key(rank).unwrap_or(Verdict::Allow);
    match strictest {
        Verdict::Ask(why) if rights.is_fail_closed => Verdict::Deny(format!(
            "{why}; nothing can be asked for here: a rule of the team file has to allow it"
        )),
        verdict => verdict,
    }
}

/// What one layer says of a call: the strictest verdict, and of two that are equally strict the first.
/// What touches nothing is not judged by a mode, but a rule about the tool holds.
fn in_layer(layer: &Rights, tool: &str, accesses: &[Access]) -> Verdict {
    if accesses.is_empty() {
        return by_tool(layer, tool);
    }
    let verdicts = accesses.iter().map(|access| of_access(layer, tool, access));
    verdicts.rev().max_by_key(rank).unwrap_or(Verdict::Allow)
}

/// What the rules of one layer say of a tool as a whole.
fn by_tool(layer: &Rights, tool: &str) -> Verdict {
    let Some(rule) = rule_about_tool(&layer.rules, tool) else { return Verdict::Allow };
    let said = Said { ruling: rule.ruling, what: rule.pattern.to_string() };
    ruled(layer, tool, Some(said), Verdict::Allow)
}

/// What one layer says of one access: what its tools are confined to, the mode and the protected
/// places, and the strictest rule.
fn of_access(layer: &Rights, tool: &str, access: &Access) -> Verdict {
    let what = named(tool, access);
    if is_outside(&layer.only, tool, access) {
        let whose = layer.of.as_ref().map_or(String::new(), |it| format!(" {it}"));
        return Verdict::Deny(format!(
            "{what}: its type{whose} has it only for {}",
            listed(layer.only.iter().filter(|it| it.tool == tool || it.tool == counts_as(tool)))
        ));
    }
    let by_rule = rule_about(&layer.rules, tool, access)
        .map(|rule| Said { ruling: rule.ruling, what: rule.pattern.to_string() });
    let said = [by_rule, by_path(layer, access)].into_iter().flatten().rev();
    ruled(layer, &what, said.max_by_key(|said| said.ruling), judge(layer, tool, access))
}

/// A ruling, and the rule as it is written.
struct Said {
    ruling: Ruling,
    what: String,
}

/// What the most specific path rule comes to. One that grants reading says nothing of writing.
fn by_path(layer: &Rights, access: &Access) -> Option<Said> {
    let (path, writes) = match access {
        Access::Read(path) => (path, false),
        Access::Write(path) => (path, true),
        Access::Run(_) | Access::Team(_) => return None,
    };
    let rule = rule_of(&layer.paths, path)?;
    let ruling = match rule.grant {
        PathGrant::Deny => Ruling::Deny,
        PathGrant::Ask => Ruling::Ask,
        PathGrant::Allow if writes => return None,
        PathGrant::Allow | PathGrant::AllowWrite => Ruling::Allow,
    };
    Some(Said { ruling, what: format!("paths: {}", rule.path) })
}

/// A rule denies whatever the mode says, asks in every mode but bypass, and allows what the mode would
/// ask about; it never lifts what the mode or a protected place denies.
fn ruled(layer: &Rights, what: &str, said: Option<Said>, by_mode: Verdict) -> Verdict {
    let rule = |word: &str, said: &Said| match &layer.of {
        None => format!("the rule `{word} {}` of the team file", said.what),
        Some(it) => format!("the rule `{word} {}` of the type {it}", said.what),
    };
    match (said, by_mode) {
        (_, Verdict::Deny(why)) => Verdict::Deny(why),
        (Some(said), _) if said.ruling == Ruling::Deny => {
            Verdict::Deny(format!("{what}: {} forbids it", rule("deny", &said)))
        }
        (Some(said), Verdict::Allow)
            if said.ruling == Ruling::Ask && layer.mode != PermissionMode::Bypass =>
        {
            Verdict::Ask(format!("{what}: {} asks before it", rule("ask", &said)))
        }
        (Some(said), Verdict::Ask(_)) if said.ruling == Ruling::Allow => Verdict::Allow,
        (_, verdict) => verdict,
    }
}

fn named(tool: &str, access: &Access) -> String {
    match access {
        Access::Read(path) | Access::Write(path) => format!("{tool} of `{}`", path.display()),
        Access::Run(command) => format!("{tool} of `{}`", headline(command, COMMAND_SHOWN)),
        Access::Team(name) => format!("{tool} of {name}"),
    }
}

fn rank(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Ask(_) => 1,
        Verdict::Deny(_) => 2,
    }
}

fn judge(layer: &Rights, tool: &str, access: &Access) -> Verdict {
    match access {
        Access::Read(path) => match kept_from_reading(path) {
            Some(why) => never(&format!("{tool} may not read `{}`", path.display()), why),
            None => Verdict::Allow,
        },
        Access::Write(path) => match kept_from_writing(path) {
            Some(why) => never(&format!("{tool} may not write `{}`", path.display()), why),
            None => side_effect(layer, &format!("{tool} writes `{}`", path.display()), None),
        },
        Access::Run(command) => {
            let what = format!("{tool} runs `{}`", headline(command, COMMAND_SHOWN));
            side_effect(layer, &what, destructive(command))
        }
        Access::Team(change) => {
            side_effect(layer, &format!("{tool} changes the team: {change}"), None)
        }
    }
}

fn never(what: &str, why: &str) -> Verdict {
    Verdict::Deny(format!("{what}: {why}; no `permission_mode` allows it"))
}

/// Judges a side effect, `what`; `danger` is the word in it that is asked about even in mode auto.
fn side_effect(layer: &Rights, what: &str, danger: Option<&str>) -> Verdict {
    let milder = if danger.is_none() { "auto" } else { "bypass" };
    // A type makes the mode stricter; to make the team's milder changes nothing then.
    let whose = layer.of.as_ref().map_or(String::new(), |it| format!("the type {it} has "));
    let mend = |asks: &str| match &layer.of {
        None => format!("; in the team file {asks}`permission_mode: {milder}` allows it"),
        Some(_) => String::new(),
    };
    match (layer.mode, danger) {
        (PermissionMode::Plan, _) => Verdict::Deny(format!(
            "{what}: {whose}`permission_mode: plan`: no side effects{}",
            mend("`permission_mode: default` asks first and ")
        )),
        (PermissionMode::Default, _) => Verdict::Ask(format!(
            "{what}: {whose}`permission_mode: default`: each side effect is asked for{}",
            mend("")
        )),
        (PermissionMode::Auto, Some(word)) => Verdict::Ask(format!(
            "{what}: `{word}` can destroy what can't be brought back, so {whose}`permission_mode: \
             auto` asks{}",
            mend("")
        )),
        (PermissionMode::Auto, None) | (PermissionMode::Bypass, _) => Verdict::Allow,
    }
}

/// Programs that are asked about whatever their arguments are; `mkfs` stands for `mkfs.ext4` too.
const PROGRAMS: [&str; 16] = [
    "sudo", "doas", "su", "pkexec", "mkfs", "mke2fs", "mkswap", "dd", "shred", "wipefs", "fdisk",
    "parted", "shutdown", "reboot", "poweroff", "halt",
];

/// Programs that are asked about when one of these words follows.
const WITH_WORDS: [(&str, &[&str], &str); 4] = [
    ("git", &["push"], "git push"),
    ("git", &["clean"], "git clean"),
    ("git", &["--hard"], "git reset --hard"),
    ("find", &["-delete"], "find -delete"),
];

/// The destructive part of a command line, if one of a short list of words is in it.
///
/// A help against accidents and no wall: it looks at words, wherever they stand, so it also asks
/// about some harmless ones, and a command that hides its words passes.
fn destructive(command: &str) -> Option<&'static str> {
    let apart = |letter: char| letter.is_whitespace() || ";&|()<>{}`$'\"=\\".contains(letter);
    let words: Vec<&str> = command.split(apart).filter(|word| !word.is_empty()).collect();
    words.iter().enumerate().find_map(|(place, word)| {
        let program = word.rsplit('/').next().unwrap_or(word);
        let rest = words.get(place + 1..).unwrap_or_default();
        if program == "rm" && rest.iter().any(|word| forces(word)) {
            return Some("rm -rf");
        }
        let with_word = WITH_WORDS.iter().find(|(name, marks, _)| {
            *name == program && rest.iter().any(|word| marks.contains(word))
        });
        with_word.map(|(_, _, shown)| *shown).or_else(|| {
            let stem = program.split('.').next().unwrap_or(program);
            PROGRAMS.into_iter().find(|name| *name == stem)
        })
    })
}

/// Whether a word is an option that makes `rm` remove folders or ask nothing.
fn forces(word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => {
            ["recursive", "force"].iter().any(|it| !long.is_empty() && it.starts_with(long))
        }
        None => word.starts_with('-') && word.contains(['r', 'R', 'f']),
    }
}

#[cfg(test)]
mod tests {
    use std::{fmt::Write, path::PathBuf};

    use expect_test::expect;

    use super::*;

    fn path(text: &str) -> PathBuf {
        PathBuf::from(text)
    }

    fn word(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Allow => "allow",
            Verdict::Ask(_) => "ask",
            Verdict::Deny(_) => "deny",
        }
    }

    #[test]
    fn the_whole_table() {
        let rows = [
            ("read a file", Access::Read(path("src/a.rs"))),
            ("read mail", Access::Read(path(".mailbox/lead.jsonl"))),
            ("read an output", Access::Read(path(".mailbox/state/outputs/c1.txt"))),
            ("write a file", Access::Write(path("src/a.rs"))),
            ("write mail", Access::Write(path(".mailbox/lead.jsonl"))),
            ("write a hook", Access::Write(path(".git/hooks/pre-commit"))),
            ("write a team file", Access::Write(path("teams/dev.json"))),
            ("run", Access::Run("cargo test".to_owned())),
            ("run rm -rf", Access::Run("cd a && rm -rf b".to_owned())),
            ("change the team", Access::Team("start reviewer".to_owned())),
        ];
        let mut table = format!("{:<18}", "");
        for mode in PermissionMode::ALL {
            write!(table, "{mode:<9}").unwrap();
        }
        for (name, access) in rows {
            write!(table, "\n{name:<18}").unwrap();
            for mode in PermissionMode::ALL {
                let verdict =
                    decide(&Rights::new(mode, Vec::new()), "tool", std::slice::from_ref(&access));
                write!(table, "{:<9}", word(&verdict)).unwrap();
            }
        }
        let table: Vec<&str> = table.lines().map(str::trim_end).collect();
        expect![[r"
                              plan     default  auto     bypass
            read a file       allow    allow    allow    allow
            read mail         deny     deny     deny     deny
            read an output    allow    allow    allow    allow
            write a file      deny     ask      allow    allow
            write mail        deny     deny     deny     deny
            write a hook      deny     deny     deny     deny
            write a team file deny     deny     deny     deny
            run               deny     ask      allow    allow
            run rm -rf        deny     ask      ask      allow
            change the team   deny     ask      allow    allow"]]
        .assert_eq(&table.join("\n"));
    }

    #[test]
    fn verdicts_say_what_why_and_what_would_allow_it() {
        let run = |command: &str| Access::Run(command.to_owned());
        let cases = [
            (PermissionMode::Plan, "write_file", Access::Write(path("a"))),
            (PermissionMode::Plan, "bash", run("sudo make install")),
            (PermissionMode::Default, "bash", run("make\nmake install")),
            (PermissionMode::Auto, "bash", run("git push origin main")),
            (PermissionMode::Bypass, "read_file", Access::Read(path(".mailbox/state/key"))),
        ];
        let texts = cases.map(|(mode, tool, access)| {
            match decide(&Rights::new(mode, Vec::new()), tool, &[access]) {
                Verdict::Allow => "allow".to_owned(),
                Verdict::Ask(text) => format!("ask: {text}"),
                Verdict::Deny(text) => format!("deny: {text}"),
            }
        });
        expect![[r#"
            deny: write_file writes `a`: `permission_mode: plan`: no side effects; in the team file `permission_mode: default` asks first and `permission_mode: auto` allows it
            deny: bash runs `sudo make install`: `permission_mode: plan`: no side effects; in the team file `permission_mode: default` asks first and `permission_mode: bypass` allows it
            ask: bash runs `make…`: `permission_mode: default`: each side effect is asked for; in the team file `permission_mode: auto` allows it
            ask: bash runs `git push origin main`: `git push` can destroy what can't be brought back, so `permission_mode: auto` asks; in the team file `permission_mode: bypass` allows it
            deny: read_file may not read `.mailbox/state/key`: the mailbox folder holds keys and other people's mail; no `permission_mode` allows it"#]].assert_eq(&texts.join("\n"));
    }

    #[test]
    fn the_strictest_access_decides() {
        let rights = Rights::new(PermissionMode::Default, Vec::new());
        let read = || Access::Read(path("a"));
        let write = |name: &str| Access::Write(path(name));
        assert_eq!(decide(&rights, "t", &[]), Verdict::Allow);
        assert_eq!(word(&decide(&rights, "t", &[read(), write("a"), read()])), "ask");
        assert_eq!(word(&decide(&rights, "t", &[write("teams/a"), write("a")])), "deny");
        let two = decide(&rights, "t", &[write("first"), write("another")]);
        assert!(matches!(two, Verdict::Ask(text) if text.contains("first")));
    }

    #[test]
    fn destructive_commands_are_found_by_their_words() {
        let asked = [
            "rm -rf .",
            "rm -r a",
            "rm a --force",
            "/bin/rm -f a",
            "\\rm -rf a",
            "bash -c 'rm -rf a'",
            "echo $(rm -fr a)",
            "git push",
            "git -C sub push --force",
            "git clean -fdx",
            "git reset --hard HEAD~1",
            "A=1 sudo ls",
            "ls;dd if=/dev/zero of=/dev/sda",
            "mkfs.ext4 /dev/sda1",
            "true && shutdown now",
            "find . -name x -delete",
        ];
        for command in asked {
            assert!(destructive(command).is_some(), "{command}");
        }
        let free = ["cargo test", "rm a.txt", "git pull", "ls -rf", "cat added", "echo sudoku", ""];
        for command in free {
            assert_eq!(destructive(command), None, "{command}");
        }
    }
}
