//! What rules say of paths: each is about a whole subtree, and the most specific one wins. Pure.

use std::path::{Component, Path};

use crate::model::{PathGrant, PathRule};

/// What the most specific of `rules` says of `path`; of two about the same path the stricter.
pub fn grant_of(rules: &[PathRule], path: &Path) -> Option<PathGrant> {
    let about = rules.iter().filter(|rule| plain(path).starts_with(plain(Path::new(&rule.path))));
    let depth = |rule: &&PathRule| plain(Path::new(&rule.path)).components().count();
    about.max_by_key(|rule| (depth(rule), strictness(rule.grant))).map(|rule| rule.grant)
}

/// Whether a search leaves `path` out: one of the layers of rules denies it, or would ask about it,
/// which a search can't do for each file that it meets.
pub fn hides(layers: &[Vec<PathRule>], path: &Path) -> bool {
    let is_hidden = |rules: &Vec<PathRule>| {
        matches!(grant_of(rules, path), Some(PathGrant::Deny | PathGrant::Ask))
    };
    layers.iter().any(is_hidden)
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
        assert!(hides(&[rules.to_vec()], Path::new("docs/public/old/x")));
        assert!(!hides(&[rules.to_vec()], Path::new("src")));
    }
}
