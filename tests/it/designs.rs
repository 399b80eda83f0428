//! The page *Where the designs went*: its tables have every row once, in order, and each row names
//! files, functions and tests that exist, or says why it has no test.

use std::collections::BTreeMap;

use crate::house::{has_function, root};

/// The page, from the root.
const PAGE: &str = "docs/contributing/designs.md";

/// Number of the rows of all tables.
const ROWS: usize = 188;

/// What has become of what a design asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Holds,
    Differs,
    Missing,
}

/// A row of a table: `| number | what is asked for | what does it | what holds it |`.
#[derive(Debug)]
struct Row<'a> {
    line: usize,
    /// The title of the table.
    design: &'a str,
    cells: Vec<&'a str>,
}

fn cells(row: &str) -> Vec<&str> {
    row.trim().trim_matches('|').split('|').map(str::trim).collect()
}

/// The rows of all tables below a title, without their heads.
fn rows(page: &str) -> Vec<Row<'_>> {
    let mut design = "";
    let mut found = Vec::new();
    for (i, text) in page.lines().enumerate() {
        design = text.strip_prefix("## ").unwrap_or(design);
        let cells = cells(text);
        let is_head = cells[0].is_empty() || cells[0].starts_with("---");
        if text.starts_with('|') && !design.is_empty() && !is_head {
            found.push(Row { line: i + 1, design, cells });
        }
    }
    found
}

/// The code spans of a cell that name a file or folder, and the function in it, if they name one.
fn names(cell: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let spans = cell.split('`').skip(1).step_by(2);
    let paths = spans.filter(|span| span.contains('/') || span.ends_with(".toml"));
    paths.map(|span| span.split_once("::").map_or((span, None), |(file, name)| (file, Some(name))))
}

/// Whether a source has a test of this name that is not ignored.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let is_test = |at: usize| {
        let above = lines[..at].iter().rev();
        let above = above.take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        let attributes: Vec<_> = above.filter(|line| line.starts_with("#[")).collect();
        let has = |what: &str| attributes.iter().any(|attribute| attribute.contains(what));
        has("test") && !has("ignore")
    };
    (0..lines.len()).any(|at| has_function(lines[at], name) && is_test(at))
}

/// What is wrong with the names of a cell. `tests`: its functions are tests.
fn wrong_names(cell: &str, tests: bool) -> Vec<String> {
    let wrong = |(file, name): (&str, Option<&str>)| {
        let path = root().join(file);
        let Some(name) = name else {
            return (!path.exists())
                .then(|| format!("{file} does not exist; name a file or folder from the root"));
        };
        let Ok(source) = std::fs::read_to_string(&path) else {
            return Some(format!(
                "{file} is no file; name one from the root, as in `tests/it/views.rs::NAME`"
            ));
        };
        match (has_function(&source, name), tests) {
            (false, _) => Some(format!("{file} has no `fn {name}`; name a function of that file")),
            (true, true) if !has_test(&source, name) => {
                Some(format!("{name} of {file} is no test that runs; name one that is"))
            }
            (true, _) => None,
        }
    };
    names(cell).filter_map(wrong).collect()
}

/// What the last cell of a row says.
fn verdict(held: &str) -> Result<Verdict, String> {
    let verdicts = [
        ("missing:", Verdict::Missing),
        ("differs:", Verdict::Differs),
        ("no test:", Verdict::Holds),
    ];
    for (word, verdict) in verdicts {
        if let Some(why) = held.strip_prefix(word) {
            let says = why.chars().any(char::is_alphabetic);
            return if says { Ok(verdict) } else { Err(format!("say after `{word}` what or why")) };
        }
    }
    match names(held).any(|(_, name)| name.is_some()) {
        true => Ok(Verdict::Holds),
        false => {
            let reasons = "`no test:`, `differs:` or `missing:`, and why";
            Err(format!("name a test, as `FILE::NAME`; without one write {reasons}"))
        }
    }
}

/// What is wrong with a row, whose number should be `number`.
fn wrong_row(row: &Row<'_>, number: usize) -> Vec<String> {
    let [at, asked, does, held] = row.cells[..] else {
        return vec![format!(
            "{} cells; a row has four, and none of them has a `|` inside",
            row.cells.len()
        )];
    };
    let mut wrong = Vec::new();
    if at != number.to_string() {
        wrong.push(format!("the number is {at:?}; {number} comes next"));
    }
    if asked.is_empty() || does.is_empty() {
        wrong.push("an empty cell; say what is asked for, and what does it".into());
    }
    wrong.extend(wrong_names(does, false));
    wrong.extend(wrong_names(held, true));
    wrong.extend(verdict(held).err());
    wrong
}

