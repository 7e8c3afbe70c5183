//! The house rules, held against the sources.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

const ROOMS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("journal", &["base"]),
    ("model", &["base", "journal"]),
    ("store", &["base", "journal", "model"]),
    ("guard", &["base", "model"]),
    ("provider", &["base", "model"]),
    ("tools", &["base", "journal", "model", "store", "guard"]),
    ("agent", &["base", "journal", "model", "store", "guard", "provider", "tools"]),
    ("daemon", &["base", "journal", "model", "store", "agent"]),
    ("cli", &["base", "journal", "model", "store", "provider", "agent", "daemon"]),
];

const DEPENDENCIES: &[&str] = &[
    "blake3",
    "clap",
    "clap_complete",
    "fs2",
    "getrandom",
    "globset",
    "grep-regex",
    "grep-searcher",
    "ignore",
    "jiff",
    "jsonc-parser",
    "notify",
    "parking_lot",
    "rustix",
    "schemars",
    "serde",
    "serde-saphyr",
    "serde_json",
    "signal-hook",
    "strsim",
    "thiserror",
    "ureq",
];

const TOP_LEVEL: &[&str] = &[
    ".ci",
    ".git",
    ".gitignore",
    ".mailbox",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "clippy.toml",
    "rustfmt.toml",
    "src",
    "target",
    "teams",
    "tests",
];

const LONGEST_FILE: usize = 500;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root().join("src")).unwrap().to_path_buf(), text));
            }
        }
    }
    found.sort();
    found
}

fn is_test_file(path: &Path) -> bool {
    let names = ["tests.rs", "golden.rs", "laws.rs", "bench.rs"];
    names.iter().any(|name| path.file_name().is_some_and(|it| it == *name))
}

/// The part of a file that ships.
fn shipped(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap()
}

/// The rooms that a text names in `crate::` paths, those within braces too.
fn rooms_used(text: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (at, found) in text.match_indices("crate::") {
        let rest = &text[at + found.len()..];
        let head = |text: &str| -> String {
            text.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect()
        };
        let Some(inside) = rest.strip_prefix('{') else {
            used.insert(head(rest));
            continue;
        };
        let (mut depth, mut item_starts) = (0, true);
        for (place, letter) in inside.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => item_starts = true,
                letter if item_starts && letter.is_alphanumeric() => {
                    used.insert(head(&inside[place..]));
                    item_starts = false;
                }
                _ => {}
            }
        }
    }
    used
}

#[test]
fn every_room_uses_only_rooms_above_it() {
    let table: BTreeMap<_, _> = ROOMS.iter().copied().collect();
    let mut faults = Vec::new();
    for (path, text) in sources() {
        let room = path.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let Some(allowed) = table.get(room.as_str()) else { continue };
        for used in rooms_used(&text) {
            let is_room = table.contains_key(used.as_str());
            if is_room && used != room && !allowed.contains(&used.as_str()) {
                faults.push(format!("{} uses {used}", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    let map = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let listed: Vec<&str> =
        map.lines().filter_map(|it| it.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert_eq!(listed, ROOMS.iter().map(|(room, _)| *room).collect::<Vec<_>>());
}

#[test]
fn every_file_says_what_it_is_for_and_is_short() {
    for (path, text) in sources() {
        assert!(text.starts_with("//! "), "{} has no head", path.display());
        let lines = shipped(&text).lines().count();
        assert!(lines <= LONGEST_FILE, "{} has {lines} lines", path.display());
    }
}

#[test]
fn every_public_item_is_documented() {
    let mut faults = Vec::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| !is_test_file(path)) {
        let lines: Vec<&str> = shipped(&text).lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let item = line.trim_start();
            let starts =
                ["pub fn ", "pub struct ", "pub enum ", "pub trait ", "pub type ", "pub const "];
            if !starts.iter().any(|start| item.starts_with(start)) {
                continue;
            }
            let before = lines[..at].iter().rev().map(|line| line.trim_start());
            let mut before = before.skip_while(|line| {
                line.starts_with('#') || line.ends_with(")]") || line.starts_with("Debug")
            });
            if !before.next().is_some_and(|line| line.starts_with("///") || line.starts_with("$("))
            {
                faults.push(format!("{}:{}: {item}", path.display(), at + 1));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn dependencies_are_decisions() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let section = manifest.split("[dependencies]").nth(1).unwrap();
    let section = section.split("\n[").next().unwrap();
    let lines = section.lines().filter(|line| line.contains(" = "));
    let mut names: Vec<&str> = Vec::new();
    for line in lines {
        assert!(line.contains(" # "), "no reason: {line}");
        names.push(line.split(" = ").next().unwrap());
    }
    names.sort_unstable();
    assert_eq!(names, DEPENDENCIES);
}

#[test]
fn every_crash_point_is_used_by_a_test() {
    let tests = ["crash.rs", "task_crash.rs"]
        .map(|file| fs::read_to_string(root().join("tests/it").join(file)).unwrap());
    let tests = tests.concat();
    for (path, text) in sources() {
        for (at, found) in text.match_indices("crash::point(\"") {
            let rest = &text[at + found.len()..];
            let name = rest.split('"').next().unwrap();
            assert!(tests.contains(name), "{} has {name}, which no test uses", path.display());
        }
    }
}

#[test]
fn the_top_level_is_as_agreed() {
    for entry in fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(TOP_LEVEL.contains(&name.as_str()), "{name} is not agreed upon");
    }
}
