//! What rules say of paths: each is about a whole subtree, and the most specific one wins. Pure.

use std::path::{Component, Path};

use globset::GlobMatcher;

use super::{
    Rights,
    rules::{path_glob, unreadable},
};
use crate::model::{PathGrant, PathRule};

/// The most specific of `rules` about `path`; of two about the same path the stricter.
pub fn rule_of<'a>(rules: &'a [PathRule], path: &Path) -> Option<&'a PathRule> {
    let about = rules.iter().filter(|rule| plain(path).starts_with(plain(Path::new(&rule.path))));
    let depth = |rule: &&PathRule| plain(Path::new(&rule.path)).components().count();
    about.max_by_key(|rule| (depth(rule), strictness(rule.grant)))
}

fn grant_of(rules: &[PathRule], path: &Path) -> Option<PathGrant> {
    rule_of(rules, path).map(|rule| rule.grant)
}

/// What searches leave out: what some layer of rights denies, or would ask about, which a search can't
/// do for each file that it meets.
#[derive(Debug, Clone, Default)]
pub struct Hidden {
    layers: Vec<Vec<PathRule>>,
    unreadable: Vec<GlobMatcher>,
}

impl Hidden {
    /// What the bearer of `rights` does not find.
    pub fn of(rights: &Rights) -> Self {
        let patterns = rights.layers().flat_map(|layer| unreadable(&layer.rules));
        Self {
            layers: rights.layers().map(|layer| layer.paths.clone()).collect(),
            unreadable: patterns.filter_map(path_glob).collect(),
        }
    }

    /// Whether a search leaves `path` out.
    pub fn has(&self, path: &Path) -> bool {
        let is_denied = |rules: &Vec<PathRule>| {
            matches!(grant_of(rules, path), Some(PathGrant::Deny | PathGrant::Ask))
        };
        self.layers.iter().any(is_denied) || self.unreadable.iter().any(|it| it.is_match(path))
    }
}

fn strictness(grant: PathGrant) -> u8 {
    match grant {
        PathGrant::AllowWrite => 0,
        PathGrant::Allow => 1,
        PathGrant::Ask => 2,
        PathGrant::Deny => 3,
    }
}

/// A path without the dots that stand for the workspace itself.
fn plain(path: &Path) -> std::path::PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AgentType, Origin, Pattern, PermissionMode, Rule, Ruling, TypeName};

    #[test]
    fn rules_cover_subtrees_and_the_most_specific_wins() {
        let rule = |path: &str, grant| PathRule { path: path.to_owned(), grant };
        let rules = [
            rule("docs", PathGrant::Deny),
            rule("docs/public", PathGrant::AllowWrite),
            rule("docs/public/old", PathGrant::Ask),
            rule("docs/public/old", PathGrant::Allow),
        ];
        let of = |path: &str| grant_of(&rules, Path::new(path));
        assert_eq!(of("docs"), Some(PathGrant::Deny));
        assert_eq!(of("./docs/a/b"), Some(PathGrant::Deny));
        assert_eq!(of("docs/public/a"), Some(PathGrant::AllowWrite));
        assert_eq!(of("docs/public/old/a"), Some(PathGrant::Ask));
        assert_eq!(of("docs-more/a"), None);
        let everything = [rule(".", PathGrant::Deny)];
        assert_eq!(grant_of(&everything, Path::new("a")), Some(PathGrant::Deny));
    }

    #[test]
    fn searches_leave_out_what_some_layer_keeps_from_reading() {
        let hidden = |rights: &Rights, path: &str| Hidden::of(rights).has(Path::new(path));
        let rule = |path: &str, grant| PathRule { path: path.to_owned(), grant };
        let deny =
            |text: &str| Rule { ruling: Ruling::Deny, pattern: Pattern::parse(text).unwrap() };
        let above = Rights::new(PermissionMode::Bypass, vec![deny("read_file(**/*.key)")]);
        let paths = vec![rule("docs", PathGrant::Deny), rule("docs/public", PathGrant::Allow)];
        let it = AgentType { paths, ..AgentType::new(TypeName::named("it"), Origin::BuiltIn) };
        let rights = above.narrowed(&it);
        for path in ["docs/a", "a.key", "src/b.key"] {
            assert!(hidden(&rights, path), "{path}");
        }
        for path in ["docs/public/a", "src/a"] {
            assert!(!hidden(&rights, path), "{path}");
        }
        let grep = Rights::new(PermissionMode::Bypass, vec![deny("grep"), deny("grep(src/**)")]);
        assert!(!hidden(&grep, "src/a"));
    }
}
