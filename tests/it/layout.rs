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

/// Most lines of a function outside tests.
const FUNCTION_LINES: usize = 70;

/// The functions of a source and their lines, without the tests at its end. Sources are formatted:
/// a function ends at the first closing brace that is indented like its `fn`.
fn functions(source: &str) -> Vec<(String, usize)> {
    let code = source.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let Some((_, rest)) = code.split_once("fn ").filter(|(b, _)| is_head(b)) else {
            continue;
        };
        let name = rest.split(['(', '<']).next().unwrap_or_default();
        let is_end = |line: &&str| {
            line.trim_start().starts_with('}') && line.len() - line.trim_start().len() == indent
        };
        if line.ends_with('}') {
            found.push((name.to_owned(), 1));
            continue;
        }
        let body = lines[at..].iter().position(|line| line.ends_with('{'));
        let declared = lines[at..].iter().position(|line| line.ends_with(';'));
        // A declaration of a trait has no body.
        if body.is_none_or(|body| declared.is_some_and(|declared| declared < body)) {
            continue;
        }
        if let Some(length) = lines[at..].iter().position(is_end) {
            found.push((name.to_owned(), length + 1));
        }
    }
    found
}

/// Whether what stands before `fn` on a line makes it the head of a function.
fn is_head(before: &str) -> bool {
    let public = before.strip_prefix("pub(").and_then(|rest| rest.split_once(')'));
    let rest = public.map_or(before.strip_prefix("pub").unwrap_or(before), |(_, rest)| rest);
    rest.split_whitespace().all(|word| ["const", "async"].contains(&word))
}

#[test]
fn functions_are_short() {
    let mut lengths = Vec::new();
    let mut long = Vec::new();
    for folder in
        ["src", "cluster/server/src", "cluster/lab/src", "cluster/cli/src", "clients/rust/src"]
    {
        let is_test = |file: &str| {
            ["tests.rs", "properties.rs"].iter().any(|end| file.ends_with(end))
                || file.contains("/tests/")
        };
        for file in files(folder, ".rs").iter().filter(|file| !is_test(&short(file))) {
            for (name, lines) in functions(&std::fs::read_to_string(file).unwrap()) {
                lengths.push(lines);
                if lines > FUNCTION_LINES {
                    long.push(format!("{}: {name}: {lines} lines", short(file)));
                }
            }
        }
    }
    lengths.sort_unstable();
    let of = |share: usize| lengths[lengths.len() * share / 100];
    println!("{} functions: median {}, p99 {}", lengths.len(), of(50), of(99));
    assert!(lengths.len() > 4_000, "only {} functions were found", lengths.len());
    assert!(long.is_empty(), "more than {FUNCTION_LINES} lines:\n{}", long.join("\n"));
    assert!(of(50) < 8, "the median is {}", of(50));
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
fn the_length_of_a_function_is_counted() {
    let source = "\
impl A {
    pub(crate) async fn a<T>(
        x: T,
    ) -> T {
        x
    }

    fn b();
    pub fn c() {}
}

fn d() {
    if x {
    }
}

#[cfg(test)]
mod tests {
    fn e() {
    }
}
";
    assert_eq!(
        functions(source),
        [("a", 5), ("c", 1), ("d", 4)].map(|(name, lines)| (name.to_owned(), lines))
    );
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
