//! The book: every link in its pages and in the README leads to an existing file and anchor, and
//! every page is in the summary, or in the table of records.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::house::{files, has_function, root, short};

/// The targets of the links and images of a page, without code, with line numbers.
fn links(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (i, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for part in text.split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or_default();
            found.push((i + 1, target.to_string()));
        }
    }
    found
}

/// The anchors of a page: its headings in the form that the book and GitHub use.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut found = BTreeSet::new();
    for line in page.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        if fenced || !line.starts_with('#') {
            continue;
        }
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        found.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
    }
    found
}

/// What is wrong with a link of the page at `path`; `None` if the link is valid.
fn broken(path: &Path, page: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let text = if file.is_empty() {
        page.to_string()
    } else {
        let at = path.parent().unwrap_or(Path::new("")).join(file);
        if !at.exists() {
            return Some("has no target file".into());
        }
        if anchor.is_empty() {
            return None;
        }
        std::fs::read_to_string(&at).unwrap_or_default()
    };
    let known = anchor.is_empty() || anchors(&text).contains(anchor);
    (!known).then(|| format!("no heading of that page is #{anchor}"))
}

fn pages() -> Vec<PathBuf> {
    let mut pages = files("docs", ".md");
    let papers = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
    pages.extend(papers.map(|name| root().join(name)));
    pages
}

