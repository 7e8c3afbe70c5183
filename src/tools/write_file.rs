//! `write_file`: makes a file, or gives it a new content as a whole.
//!
//! Nothing is made before the call runs, and no reader ever sees half of a content.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Kit, Outcome, Prepared, Tool, ToolError,
    content::{counted, size, whole_text},
    excerpt::{change, replaced},
    input::{arguments, schema},
};
use crate::{base::target::Target, guard::Access, model::ToolSpec};

/// Writes a whole file.
pub struct WriteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the workspace.
    path: String,
    /// The whole content that it shall have.
    content: String,
}

impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "write_file",
            description: "Writes a whole file of the workspace: a new one, with the folders that \
                          are missing, or a new content for one that exists, which keeps its \
                          permissions. To change a part of a file use edit_file."
                .into(),
            schema: schema::<Arguments>(),
        }
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    fn prepare(&self, kit: &Kit, _caller: &Caller, input: &Value) -> Result<Prepared, String> {
        let Arguments { path, content } = arguments(input)?;
        let target = kit.workspace.target(&path).map_err(|why| why.to_string())?;
        kit.check_size(target.path(), content.len() as u64)?;
        let what = if target.exists() { "replace the content of" } else { "make" };
        let path = target.path().display();
        let preview = format!("{what} {path}: {}\n{}", measure(&content), replaced("", &content));
        Ok(Prepared {
            accesses: vec![Access::Write(target.path().to_path_buf())],
            preview,
            run: Box::new(move |_| write(&target, &content).map(Outcome::Text)),
        })
    }
}

fn write(target: &Target, content: &str) -> Result<String, ToolError> {
    let before = target.read()?;
    let path = target.path();
    let was = before.map(|file| whole_text(&file, path));
    target.replace(content.as_bytes())?;
    let wrote = format!("wrote {}: {}", path.display(), measure(content));
    Ok(match was {
        None => format!("{wrote}, a new file"),
        Some(Ok(was)) if was == content.as_bytes() => format!("{wrote}, the same as before"),
        Some(Ok(was)) => format!("{wrote}\n{}", change(&String::from_utf8_lossy(&was), content)),
        // What was there can't be shown, which is no reason not to replace it.
        Some(Err(_)) => wrote,
    })
}

fn measure(content: &str) -> String {
    format!("{}, {}", counted(content.lines().count(), "line"), size(content.len() as u64))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use serde_json::json;

    use super::*;
    use crate::tools::bench::Bench;

    #[test]
    fn files_are_made_with_their_folders_when_the_call_runs() {
        let bench = Bench::new();
        let input = || json!({"path": "a/b/c.txt", "content": "one\ntwo\n"});
        let prepared = bench.prepare(&WriteFile, input()).unwrap();
        assert_eq!(prepared.accesses, [Access::Write("a/b/c.txt".into())]);
        assert_eq!(prepared.preview, "make a/b/c.txt: 2 lines, 8 bytes\n+one\n+two\n");
        assert!(!bench.at("a").exists());
        let wrote = bench.call(&WriteFile, input()).unwrap();
        assert_eq!(wrote, "wrote a/b/c.txt: 2 lines, 8 bytes, a new file");
        assert_eq!(bench.get("a/b/c.txt"), "one\ntwo\n");
        assert_eq!(
            bench.call(&WriteFile, input()).unwrap(),
            wrote.replace("a new file", "the same as before")
        );
        let mode = fs::metadata(bench.at("a/b/c.txt")).unwrap().permissions().mode();
        assert_eq!(mode & 0o600, 0o600);
        assert_eq!(fs::read_dir(bench.at("a/b")).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn what_exists_keeps_its_permissions() {
        let bench = Bench::new();
        bench.put("run.sh", "old\n");
        let set = |mode| fs::set_permissions(bench.at("run.sh"), PermissionsExt::from_mode(mode));
        let write = || bench.call(&WriteFile, json!({"path": "run.sh", "content": "new\n"}));
        set(0o755).unwrap();
        assert_eq!(write().unwrap(), "wrote run.sh: 1 line, 4 bytes\n@@ line 1 @@\n-old\n+new\n");
        let mode = fs::metadata(bench.at("run.sh")).unwrap().permissions().mode();
        assert_eq!((bench.get("run.sh"), mode & 0o777), ("new\n".to_owned(), 0o755));
        set(0o555).unwrap();
        assert!(write().unwrap_err().contains("read-only"));
    }

    #[test]
    fn a_binary_or_huge_file_may_be_replaced() {
        let bench = Bench::new();
        bench.put("data", b"\0\x01");
        let wrote = bench.call(&WriteFile, json!({"path": "data", "content": ""})).unwrap();
        assert_eq!(
            (wrote.as_str(), bench.get("data").as_str()),
            ("wrote data: 0 lines, 0 bytes", "")
        );
    }

    #[test]
    fn a_folder_that_moves_between_judgement_and_run_is_not_written_to() {
        let bench = Bench::new();
        bench.put("src/a.txt", "old");
        bench.put(".git/hooks/keep", "");
        let input = json!({"path": "src/post-checkout", "content": "#!/bin/sh\n"});
        let prepared = bench.prepare(&WriteFile, input).unwrap();
        fs::rename(bench.at("src"), bench.at(".git/hooks/src")).unwrap();
        let ended = (prepared.run)(&bench.scope).unwrap_err().to_string();
        assert!(ended.contains("it was moved"), "{ended}");
        let input = json!({"path": "new/a.txt", "content": ""});
        let prepared = bench.prepare(&WriteFile, input).unwrap();
        bench.link("new", ".git/hooks");
        let ended = (prepared.run)(&bench.scope).unwrap_err().to_string();
        assert!(ended.contains("refused"), "{ended}");
        assert!(!bench.at(".git/hooks/a.txt").exists());
    }
}
