//! The one question that a clerk asks of the system: whether a word is a program on the `PATH`.
//!
//! It starts nothing.

use std::{env, fs, os::unix::fs::PermissionsExt, path::Path};

/// Whether a folder of the `PATH` has an executable file of this name.
pub fn on_path(word: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| is_executable(&folder.join(word)))
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found() {
        assert!(on_path("sh"));
        assert!(!on_path("the"));
        assert!(!on_path(""));
        assert!(!on_path(".."));
    }
}
