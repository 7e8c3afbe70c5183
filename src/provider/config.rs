//! What a provider is made of, as plain data, and the making.

use std::{collections::BTreeMap, ffi::OsString, fmt, path::PathBuf, sync::Arc, time::Duration};

use super::{
    Patience, Provider, Retrying, Secret, Ways,
    anthropic::Anthropic,
    cli::{Cli, not_there},
    command::Command,
    openai::OpenAi,
    program::Program,
};
use crate::{base::Clock, model::Preset};

/// At how many tokens a conversation is shortened, where nothing is said about it: the models of
/// today read 128,000 and more.
const COMPACT_AT: u64 = 100_000;
const ANTHROPIC: &str = "https://api.anthropic.com";
const OPENAI: &str = "https://api.openai.com/v1";

/// Who thinks, and how it is reached.
#[derive(Clone)]
pub enum ProviderConfig {
    /// Anthropic's Messages API.
    Anthropic {
        /// The server, where it is not Anthropic's own.
        base_url: Option<String>,
        /// The key.
        key: Secret,
        /// What is asked for.
        settings: Settings,
    },
    /// Chat completions of OpenAI, or of a server that speaks like it.
    OpenAi {
        /// The address that `/chat/completions` is put behind, where it is not OpenAI's own.
        base_url: Option<String>,
        /// The key; a server on this machine needs none.
        key: Option<Secret>,
        /// What is asked for.
        settings: Settings,
    },
    /// A program that is started for each turn.
    Command {
        /// The program and its arguments.
        argv: Vec<OsString>,
        /// The name that prices know it by, where it has one.
        model: Option<String>,
        /// What it reads and writes.
        io: CommandIo,
        /// Where it starts.
        cwd: PathBuf,
        /// Its whole environment.
        env: BTreeMap<OsString, OsString>,
        /// How long it may take.
        timeout: Duration,
        /// At how many tokens it is asked to sum up a conversation, if at all.
        compact_at: Option<u64>,
        /// The mailbox folder, by which its left-overs are found.
        folder: PathBuf,
    },
    /// An agent program, which owns its loop, its tools and its session.
    Cli {
        /// Which.
        preset: Preset,
        /// The program and its first arguments.
        argv: Vec<OsString>,
        /// The model, where it is not the program's own choice.
        model: Option<String>,
        /// Where it starts.
        cwd: PathBuf,
        /// Its whole environment.
        env: BTreeMap<OsString, OsString>,
        /// How long it may take.
        timeout: Duration,
        /// The mailbox folder, by which its left-overs are found.
        folder: PathBuf,
    },
}

impl fmt::Debug for ProviderConfig {
    /// Names what is reached and leaves out all that may hold a key.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, settings) = match self {
            Self::Anthropic { settings, .. } => ("Anthropic", settings),
            Self::OpenAi { settings, .. } => ("OpenAi", settings),
            Self::Command { argv, io, cwd, timeout, .. } => {
                let mut shown = out.debug_struct("Command");
                shown.field("program", &argv.first()).field("io", io);
                return shown.field("cwd", cwd).field("timeout", timeout).finish_non_exhaustive();
            }
            Self::Cli { preset, argv, model, cwd, timeout, .. } => {
                let mut shown = out.debug_struct("Cli");
                shown.field("preset", preset).field("program", &argv.first()).field("model", model);
                return shown.field("cwd", cwd).field("timeout", timeout).finish_non_exhaustive();
            }
        };
        out.debug_struct(name).field("settings", settings).finish_non_exhaustive()
    }
}

/// What a model is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The model.
    pub model: String,
    /// The model that is asked after repeated overload.
    pub fallback: Option<String>,
    /// The most tokens of one answer.
    pub max_tokens: Option<u32>,
    /// How freely it chooses its words.
    pub temperature: Option<f64>,
    /// Whether it thinks before it answers.
    pub thinking: Thinking,
    /// At how many tokens a conversation is shortened.
    pub compact_at: u64,
    /// How often and how long to try.
    pub patience: Patience,
}

impl Settings {
    /// `model` with nothing said about it.
    pub fn of(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            fallback: None,
            max_tokens: None,
            temperature: None,
            thinking: Thinking::Unset,
            compact_at: COMPACT_AT,
            patience: Patience::default(),
        }
    }
}

/// Whether a model thinks before it answers, in words that it hands back later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// As the model does by itself.
    Unset,
    /// As much as it finds right.
    Adaptive,
    /// With at most so many tokens.
    Budget(u32),
}

/// What a program for turns reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandIo {
    /// Conversation and tools as a JSON object in, an answer object out.
    Json,
    /// The text of the work in, the answer out; the exit code says whether it went well.
    Text,
}

/// Makes a provider that shares nothing with others.
pub fn open(config: &ProviderConfig, clock: &Clock) -> Result<Arc<dyn Provider>, String> {
    open_on(config, &Ways::new(clock.clone()))
}

