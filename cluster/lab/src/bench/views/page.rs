//! Writes the results into a page of the documentation, between two markers.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::{ViewsBench, plot, tables};

const BEGIN: &str = "<!-- results begin";
const END: &str = "<!-- results end -->";

/// The picture of the page, beside it.
fn picture(page: &Path) -> PathBuf {
    page.with_file_name("img").join("views.svg")
}

fn read(page: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(page).with_context(|| format!("{} cannot be read", page.display()))
}

/// The page with `results` between its markers; `None` if it has no markers.
pub fn with_results(page: &str, results: &str) -> Option<String> {
    let begin = page.find(BEGIN)?;
    let line_end = begin + page[begin..].find('\n')?;
    let end = line_end + page[line_end..].find(END)?;
    Some(format!("{}\n\n{}\n\n{}", &page[..line_end], results.trim(), &page[end..]))
}

/// Checks that the page can take results, before a long measurement.
///
/// # Errors
/// The page cannot be read, or has no markers.
pub fn check(page: &Path) -> anyhow::Result<()> {
    with_results(&read(page)?, "")
        .map(drop)
        .with_context(|| format!("{} lacks the markers {BEGIN:?} and {END:?}", page.display()))
}

/// Writes the results into the page and draws its picture.
///
/// # Errors
/// The page or the picture cannot be written.
pub(super) fn write(page: &Path, bench: &ViewsBench) -> anyhow::Result<()> {
    let text = with_results(&read(page)?, &tables::markdown(bench))
        .context("the page lacks the markers")?;
    let picture = picture(page);
    if let Some(folder) = picture.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be created", folder.display()))?;
    }
    for (file, text) in [(page, text), (&picture, plot::draw(&bench.crowds))] {
        std::fs::write(file, text)
            .with_context(|| format!("{} cannot be written", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_replace_only_the_text_between_the_markers() {
        let page = "a\n<!-- results begin: by hand -->\n\nold\n\n<!-- results end -->\nb\n";
        let once = with_results(page, "new\n").unwrap();
        let want = "a\n<!-- results begin: by hand -->\n\nnew\n\n<!-- results end -->\nb\n";
        assert_eq!(once, want);
        assert_eq!(with_results(&once, "new\n").unwrap(), once);
    }

    #[test]
    fn a_page_without_markers_is_an_error() {
        for page in
            ["", "<!-- results begin -->\n", "<!-- results end -->\n<!-- results begin -->\n"]
        {
            assert_eq!(with_results(page, "new"), None, "{page:?}");
        }
    }

    #[test]
    fn the_picture_is_written_beside_the_page() {
        let page = Path::new("docs/contributing/views.md");
        assert_eq!(picture(page), Path::new("docs/contributing/img/views.svg"));
    }
}
