//! What a teammate is told about itself, in one place: who it is, with whom it works, what it may do,
//! how mail comes, and what the workspace says to agents. It stays the same for a whole life, so that
//! a vendor can keep it.

use std::{collections::BTreeSet, fmt::Write, io::Read, path::Path};

use crate::{
    base::text::listed,
    model::{
        AgentName, AgentType, PermissionMode, Preset, TOOL_NAMES, TOOLS_TO_COME, Team, Teammate,
        TypeName,
    },
    provider::{FRAMES_EXPLAINED, PROGRAMS_EXPLAINED},
    tools::Workspace,
};

/// Files of a workspace that speak to agents.
const NOTES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// The most of such a file that is taken in, in bytes.
const MOST_NOTES: u64 = 32 * 1024;

/// What `name` is told.
pub fn system_prompt(team: &Team, name: &AgentName, teammate: &Teammate, notes: &str) -> String {
    let mut parts = vec![who(team, name, teammate)];
    parts.extend(team.type_of(name).map(|it| it.system_prompt.clone()));
    parts.push(teammate.system_prompt.clone());
    parts.extend(script(team, name, teammate));
    parts.push(roster(team, name));
    match team.program_of(name) {
        Some(preset) => parts.push(of_program(team, name, teammate, preset)),
        None => {
            parts.push(rights(team, name, teammate));
            parts.push(protocols());
            parts.push(notes.to_owned());
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.join("\n\n")
}

/// What a teammate of this name is told, or a subagent of this type that the lead calls; none where
/// there is neither. `workspace` is the folder that the team works on.
pub fn prompt_of(team: &Team, name: &str, workspace: &Path) -> Option<String> {
    let notes = Workspace::open(workspace).map(|it| notes(&it)).unwrap_or_default();
    let of = |name: &AgentName| {
        let teammate = team.teammates.get(name)?;
        Some(system_prompt(team, name, teammate, &notes))
    };
    if let Some(told) = AgentName::new(name).ok().and_then(|name| of(&name)) {
        return Some(told);
    }
    let it = team.types.get(&TypeName::new(name).ok()?)?;
    let (lead, of_lead) = (team.teammates.get(&team.lead)?, team.type_of(&team.lead)?);
    let mode = mode_of(it, mode_of(of_lead, lead.permission_mode));
    let tools = TOOL_NAMES.iter().filter(|tool| !TOOLS_TO_COME.contains(tool));
    let tools = tools.copied().filter(|tool| of_lead.lets(tool) && it.lets(tool));
    Some(with_type(&of(&team.lead)?, it, mode, tools))
}

/// What a subagent of type `it` is told by a caller who was told `above`: that, what its type says, and
/// what is left to it of what was said above.
pub fn with_type<'t>(
    above: &str,
    it: &AgentType,
    mode: PermissionMode,
    tools: impl Iterator<Item = &'t str>,
) -> String {
    let tools: BTreeSet<&str> = tools.collect();
    let tools = if tools.is_empty() { "none".to_owned() } else { listed(tools) };
    let left = format!(
        "You work as a subagent of type {} now. What is said above of tools and rights holds for you \
         only as far as you have them: your tools are {tools}. {} Nobody writes to you, and what you \
         say last goes to whoever called you.",
        it.name,
        said_of(mode)
    );
    let parts = [above, it.system_prompt.as_str(), &left];
    let told: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    told.join("\n\n")
}

/// The mode in which a bearer of a type works where its caller has this one.
fn mode_of(it: &AgentType, above: PermissionMode) -> PermissionMode {
    it.permission_mode.map_or(above, |mode| mode.min(above))
}

fn said_of(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Plan => "You can read and write messages; you can't change anything.",
        PermissionMode::Default => "What changes something is asked for first, and may be refused.",
        PermissionMode::Auto => {
            "You may change files of the workspace and run commands; what destroys is asked for."
        }
        PermissionMode::Bypass => "You may change files of the workspace and run commands.",
    }
}

