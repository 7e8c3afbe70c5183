//! A key that is never shown.

use std::fmt;

/// A key. It is not part of any debug output, and [`Secret::hide`] takes it out of texts.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    key: String,
    variable: Option<String>,
}

/// How long a key is at least.
const SHORTEST: usize = 8;
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

    /// Whether it is taken out of texts. A short word is no key: local servers take any, and it would
    /// be taken out of every text.
    pub fn is_hidden(&self) -> bool {
        self.key.len() >= SHORTEST
    }

    /// `text` without the key, wherever a server has put it.
    pub fn hide(&self, text: &str) -> String {
        if self.is_hidden() { text.replace(&self.key, HIDDEN) } else { text.to_owned() }
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
        let key = Secret::new(" sk-12345\n");
        assert_eq!((key.expose(), format!("{key:?}")), ("sk-12345", "[key]".to_owned()));
        assert_eq!(key.hide("wrong: sk-12345!"), "wrong: [key]!");
        for short in ["", "e", "none"] {
            assert_eq!(Secret::new(short).hide("the text of none"), "the text of none");
        }
        let key = key.of_variable("MY_KEY");
        assert_eq!((key.variable(), format!("{key:?}")), (Some("MY_KEY"), "[key]".to_owned()));
    }
}
