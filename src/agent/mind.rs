//! With what somebody thinks, as the team file says it. A pure decision: nobody is asked for it.
//!
//! What a type does not say is its caller's, so a subagent's mind is made from that of whoever calls
//! it.

use crate::model::{AgentName, AgentType, Preset, ProviderKind, Team, Teammate};

/// Words for models that agent files of Claude Code use, and the models that they mean here.
const SHORT_NAMES: [(&str, &str); 3] =
    [("sonnet", "claude-sonnet-4-5"), ("opus", "claude-opus-4-5"), ("haiku", "claude-haiku-4-5")];

/// With what somebody thinks.
#[derive(Debug, Clone, PartialEq)]
pub struct Mind {
    /// The name of the provider's entry.
    pub provider: String,
    /// The model, where it is not the entry's.
    pub model: Option<String>,
    /// How freely it chooses its words, where that is not the entry's.
    pub temperature: Option<f64>,
    /// The teammate in whose name it thinks.
    pub whose: AgentName,
}

impl Mind {
    /// A teammate's: as its entry says, else as its type does.
    pub fn of_teammate(team: &Team, name: &AgentName, teammate: &Teammate) -> Self {
        let provider = team.provider_of(name);
        let it = team.type_of(name);
        let known = |word: &String| model_of(team, provider, word);
        let own = teammate.model.as_ref().and_then(known);
        // A type's model is one of its own provider's.
        let is_of_type = |it: &&AgentType| it.provider.as_ref().is_none_or(|own| own == provider);
        let of_type = it.filter(is_of_type).and_then(|it| it.model.as_ref()).and_then(known);
        Self {
            provider: provider.to_owned(),
            model: own.or(of_type),
            temperature: it.and_then(|it| it.temperature),
            whose: name.clone(),
        }
    }

    /// That of a subagent of type `it`, called by whoever thinks with this one.
    #[must_use]
    pub fn of_subagent(&self, team: &Team, it: &AgentType) -> Self {
        let caller = match &it.provider {
            // Another provider does not know the caller's model.
            Some(other) if *other != self.provider => {
                let (provider, whose) = (other.clone(), self.whose.clone());
                Self { provider, model: None, temperature: None, whose }
            }
            Some(_) | None => self.clone(),
        };
        let model = it.model.as_ref().and_then(|word| model_of(team, &caller.provider, word));
        Self {
            model: model.or(caller.model),
            temperature: it.temperature.or(caller.temperature),
            ..caller
        }
    }
}

/// The model of a provider's that a word names; none where the caller's is meant, or a model that the
/// provider has not.
fn model_of(team: &Team, provider: &str, word: &str) -> Option<String> {
    if word == "inherit" {
        return None;
    }
    let Some((_, whole)) = SHORT_NAMES.iter().find(|(short, _)| *short == word) else {
        return Some(word.to_owned());
    };
    let entry = team.providers.get(provider)?;
    match (entry.kind, entry.preset) {
        (ProviderKind::Anthropic, _) => Some((*whole).to_owned()),
        (_, Some(Preset::Claude)) => Some(word.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use expect_test::expect;

    use super::*;
    use crate::model::read_team;

    #[test]
    fn what_a_type_does_not_say_is_its_callers() {
        let text = r#"{
            "providers": {"code": {"preset": "claude"}},
            "teammates": {
                "lead": {"provider": "anthropic", "model": "big"},
                "clerk": {}, "coder": {"provider": "code"},
                "tuned": {"type": "asks-openai", "provider": "anthropic"}
            },
            "agents": {
                "small": {"model": "small"}, "short": {"model": "sonnet"},
                "asks-openai": {"provider": "openai", "model": "gpt", "temperature": 0.7},
                "same": {"provider": "anthropic"}
            }
        }"#;
        let team = read_team(text, "t", &|_| Ok(Vec::new())).unwrap();
        let shown = |mind: &Mind| {
            let model = mind.model.as_deref().unwrap_or("-");
            let temperature = mind.temperature.map_or("-".to_owned(), |it| it.to_string());
            format!("{} {model} {temperature}", mind.provider)
        };
        let mut told = String::new();
        for (name, teammate) in &team.teammates {
            let mind = Mind::of_teammate(&team, name, teammate);
            writeln!(told, "{name}: {}", shown(&mind)).unwrap();
            for of in ["explore", "analyst", "small", "short", "asks-openai", "same"] {
                let it = team.spawnable(of).unwrap();
                writeln!(told, "    {of}: {}", shown(&mind.of_subagent(&team, it))).unwrap();
            }
        }
        expect![[r#"
            clerk: clerk - -
                explore: clerk - -
                analyst: clerk - 0.3
                small: clerk small -
                short: clerk - -
                asks-openai: openai gpt 0.7
                same: anthropic - -
            coder: code - -
                explore: code - -
                analyst: code - 0.3
                small: code small -
                short: code sonnet -
                asks-openai: openai gpt 0.7
                same: anthropic - -
            lead: anthropic big -
                explore: anthropic big -
                analyst: anthropic big 0.3
                small: anthropic small -
                short: anthropic claude-sonnet-4-5 -
                asks-openai: openai gpt 0.7
                same: anthropic big -
            tuned: anthropic - 0.7
                explore: anthropic - 0.7
                analyst: anthropic - 0.3
                small: anthropic small 0.7
                short: anthropic claude-sonnet-4-5 0.7
                asks-openai: openai gpt 0.7
                same: anthropic - 0.7
        "#]]
        .assert_eq(&told);
        let lead = Mind::of_teammate(&team, &team.lead, &team.teammates[&team.lead]);
        let of = |mind: &Mind, name| mind.of_subagent(&team, team.spawnable(name).unwrap());
        let below = of(&of(&lead, "asks-openai"), "small");
        assert_eq!(shown(&below), "openai small 0.7");
    }
}
