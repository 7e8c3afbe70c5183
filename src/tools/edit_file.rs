//! `edit_file`: replaces a text that occurs in a file by another.
//!
//! It works on bytes, so that what it does not touch stays as it is in any encoding, and never
//! guesses which of several places was meant.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Prepared, Tool, ToolError,
    content::{counted, whole_text},
    excerpt::{change, replaced},
    input::{arguments, schema},
};
use crate::{base::target::Target, guard::Access, model::ToolSpec};

/// Changes a part of a file.
pub struct EditFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the workspace.
    path: String,
    /// The text to replace, exactly as it stands in the file, with enough around it to occur once.
    old: String,
    /// The text that takes its place.
    new: String,
    /// Replaces every occurrence. Default: false, and then `old` has to occur exactly once.
    #[serde(default)]
    replace_all: bool,
}

impl Tool for EditFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "edit_file",
            description: "Replaces a text in a file of the workspace by another. `old` has to \
                          stand in the file exactly as given, indentation included, and only once \
                          unless `replace_all` is true. The result shows the change."
                .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    fn prepare(&self, kit: &Kit, _caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let arguments: Arguments = arguments(input)?;
        if arguments.old.is_empty() {
            return Err(
                "old is empty; to make a file or replace all of it use write_file".to_owned()
            );
        }
        if arguments.old == arguments.new {
            return Err("old and new are the same, so nothing would change".to_owned());
        }
        let target = kit.workspace.target(&arguments.path).map_err(|why| why.to_string())?;
        let path = target.path().to_path_buf();
        if !target.exists() {
            return Err(format!("{} does not exist; write_file makes it", path.display()));
        }
        let every = if arguments.replace_all { ", every occurrence" } else { "" };
        let lines = replaced(&arguments.old, &arguments.new);
        let kit = kit.clone();
        Ok(Prepared {
            preview: format!("edit {}{every}\n{lines}", path.display()),
            // The result shows what stands around the change, so it reads as well.
            accesses: vec![Access::Read(path.clone()), Access::Write(path)],
            run: Box::new(move |_| edit(&kit, &target, &arguments).map(Outcome::Text)),
        })
    }
}

fn edit(kit: &Kit, target: &Target, arguments: &Arguments) -> Result<String, ToolError> {
    let path = target.path().display();
    let Some(file) = target.read()? else {
        return Err(ToolError::Failed(format!("{path} does not exist any more")));
    };
    let before = whole_text(&file, target.path())?;
    let (old, new) = match line_ends(&before) {
        LineEnds::Crlf => (with_crlf(&arguments.old), with_crlf(&arguments.new)),
        LineEnds::Other => (arguments.old.clone(), arguments.new.clone()),
    };
    let (after, count) = replace(&before, old.as_bytes(), new.as_bytes());
    if count == 0 {
        return Err(ToolError::Failed(format!(
            "old does not occur in {path}; read the file and give the text exactly as it stands"
        )));
    }
    if count > 1 && !arguments.replace_all {
        return Err(ToolError::Failed(format!(
            "old occurs {count} times in {path}; give more of the text around it, or replace_all"
        )));
    }
    if after == before {
        return Err(ToolError::Failed("old and new differ in line ends alone".to_owned()));
    }
    kit.check_size(target.path(), after.len() as u64).map_err(ToolError::Failed)?;
    target.replace(&after)?;
    let shown = change(&String::from_utf8_lossy(&before), &String::from_utf8_lossy(&after));
    Ok(format!("edited {path}, {}\n{shown}", counted(count, "place")))
}

/// How the lines of a file end.
enum LineEnds {
    /// Each with CR and LF: then texts given with LF mean these.
    Crlf,
    /// With LF, or mixed, which is left as it is.
    Other,
}

