//! Hosts a team in this process: the daemon's start, as `up` and `run` need it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{
    context::Context,
    failure::{Code, Failure},
};
use crate::{
    agent::Office,
    base::{Stop, thread::Thread},
    daemon::{DownHow, Events, How, Instance, SignalWatch, StartError, Supervisor, watch_signals},
    store::{StoreError, TeamFile},
};

/// A daemon that is ready to run in this process.
pub struct Host {
    office: Arc<Office>,
    supervisor: Supervisor,
    events: Events,
    interrupted: Arc<AtomicBool>,
    signals: SignalWatch,
}

/// Lets `provider` think for everybody in `team`, where one is named.
pub fn let_think(team: TeamFile, provider: Option<&str>) -> Result<TeamFile, Failure> {
    let mut team = team;
    if let Some(provider) = provider {
        team.team.let_think(provider).map_err(Failure::usage)?;
    }
    Ok(team)
}

impl Host {
    /// Takes the folder for `team`; notes for a person come with it.
    pub fn new(context: &Context, team: TeamFile) -> Result<(Self, Vec<String>), Failure> {
        let folder = context.make_folder()?;
        let (events, receiver) = Events::new();
        let told = events.clone();
        let path = team.path.display().to_string();
        let changed = Arc::new(move || told.status());
        let instance = Instance::take(folder, team, context.clock().clone(), changed);
        let instance = instance.map_err(|why| match why {
            StartError::Faults(faults) => {
                let lines: Vec<String> =
                    faults.iter().map(|fault| format!("{path}:{fault}")).collect();
                Failure::usage(lines.join("\n"))
            }
            why => why.into(),
        })?;
        let (notes, office) = (instance.notes.clone(), Arc::clone(&instance.office));
        let supervisor = Supervisor::new(instance, events.clone(), receiver)?;
        let interrupted = Arc::new(AtomicBool::new(false));
        let (told, flag) = (events.clone(), Arc::clone(&interrupted));
        let signals = watch_signals(move |number| {
            flag.store(true, Ordering::SeqCst);
            told.signal(number);
        });
        let signals =
            signals.map_err(|why| Failure::failed(format!("watch for signals: {why}")))?;
        Ok((Self { office, supervisor, events, interrupted, signals }, notes))
    }

    /// What the team shares.
    pub fn office(&self) -> &Office {
        &self.office
    }

    /// Hosts the team on this thread until it ends.
    pub fn run(self, ready: impl FnOnce(&Instance)) -> Result<Code, Failure> {
        code_of(self.supervisor.run(ready))
    }

    /// Hosts the team on a thread beside this one; `stop` is raised when it has ended.
    pub fn run_beside(self, stop: Stop) -> Result<Beside, Failure> {
        let Self { office, supervisor, events, interrupted, signals } = self;
        let body = move || {
            let how = supervisor.run(|_| {});
            stop.request(crate::base::Haste::Now);
            how
        };
        let thread = Thread::start("supervisor", body)
            .map_err(|why| Failure::failed(format!("start the supervisor: {why}")))?;
        Ok(Beside { office, thread, events, interrupted, _signals: signals })
    }
}

/// A daemon that runs on another thread of this process.
pub struct Beside {
    office: Arc<Office>,
    thread: Thread<Result<How, StoreError>>,
    events: Events,
    interrupted: Arc<AtomicBool>,
    _signals: SignalWatch,
}

impl Beside {
    /// Ends it in order. Gives the code of a signal where one came, and says where something was
    /// refused because nobody was here.
    pub fn end(self) -> Result<Code, Failure> {
        self.events.down(DownHow::Gracefully);
        let how = self.thread.join().map_err(Failure::failed)?;
        let code = code_of(how)?;
        let interrupted = self.interrupted.load(Ordering::SeqCst);
        Ok(match (interrupted, self.office.has_refused()) {
            (true, _) => Code::Interrupted,
            (false, true) => Code::Needed,
            (false, false) => code,
        })
    }
}

fn code_of(how: Result<How, StoreError>) -> Result<Code, Failure> {
    match how? {
        How::Clean => Ok(Code::Ok),
        How::Forced => Ok(Code::Interrupted),
        How::Lost(why) => Err(Failure::failed(format!("stopped: {why}"))),
    }
}
