//! `check`: all faults of a team file at once, and of the mailbox folder.

use std::{env, path::Path};

use super::{
    args::Check,
    context::Context,
    failure::{Code, Failure},
    render::Printer,
};
use crate::{
    agent::{check_scripts, notes_on_programs},
    model::{AgentName, Team},
    provider::is_there,
    store::{Store, read_team_file, team_files},
};

/// Checks.
pub fn check(context: &Context, args: &Check, printer: &mut Printer) -> Result<Code, Failure> {
    let paths = match &args.team {
        Some(given) => vec![context.team_path(Some(given))?],
        None => team_files(context.workspace()),
    };
    if paths.is_empty() {
        return Err(context
            .team_path(None)
            .err()
            .unwrap_or_else(|| Failure::usage("no team file")));
    }
    let mut code = Code::Ok;
    for path in paths {
        match read_team_file(&path) {
            Ok(file) => {
                let faults = check_scripts(&file.team);
                for fault in &faults {
                    printer.complain(&format!("{}:{fault}", path.display()));
                }
                if faults.is_empty() {
                    printer.say(&format!("{}: fine, {}", path.display(), counted(&file.team)));
                } else {
                    code = Code::Usage;
                }
                let programs = notes_on_programs(&file.team);
                let missing = missing_programs(&file.team, context.workspace());
                let reports = file.team.reports.iter().map(ToString::to_string);
                for note in reports.chain(programs).chain(missing) {
                    printer.note(&note);
                }
                if let Ok(store) = context.store() {
                    code = code.or(check_folder(&store, &file.team, printer));
                }
            }
            Err(why) => {
                printer.complain(&why.to_string());
                code = Code::Usage;
            }
        }
    }
    Ok(code)
}

/// The agent programs of a team that are not there.
fn missing_programs(team: &Team, workspace: &Path) -> Vec<String> {
    let path = env::var_os("PATH");
    let known = team.providers.iter().filter_map(|(name, entry)| {
        let preset = entry.preset?;
        let program = entry.command.first().map_or(preset.as_str(), String::as_str);
        (!is_there(program, workspace, path.as_ref()))
            .then(|| format!("provider {name}: the program {program} is not there; `up` needs it"))
    });
    known.collect()
}

fn counted(team: &Team) -> String {
    match team.teammates.len() {
        1 => "1 teammate".to_owned(),
        many => format!("{many} teammates led by {}", team.lead),
    }
}

/// Looks at the mailboxes and lives of a team's members.
fn check_folder(store: &Store, team: &Team, printer: &mut Printer) -> Code {
    let mut code = Code::Ok;
    let mut complain = |name: &AgentName, why: String| {
        printer.complain(&format!("{name}: {why}"));
        code = Code::Failed;
    };
    for name in team.members() {
        if let Err(why) = store.mailbox_end(&name) {
            complain(&name, why.to_string());
        }
    }
    for name in team.teammates.keys() {
        if let Err(why) = store.lives().open(name) {
            complain(name, why.to_string());
        }
    }
    code
}
