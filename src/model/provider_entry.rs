//! Who thinks for a team, as its file says: a kind, and how it is reached.

use std::{collections::BTreeMap, time::Duration};

use jsonc_parser::ast::{Object, Value};

use super::{Placed, Preset, jsonc::Reader};
use crate::base::text::{headline, listed, nearest};

/// A kind of provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// No model: carries out lines.
    Clerk,
    /// Anthropic's Messages API.
    Anthropic,
    /// Chat completions of OpenAI, or of a server that speaks like it.
    OpenAi,
    /// A program.
    Command,
}

impl ProviderKind {
    /// The words for them.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        ("clerk", Self::Clerk),
        ("anthropic", Self::Anthropic),
        ("openai", Self::OpenAi),
        ("command", Self::Command),
    ];

    /// The variable that holds the key, unless an entry says otherwise.
    pub fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::Clerk | Self::Command => None,
        }
    }
}

/// A provider as a team file describes it; what is absent is the kind's default.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderEntry {
    /// Which kind.
    pub kind: ProviderKind,
    /// The model.
    pub model: Option<String>,
    /// The model that is asked after repeated overload.
    pub fallback_model: Option<String>,
    /// The variable that holds the key.
    pub api_key_env: Option<String>,
    /// The server's address.
    pub base_url: Option<String>,
    /// The most tokens of one answer.
    pub max_tokens: Option<u32>,
    /// With how many tokens it thinks before it answers.
    pub thinking_tokens: Option<u32>,
    /// At how many tokens a conversation is shortened.
    pub compact_at: Option<u32>,
    /// How freely the model chooses its words.
    pub temperature: Option<f64>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Which known agent program it is, where it is one: then `command` is the program and the first
    /// of its arguments.
    pub preset: Option<Preset>,
    /// Whether the program reads the work's text and writes the answer's, and nothing else.
    pub is_text: bool,
    /// How long a turn of the program may take.
    pub timeout: Duration,
}

impl ProviderEntry {
    /// One of a kind, with nothing said about it.
    pub fn of(kind: ProviderKind) -> Self {
        Self {
            kind,
            model: None,
            fallback_model: None,
            api_key_env: None,
            base_url: None,
            max_tokens: None,
            thinking_tokens: None,
            compact_at: None,
            temperature: None,
            command: Vec::new(),
            preset: None,
            is_text: false,
            timeout: Duration::from_mins(10),
        }
    }

    /// One of kind command, as far as a known agent program says what it is.
    fn of_preset(preset: Option<Preset>) -> Self {
        let plain = Self::of(ProviderKind::Command);
        match preset {
            // A turn of such a program is a whole piece of work.
            Some(_) => Self { preset, timeout: Duration::from_hours(1), ..plain },
            None => plain,
        }
    }
}

/// The keys of a provider.
pub const PROVIDER_KEYS: &[&str] = &[
    "kind",
    "model",
    "fallback_model",
    "api_key_env",
    "base_url",
    "max_tokens",
    "thinking_tokens",
    "compact_at",
    "temperature",
    "command",
    "preset",
    "io",
    "timeout_s",
];
const IO: &[(&str, bool)] = &[("json", false), ("text", true)];

/// The providers that are always there, by the names of their kinds; `command` needs a program.
pub fn built_in_providers() -> BTreeMap<String, ProviderEntry> {
    let named = ProviderKind::WORDS.iter().filter(|(_, kind)| *kind != ProviderKind::Command);
    named.map(|(name, kind)| ((*name).to_owned(), ProviderEntry::of(*kind))).collect()
}

impl<'a> Reader<'a> {
    /// All providers of a team file, with those that are always there.
    pub fn providers(&mut self, root: &Object<'a>) -> BTreeMap<String, ProviderEntry> {
        let mut providers = built_in_providers();
        let Some(Value::Object(entries)) = self.wanted(root, "providers", "an object") else {
            return providers;
        };
        for entry in &entries.properties {
            let Value::Object(fields) = &entry.value else {
                self.fault(&entry.value, "a provider is an object, such as {\"kind\": \"openai\"}");
                continue;
            };
            let name = entry.name.as_str().to_owned();
            if let Some(read) = self.provider(fields, &name) {
                providers.insert(name, read);
            }
        }
        providers
    }

    fn provider(&mut self, fields: &Object<'a>, name: &str) -> Option<ProviderEntry> {
        self.check_keys(fields, "a provider", PROVIDER_KEYS, &[]);
        // A name that is a kind's needs no kind.
        let implied = ProviderKind::WORDS.iter().find(|(word, _)| *word == name);
        let preset = self.choice(fields, "preset", Preset::WORDS);
        let kind = match fields.get("kind") {
            Some(_) => self.choice(fields, "kind", ProviderKind::WORDS)?,
            None if fields.get("preset").is_some() => ProviderKind::Command,
            None => match implied {
                Some((_, kind)) => *kind,
                None => {
                    let kinds = listed(ProviderKind::WORDS.iter().map(|(word, _)| *word));
                    self.fault(fields, &format!("a provider needs \"kind\", one of {kinds}"));
                    return None;
                }
            },
        };
        if let (Some(field), true) = (fields.get("preset"), kind != ProviderKind::Command) {
            self.fault(&field.value, "\"preset\" belongs to a provider of kind command");
        }
        let plain = match kind {
            ProviderKind::Command => ProviderEntry::of_preset(preset),
            ProviderKind::Clerk | ProviderKind::Anthropic | ProviderKind::OpenAi => {
                ProviderEntry::of(kind)
            }
        };
        let mut text = |key| self.string(fields, key).map(|it| it.value);
        let mut entry = ProviderEntry {
            model: text("model"),
            fallback_model: text("fallback_model"),
            api_key_env: text("api_key_env"),
            base_url: text("base_url"),
            ..plain
        };
        entry.max_tokens = self.count(fields, "max_tokens");
        entry.thinking_tokens = self.count(fields, "thinking_tokens");
        entry.compact_at = self.count(fields, "compact_at");
        entry.temperature = self.temperature(fields);
        entry.is_text = self.choice(fields, "io", IO).unwrap_or_default();
        if let Some(seconds) = self.number(fields, "timeout_s") {
            entry.timeout = Duration::from_secs(seconds.value.max(1));
        }
        entry.command = self.command(fields);
        self.check_places(fields, name, &entry);
        self.check_command(fields, &entry);
        Some(entry)
    }