fn line_ends(bytes: &[u8]) -> LineEnds {
    let mut ends = bytes.split_inclusive(|byte| *byte == b'\n').filter(|it| it.ends_with(b"\n"));
    let has_some = bytes.contains(&b'\n');
    if has_some && ends.all(|line| line.ends_with(b"\r\n")) {
        LineEnds::Crlf
    } else {
        LineEnds::Other
    }
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// `bytes` with every `old`, from the left and without overlap, replaced by `new`, and how many
/// there were.
fn replace(bytes: &[u8], old: &[u8], new: &[u8]) -> (Vec<u8>, usize) {
    let (mut after, mut rest, mut count) = (Vec::with_capacity(bytes.len()), bytes, 0);
    while let Some((first, others)) = rest.split_first() {
        if let Some(behind) = rest.strip_prefix(old) {
            after.extend_from_slice(new);
            (rest, count) = (behind, count + 1);
        } else {
            after.push(*first);
            rest = others;
        }
    }
    (after, count)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::tools::bench::Bench;

    #[test]
    fn a_text_that_occurs_once_is_replaced_and_shown() {
        let bench = Bench::new();
        bench.put("src/a.rs", "fn one() {}\n\nfn two() {\n    1\n}\n\nfn three() {}\n");
        let input = || json!({"path": "src/a.rs", "old": "    1\n", "new": "    2 +\n    3\n"});
        let prepared = bench.prepare(&EditFile, input()).unwrap();
        let path = || "src/a.rs".into();
        assert_eq!(prepared.accesses, [Access::Read(path()), Access::Write(path())]);
        assert_eq!(prepared.preview, "edit src/a.rs\n-    1\n+    2 +\n+    3\n");
        let edited = bench.call(&EditFile, input()).unwrap();
        expect![[r"
            edited src/a.rs, 1 place
            @@ line 4 @@
             
             fn two() {
            -    1
            +    2 +
            +    3
             }
             
        "]]
        .assert_eq(&edited);
        assert_eq!(
            bench.get("src/a.rs"),
            "fn one() {}\n\nfn two() {\n    2 +\n    3\n}\n\nfn three() {}\n"
        );
    }

    #[test]
    fn what_is_unclear_is_refused_with_the_number_of_places() {
        let bench = Bench::new();
        bench.put("a", "x = 1\nx = 1\nx = 1\n");
        let edit = |old: &str, new: &str, all: bool| {
            let input = json!({"path": "a", "old": old, "new": new, "replace_all": all});
            bench.call(&EditFile, input)
        };
        assert!(edit("x = 1", "y", false).unwrap_err().starts_with("old occurs 3 times in a;"));
        assert!(edit("z", "y", true).unwrap_err().starts_with("old does not occur in a;"));
        assert!(edit("", "y", false).unwrap_err().contains("empty"));
        assert!(edit("x", "x", true).unwrap_err().contains("the same"));
        assert_eq!(bench.get("a"), "x = 1\nx = 1\nx = 1\n");
        assert!(edit("x = 1", "y", true).unwrap().starts_with("edited a, 3 places\n"));
        assert_eq!(bench.get("a"), "y\ny\ny\n");
        let gone = json!({"path": "b", "old": "x", "new": "y"});
        assert!(bench.call(&EditFile, gone).unwrap_err().contains("write_file makes it"));
    }

    #[test]
    fn line_ends_and_encodings_stay() {
        let bench = Bench::new();
        let edit = |path: &str, old: &str, new: &str| {
            bench.call(&EditFile, json!({"path": path, "old": old, "new": new}))
        };
        bench.put("dos", "one\r\ntwo\r\n");
        edit("dos", "one\ntwo", "one\n1.5\r\ntwo").unwrap();
        assert_eq!(bench.get("dos"), "one\r\n1.5\r\ntwo\r\n");
        assert!(edit("dos", "one\n", "one\r\n").unwrap_err().contains("line ends alone"));
        bench.put("mixed", "one\r\ntwo\n");
        edit("mixed", "two\n", "2\n").unwrap();
        assert_eq!(bench.get("mixed"), "one\r\n2\n");
        bench.put("latin1", b"gr\xf6\xdfe a\n");
        edit("latin1", "a", "b").unwrap();
        assert_eq!(std::fs::read(bench.at("latin1")).unwrap(), b"gr\xf6\xdfe b\n");
        bench.put("binary", b"a\0b");
        assert!(edit("binary", "a", "b").unwrap_err().contains("binary file"));
    }
}
