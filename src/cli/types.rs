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
    base::text::listed,
    model::{
        AgentType, PathGrant, Pattern, PermissionMode, Preset, ProviderEntry, Report, Ruling,
        TOOL_NAMES, TOOLS_TO_COME, TypeName, built_in_types, find_type,
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
    pub reports: Vec<String>,
    /// What its bearer is told.
    pub system_prompt: &'a str,
}

impl<'a> TypeView<'a> {
    /// The view of a type; of `reports` it takes those about it.
    pub fn new(it: &'a AgentType, reports: &[Report], program: Option<Preset>) -> Self {
        let tools: Vec<&str> = TOOL_NAMES.iter().copied().filter(|tool| it.lets(tool)).collect();
        let stated = it.tools.as_deref().unwrap_or_default();
        let is_about = |report: &&Report| report.of.as_ref() == Some(&it.name);
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
            reports: reports.iter().filter(is_about).map(ToString::to_string).collect(),
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

/// The types that are known here.
struct Known {
    types: BTreeMap<TypeName, AgentType>,
    reports: Vec<Report>,
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
            types: team.types,
            reports: team.reports,
            providers: team.providers,
            provider: team.provider,
            note: None,
        });
    }
    let types = built_in_types().into_iter().map(|it| (it.name.clone(), it)).collect();
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
    if let Some(name) = &args.name {
        let found = find_type(&known.types, &known.reports, name, |_| true);
        show(&view(found.map_err(|why| Failure::usage(why.to_string()))?), args.json, printer);
    } else {
        list(&known.types.values().map(view).collect::<Vec<_>>(), args.json, printer);
        known.reports.iter().for_each(|report| printer.note(&report.to_string()));
    }
    if let Some(note) = &known.note {
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

fn show(view: &TypeView<'_>, json: bool, printer: &mut Printer) {
    if json {
        printer.say_json(view);
        return;
    }
    for (title, text) in text_of(view) {
        printer.say_titled(title, &text);
    }
    if !view.system_prompt.is_empty() {
        printer.say("");
        printer.say(view.system_prompt);
    }
}