    fn check_command(&mut self, fields: &Object<'a>, entry: &ProviderEntry) {
        let is_known = fields.get("preset").is_some();
        if entry.kind == ProviderKind::Command && entry.command.is_empty() && !is_known {
            let why = "a provider of kind command needs \"command\", such as [\"./think.py\"], or a \
                       \"preset\"";
            self.fault(fields, why);
        }
        if let (Some(field), true) = (fields.get("io"), is_known) {
            self.fault(
                &field.value,
                "a \"preset\" has its own way to read and write; leave out \"io\"",
            );
        }
    }

    /// What a provider says of where it is and where its key lies, as far as it can be checked here.
    fn check_places(&mut self, fields: &Object<'a>, name: &str, entry: &ProviderEntry) {
        let is_address = |it: &str| it.starts_with("http://") || it.starts_with("https://");
        if entry.base_url.as_deref().is_some_and(|it| !is_address(it.trim())) {
            let why = "\"base_url\" is an address such as http://localhost:11434/v1";
            self.fault_of(fields, "base_url", why);
        }
        let is_letter = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let is_variable = |it: &str| it.chars().all(is_letter) && !it.is_empty();
        if entry.api_key_env.as_deref().is_some_and(|it| !is_variable(it)) {
            let why = "\"api_key_env\" names the variable that holds the key, such as MY_API_KEY, \
                       never the key";
            self.fault_of(fields, "api_key_env", why);
        }
        let own = ProviderKind::WORDS.iter().find(|(word, _)| *word == name);
        if own.is_some_and(|(_, kind)| *kind != entry.kind) {
            let why = format!("the provider {name} is of its own kind; give this one another name");
            self.fault_of(fields, "kind", &why);
        }
    }

    fn fault_of(&mut self, fields: &Object<'a>, key: &str, why: &str) {
        if let Some(field) = fields.get(key) {
            self.fault(&field.value, why);
        }
    }

    fn count(&mut self, fields: &Object<'a>, key: &str) -> Option<u32> {
        let number = self.number(fields, key)?;
        let small = u32::try_from(number.value).ok().filter(|it| *it > 0);
        if small.is_none() {
            self.fault_at(number.place, format!("{key:?} has to be a whole number from 1"));
        }
        small
    }

    fn temperature(&mut self, fields: &Object<'a>) -> Option<f64> {
        let value = &fields.get("temperature")?.value;
        let number = value.as_number_lit().and_then(|it| it.value.parse().ok());
        let fitting = number.filter(|it| (0.0..=2.0).contains(it));
        if fitting.is_none() {
            self.fault(value, "\"temperature\" has to be a number from 0 to 2");
        }
        fitting
    }

    fn command(&mut self, fields: &Object<'a>) -> Vec<String> {
        match fields.get("command").map(|it| &it.value) {
            None => Vec::new(),
            Some(Value::StringLit(program)) => vec![program.value.to_string()],
            Some(Value::Array(words)) => {
                let texts = words.elements.iter().map(|it| it.as_string_lit());
                let texts: Option<Vec<String>> =
                    texts.map(|it| it.map(|text| text.value.to_string())).collect();
                if texts.is_none() {
                    self.fault(words, "\"command\" lists a program and its arguments");
                }
                texts.unwrap_or_default()
            }
            Some(other) => {
                self.fault(other, "\"command\" lists a program and its arguments");
                Vec::new()
            }
        }
    }

    /// The provider that `provider` of an object names.
    pub fn known_provider(
        &mut self,
        fields: &Object<'a>,
        known: &BTreeMap<String, ProviderEntry>,
    ) -> Option<String> {
        let Placed { place, value } = self.string(fields, "provider")?;
        if known.contains_key(&value) {
            return Some(value);
        }
        self.fault_at(place, unknown_provider(&value, known.keys()));
        None
    }
}

/// What is told of a name that is no provider's.
pub fn unknown_provider<'n>(
    given: &str,
    known: impl Iterator<Item = &'n String> + Clone,
) -> String {
    let likely = nearest(given, known.clone().map(String::as_str));
    let hint = likely.map(|it| format!("; did you mean {it}?")).unwrap_or_default();
    format!(
        "no provider is called {:?}{hint}; there are {}, and \"providers\" may define more",
        headline(given, 80),
        listed(known)
    )
}
