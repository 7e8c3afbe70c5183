//! `up`: hosts a team, in the foreground or in the background.

use std::{ffi::OsString, path::Path, sync::Arc, time::Duration};

use super::{
    args::Up,
    attach::Desk,
    context::Context,
    failure::{Code, Failure},
    host::{Host, let_think},
    progress::Progress,
    render::Printer,
};
use crate::{
    base::{
        Interrupted, Scope,
        detached::{Detached, leave_terminal},
        text::shorten,
    },
    store::{Store, TeamFile, TeamStatus},
};

/// Set in the process that goes on in the background.
const DETACHED: &str = "--in-background";
/// How often to look whether the new daemon is up.
const LOOK: Duration = Duration::from_millis(20);
/// How long a start may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Hosts a team.
pub fn up(context: &Context, args: &Up, printer: &mut Printer) -> Result<Code, Failure> {
    let team = let_think(context.team(args.team.as_deref())?, args.provider.as_deref())?;
    if args.detach {
        return detach(context, args, &team, printer);
    }
    if args.in_background {
        leave_terminal();
    }
    let (host, notes) = Host::new(context, team.clone())?;
    for note in notes {
        printer.note(&note);
    }
    let store = context.store_of(context.make_folder()?)?;
    let bus = store.unsealed_bus(Arc::new((&team.team).into()));
    let _progress = Progress::start(context, &store, &bus)?;
    let _desk = Desk::start(context, &team)?;
    let (name, count) = (team.team.name.clone(), team.team.teammates.len());
    let code = host.run(|_| {
        printer.note(&format!(
            "up: team {name} with {count} teammates; Ctrl-C or `postroom down` ends it"
        ));
    })?;
    printer.note("down");
    Ok(code)
}

fn detach(
    context: &Context,
    args: &Up,
    team: &TeamFile,
    printer: &mut Printer,
) -> Result<Code, Failure> {
    let folder = context.make_folder()?;
    let store = context.store_of(folder)?;
    let file = team.path.clone().into_os_string();
    let mailbox = context.folder().into_os_string();
    let mut arguments: Vec<OsString> =
        vec!["--mailbox".into(), mailbox, "up".into(), file, DETACHED.into()];
    if let Some(provider) = &args.provider {
        arguments.extend(["--provider".into(), provider.into()]);
    }
    store.state().remove("daemon.log")?;
    let output = store.state().make_file("daemon.log")?;
    let started = Detached::start(&arguments, context.workspace(), output);
    let mut daemon = started.map_err(|why| Failure::failed(format!("start a daemon: {why}")))?;
    let scope = Scope::plain(context.clock().clone());
    let until = context.clock().now().after(PATIENCE);
    loop {
        if is_ready(&store, daemon.id())? {
            let (name, pid) = (&team.team.name, daemon.id());
            printer.note(&format!("up: team {name}, process {pid}; `postroom down` ends it"));
            return Ok(Code::Ok);
        }
        let ended = daemon.ended().map_err(|why| Failure::failed(why.to_string()))?;
        if let Some(code) = ended {
            return Err(failure_of(code, &store));
        }
        let now = context.clock().now();
        if now >= until {
            return Err(Failure::failed("the daemon is still starting; see `postroom status`"));
        }
        match scope.wait::<()>(Some(now.after(LOOK)), || None) {
            Ok(()) | Err(Interrupted::Late | Interrupted::Interrupt) => {}
            Err(Interrupted::Stopping) => {
                return Err(Failure { code: Code::Interrupted, text: "interrupted".to_owned() });
            }
        }
    }
}

fn is_ready(store: &Store, pid: u32) -> Result<bool, Failure> {
    let status = TeamStatus::read(store)?;
    Ok(status.is_some_and(|status| status.pid == pid && status.ready))
}

/// What a daemon that did not come up has said.
fn failure_of(code: i32, store: &Store) -> Failure {
    let log = store.state().read("daemon.log").ok().flatten().unwrap_or_default();
    let text = shorten(String::from_utf8_lossy(&log).trim(), 2_000);
    let text = text.strip_prefix("postroom: ").unwrap_or(&text).to_owned();
    let code = match code {
        2 => Code::Usage,
        4 => Code::Held,
        _ => Code::Failed,
    };
    Failure { code, text }
}

/// Whether two paths name one file.
pub fn is_same_file(one: &Path, other: &str) -> bool {
    one == Path::new(other)
}