/// Makes a provider that shares connections and limits with those that take the same of `ways`.
pub fn open_on(config: &ProviderConfig, ways: &Ways) -> Result<Arc<dyn Provider>, String> {
    let clock = ways.clock();
    match config {
        ProviderConfig::Anthropic { base_url, key, settings } => {
            if key.expose().is_empty() {
                return Err(
                    "there is no API key: set ANTHROPIC_API_KEY, or, where the provider has a \
                            base_url, name its key's variable in api_key_env"
                        .to_owned(),
                );
            }
            let base = base_url.as_deref().unwrap_or(ANTHROPIC);
            let make = |model: &str| {
                // Accept the address with or without its version.
                let base = trimmed(base).trim_end_matches("/v1");
                let wire = ways.to(&format!("{base}/v1/messages"), Some(key), model)?;
                Ok(Anthropic::new(wire, model, settings))
            };
            Ok(Arc::new(retrying(make, settings, clock)?))
        }
        ProviderConfig::OpenAi { base_url, key, settings } => {
            let base = base_url.as_deref().unwrap_or(OPENAI);
            if base == OPENAI && key.is_none() {
                return Err("there is no API key: set OPENAI_API_KEY".to_owned());
            }
            let make = |model: &str| {
                let url = format!("{}/chat/completions", trimmed(base));
                Ok(OpenAi::new(ways.to(&url, key.as_ref(), model)?, model, settings))
            };
            Ok(Arc::new(retrying(make, settings, clock)?))
        }
        ProviderConfig::Command { argv, model, io, cwd, env, timeout, compact_at, folder } => {
            if argv.is_empty() {
                return Err("the command names no program".to_owned());
            }
            Ok(Arc::new(Command {
                program: Program {
                    argv: argv.clone(),
                    cwd: cwd.clone(),
                    env: env.clone(),
                    timeout: *timeout,
                    folder: folder.clone(),
                    clock: clock.clone(),
                },
                model: model.clone(),
                io: *io,
                compact_at: *compact_at,
            }))
        }
        ProviderConfig::Cli { preset, argv, model, cwd, env, timeout, folder } => {
            let program = Program {
                argv: argv.clone(),
                cwd: cwd.clone(),
                env: env.clone(),
                timeout: *timeout,
                folder: folder.clone(),
                clock: clock.clone(),
            };
            if let Some(why) = not_there(*preset, &program) {
                return Err(why);
            }
            Ok(Arc::new(Cli::new(*preset, model.clone(), program)))
        }
    }
}

fn retrying<P: Provider>(
    make: impl Fn(&str) -> Result<P, String>,
    settings: &Settings,
    clock: &Clock,
) -> Result<Retrying<P>, String> {
    if settings.model.trim().is_empty() {
        return Err("\"model\" names no model".to_owned());
    }
    let fallback = settings.fallback.as_deref().map(&make).transpose()?;
    Ok(Retrying::new(make(&settings.model)?, fallback, settings.patience, clock.clone()))
}

fn trimmed(base: &str) -> &str {
    base.trim().trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(base_url: &str, key: &str, model: &str) -> String {
        let config = ProviderConfig::Anthropic {
            base_url: Some(base_url.to_owned()),
            key: Secret::new(key),
            settings: Settings::of(model),
        };
        assert!(!format!("{config:?}").contains("sk-"), "{config:?}");
        open(&config, &Clock::real()).err().unwrap_or_default()
    }

    #[test]
    fn an_environment_is_not_shown() {
        let config = ProviderConfig::Command {
            argv: ["think", "--key=sk-1"].map(OsString::from).to_vec(),
            model: None,
            io: CommandIo::Json,
            cwd: "/".into(),
            env: [("KEY".into(), "sk-2".into())].into(),
            timeout: Duration::from_secs(1),
            compact_at: None,
            folder: "/".into(),
        };
        let shown = format!("{config:?}");
        assert!(shown.contains("think") && !shown.contains("sk-"), "{shown}");
        assert!(open(&config, &Clock::real()).is_ok());
        let ProviderConfig::Command { argv, cwd, env, timeout, folder, .. } = config else {
            panic!("it is a command")
        };
        let (preset, model) = (Preset::Claude, None);
        let config = ProviderConfig::Cli { preset, argv, model, cwd, env, timeout, folder };
        let shown = format!("{config:?}");
        assert!(shown.contains("think") && !shown.contains("sk-"), "{shown}");
        assert!(open(&config, &Clock::real()).err().unwrap().contains("install claude"));
    }

    #[test]
    fn what_can_not_be_reached_is_said_at_once() {
        assert_eq!(why("https://api.anthropic.com/", "sk-1", "m"), "");
        assert_eq!(why("http://localhost:1/v1", "sk-1", "m"), "");
        assert!(why("https://x.org", "", "m").contains("ANTHROPIC_API_KEY"));
        assert!(why("https://x.org", "sk-1", " ").contains("model"));
        assert!(why("https://x.org", "sk-\u{1}", "m").contains("characters"));
        assert!(why("https://me:sk-2@x.org", "sk-1", "m").contains("apart"));
        for odd in ["", "x.org", "ftp://x.org", "http://", "/v1"] {
            assert!(why(odd, "sk-1", "m").contains("no address"), "{odd}");
        }
        let openai = |base_url: Option<&str>| {
            let base_url = base_url.map(str::to_owned);
            let settings = Settings::of("m");
            open(&ProviderConfig::OpenAi { base_url, key: None, settings }, &Clock::real()).err()
        };
        assert!(openai(None).unwrap().contains("OPENAI_API_KEY"));
        assert_eq!(openai(Some("http://localhost:11434/v1")), None);
    }
}