fn who(team: &Team, name: &AgentName, teammate: &Teammate) -> String {
    let leads = if team.lead == *name { " You lead it." } else { "" };
    let mut told = format!("You are {name}, a teammate of the team {}.{leads}", team.name);
    if !teammate.role.is_empty() {
        let _ = write!(told, "\nYour part: {}", teammate.role);
    }
    told
}

/// A script is the clerk's; a model that stands in for one is told what it says.
fn script(team: &Team, name: &AgentName, teammate: &Teammate) -> Option<String> {
    let script = teammate.script.as_ref().filter(|_| team.provider_of(name) != "clerk")?;
    Some(format!(
        "At each request do what these lines say, one after the other; `{{output}}` is what came of \
         the lines before, a line that begins with `-` may fail, `ask NAME: TEXT` is team_ask, `run` \
         is bash, `delegate` is subagent, `answer` is what you answer:\n{}",
        script.value
    ))
}

fn roster(team: &Team, name: &AgentName) -> String {
    let mut told = String::from("The team:");
    for (other, it) in team.teammates.iter().filter(|(other, _)| *other != name) {
        let leads = if team.lead == *other { ", who leads" } else { "" };
        let role = if it.role.is_empty() { String::new() } else { format!(": {}", it.role) };
        let _ = write!(told, "\n- {other}{leads}{role}");
    }
    let outside: Vec<&AgentName> = team.outside.iter().collect();
    if !outside.is_empty() {
        let _ = write!(told, "\n- outside: {}", listed(outside));
    }
    told.push_str("\n- user: the person you all work for");
    told
}

/// What a teammate is told whose program judges by itself, reads what the workspace says to agents by
/// itself, and has none of our tools.
fn of_program(team: &Team, name: &AgentName, teammate: &Teammate, preset: Preset) -> String {
    let plan = if is_planned(team, name, teammate) {
        " Before you change anything in a piece of work, your plan has to be approved."
    } else {
        ""
    };
    format!(
        "What you may do is judged by {}, in its mode for {}.{plan} Where something is refused, do not \
         look for a way round it, say what you would need.\n\n{FRAMES_EXPLAINED} \
         {PROGRAMS_EXPLAINED}",
        preset.as_str(),
        teammate.permission_mode
    )
}

fn is_planned(team: &Team, name: &AgentName, teammate: &Teammate) -> bool {
    teammate.plan_required || team.type_of(name).is_some_and(|it| it.plan_required)
}

fn rights(team: &Team, name: &AgentName, teammate: &Teammate) -> String {
    let own = teammate.permission_mode;
    let mode = said_of(team.type_of(name).map_or(own, |it| mode_of(it, own)));
    let plan = if is_planned(team, name, teammate) {
        " Before you change anything in a piece of work, submit_plan has to be approved."
    } else {
        ""
    };
    format!(
        "{mode}{plan} A refused call says why: do not look for a way round it, say what you would \
         need."
    )
}

fn protocols() -> String {
    format!(
        "{FRAMES_EXPLAINED}\n\nWhat you say last in a piece of work is the answer to whoever asked. Use \
         team_ask where you need an answer to go on, team_send where you do not, task_create for \
         work that somebody else can take. Who asks for a plan to be approved is answered with \
         decide_plan. To stop is not your decision: it is done for you."
    )
}

/// What the workspace says to agents. What can't be read says nothing.
pub fn notes(workspace: &Workspace) -> String {
    let mut told = Vec::new();
    for name in NOTES {
        let Ok(opened) = workspace.file(name) else { continue };
        let mut bytes = Vec::new();
        if (&opened.file).take(MOST_NOTES).read_to_end(&mut bytes).is_err() || bytes.is_empty() {
            continue;
        }
        let text = String::from_utf8_lossy(&bytes);
        told.push(format!("From {name} of the workspace:\n\n{}", text.trim()));
    }
    told.join("\n\n")
}
