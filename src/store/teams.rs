//! Team files: which there are, and what is in one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::model::{AgentFile, Team, TeamFault, read_team};

/// A team and the file that describes it.
#[derive(Debug, Clone)]
pub struct TeamFile {
    /// The file's absolute path.
    pub path: PathBuf,
    /// The team.
    pub team: Team,
}

/// Why there is no team.
#[derive(Debug, thiserror::Error)]
pub enum TeamFileError {
    /// The file can't be read.
    #[error("no team file {}: {why}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The system's word.
        why: io::Error,
    },
    /// The file is wrong; each fault with its place.
    #[error("{}", spelled(path, faults))]
    Faulty {
        /// Which.
        path: PathBuf,
        /// All faults.
        faults: Vec<TeamFault>,
    },
}

fn spelled(path: &Path, faults: &[TeamFault]) -> String {
    let lines: Vec<String> =
        faults.iter().map(|fault| format!("{}:{fault}", path.display())).collect();
    lines.join("\n")
}

/// Reads a team file.
pub fn read_team_file(path: &Path) -> Result<TeamFile, TeamFileError> {
    let unreadable = |why| TeamFileError::Unreadable { path: path.to_path_buf(), why };
    let whole = fs::canonicalize(path).map_err(unreadable)?;
    let text = fs::read_to_string(&whole).map_err(unreadable)?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let faulty = |faults| TeamFileError::Faulty { path: path.to_path_buf(), faults };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let workspace = whole.parent().map(workspace_of).unwrap_or_default();
    let team = read_team(text, &name, &|folder| agent_files(&workspace, folder)).map_err(faulty)?;
    Ok(TeamFile { path: whole, team })
}

/// The folder that the folders of a team file are named from: the one that holds its `teams`, else
/// its own.
fn workspace_of(folder: &Path) -> PathBuf {
    let is_teams = folder.file_name().is_some_and(|name| name == "teams");
    let above = folder.parent().filter(|_| is_teams);
    above.unwrap_or(folder).to_path_buf()
}

/// The largest agent file that is read, in bytes.
const LARGEST: u64 = 1 << 20;
/// How deep folders of agent files may be nested.
const DEEPEST: usize = 8;

/// All Markdown files below a folder, sorted. `~` is the home folder; links are not followed.
pub fn agent_files(workspace: &Path, folder: &str) -> Result<Vec<AgentFile>, String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let path = match (folder.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => workspace.join(folder),
    };
    if !path.is_dir() {
        return Err(format!(
            "there is no folder {}: make it, or take it out of \"agent_folders\"",
            path.display()
        ));
    }
    let mut files = Vec::new();
    collect(&path, folder.trim_end_matches('/'), 0, &mut files);
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

fn collect(folder: &Path, shown: &str, depth: usize, files: &mut Vec<AgentFile>) {
    let Ok(entries) = fs::read_dir(folder) else {
        let why = "the folder can't be read".to_owned();
        files.push(AgentFile { path: shown.to_owned(), text: Err(why) });
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let shown = format!("{shown}/{name}");
        let Ok(kind) = entry.file_type() else { continue };
        let is_markdown = name.to_lowercase().ends_with(".md");
        if kind.is_dir() && depth < DEEPEST {
            collect(&entry.path(), &shown, depth + 1, files);
        } else if kind.is_file() && is_markdown {
            files.push(AgentFile { text: read_agent(&entry.path()), path: shown });
        } else if is_markdown {
            let why = "it is no regular file".to_owned();
            files.push(AgentFile { path: shown, text: Err(why) });
        }
    }
}

fn read_agent(path: &Path) -> Result<String, String> {
    let length = path.metadata().map_err(|why| why.to_string())?.len();
    if length > LARGEST {
        return Err(format!("it has {length} bytes; at most {LARGEST} are read"));
    }
    let bytes = fs::read(path).map_err(|why| why.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// The team files in `workspace`, sorted.
pub fn team_files(workspace: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(workspace.join("teams")) else { return Vec::new() };
    let is_json = |path: &PathBuf| path.extension().is_some_and(|it| it == "json");
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(is_json).collect();
    files.sort();
    files
}

/// The team file that `given` means: a path, or the name of a file in `teams/`.
pub fn find_team(workspace: &Path, given: &str) -> Option<PathBuf> {
    let named = workspace.join("teams").join(format!("{given}.json"));
    if !given.contains('/') && named.is_file() {
        return Some(named);
    }
    let is_path =
        given.contains('/') || Path::new(given).extension().is_some_and(|it| it == "json");
    is_path.then(|| PathBuf::from(given))
}
