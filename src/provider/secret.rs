//! A key that is never shown.

use std::fmt;

/// A key. It is not part of any debug output, and [`Secret::hide`] takes it out of texts.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    key: String,
    variable: Option<String>,
}

/// What stands in a key's place.
const HIDDEN: &str = "[key]";

impl Secret {
    /// Takes a key; blanks around it, as files and shells leave them, are no part of it.
    pub fn new(key: impl AsRef<str>) -> Self {
        Self { key: key.as_ref().trim().to_owned(), variable: None }
    }

    /// The same, with the name of the variable that it was in.
    #[must_use]
    pub fn of_variable(self, name: &str) -> Self {
        Self { variable: Some(name.to_owned()), ..self }
    }

    /// The variable that it was in, which may be shown.
    pub fn variable(&self) -> Option<&str> {
        self.variable.as_deref()
    }

    /// The key, for the header it goes into.
    pub fn expose(&self) -> &str {
        &self.key
    }

    /// `text` without the key, wherever a server has put it.
    pub fn hide(&self, text: &str) -> String {
        if self.key.is_empty() { text.to_owned() } else { text.replace(&self.key, HIDDEN) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_shown() {
        let key = Secret::new(" sk-123\n");
        assert_eq!((key.expose(), format!("{key:?}")), ("sk-123", "[key]".to_owned()));
        assert_eq!(key.hide("wrong: sk-123!"), "wrong: [key]!");
        assert_eq!(Secret::new("").hide("text"), "text");
        let key = key.of_variable("MY_KEY");
        assert_eq!((key.variable(), format!("{key:?}")), (Some("MY_KEY"), "[key]".to_owned()));
    }
}
