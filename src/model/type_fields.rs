//! The names of a type's fields, and what a slip in one was meant to be.

use crate::base::text::is_slip_of;

/// The fields of a type, each with its other names.
pub const TYPE_FIELDS: &[(&str, &[&str])] = &[
    ("description", &[]),
    ("system_prompt", &[]),
    ("mode", &[]),
    ("tools", &["allowed_tools"]),
    ("disallowed_tools", &["denied_tools", "disallowedTools"]),
    ("max_turns", &["max_iterations", "maxTurns"]),
    ("allow_nesting", &["can_spawn_subagent"]),
    ("permission_mode", &["permissionMode"]),
    ("permissions", &[]),
    ("provider", &[]),
    ("model", &[]),
    ("temperature", &[]),
    ("plan_required", &[]),
    ("budget", &[]),
    ("replaces", &[]),
];
/// The fields that take something away: without one its type may do more than was meant.
const RESTRICTING: &[&str] = &[
    "mode",
    "tools",
    "disallowed_tools",
    "max_turns",
    "allow_nesting",
    "permission_mode",
    "permissions",
    "plan_required",
    "budget",
];
/// The fields of `permissions`; all of them, and all below them, take something away.
pub const PERMISSION_FIELDS: &[&str] = &["tools", "paths", "network", "limits"];
/// The fields of `network` in them.
pub const NETWORK_FIELDS: &[&str] = &["allowed_domains", "blocked_domains"];
/// The fields of `limits` in them.
pub const LIMIT_FIELDS: &[&str] =
    &["max_file_size", "max_iterations", "timeout_seconds", "max_retries"];

/// Every name that a field of a type may have in the team file.
pub fn type_keys() -> Vec<&'static str> {
    names().map(|(_, name)| name).collect()
}

/// Whether a type has a field of this name, whichever of its names it is.
pub fn is_field(key: &str) -> bool {
    key == "name" || names().any(|(_, name)| key == name)
}

/// The field that a key was meant to be: one in another spelling, or with a slip one that restricts.
pub fn field_like(key: &str) -> Option<&'static str> {
    let meant = plain(key);
    let is_meant = |field: &str, name: &str| {
        plain(name) == meant || (RESTRICTING.contains(&field) && is_slip_of(&meant, &plain(name)))
    };
    names().find(|(field, name)| is_meant(field, name)).map(|(_, name)| name)
}

/// The one of `known` that a key was meant to be.
pub fn one_like<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    known.iter().copied().find(|name| is_slip_of(&plain(key), &plain(name)))
}

fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of = |(field, more): &'static (&'static str, &'static [&'static str])| {
        [field].into_iter().chain(*more).map(|name| (*field, *name))
    };
    TYPE_FIELDS.iter().flat_map(of)
}

fn plain(key: &str) -> String {
    key.replace(['-', '_', ' '], "").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_in_what_restricts_is_found_and_other_systems_keys_are_none() {
        for (key, meant) in [
            ("tool", "tools"),
            ("toosl", "tools"),
            ("Tools", "tools"),
            ("allowed-tool", "allowed_tools"),
            ("disallowedTool", "disallowed_tools"),
            ("disallow_tools", "disallowed_tools"),
            ("max-turn", "max_turns"),
            ("permission", "permissions"),
            ("permissonMode", "permission_mode"),
            ("plan_requierd", "plan_required"),
            ("System-Prompt", "system_prompt"),
        ] {
            assert_eq!(field_like(key), Some(meant), "{key}");
        }
        let others = "color memory skills hooks mcpServers isolation effort background prompt tags \
                      maxTokens max_tokens version category author models descripton env arguments";
        for other in others.split_whitespace() {
            assert_eq!(field_like(other), None, "{other}");
        }
        assert_eq!(one_like("limit", PERMISSION_FIELDS), Some("limits"));
        assert_eq!(one_like("more", PERMISSION_FIELDS), None);
    }
}