/// The rows of each design: those that hold, differ and are missing.
fn counts<'a>(rows: &[Row<'a>]) -> BTreeMap<&'a str, [usize; 3]> {
    let mut counts = BTreeMap::new();
    for row in rows {
        if let Some(Ok(verdict)) = row.cells.last().map(|held| verdict(held)) {
            counts.entry(row.design).or_insert([0; 3])[verdict as usize] += 1;
        }
    }
    counts
}

/// What is wrong with the page's table of counts, `| [design](#anchor) | holds | differs | missing |`.
fn wrong_counts(page: &str, rows: &[Row<'_>]) -> Vec<String> {
    let mut left = counts(rows);
    let mut wrong = Vec::new();
    let head = page.lines().enumerate().take_while(|(_, text)| !text.starts_with("## "));
    for (i, text) in head.filter(|(_, text)| text.starts_with('|')) {
        let cells = cells(text);
        let [design, said @ ..] = &cells[..] else { continue };
        let Some((design, _)) = design.strip_prefix('[').and_then(|d| d.split_once(']')) else {
            continue;
        };
        let line = i + 1;
        match left.remove(design) {
            None => wrong
                .push(format!("line {line}: {design:?} is the title of no table, or stands twice")),
            Some(counted) if *said != counted.map(|n| n.to_string()) => {
                wrong.push(format!(
                    "line {line}: {design}: {said:?} are said; the rows are {counted:?}"
                ));
            }
            Some(_) => {}
        }
    }
    wrong.extend(left.keys().map(|design| format!("the table of counts has no row of {design:?}")));
    wrong
}

/// All that is wrong with a page of so many rows.
fn wrong(page: &str, count: usize) -> Vec<String> {
    let rows = rows(page);
    let mut wrong = Vec::new();
    for (number, row) in (1..).zip(&rows) {
        let told = wrong_row(row, number).into_iter();
        wrong.extend(told.map(|what| format!("line {}, row {number}: {what}", row.line)));
    }
    if rows.len() != count {
        wrong.push(format!("{} rows; the designs have {count}", rows.len()));
    }
    wrong.extend(wrong_counts(page, &rows));
    wrong
}

#[test]
fn every_row_of_the_designs_names_what_exists_and_a_test_or_a_reason() {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let wrong = wrong(&page, ROWS);
    assert!(wrong.is_empty(), "{PAGE}:\n{}", wrong.join("\n"));
}

/// A page with one table of these rows and the counts `1, 0, 0`.
fn page_of(rows: &str) -> String {
    let head = "| | asked | does | held |\n|---|---|---|---|\n";
    format!(
        "| design | h | d | m |\n|---|---|---|---|\n| [A](#a) | 1 | 0 | 0 |\n\n## A\n\n{head}{rows}"
    )
}

/// What the only complaint about a page says.
fn complaint(rows: &str, count: usize) -> String {
    let told = wrong(&page_of(rows), count);
    assert_eq!(told.len(), 1, "{told:?}");
    told.concat()
}

#[test]
fn wrong_rows_of_the_designs_are_detected() {
    let held = "`tests/it/designs.rs::wrong_rows_of_the_designs_are_detected`";
    assert_eq!(
        wrong(&page_of(&format!("| 1 | x | `src/lib.rs`, `view_cap` | {held} |")), 1),
        [""; 0]
    );
    assert_eq!(wrong(&page_of("| 1 | x | y | no test: a dependency |"), 1), [""; 0]);
    for (row, says) in [
        (format!("| 2 | x | y | {held} |"), "row 1: the number is \"2\"; 1 comes next"),
        (format!("| 1 | x | | {held} |"), "an empty cell"),
        (format!("| 1 | x | `src/no.rs` | {held} |"), "src/no.rs does not exist"),
        (format!("| 1 | x | `src/no.rs::go` | {held} |"), "src/no.rs is no file"),
        (format!("| 1 | x | `src/lib.rs::go` | {held} |"), "src/lib.rs has no `fn go`"),
        (
            "| 1 | x | y | `tests/it/designs.rs::has_test` |".into(),
            "has_test of tests/it/designs.rs is no test",
        ),
    ] {
        let told = complaint(&row, 1);
        assert!(told.contains(says), "{row}: {told}");
    }
    for (row, says) in [
        ("no test", "name a test"),
        ("no test: ", "say after `no test:`"),
        ("missing: x", "[0, 0, 1]"),
    ] {
        let told = wrong(&page_of(&format!("| 1 | x | y | {row} |")), 1).concat();
        assert!(told.contains(says), "{row}: {told}");
    }
    let row = format!("| 1 | x | y | {held} |");
    assert!(complaint(&row, 2).contains("1 rows; the designs have 2"));
    let short = wrong(&page_of("| 1 | x | y |"), 1).concat();
    assert!(short.contains("3 cells; a row has four"), "{short}");
    assert!(!has_test("#[test]\n#[ignore = \"slow\"]\nfn go() {}\n", "go"));
    assert!(has_test("    /// Why.\n    #[tokio::test]\n    async fn go() {}\n", "go"));
}
