//! `grep`: finds lines by a regular expression, linear in time. It changes nothing.
//!
//! Every file is opened below the workspace, whatever the walk has seen; binary files are passed
//! over as a whole.

use std::{
    fs::File,
    io::{self, Read},
    ops::ControlFlow,
    path::Path,
};

use globset::GlobMatcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Prepared, Tool, ToolError,
    found::{Found, Lines},
    glob,
    input::{arguments, schema},
    walk,
};
use crate::{
    base::{Scope, below::Opened},
    guard::Access,
    model::ToolSpec,
};

/// The most lines shown around a match.
const MOST_CONTEXT: usize = 20;
/// The longest line that is searched, in bytes; a file with a longer one is passed over.
const LONGEST_LINE: usize = 16 << 20;

/// Finds lines.
pub struct Grep;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The regular expression, in the syntax of ripgrep.
    pattern: String,
    /// The folder or file to search, relative to the workspace. Default: the workspace itself.
    path: Option<String>,
    /// Only files whose path below `path` matches; without `/` their name, such as `*.rs`.
    glob: Option<String>,
    /// Upper and lower case are the same. Default: false.
    #[serde(default)]
    ignore_case: bool,
    /// How many lines to show around each match. Default: 0.
    #[serde(default)]
    context: usize,
}

impl Tool for Grep {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "grep",
            description: "Searches files of the workspace for lines that match a regular \
                          expression. Gives `path:line: text`, and `path-line- text` for lines \
                          around a match. What .gitignore names and binary files are left out; \
                          links are not followed."
                .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, kit: &Kit, _caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let arguments: Arguments = arguments(input)?;
        let context = arguments.context.min(MOST_CONTEXT);
        let search = Search {
            place: walk::Searched::by(kit),
            matcher: regex(&arguments.pattern, arguments.ignore_case)?,
            names: arguments.glob.as_deref().map(names).transpose()?,
            searcher: SearcherBuilder::new()
                .line_number(true)
                .before_context(context)
                .after_context(context)
                .binary_detection(BinaryDetection::quit(0))
                .heap_limit(Some(LONGEST_LINE))
                .build(),
        };
        let start = kit.workspace.find(arguments.path.as_deref().unwrap_or("."));
        let start = start.map_err(|why| why.to_string())?;
        Ok(Prepared {
            accesses: vec![Access::Read(start.path.clone())],
            preview: format!("search {} for {}", start.path.display(), arguments.pattern),
            run: Box::new(move |scope| search.run(start, scope).map(Outcome::Text)),
        })
    }
}

fn regex(pattern: &str, ignore_case: bool) -> Result<RegexMatcher, String> {
    let mut builder = RegexMatcherBuilder::new();
    // `$` also stands before CR and LF, while lines are split at LF as the searcher does.
    builder.case_insensitive(ignore_case).multi_line(true).crlf(true).line_terminator(Some(b'\n'));
    builder.build(pattern).map_err(|why| format!("the pattern is no regular expression: {why}"))
}

/// A glob without `/` is about names in any folder.
fn names(pattern: &str) -> Result<GlobMatcher, String> {
    if pattern.contains('/') {
        glob::matcher(pattern)
    } else {
        glob::matcher(&format!("**/{pattern}"))
    }
}

struct Search {
    place: walk::Searched,
    matcher: RegexMatcher,
    names: Option<GlobMatcher>,
    searcher: Searcher,
}

impl Search {
    fn run(mut self, start: Opened, scope: &Scope) -> Result<String, ToolError> {
        let mut found = Found::default();
        if start.is_folder {
            let place = self.place.clone();
            walk::files(&place, &start, scope, &mut |path: &Path| {
                let below = path.strip_prefix(&start.path).unwrap_or(path);
                if self.names.as_ref().is_some_and(|names| !names.is_match(below)) {
                    return Ok(ControlFlow::Continue(()));
                }
                // What went away or is no regular file has no lines.
                match self.place.workspace.below(path) {
                    // A link leads to what is found without it, or to what was not judged.
                    Ok(opened) if opened.path == path => self.file(&opened, scope, &mut found),
                    Ok(_) | Err(_) => Ok(ControlFlow::Continue(())),
                }
            })?;
        } else {
            let _ = self.file(&start, scope, &mut found)?;
        }
        Ok(found.shown())
    }

