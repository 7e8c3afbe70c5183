//! `init`: writes a team that fits the repository it finds.

use std::{fs::OpenOptions, io::Write, path::Path};

use super::{
    args::Init,
    context::Context,
    failure::{Code, Failure},
    render::Printer,
};
use crate::{model::AgentName, provider::clerk, store::read_team_file};

/// What shows the kind of a repository, and how its tests are run.
const KINDS: &[(&str, &str)] = &[
    ("Cargo.toml", "cargo test"),
    ("package.json", "npm test"),
    ("pyproject.toml", "python3 -m pytest"),
    ("setup.py", "python3 -m pytest"),
    ("go.mod", "go test ./..."),
    ("pom.xml", "mvn -q test"),
    ("build.gradle", "./gradlew test"),
    ("build.gradle.kts", "./gradlew test"),
    ("Gemfile", "bundle exec rake test"),
    ("mix.exs", "mix test"),
    ("Makefile", "make test"),
];

/// Who can think where a variable is set.
struct Thinker {
    provider: &'static str,
    variable: &'static str,
    /// What the team file says of that.
    about: &'static str,
    /// Whether its models have prices that are known.
    is_priced: bool,
}

/// The first whose variable is set. A server that was named goes before its vendor's own.
const THINKERS: &[Thinker] = &[
    Thinker {
        provider: "anthropic",
        variable: "ANTHROPIC_API_KEY",
        about: "Models of Anthropic; the key is in ANTHROPIC_API_KEY.",
        is_priced: true,
    },
    Thinker {
        provider: "openai",
        variable: "OPENAI_BASE_URL",
        about: "Models of the server that OPENAI_BASE_URL names; OPENAI_MODEL says which.",
        is_priced: false,
    },
    Thinker {
        provider: "openai",
        variable: "OPENAI_API_KEY",
        about: "Models of OpenAI; the key is in OPENAI_API_KEY.",
        is_priced: true,
    },
];

fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| !value.trim().is_empty())
}

/// Writes a team.
pub fn init(context: &Context, args: &Init, printer: &mut Printer) -> Result<Code, Failure> {
    let name = AgentName::for_member(&args.name)?;
    let workspace = context.workspace();
    let kind = KINDS.iter().find(|(file, _)| workspace.join(file).is_file());
    let tests = kind.filter(|(_, command)| clerk::can_do(&format!("run {command}")));
    let file = workspace.join("teams").join(format!("{name}.json"));
    let thinker = THINKERS.iter().find(|it| is_set(it.variable));
    write_new(&file, &team_file(&name, tests.map(|(_, command)| *command), thinker))?;
    let store = context.store_of(context.make_folder()?)?;
    store.make_mailboxes(&read_team_file(&file)?.team.members());
    printer.note(&format!("wrote {} and .mailbox", file.display()));
    match (kind, tests) {
        (_, Some((found, command))) => printer.note(&format!(
            "found {found}: at each message the teammate `tester` runs `{command}`, which a rule of \
             the team file allows, as it allows to edit files. Everything else that changes \
             something asks you first."
        )),
        (Some((found, command)), None) => printer.note(&format!(
            "found {found}, but `{command}` names no program here, so no teammate runs the tests"
        )),
        (None, None) => printer.note(
            "found no build file that says how tests are run: give a teammate a script such as \
             \"run make test\" and a rule such as \"bash(make test)\" in the team file",
        ),
    }
    match thinker {
        Some(Thinker { provider, variable, .. }) => printer.note(&format!(
            "{variable} is set, so models of {provider} think for lead and scout; `\"provider\": \
             \"clerk\"` needs no key"
        )),
        None => printer.note(
            "with ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL set, init writes a team of \
             models instead",
        ),
    }
    printer.note(&format!("next: postroom run {name} 'read README.md'"));
    Ok(Code::Ok)
}

fn team_file(name: &AgentName, tests: Option<&str>, thinker: Option<&Thinker>) -> String {
    let clerk = "An embedded provider that needs no key and no network; `postroom help clerk` says what it can do.";
    let budget = thinker.filter(|it| it.is_priced).map_or("", |_| {
        "\n  // Further calls are refused when this is spent: `postroom cost`.\n  \"budget\": \
         {\"max_cost_usd\": 5, \"per\": \"day\"},"
    });
    let (provider, about) = thinker.map_or(("clerk", clerk), |it| (it.provider, it.about));
    let tester = tests.map_or(String::new(), |command| {
        format!(
            ",\n    // The clerk runs this at each message; the rule below allows it.\n    \
             \"tester\": {{\"role\": \"runs the tests\", \"claims\": \"assigned\", \
              \"script\": \"run {command}\"}}"
        )
    });
    let allowed = tests.map_or(String::new(), |command| format!(", \"bash({command}:*)\""));
    format!(
        r#"{{
  "team": "{name}",
  "lead": "lead",
  // {about}
  "provider": "{provider}",{budget}
  "teammates": {{
    "lead": {{"role": "answers for the team"}},
    "scout": {{"role": "reads, lists and searches files"}}{tester}
  }},
  // What is not allowed here and changes something is asked for: `postroom approvals`.
  "rules": {{"allow": ["edit_file", "write_file"{allowed}]}}
}}
"#
    )
}

fn write_new(file: &Path, text: &str) -> Result<(), Failure> {
    let failed = |why: std::io::Error| {
        if why.kind() == std::io::ErrorKind::AlreadyExists {
            Failure::usage(format!(
                "{} is there already; edit it, or write another with `postroom init NAME`",
                file.display()
            ))
        } else {
            Failure::failed(format!("write {}: {why}", file.display()))
        }
    };
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut new = OpenOptions::new().write(true).create_new(true).open(file).map_err(failed)?;
    new.write_all(text.as_bytes()).map_err(failed)
}
