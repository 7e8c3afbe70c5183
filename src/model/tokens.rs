//! Tokens: what the calls of a model have cost.

use serde::{Deserialize, Serialize};

/// Tokens of one call, or of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Read by the model.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
}

impl Tokens {
    /// Whether there are none.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { input: self.input + other.input, output: self.output + other.output }
    }
}
