//! Shared by the tests of the repository itself: its files, and the functions in them.

use std::path::{Path, PathBuf};

/// The project's root.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All files below `folder` (a path from the root) whose names end in `end`; none if the folder
/// does not exist. Build output and hidden folders are skipped.
pub fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let skip =
                name.starts_with('.') || ["target", "output", "node_modules"].contains(&&*name);
            if path.is_dir() && !skip {
                folders.push(path);
            } else if path.is_file() && name.ends_with(end) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A path relative to the root, for messages.
pub fn short(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Whether a source has a function of this name.
pub fn has_function(source: &str, name: &str) -> bool {
    let after = |rest: &str| rest.starts_with(['(', '<']);
    let head = format!("fn {name}");
    source.match_indices(&head).any(|(at, head)| after(&source[at + head.len()..]))
}
