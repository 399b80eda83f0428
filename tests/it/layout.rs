//! Rules of the repository that a test can check: the length of source files, and the entries at
//! the top level.

use std::path::Path;

use crate::house::{files, root, short};

/// Most lines of a source file.
const LINES: usize = 500;

/// Longer files that are to be split. This list may only shrink.
const LONG: [&str; 1] = ["cluster/server/src/peer/router.rs"];

#[test]
fn no_source_file_is_too_long() {
    let folders = ["src", "cluster", "clients", "tests", "benches", "fuzz", "examples"];
    let mut long = Vec::new();
    for end in [".rs", ".js", ".css", ".html"] {
        for file in folders.iter().flat_map(|folder| files(folder, end)) {
            let lines = std::fs::read_to_string(&file).unwrap().lines().count();
            if lines > LINES {
                long.push(short(&file));
            }
        }
    }
    long.sort();
    assert_eq!(long, LONG, "files of more than {LINES} lines, and the list of these");
}

/// Most fail points of a file: one with more wants a better seam.
const FAIL_POINTS: usize = 5;

#[test]
fn no_file_has_many_fail_points() {
    let points =
        |file: &Path| std::fs::read_to_string(file).unwrap().matches("mutants::has").count();
    let sources = files("src", ".rs").into_iter().chain(files("cluster", ".rs"));
    let counted: Vec<(String, usize)> =
        sources.map(|file| (short(&file), points(&file))).filter(|(_, n)| *n > 0).collect();
    assert!(counted.len() > 30, "only {} files with fail points were found", counted.len());
    let many: Vec<_> = counted.iter().filter(|(_, points)| *points > FAIL_POINTS).collect();
    assert!(many.is_empty(), "more than {FAIL_POINTS} fail points: {many:?}");
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
