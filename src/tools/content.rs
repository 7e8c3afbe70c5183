//! What is in a file: read whole up to a limit, and told apart into text and what is none.
//!
//! Memory stays bounded whatever the file is, and whatever it becomes while it is read.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use super::ToolError;

/// The largest file that is read whole, in bytes.
pub const LARGEST: u64 = 10_000_000;

/// The whole content of the file `path`, which is open as `file`.
pub fn whole(file: &File, path: &Path) -> Result<Vec<u8>, ToolError> {
    let failed = |why: io::Error| ToolError::Failed(format!("read {}: {why}", path.display()));
    let length = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    if length <= LARGEST {
        file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    }
    let length = length.max(bytes.len() as u64);
    if length > LARGEST {
        return Err(ToolError::Failed(format!(
            "{} has {}, more than the {} that are read at once; look for a part of it with grep, \
             or with bash (`sed -n '1,100p'`)",
            path.display(),
            size(length),
            size(LARGEST)
        )));
    }
    Ok(bytes)
}

/// The whole content of a file of text, in whatever encoding that has no NUL.
pub fn whole_text(file: &File, path: &Path) -> Result<Vec<u8>, ToolError> {
    let bytes = whole(file, path)?;
    if bytes.contains(&0) {
        let length = size(bytes.len() as u64);
        return Err(ToolError::Failed(format!("{} is a binary file ({length})", path.display())));
    }
    Ok(bytes)
}

/// A length in bytes as people write it.
pub fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let tenths = bytes / (unit / 10);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None if bytes == 1 => "1 byte".to_owned(),
        None => format!("{bytes} bytes"),
    }
}

/// `count` of something, such as `1 line` or `2 lines`.
pub fn counted(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let sizes = [0, 1, 999, 1_000, 1_999_999, 10_000_000, 10_737_418_240].map(size);
        let wanted = ["0 bytes", "1 byte", "999 bytes", "1.0 kB", "1.9 MB", "10.0 MB", "10.7 GB"];
        assert_eq!(sizes, wanted);
    }
}
