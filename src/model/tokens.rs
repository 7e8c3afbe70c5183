//! Tokens: what the calls of a model have taken.

use serde::{Deserialize, Serialize};

/// Tokens of one call, or of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Read by the model anew: neither from its cache nor into it.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
    /// Read by the model from its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Read by the model and put into its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Tokens {
    /// Whether there are none.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
        }
    }

    /// All that the model has read, from its cache and into it, too.
    pub fn read(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// All that was read and written.
    pub fn total(&self) -> u64 {
        self.read().saturating_add(self.output)
    }
}

/// About how many tokens a text of so many bytes is: vendors count from 2 to 5 bytes as one, and a
/// guess that is too high only shortens a conversation early.
pub fn guessed_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(3)).unwrap_or(u64::MAX)
}

impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = self.plus(other);
    }
}
