//! Agent programs that postroom knows how to start: each owns its loop, its tools, its session and
//! its own judgement of what it may do.

/// A known agent program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Preset {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// OpenCode.
    OpenCode,
}

impl Preset {
    /// The words for them.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("claude", Self::Claude), ("codex", Self::Codex), ("opencode", Self::OpenCode)];

    /// The word for it, which is also what its program is called.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
        }
    }

    /// The variable in which it looks for a key, where it is one vendor's.
    pub fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some("ANTHROPIC_API_KEY"),
            Self::Codex => Some("CODEX_API_KEY"),
            Self::OpenCode => None,
        }
    }

    /// The variables of its own that hold keys.
    pub fn keys(self) -> impl Iterator<Item = &'static str> {
        let is_key = |name: &&str| name.contains("KEY") || name.contains("TOKEN");
        self.variables().iter().copied().filter(is_key)
    }

    /// Variables of its own that it may need: keys, where it keeps things, which server it calls.
    pub fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &[
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_AUTH_TOKEN",
                "ANTHROPIC_BASE_URL",
                "CLAUDE_CODE_OAUTH_TOKEN",
                "CLAUDE_CONFIG_DIR",
            ],
            Self::Codex => &["CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_HOME"],
            Self::OpenCode => &["OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"],
        }
    }

    /// Whose rights the bearer has, said to people.
    pub fn holds_rights(self) -> String {
        format!("rights held by {}, not by postroom", self.as_str())
    }
}
