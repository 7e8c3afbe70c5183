//! `list_files`: what a folder holds, one level deep. It changes nothing.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Prepared, Tool, ToolError,
    content::size,
    input::{arguments, schema},
};
use crate::{
    base::below::{EntryKind, Opened},
    guard::Access,
    model::ToolSpec,
};

/// How many entries are shown.
const MOST: usize = 1_000;

/// Lists a folder.
pub struct ListFiles;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The folder, relative to the workspace. Default: the workspace itself.
    path: Option<String>,
}

impl Tool for ListFiles {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "list_files",
            description:
                "Lists what a folder of the workspace holds, one level deep and sorted by \
                          name: folders end with `/`, files have their size, links show where they \
                          point. To find files in all folders below use glob."
                    .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn prepare(&self, kit: &Kit, _caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let path = arguments::<Arguments>(input)?.path.unwrap_or_else(|| ".".to_owned());
        let opened = kit.workspace.folder(&path).map_err(|why| why.to_string())?;
        Ok(Prepared {
            accesses: vec![Access::Read(opened.path.clone())],
            preview: format!("list {}", opened.path.display()),
            run: Box::new(move |_| list(&opened).map(Outcome::Text)),
        })
    }
}

fn list(folder: &Opened) -> Result<String, ToolError> {
    let entries = folder.entries()?;
    if entries.is_empty() {
        return Ok(format!("[{} is empty]", folder.path.display()));
    }
    let mut shown = String::new();
    for entry in entries.iter().take(MOST) {
        let name = entry.name.to_string_lossy();
        let _ = match &entry.kind {
            EntryKind::File(length) => writeln!(shown, "{name} ({})", size(*length)),
            EntryKind::Folder => writeln!(shown, "{name}/"),
            EntryKind::Link(to) => writeln!(shown, "{name} -> {}", to.display()),
            EntryKind::Other => writeln!(shown, "{name} (no regular file)"),
        };
    }
    if entries.len() > MOST {
        let _ = writeln!(shown, "[{MOST} of {} shown; glob finds others by name]", entries.len());
    }
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::bench::Bench;

    #[test]
    fn folders_are_listed_one_level_deep() {
        let bench = Bench::new();
        bench.put("src/a.rs", "");
        bench.put("b.txt", "12345");
        bench.link("a-link", "../elsewhere");
        let root = bench.call(&ListFiles, json!(null)).unwrap();
        assert_eq!(root, ".mailbox/\na-link -> ../elsewhere\nb.txt (5 bytes)\nsrc/\n");
        let inner = bench.call(&ListFiles, json!({"path": "src"})).unwrap();
        assert_eq!(inner, "a.rs (0 bytes)\n");
        std::fs::create_dir(bench.at("none")).unwrap();
        assert_eq!(bench.call(&ListFiles, json!({"path": "none/"})).unwrap(), "[none is empty]");
        assert!(bench.call(&ListFiles, json!({"path": "b.txt"})).unwrap_err().contains("folder"));
    }

    #[test]
    fn many_entries_are_cut_with_a_note() {
        let bench = Bench::new();
        for number in 0..1_001 {
            bench.put(&format!("many/{number:04}"), "");
        }
        let many = bench.call(&ListFiles, json!({"path": "many"})).unwrap();
        assert_eq!(many.lines().count(), 1_001);
        assert!(many.ends_with("[1000 of 1001 shown; glob finds others by name]\n"));
    }
}