#[test]
fn every_link_has_a_target() {
    let mut found = Vec::new();
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        for (line, target) in links(&page) {
            if let Some(what) = broken(&path, &page, &target) {
                found.push(format!("{}:{line}: {target}: {what}", short(&path)));
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn every_page_is_in_the_summary() {
    let listed_in = |list: &str| {
        let path = root().join("docs").join(list);
        let page = std::fs::read_to_string(&path).unwrap();
        links(&page).into_iter().map(move |(_, t)| path.with_file_name(t)).collect::<Vec<_>>()
    };
    // The records of decisions are in the table of their folder.
    let lists = ["SUMMARY.md", "contributing/adr/README.md"];
    let listed: BTreeSet<_> = lists.into_iter().flat_map(listed_in).collect();
    let missing: Vec<_> = files("docs", ".md")
        .into_iter()
        .filter(|page| !page.ends_with("SUMMARY.md") && !listed.contains(page))
        .map(|page| short(&page))
        .collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
}

/// The paths of source files that a page names in code spans, with line numbers.
fn named_files(page: &str) -> Vec<(usize, &str)> {
    let roots =
        ["src/", "cluster/", "clients/", "tests/", "benches/", "fuzz/", "deploy/", "examples/"];
    let mut found = Vec::new();
    for (i, line) in page.lines().enumerate() {
        for span in line.split('`').skip(1).step_by(2) {
            let path = span.split([' ', ':', '#']).next().unwrap_or_default();
            let is_path = roots.iter().any(|root| path.starts_with(root));
            let is_pattern = path.contains(['*', '<', '{', '$'])
                || path.contains("NAME")
                || path.contains("TARGET");
            if is_path && !is_pattern {
                found.push((i + 1, path));
            }
        }
    }
    found
}

#[test]
fn every_file_named_in_a_page_exists() {
    let mut found = Vec::new();
    for path in pages().iter().filter(|path| !path.ends_with("CHANGELOG.md")) {
        let page = std::fs::read_to_string(path).unwrap();
        for (line, file) in named_files(&page) {
            if !root().join(file).exists() {
                found.push(format!("{}:{line}: the file {file} does not exist", short(path)));
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// Longest line of a document. Tables, code and lines of a single word are exempt.
const COLUMNS: usize = 100;

fn long_lines(page: &str) -> Vec<usize> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (i, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let table = line.trim_start().starts_with('|');
        let one_word = line.trim_start_matches(['-', ' ']).split(' ').count() < 2;
        if line.chars().count() > COLUMNS && !fenced && !table && !one_word {
            found.push(i + 1);
        }
    }
    found
}

#[test]
fn lines_of_documents_are_short() {
    let mut found = Vec::new();
    for path in pages().iter().filter(|path| !path.ends_with("SUMMARY.md")) {
        let page = std::fs::read_to_string(path).unwrap();
        found.extend(long_lines(&page).iter().map(|line| format!("{}:{line}", short(path))));
    }
    assert!(found.is_empty(), "longer than {COLUMNS} characters:\n{}", found.join("\n"));
}

/// A row of a table of steps in docs/contributing/architecture.md: a file, and a function in it.
#[derive(Debug, PartialEq, Eq)]
struct Step<'a> {
    line: usize,
    file: &'a str,
    function: &'a str,
}

/// Most steps of one way through the code.
const STEPS: usize = 12;

/// The tables of steps of a page: rows that begin with a number, a file and a function.
fn tables_of_steps(page: &str) -> Vec<Vec<Step<'_>>> {
    let mut tables = vec![Vec::new()];
    for (i, row) in page.lines().enumerate() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        match cells[..] {
            ["", number, file, function, _, ""] if number.parse::<u32>().is_ok() => {
                let (file, function) = (file.trim_matches('`'), function.trim_matches('`'));
                tables.last_mut().unwrap().push(Step { line: i + 1, file, function });
            }
            _ => tables.push(Vec::new()),
        }
    }
    tables.retain(|steps| !steps.is_empty());
    tables
}

#[test]
fn every_step_of_the_architecture_is_a_function_and_no_way_is_long() {
    let page = std::fs::read_to_string(root().join("docs/contributing/architecture.md")).unwrap();
    let tables = tables_of_steps(&page);
    assert_eq!(tables.len(), 4, "a move, a frame, a handoff and a node failure");
    let mut wrong = Vec::new();
    for steps in &tables {
        let first = steps[0].line;
        if steps.len() > STEPS {
            wrong.push(format!("line {first}: {} steps; at most {STEPS}", steps.len()));
        }
        let mut files = BTreeSet::new();
        for Step { line, file, function } in steps {
            let source = std::fs::read_to_string(root().join(file)).unwrap_or_default();
            if !has_function(&source, function) {
                wrong.push(format!("line {line}: {file} has no function {function}"));
            }
            if !files.insert(file) {
                wrong.push(format!("line {line}: {file} stands twice in this table"));
            }
        }
    }
    assert!(wrong.is_empty(), "docs/contributing/architecture.md:\n{}", wrong.join("\n"));
}

#[test]
fn tables_of_steps_are_read() {
    let page = "| step | file | function | what |\n|---|---|---|---|\n| 1 | `a.rs` | `go` | x |\n\n| 2 | b | c | d |\n";
    let step = |line, file, function| Step { line, file, function };
    assert_eq!(tables_of_steps(page), [[step(3, "a.rs", "go")], [step(5, "b", "c")]]);
    assert!(has_function("fn go<T>() {}", "go") && has_function("pub fn go() {}", "go"));
    assert!(!has_function("fn going() {}", "go"));
}

#[test]
fn missing_files_and_long_lines_are_detected() {
    let page = "`src/lib.rs` `src/no.rs` `src/*.rs` `x`\n";
    assert_eq!(named_files(page), [(1, "src/lib.rs"), (1, "src/no.rs")]);
    let long = "word ".repeat(21);
    assert_eq!(long_lines(&format!("{long}\n| {long}\n```\n{long}\n```\n")), [1]);
}

#[test]
fn broken_links_are_detected() {
    let page = "# A title, here\n[a](#a-title-here) [b](#other) [c](nowhere.md)\n`[d](code.md)`\n";
    let path = root().join("docs/x.md");
    let found: Vec<_> = links(page);
    assert_eq!(found.len(), 3, "links in code are ignored: {found:?}");
    let wrong: Vec<_> = found.iter().map(|(_, t)| broken(&path, page, t).is_some()).collect();
    assert_eq!(wrong, [false, true, true]);
}

/// The files and anchors that a page includes.
fn includes(page: &str) -> Vec<(&str, &str)> {
    let after = page.split("{{#include ").skip(1);
    let names = after.filter_map(|rest| rest.split_once("}}")?.0.split_once(':'));
    names.collect()
}

#[test]
fn every_included_part_of_a_file_exists() {
    let mut count = 0;
    for path in files("docs", ".md") {
        let page = std::fs::read_to_string(&path).unwrap();
        for (file, anchor) in includes(&page) {
            let text = std::fs::read_to_string(path.parent().unwrap().join(file)).unwrap();
            for mark in ["ANCHOR", "ANCHOR_END"] {
                let line = format!(" {mark}: {anchor}");
                let found = text.lines().filter(|found| found.ends_with(&line)).count();
                assert_eq!(found, 1, "{}: {file}: {line}", short(&path));
            }
            count += 1;
        }
    }
    assert!(count >= 10, "{count}");
}

#[test]
fn the_example_game_is_short_enough_to_be_read_at_one_sitting() {
    let hunt = files("examples/hunt", ".rs");
    let lines: usize =
        hunt.iter().map(|p| std::fs::read_to_string(p).unwrap().lines().count()).sum();
    assert!((100..420).contains(&lines), "{lines}");
}
