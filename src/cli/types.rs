//! `types`: what teammates and subagents may be, with the tools and rights that each type leaves.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    args::Types,
    context::Context,
    failure::{Code, Failure},
    render::{Printer, SCHEMA},
    types_text::{line_of, text_of, width_of},
};
use crate::{
    agent::prompt_of,
    base::text::{headline, listed, nearest},
    model::{
        AgentType, Origin, PathGrant, Pattern, PermissionMode, Preset, ProviderEntry, Ruling,
        TOOL_NAMES, TOOLS_TO_COME, built_in_types,
    },
    store::team_files,
};

/// A type as it is printed.
#[derive(Debug, Serialize)]
pub struct TypeView<'a> {
    schema: u32,
    /// What it is called by.
    pub name: &'a str,
    /// When to use it.
    pub description: &'a str,
    /// Where it was defined.
    pub origin: String,
    /// Who may bear it.
    pub mode: &'static str,
    /// The most turns for one piece of work.
    pub max_turns: usize,
    /// The mode, where it is not its caller's.
    pub permission_mode: Option<PermissionMode>,
    /// Whether what would be asked for is refused.
    pub fail_closed: bool,
    /// Whether it may delegate.
    pub allow_nesting: bool,
    /// The tools it leaves.
    pub tools: Vec<&'static str>,
    /// Tools it names that this version does not have.
    pub tools_to_come: Vec<&'static str>,
    /// The part of a tool that it leaves.
    pub confined_to: Vec<String>,
    /// Tools, and parts of tools, that it takes away.
    pub disallowed_tools: Vec<String>,
    /// What it says about single tools.
    pub rules: Vec<String>,
    /// What it says about paths.
    pub paths: Vec<String>,
    /// The largest file that is read or written, in bytes.
    pub max_file_size: Option<u64>,
    /// How long one piece of work may take.
    pub timeout_seconds: Option<u64>,
    /// How often work that has failed is begun again.
    pub max_retries: u32,
    /// Whether it changes nothing before a plan is approved.
    pub plan_required: bool,
    /// The provider, where it is not its caller's.
    pub provider: Option<&'a str>,
    /// The model, where it is not its caller's.
    pub model: Option<&'a str>,
    /// Whose program judges what its bearer may do, where that is not postroom.
    pub rights_held_by: Option<&'static str>,
    /// How freely the model chooses its words.
    pub temperature: Option<f64>,
    /// What could not be used of its definition.
    pub reports: Vec<&'a str>,
    /// What its bearer is told.
    pub system_prompt: &'a str,
}

impl<'a> TypeView<'a> {
    /// The view of a type; of `reports` it takes those about it.
    pub fn new(it: &'a AgentType, reports: &'a [String], program: Option<Preset>) -> Self {
        let tools: Vec<&str> = TOOL_NAMES.iter().copied().filter(|tool| it.lets(tool)).collect();
        let stated = it.tools.as_deref().unwrap_or_default();
        let names = |tool: &&&str| stated.iter().any(|pattern| pattern.tool == **tool);
        Self {
            schema: SCHEMA,
            name: it.name.as_str(),
            description: &it.description,
            origin: it.origin.to_string(),
            mode: it.mode.as_str(),
            max_turns: it.max_turns,
            permission_mode: it.permission_mode,
            fail_closed: it.is_fail_closed,
            allow_nesting: it.allow_nesting,
            tools,
            tools_to_come: TOOLS_TO_COME.iter().filter(names).copied().collect(),
            confined_to: texts(stated.iter().filter(|pattern| pattern.of.is_some())),
            disallowed_tools: texts(&it.disallowed_tools),
            rules: it
                .rules
                .iter()
                .map(|it| format!("{} {}", word(it.ruling), it.pattern))
                .collect(),
            paths: it.paths.iter().map(|it| path_text(&it.path, it.grant)).collect(),
            max_file_size: it.limits.max_file_size,
            timeout_seconds: it.limits.timeout.map(|it| it.as_secs()),
            max_retries: it.limits.max_retries,
            plan_required: it.plan_required,
            provider: it.provider.as_deref(),
            model: it.model.as_deref(),
            rights_held_by: program.map(Preset::as_str),
            temperature: it.temperature,
            reports: reports.iter().map(String::as_str).filter(|said| is_about(said, it)).collect(),
            system_prompt: &it.system_prompt,
        }
    }
}

fn texts<'a>(patterns: impl IntoIterator<Item = &'a Pattern>) -> Vec<String> {
    patterns.into_iter().map(ToString::to_string).collect()
}

fn word(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Allow => "allow",
        Ruling::Ask => "ask",
        Ruling::Deny => "deny",
    }
}

fn path_text(path: &str, grant: PathGrant) -> String {
    let words = PathGrant::WORDS.iter().find(|(_, it)| *it == grant);
    let path = if path.is_empty() { "." } else { path };
    format!("{} {path}", words.map_or("", |(word, _)| word))
}

/// Whether a report names the file of a type, or the type itself as a word.
fn is_about(report: &str, it: &AgentType) -> bool {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "_-/".contains(letter);
    let of_file = matches!(&it.origin, Origin::Markdown(path) if report.contains(path.as_str()));
    of_file || report.split(|letter| !is_of_name(letter)).any(|part| part == it.name.as_str())
}

/// The types that are known here.
struct Known {
    types: Vec<AgentType>,
    reports: Vec<String>,
    /// Who can think, and who does where a type says nothing.
    providers: BTreeMap<String, ProviderEntry>,
    provider: String,
    /// That there may be more.
    note: Option<String>,
}

