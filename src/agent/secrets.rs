//! The keys of the daemon's environment, and what is told in their place.
//!
//! No command gets one, but an agent program its own. Whoever finds one all the same, as a command that reads the memory of its
//! parents may, finds it gone from what is told and written down.

use std::env;

use crate::{
    model::{Preset, ProviderKind, Team},
    provider::Secret,
};

/// The keys that the daemon was given.
pub struct Secrets(Vec<Secret>);

impl Secrets {
    /// The values of all variables that hold a key for `team`, and for any other.
    pub fn of(team: &Team) -> Self {
        let key = |name: &str| env::var(name).ok().map(Secret::new);
        let named = team.providers.values().filter_map(|entry| entry.api_key_env.as_deref());
        let usual = ProviderKind::WORDS.iter().filter_map(|(_, kind)| kind.key_variable());
        let of_programs = Preset::WORDS.iter().flat_map(|(_, preset)| preset.keys());
        let keys = named.filter_map(key).chain(usual.filter_map(key));
        let keys = keys.chain(of_programs.filter_map(key));
        let mut keys: Vec<Secret> = keys.filter(Secret::is_hidden).collect();
        // One may begin as another does: the longer one goes first, as a whole.
        keys.sort_by_key(|key| std::cmp::Reverse(key.expose().len()));
        Self(keys)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a key is in `text`.
    pub fn are_in(&self, text: &str) -> bool {
        self.0.iter().any(|key| text.contains(key.expose()))
    }

    /// `text` with a word in place of each key.
    pub fn hide(&self, text: String) -> String {
        self.0.iter().fold(text, |text, key| key.hide(&text))
    }
}
