//! `glob`: finds files by a pattern of their paths. It opens none of them.

use std::{fmt::Write, ops::ControlFlow, path::Path};

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Prepared, SHOWN, Tool, ToolError,
    input::{arguments, schema},
    walk,
};
use crate::{
    base::{Scope, below::Opened},
    guard::Access,
    model::ToolSpec,
};

/// How many paths are shown.
const MOST: usize = 1_000;

/// Finds files by name.
pub struct Glob;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The pattern, matched against what follows `path`: `*` stays within a folder, `**/` is any
    /// number of folders, `{a,b}` is one of several.
    pattern: String,
    /// The folder to look in, relative to the workspace. Default: the workspace itself.
    path: Option<String>,
}

impl Tool for Glob {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "glob",
            description: "Finds files of the workspace by a pattern such as `src/**/*.rs` or \
                          `**/Cargo.toml` (`*.rs` alone matches in the folder itself only). Gives \
                          paths relative to the workspace, sorted. What .gitignore names is left \
                          out; links are not followed."
                .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, kit: &Kit, _caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let Arguments { pattern, path } = arguments(input)?;
        let matcher = matcher(&pattern)?;
        let place = walk::Searched::by(kit);
        let folder = kit.workspace.folder(path.as_deref().unwrap_or("."));
        let folder = folder.map_err(|why| why.to_string())?;
        Ok(Prepared {
            accesses: vec![Access::Read(folder.path.clone())],
            preview: format!("find {pattern} in {}", folder.path.display()),
            run: Box::new(move |scope| find(&place, &folder, &matcher, scope).map(Outcome::Text)),
        })
    }
}

/// Reads a pattern whose `*` stays within a folder.
pub fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
        return Err(format!(
            "the pattern {pattern:?} is matched below a folder, so it has no leading `/` and no \
             `..`; give the folder as `path`"
        ));
    }
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|why| format!("the pattern is no glob: {why}"))
}

fn find(
    place: &walk::Searched,
    folder: &Opened,
    matcher: &GlobMatcher,
    scope: &Scope,
) -> Result<String, ToolError> {
    let (mut found, mut is_cut) = (Vec::new(), false);
    walk::files(place, folder, scope, &mut |path: &Path| {
        if !matcher.is_match(path.strip_prefix(&folder.path).unwrap_or(path)) {
            return Ok(ControlFlow::Continue(()));
        }
        is_cut = found.len() == MOST;
        if is_cut {
            return Ok(ControlFlow::Break(()));
        }
        found.push(path.to_string_lossy().into_owned());
        Ok(ControlFlow::Continue(()))
    })?;
    found.sort();
    Ok(shown(&found, is_cut))
}

fn shown(found: &[String], mut is_cut: bool) -> String {
    if found.is_empty() {
        return "[no file matches]".to_owned();
    }
    let (mut shown, mut count) = (String::new(), 0);
    for path in found {
        if shown.len() + path.len() > SHOWN {
            is_cut = true;
            break;
        }
        shown.push_str(path);
        shown.push('\n');
        count += 1;
    }
    if is_cut {
        let _ = writeln!(shown, "[{count} paths shown, there are more; narrow the pattern]");
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        base::{Haste, Interrupted},
        tools::bench::Bench,
    };

    fn tree() -> Bench {
        let bench = Bench::new();
        bench.put(".gitignore", "/target\n*.log\n");
        bench.put(".git/config", "");
        bench.put("../.gitignore", "*\n");
        for path in
            ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.log", "target/e.rs", ".hidden/f.rs"]
        {
            bench.put(path, "");
        }
        bench.link("src/out", bench.temp.path());
        bench.link("loop", ".");
        bench
    }

    #[test]
    fn files_are_found_by_their_paths() {
        let bench = tree();
        let find = |pattern: &str| bench.call(&Glob, json!({ "pattern": pattern })).unwrap();
        assert_eq!(find("*.rs"), "a.rs\n");
        assert_eq!(find("./src/*.rs"), "src/b.rs\n");
        assert_eq!(find("**/*.rs"), ".hidden/f.rs\na.rs\nsrc/b.rs\nsrc/deep/c.rs\n");
        assert_eq!(find("**/*.{log,jsonl}"), "[no file matches]");
        assert_eq!(
            find("**"),
            ".gitignore\n.hidden/f.rs\na.rs\nloop\nsrc/b.rs\nsrc/deep/c.rs\nsrc/out\n"
        );
    }

    #[test]
    fn a_named_folder_is_searched_even_when_it_is_ignored() {
        let bench = tree();
        let find = |path: &str| bench.call(&Glob, json!({"pattern": "**", "path": path})).unwrap();
        assert_eq!(find("src"), "src/b.rs\nsrc/deep/c.rs\nsrc/out\n");
        assert_eq!(find("src/deep"), "src/deep/c.rs\n");
        assert_eq!(find("target"), "target/e.rs\n");
        assert_eq!(find(".git"), ".git/config\n");
        assert_eq!(find(".mailbox/state/outputs"), "[no file matches]");
    }

    #[test]
    fn bad_patterns_are_refused_and_many_paths_cut() {
        let bench = Bench::new();
        for pattern in ["/etc/*", "../*", "a/../../b", "[", "{a"] {
            let error = bench.call(&Glob, json!({ "pattern": pattern })).unwrap_err();
            assert!(error.contains("pattern"), "{error}");
        }
        for number in 0..1_001 {
            bench.put(&format!("many/{number:04}"), "");
        }
        let many = bench.call(&Glob, json!({"pattern": "many/*"})).unwrap();
        assert!(many.ends_with("0999\n[1000 paths shown, there are more; narrow the pattern]\n"));
    }

    #[test]
    fn a_walk_ends_when_the_run_shall_end() {
        let bench = tree();
        bench.scope.stop.request(Haste::Now);
        let prepared = bench.prepare(&Glob, json!({"pattern": "**"})).unwrap();
        let ended = (prepared.run)(&bench.scope);
        assert_eq!(ended, Err(ToolError::Interrupted(Interrupted::Stopping)));
    }
}