impl Known {
    /// The agent program that thinks for bearers of a type, unless a teammate's entry says otherwise.
    fn program_of(&self, it: &AgentType) -> Option<Preset> {
        self.providers.get(it.provider.as_ref().unwrap_or(&self.provider))?.preset
    }
}

/// The types of the team that is named, else of the only one there is, else the built-in ones.
fn known(context: &Context, team: Option<&str>) -> Result<Known, Failure> {
    let files = team_files(context.workspace());
    if team.is_some() || files.len() == 1 {
        let team = context.team(team)?.team;
        return Ok(Known {
            types: team.types.into_values().collect(),
            reports: team.reports,
            providers: team.providers,
            provider: team.provider,
            note: None,
        });
    }
    let mut types = built_in_types();
    types.sort_by(|one, other| one.name.cmp(&other.name));
    let names = || listed(files.iter().filter_map(|it| it.file_stem()?.to_str()));
    let note = (!files.is_empty()).then(|| {
        format!("built-in types alone: there are the teams {}; `--team NAME` picks one", names())
    });
    let (providers, provider) = (BTreeMap::new(), String::new());
    Ok(Known { types, reports: Vec::new(), providers, provider, note })
}

/// Shows all types in a line each, or one whole.
pub fn types(context: &Context, args: &Types, printer: &mut Printer) -> Result<Code, Failure> {
    if let Some(name) = args.name.as_deref().filter(|_| args.prompt) {
        return prompt(context, args, name, printer);
    }
    let known = known(context, args.team.as_deref())?;
    let view = |it| TypeView::new(it, &known.reports, known.program_of(it));
    let views = known.types.iter().map(view);
    let views: Vec<TypeView<'_>> = views.collect();
    match &args.name {
        Some(name) => show(name, &views, &known.reports, args.json, printer)?,
        None => list(&views, args.json, printer),
    }
    let reports = known.reports.iter().filter(|_| args.name.is_none());
    for note in reports.chain(&known.note) {
        printer.note(note);
    }
    Ok(Code::Ok)
}

/// Prints what a teammate, or a subagent of the lead, is told.
fn prompt(
    context: &Context,
    args: &Types,
    name: &str,
    printer: &mut Printer,
) -> Result<Code, Failure> {
    let team = context.team(args.team.as_deref())?.team;
    let told = prompt_of(&team, name, context.workspace()).ok_or_else(|| {
        let names = team.teammates.keys().map(ToString::to_string);
        let types = team.types.keys().map(ToString::to_string);
        let known = listed(names.chain(types));
        Failure::usage(format!("no teammate and no type is called {name:?}; there are {known}"))
    })?;
    printer.say(&told);
    Ok(Code::Ok)
}

fn list(views: &[TypeView<'_>], json: bool, printer: &mut Printer) {
    let width = width_of(views);
    for view in views {
        if json {
            printer.say_json(view);
        } else {
            let (name, rest) = line_of(view, &width);
            printer.say_titled(&name, &rest);
        }
    }
}

fn show(
    name: &str,
    views: &[TypeView<'_>],
    reports: &[String],
    json: bool,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let Some(view) = views.iter().find(|it| it.name == name) else {
        return Err(unknown(name, views, reports));
    };
    if json {
        printer.say_json(view);
        return Ok(());
    }
    for (title, text) in text_of(view) {
        printer.say_titled(title, &text);
    }
    if !view.system_prompt.is_empty() {
        printer.say("");
        printer.say(view.system_prompt);
    }
    Ok(())
}

/// A definition that could not be used may be why there is no such type.
fn unknown(name: &str, views: &[TypeView<'_>], reports: &[String]) -> Failure {
    let names = || views.iter().map(|it| it.name);
    let meant = nearest(name, names()).map_or(String::new(), |it| format!("; did you mean {it}?"));
    let about = reports.iter().find(|it| !name.is_empty() && it.contains(name));
    let about = about.map_or(String::new(), |it| format!("\n{it}"));
    let (shown, valid) = (headline(name, 80), listed(names()));
    Failure::usage(format!("no type is called {shown:?}{meant}{about}\nvalid are {valid}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TypeName;

    #[test]
    fn reports_are_of_the_type_whose_file_or_name_they_say() {
        let markdown = Origin::Markdown("teams/agents/plan.md".to_owned());
        let it = AgentType::new(TypeName::named("plan"), markdown);
        for (report, wanted) in [
            ("teams/agents/plan.md: no such tool", true),
            ("the type plan names no tool", true),
            ("\"plan\" replaces a built-in type", true),
            ("teams/agents/other.md: a planner", false),
            ("other/plan/x.md: nothing", false),
            ("plan-b is odd", false),
        ] {
            assert_eq!(is_about(report, &it), wanted, "{report}");
        }
    }

    #[test]
    fn an_unknown_type_is_told_with_the_report_about_it() {
        let reports = ["teams/agents/critic.md: not used: it has no prompt".to_owned()];
        let types = built_in_types();
        let views: Vec<_> = types.iter().map(|it| TypeView::new(it, &reports, None)).collect();
        let said = |name| unknown(name, &views, &reports).text;
        let wanted = "no type is called \"critic\"\nteams/agents/critic.md: not used: it has no prompt\n\
                      valid are general-purpose, ";
        assert!(said("critic").starts_with(wanted), "{}", said("critic"));
        assert!(!said("other").contains("critic") && !said("").contains("critic"));
    }
}
