//! Rules of the repository that a test can check: the length of source files, and the entries at
//! the top level.

use crate::house::{files, root, short};

/// Most lines of a source file.
const LINES: usize = 800;

#[test]
fn no_source_file_is_too_long() {
    let folders = ["src", "cluster", "clients", "tests", "benches", "fuzz"];
    let mut found = Vec::new();
    for end in [".rs", ".js", ".css", ".html"] {
        for file in folders.iter().flat_map(|folder| files(folder, end)) {
            let lines = std::fs::read_to_string(&file).unwrap().lines().count();
            if lines > LINES {
                found.push(format!("{}: {lines} lines, at most {LINES}", short(&file)));
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn the_top_level_holds_only_known_entries() {
    let known = [
        "Cargo.toml",
        "Cargo.lock",
        "README.md",
        "CHANGELOG.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "rustfmt.toml",
        "src",
        "cluster",
        "tests",
        "deploy",
        "docs",
        "benches",
        "examples",
        "proto",
        "fuzz",
        "clients",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "deny.toml",
        // Not part of the project: build output.
        "target",
    ];
    let entries = std::fs::read_dir(root()).unwrap().flatten();
    let strange: Vec<_> = entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.') && !known.contains(&name.as_str()))
        .collect();
    assert!(strange.is_empty(), "does not belong at the top level: {strange:?}");
}

#[test]
fn the_repository_has_its_documents() {
    for name in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "docs/book.toml"] {
        assert!(root().join(name).is_file(), "{name} is missing");
    }
}
