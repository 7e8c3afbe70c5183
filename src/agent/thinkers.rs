//! Who thinks for whom: each provider of a team is opened once, so that all who share it share its
//! limits.

use std::{collections::BTreeMap, env, ffi::OsString, path::PathBuf, sync::Arc};

use parking_lot::Mutex;

use super::{Desk, mind::Mind};
use crate::{
    base::Clock,
    model::{AgentName, AgentType, Preset, ProviderEntry, ProviderKind, Team, Teammate},
    provider::{
        Clerk, CommandIo, Provider, ProviderConfig, Secret, Settings, Thinking, Ways, open_on,
    },
};

/// The model of Anthropic's where nothing else is said.
const ANTHROPIC_MODEL: &str = "claude-sonnet-4-5";
/// The model of OpenAI's where nothing else is said.
const OPENAI_MODEL: &str = "gpt-5-mini";
/// Variables that agent programs get beside those of commands: where they keep things, and how they
/// reach their servers.
const OF_PROGRAMS: [&str; 12] = [
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "ALL_PROXY",
    "NODE_EXTRA_CA_CERTS",
];

/// Somebody who thinks, and with what.
pub struct Thinker {
    /// With what.
    pub mind: Mind,
    /// Who is asked.
    pub provider: Arc<dyn Provider>,
}

/// The providers of a team, as far as they were asked for.
pub struct Thinkers {
    team: Arc<Team>,
    ways: Ways,
    /// Where programs start.
    workspace: PathBuf,
    /// The mailbox folder.
    folder: PathBuf,
    /// The environment of programs.
    env: BTreeMap<OsString, OsString>,
    made: Mutex<BTreeMap<String, Arc<dyn Provider>>>,
}

impl Thinkers {
    /// None yet.
    pub fn new(
        team: &Arc<Team>,
        clock: Clock,
        workspace: PathBuf,
        folder: PathBuf,
        env: BTreeMap<OsString, OsString>,
    ) -> Self {
        let ways = Ways::new(clock);
        Self { team: Arc::clone(team), ways, workspace, folder, env, made: Mutex::default() }
    }

    /// Who thinks for a teammate.
    pub fn of_teammate(&self, name: &AgentName, teammate: &Teammate) -> Result<Thinker, String> {
        let mind = Mind::of_teammate(&self.team, name, teammate);
        let provider = if self.entry(&mind)?.kind == ProviderKind::Clerk {
            clerk(name, teammate.script.as_ref().map(|script| script.value.clone()))?
        } else {
            self.opened(&mind)?
        };
        Ok(Thinker { mind, provider })
    }

    /// Who thinks for a subagent of type `it` that is called from `desk`.
    pub fn of_subagent(&self, it: &AgentType, desk: &Desk) -> Result<Thinker, String> {
        let mind = desk.mind.of_subagent(&self.team, it);
        let is_clerk = self.entry(&mind)?.kind == ProviderKind::Clerk;
        // One clerk thinks as another, whatever its model is called.
        let is_callers = mind == desk.mind || (is_clerk && mind.provider == desk.mind.provider);
        let provider = match (is_callers, is_clerk) {
            (true, _) => {
                desk.provider.for_subagents().unwrap_or_else(|| Arc::clone(&desk.provider))
            }
            (false, true) => clerk(&mind.whose, None)?,
            (false, false) => self.opened(&mind)?,
        };
        Ok(Thinker { mind, provider })
    }

    fn entry(&self, mind: &Mind) -> Result<ProviderEntry, String> {
        let entry = self.team.providers.get(&mind.provider);
        entry.cloned().ok_or_else(|| format!("no provider is called {:?}", mind.provider))
    }

    /// The provider for a mind; all who think alike share one.
    fn opened(&self, mind: &Mind) -> Result<Arc<dyn Provider>, String> {
        let entry = self.entry(mind)?;
        let entry = ProviderEntry { temperature: mind.temperature.or(entry.temperature), ..entry };
        let (name, model) = (&mind.provider, mind.model.clone());
        // A program knows in whose name it runs.
        let whose = Some(&mind.whose).filter(|_| entry.kind == ProviderKind::Command);
        let key = format!("{name} {model:?} {:?} {whose:?}", entry.temperature);
        let mut made = self.made.lock();
        if let Some(known) = made.get(&key) {
            return Ok(Arc::clone(known));
        }
        let config = match (entry.preset, whose) {
            (Some(preset), Some(whose)) => self.program(preset, &entry, model, whose)?,
            (None, Some(whose)) => self.command(&entry, model, whose),
            (_, None) => of_vendor(&entry, model)?,
        };
        let opened =
            open_on(&config, &self.ways).map_err(|why| format!("provider {name}: {why}"))?;
        made.insert(key, Arc::clone(&opened));
        Ok(opened)
    }

