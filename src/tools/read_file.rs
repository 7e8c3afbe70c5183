//! `read_file`: the text of a file, or a part of it by lines. It changes nothing.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Prepared, SHOWN, Tool, ToolError,
    content::{counted, whole_text},
    excerpt::push_short,
    input::{arguments, schema},
};
use crate::{base::below::Opened, guard::Access, model::ToolSpec};

/// Reads a file of text.
pub struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the workspace.
    path: String,
    /// The first line to read, counted from 1. Default: 1.
    offset: Option<usize>,
    /// How many lines to read. Default: as many as fit.
    limit: Option<usize>,
}

impl Tool for ReadFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read_file",
            description: "Reads a text file of the workspace as it is, without line numbers. A \
                          long file comes in parts: the last line of the result says with which \
                          `offset` to go on. Binary files and files over 10 MB are refused."
                .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, kit: &Kit, _caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let Arguments { path, offset, limit } = arguments(input)?;
        let (offset, limit) = (offset.unwrap_or(1), limit.unwrap_or(usize::MAX));
        if offset == 0 || limit == 0 {
            return Err("offset and limit are 1 or more; the first line is 1".to_owned());
        }
        let opened = kit.workspace.file(&path).map_err(|why| why.to_string())?;
        let length = opened.file.metadata().map_or(0, |it| it.len());
        kit.check_size(&opened.path, length)?;
        Ok(Prepared {
            accesses: vec![Access::Read(opened.path.clone())],
            preview: format!("read {}", opened.path.display()),
            run: Box::new(move |_| read(&opened, offset, limit).map(Outcome::Text)),
        })
    }
}

fn read(opened: &Opened, offset: usize, limit: usize) -> Result<String, ToolError> {
    let bytes = whole_text(&opened.file, &opened.path)?;
    let is_utf8 = str::from_utf8(&bytes).is_ok();
    let text = String::from_utf8_lossy(&bytes);
    let total = text.split_inclusive('\n').count();
    if total == 0 {
        return Ok(format!("[{} is empty]", opened.path.display()));
    }
    if offset > total {
        let path = opened.path.display();
        let lines = counted(total, "line");
        return Err(ToolError::Failed(format!(
            "{path} has {lines}; offset {offset} is behind them"
        )));
    }
    let mut shown = part(&text, offset, limit, total);
    if !is_utf8 {
        shown.push_str("\n[not UTF-8: � stands for what can't be shown]");
    }
    Ok(shown)
}

/// The lines from `offset` on that fit, and a note where they are not all.
fn part(text: &str, offset: usize, limit: usize, total: usize) -> String {
    let (mut shown, mut left, mut next) = (String::new(), SHOWN, offset);
    for line in text.split_inclusive('\n').skip(offset - 1).take(limit) {
        let length = line.chars().count();
        if length > left {
            break;
        }
        shown.push_str(line);
        (left, next) = (left - length, next + 1);
    }
    let mut note = String::new();
    if next == offset {
        let line = text.split_inclusive('\n').nth(offset - 1).unwrap_or_default();
        push_short(&mut shown, line, SHOWN);
        note = format!(
            "line {offset} has {} and is cut; ",
            counted(line.chars().count(), "character")
        );
        next += 1;
    }
    if next <= total {
        let _ = write!(note, "lines {offset} to {} of {total}; go on with offset {next}", next - 1);
    } else if note.is_empty() && offset > 1 {
        let _ = write!(note, "lines {offset} to {total}, the last");
    }
    if !note.is_empty() {
        let gap = if shown.ends_with('\n') { "" } else { "\n" };
        let _ = write!(shown, "{gap}[{}]", note.trim_end_matches("; "));
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use serde_json::json;

    use super::*;
    use crate::tools::bench::Bench;

    #[test]
    fn a_file_comes_as_it_is_or_in_parts() {
        let bench = Bench::new();
        bench.put("a.txt", "one\r\ntwo\nthree");
        bench.put("empty", "");
        let read = |input| bench.call(&ReadFile, input);
        assert_eq!(read(json!({"path": "a.txt"})).unwrap(), "one\r\ntwo\nthree");
        let part = read(json!({"path": "a.txt", "offset": 2, "limit": 1})).unwrap();
        assert_eq!(part, "two\n[lines 2 to 2 of 3; go on with offset 3]");
        let last = read(json!({"path": "a.txt", "offset": 3})).unwrap();
        assert_eq!(last, "three\n[lines 3 to 3, the last]");
        assert_eq!(read(json!({"path": "empty"})).unwrap(), "[empty is empty]");
        let behind = read(json!({"path": "a.txt", "offset": 4})).unwrap_err();
        assert_eq!(behind, "a.txt has 3 lines; offset 4 is behind them");
        assert!(read(json!({"path": "a.txt", "offset": 0})).unwrap_err().contains("1 or more"));
        assert!(read(json!({"path": "none"})).unwrap_err().contains("open none: No such file"));
        assert!(read(json!({"path": "."})).unwrap_err().contains("is a folder"));
    }

    #[test]
    fn long_files_and_lines_are_cut_and_say_how_to_go_on() {
        let bench = Bench::new();
        bench.put("long", "0123456789\n".repeat(10_000));
        bench.put("wide", format!("{}\nend\n", "é".repeat(60_000)));
        let long = bench.call(&ReadFile, json!({"path": "long"})).unwrap();
        assert!(long.ends_with("\n[lines 1 to 4545 of 10000; go on with offset 4546]"));
        let wide = bench.call(&ReadFile, json!({"path": "wide"})).unwrap();
        assert!(wide.starts_with("éé") && wide.chars().count() < SHOWN + 200);
        let note =
            "[line 1 has 60001 characters and is cut; lines 1 to 1 of 2; go on with offset 2]";
        assert!(wide.ends_with(note));
    }

    #[test]
    fn binary_huge_and_foreign_files_are_told_apart() {
        let bench = Bench::new();
        bench.put("binary", b"\x7fELF\0\0");
        bench.put("latin1", b"gr\xf6\xdfe\n");
        File::create(bench.at("huge")).unwrap().set_len(10 << 30).unwrap();
        let read = |path: &str| bench.call(&ReadFile, json!({ "path": path }));
        assert_eq!(read("binary").unwrap_err(), "binary is a binary file (6 bytes)");
        assert!(read("huge").unwrap_err().starts_with("huge has 10.7 GB, more than the 10.0 MB"));
        assert!(read("latin1").unwrap().starts_with("gr��e\n\n[not UTF-8"));
    }
}
