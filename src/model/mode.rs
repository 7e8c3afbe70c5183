//! How freely an agent may act. A mode only says so; the guard judges by it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How side effects are judged, from the strictest mode to the mildest.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum PermissionMode {
    /// There are none.
    Plan,
    /// Each is asked for.
    #[default]
    Default,
    /// They happen; only destructive commands are asked for.
    Auto,
    /// They happen; nothing is asked for.
    Bypass,
}

impl PermissionMode {
    /// All of them, from the strictest to the mildest.
    pub const ALL: [Self; 4] = [Self::Plan, Self::Default, Self::Auto, Self::Bypass];

    /// The word for it in a team file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Default => "default",
            Self::Auto => "auto",
            Self::Bypass => "bypass",
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_ordered_and_spelled_alike_everywhere() {
        assert!(PermissionMode::ALL.is_sorted());
        for mode in PermissionMode::ALL {
            let written = serde_json::to_value(mode).unwrap();
            assert_eq!(written, mode.to_string());
            assert_eq!(serde_json::from_value::<PermissionMode>(written).unwrap(), mode);
        }
    }
}