    fn file(
        &mut self,
        opened: &Opened,
        scope: &Scope,
        found: &mut Found,
    ) -> Result<ControlFlow<()>, ToolError> {
        let path = opened.path.to_string_lossy();
        let mut sink = Lines::new(&path, found);
        let mut reader = Watched { file: &opened.file, scope, reads: 0, ended: None };
        let searched = self.searcher.search_reader(&self.matcher, &mut reader, &mut sink);
        if let Some(ended) = reader.ended {
            return Err(ended);
        }
        if searched.is_err() {
            found.passed_over += 1;
        }
        Ok(if found.is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

/// A file that stops giving bytes when the run shall end.
struct Watched<'a> {
    file: &'a File,
    scope: &'a Scope,
    reads: usize,
    ended: Option<ToolError>,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.reads.is_multiple_of(READS)
            && let Err(why) = walk::check(self.scope)
        {
            self.ended = Some(why);
            return Err(io::ErrorKind::Other.into());
        }
        self.file.read(buffer)
    }
}

/// How many reads of a file lie between two looks at the scope.
const READS: usize = 32;

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::{
        base::{Haste, Interrupted},
        tools::{bench::Bench, found::WIDTH},
    };

    fn tree() -> Bench {
        let bench = Bench::new();
        bench.put(".gitignore", "target/\n");
        bench.put("a.rs", "fn main() {\n    let secret = 1;\r\n}\n");
        bench.put("src/b.txt", "Secret\nother\nsecret\n");
        bench.put("target/c.rs", "secret\n");
        bench.put("data.bin", b"secret\n\0\n");
        bench.put("../outside.txt", "secret\n");
        bench.link("src/out.txt", "../../outside.txt");
        bench.link("src/mail", "../.mailbox");
        bench
    }

    #[test]
    fn lines_are_found_in_files_of_text() {
        let bench = tree();
        let found = [
            json!({"pattern": "secret"}),
            json!({"pattern": "^secret$", "ignore_case": true}),
            json!({"pattern": "1;$"}),
            json!({"pattern": "secret", "glob": "*.txt", "context": 1}),
            json!({"pattern": "secret", "glob": "src/*.rs"}),
            json!({"pattern": "secret", "path": "target"}),
            json!({"pattern": "secret", "path": "src/b.txt"}),
        ]
        .map(|input| bench.call(&Grep, input).unwrap());
        expect![[r"
            a.rs:2:     let secret = 1;
            src/b.txt:3: secret
            ==
            src/b.txt:1: Secret
            src/b.txt:3: secret
            ==
            a.rs:2:     let secret = 1;
            ==
            src/b.txt-2- other
            src/b.txt:3: secret
            ==
            [no line matches]
            ==
            target/c.rs:1: secret
            ==
            src/b.txt:3: secret
        "]]
        .assert_eq(&found.join("==\n"));
    }

    #[test]
    fn bad_patterns_are_explained() {
        let bench = Bench::new();
        for input in [json!({"pattern": "("}), json!({"pattern": "a\nb"})] {
            let error = bench.call(&Grep, input).unwrap_err();
            assert!(error.starts_with("the pattern is no regular expression: "), "{error}");
        }
        let error = bench.call(&Grep, json!({"pattern": "a", "glob": "["})).unwrap_err();
        assert!(error.contains("no glob"), "{error}");
    }

    #[test]
    fn long_lines_and_many_matches_are_cut() {
        let bench = Bench::new();
        bench.put("wide", format!("{}\n", "x".repeat(100_000)));
        let wide = bench.call(&Grep, json!({"pattern": "x"})).unwrap();
        assert_eq!(wide, format!("wide:1: {}…\n", "x".repeat(WIDTH)));
        bench.put("many", "y\n".repeat(501));
        let many = bench.call(&Grep, json!({"pattern": "y"})).unwrap();
        assert_eq!(many.lines().count(), 501);
        assert!(many.contains("\n[500 matching lines shown, there may be more;"));
    }

    #[test]
    fn a_search_of_one_file_ends_when_the_run_shall_end() {
        let bench = Bench::new();
        bench.put("long", "line\n".repeat(2_000_000));
        bench.scope.stop.request(Haste::Now);
        let prepared = bench.prepare(&Grep, json!({"pattern": "none", "path": "long"})).unwrap();
        let ended = (prepared.run)(&bench.scope);
        assert_eq!(ended, Err(ToolError::Interrupted(Interrupted::Stopping)));
    }
}
