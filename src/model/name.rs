//! Names and ids, checked wherever they come from: command line, team file, messages, folders.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::base::hash::{derived_id, random_id};

/// Why a text is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no {what}: {rule}")]
pub struct BadName {
    /// What was given, shortened.
    pub text: String,
    /// What it should have been.
    pub what: &'static str,
    /// The rule that it breaks.
    pub rule: &'static str,
}

const NAME_RULE: &str = "use 1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit";
const ID_RULE: &str =
    "use 1 to 128 of A-Z, a-z, 0-9 and . _ : @ + -, beginning with a letter or digit";

fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= 64
        && text.bytes().next().is_some_and(plain)
        && text.bytes().all(|byte| plain(byte) || byte == b'_' || byte == b'-')
}

fn is_id(text: &str) -> bool {
    text.len() <= 128
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:@+-".contains(&byte))
}

macro_rules! checked_text {
    ($($(#[$doc:meta])* $name:ident: $what:literal, $check:ident, $rule:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks `text`.
            pub fn new(text: impl Into<String>) -> Result<Self, BadName> {
                let text = text.into();
                if $check(&text) {
                    return Ok(Self(text));
                }
                let text = crate::base::text::headline(&text, 80);
                Err(BadName { text, what: $what, rule: $rule })
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadName;
            fn try_from(text: String) -> Result<Self, BadName> {
                Self::new(text)
            }
        }
        impl std::str::FromStr for $name {
            type Err = BadName;
            fn from_str(text: &str) -> Result<Self, BadName> {
                Self::new(text)
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.pad(&self.0)
            }
        }
    )*};
}

checked_text! {
    /// Whoever has a mailbox: a teammate, an outsider, `user`, `daemon`.
    AgentName: "name", is_name, NAME_RULE;
    /// An agent type.
    TypeName: "type name", is_name, NAME_RULE;
    /// A message.
    MessageId: "message id", is_id, ID_RULE;
    /// A run: a teammate's conversation, or one of its own.
    RunId: "run id", is_id, ID_RULE;
    /// A tool call.
    CallId: "call id", is_id, ID_RULE;
}

impl MessageId {
    /// A new random id.
    pub fn random() -> Self {
        Self(random_id())
    }

    /// An id that is the same for the same parts.
    pub fn derived(parts: &[&str]) -> Self {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        Self(derived_id(&parts))
    }
}

impl CallId {
    /// A new random id.
    pub fn random() -> Self {
        Self(random_id())
    }

    /// An id that is the same for the same parts.
    pub fn derived(parts: &[&str]) -> Self {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        Self(derived_id(&parts))
    }
}

impl RunId {
    /// The run of a teammate's own conversation.
    pub fn of(name: &AgentName) -> Self {
        Self(name.0.clone())
    }

    /// An id that is the same for the same parts.
    pub fn derived(parts: &[&str]) -> Self {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        Self(derived_id(&parts))
    }
}

impl TypeName {
    /// A name that stands in this program's text and is known to be one.
    pub fn named(text: &'static str) -> Self {
        Self(text.to_owned())
    }
}

impl AgentName {
    /// Names that no teammate, outsider or team may have.
    pub const RESERVED: [&'static str; 4] = ["user", "daemon", "tasks", "all"];

    /// The person at the terminal.
    pub fn user() -> Self {
        Self::named("user")
    }

    /// The daemon, which takes orders.
    pub fn daemon() -> Self {
        Self::named("daemon")
    }

    /// A name that stands in this program's text and is known to be one.
    pub fn named(text: &'static str) -> Self {
        Self(text.to_owned())
    }

    /// Checks a name for a teammate, an outsider or a team: a reserved one is refused.
    pub fn for_member(text: &str) -> Result<Self, BadName> {
        let name = Self::new(text)?;
        if Self::RESERVED.contains(&text) {
            let rule = "user, daemon, tasks and all are reserved";
            return Err(BadName { text: text.to_owned(), what: "name of a member", rule });
        }
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_strict() {
        let long = "a".repeat(65);
        let bad = [
            "../x",
            "/etc/passwd",
            "a/b",
            "a\\b",
            ".",
            "..",
            ".hidden",
            "",
            "-rf",
            "a\nb",
            "a\tb",
            "a\0b",
            "A",
            "a ",
            " a",
            "reviewer.jsonl",
            "%2e%2e",
            "$(id)",
            ";id",
            "é",
            &long,
        ];
        for text in bad {
            let why = AgentName::new(text).unwrap_err().to_string();
            assert!(why.contains("a-z, 0-9"), "{text:?}: {why}");
        }
        for text in ["a", "7", "code-review", "impl_2", &"a".repeat(64)] {
            assert_eq!(AgentName::new(text).unwrap().as_str(), text);
        }
        for text in AgentName::RESERVED {
            assert!(AgentName::for_member(text).unwrap_err().to_string().contains("reserved"));
        }
    }

    #[test]
    fn ids_may_be_the_senders_own() {
        for text in ["k3v9x0q2m1ab", "CI:2026-11-30@main+1", "7"] {
            assert!(MessageId::new(text).is_ok(), "{text}");
        }
        for text in ["", "../x", "a\nb", "a b", ".a", "é", &"a".repeat(129)] {
            assert!(MessageId::new(text).is_err(), "{text:?}");
        }
    }
}
