//! The book: every link of its pages and of the README leads somewhere, anchors too, and every page
//! stands in the summary.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::house::{files, root, short};

/// The targets of the links and pictures of a page, code left out, with line numbers.
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

/// The anchors of a page: its headings as the book and GitHub name them.
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

/// What is wrong with a link of the page at `path`; `None` if nothing is.
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
            return Some("leads nowhere".into());
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
    pages.extend(["README.md", "CHANGELOG.md"].map(|name| root().join(name)));
    pages
}

#[test]
fn every_link_leads_somewhere() {
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
fn every_page_stands_in_the_summary() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<_> = links(&summary).into_iter().map(|(_, t)| docs.join(t)).collect();
    let missing: Vec<_> = files("docs", ".md")
        .into_iter()
        .filter(|page| !page.ends_with("SUMMARY.md") && !listed.contains(page))
        .map(|page| short(&page))
        .collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
}

#[test]
fn broken_links_are_detected() {
    let page = "# A title, here\n[a](#a-title-here) [b](#other) [c](nowhere.md)\n`[d](code.md)`\n";
    let path = root().join("docs/x.md");
    let found: Vec<_> = links(page);
    assert_eq!(found.len(), 3, "code is left out: {found:?}");
    let wrong: Vec<_> = found.iter().map(|(_, t)| broken(&path, page, t).is_some()).collect();
    assert_eq!(wrong, [false, true, true]);
}