    fn program(
        &self,
        preset: Preset,
        entry: &ProviderEntry,
        model: Option<String>,
        whose: &AgentName,
    ) -> Result<ProviderConfig, String> {
        let mut argv: Vec<OsString> = entry.command.iter().map(OsString::from).collect();
        if argv.is_empty() {
            argv.push(preset.as_str().into());
        }
        let mut env = self.env_of(whose);
        let mut pass = |name: &str, value: Option<OsString>| {
            env.extend(value.map(|value| (OsString::from(name), value)));
        };
        // A key that is named is the only one.
        let is_named = entry.api_key_env.is_some();
        let is_wanted = |name: &&&str| !(is_named && preset.keys().any(|key| key == **name));
        for name in OF_PROGRAMS.iter().chain(preset.variables()).filter(is_wanted) {
            pass(name, env::var_os(name));
        }
        if let Some(named) = &entry.api_key_env {
            let key = key(entry)?.map(|key| OsString::from(key.expose()));
            pass(preset.key_variable().unwrap_or(named), key);
        }
        Ok(ProviderConfig::Cli {
            preset,
            argv,
            model: model.or_else(|| entry.model.clone()),
            cwd: self.workspace.clone(),
            env,
            timeout: entry.timeout,
            folder: self.folder.clone(),
        })
    }

    fn command(
        &self,
        entry: &ProviderEntry,
        model: Option<String>,
        whose: &AgentName,
    ) -> ProviderConfig {
        ProviderConfig::Command {
            argv: entry.command.iter().map(OsString::from).collect(),
            model: model.or_else(|| entry.model.clone()),
            io: if entry.is_text { CommandIo::Text } else { CommandIo::Json },
            cwd: self.workspace.clone(),
            env: self.env_of(whose),
            timeout: entry.timeout,
            compact_at: entry.compact_at.map(u64::from),
            folder: self.folder.clone(),
        }
    }

    /// The environment of programs that run in the name of `whose`.
    fn env_of(&self, whose: &AgentName) -> BTreeMap<OsString, OsString> {
        let mut env = self.env.clone();
        env.insert("POSTROOM_TEAMMATE".into(), whose.as_str().into());
        env
    }
}

/// What a vendor's model is asked with.
fn of_vendor(entry: &ProviderEntry, model: Option<String>) -> Result<ProviderConfig, String> {
    Ok(match entry.kind {
        ProviderKind::Clerk | ProviderKind::Command => {
            return Err("it is no model of a vendor's".to_owned());
        }
        ProviderKind::Anthropic => ProviderConfig::Anthropic {
            base_url: entry.base_url.clone().or_else(|| variable("ANTHROPIC_BASE_URL")),
            key: key(entry)?.unwrap_or_else(|| Secret::new("")),
            settings: settings(entry, model, "ANTHROPIC_MODEL", ANTHROPIC_MODEL),
        },
        ProviderKind::OpenAi => ProviderConfig::OpenAi {
            base_url: entry.base_url.clone().or_else(|| variable("OPENAI_BASE_URL")),
            key: key(entry)?,
            settings: settings(entry, model, "OPENAI_MODEL", OPENAI_MODEL),
        },
    })
}

fn clerk(name: &AgentName, script: Option<String>) -> Result<Arc<dyn Provider>, String> {
    let clerk = Clerk::new(name.clone(), script);
    Ok(Arc::new(clerk.map_err(|why| format!("the script of {name}: {why}"))?))
}

/// The key, from the variable that the entry names, else from the kind's own. What a team file says of
/// where its server is sends the vendor's key nowhere unless it names that key, too.
fn key(entry: &ProviderEntry) -> Result<Option<Secret>, String> {
    let secret = |name: &str| Some(Secret::new(variable(name)?).of_variable(name));
    match (&entry.api_key_env, entry.kind.key_variable()) {
        (Some(named), _) => match secret(named) {
            Some(key) => Ok(Some(key)),
            None => Err(format!("its key is not there: set {named} (`api_key_env`)")),
        },
        (None, Some(_)) if entry.base_url.is_some() => Ok(None),
        (None, Some(own)) => Ok(secret(own)),
        (None, None) => Ok(None),
    }
}

fn settings(
    entry: &ProviderEntry,
    model: Option<String>,
    named_by: &str,
    default: &str,
) -> Settings {
    let model = model.or_else(|| entry.model.clone()).or_else(|| variable(named_by));
    let plain = Settings::of(model.as_deref().unwrap_or(default));
    Settings {
        fallback: entry.fallback_model.clone(),
        max_tokens: entry.max_tokens,
        temperature: entry.temperature,
        thinking: entry.thinking_tokens.map_or(Thinking::Unset, Thinking::Budget),
        compact_at: entry.compact_at.map_or(plain.compact_at, u64::from),
        ..plain
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}
