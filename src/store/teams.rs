//! Team files: which there are, and what is in one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::model::{Team, TeamFault, read_team};

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
    let team = read_team(text, &name).map_err(faulty)?;
    Ok(TeamFile { path: whole, team })
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
