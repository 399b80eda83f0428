//! The table of what each client does, from `clients/conformance/features.toml`: each entry names a
//! test, which must exist.

use serde::Deserialize;

use crate::house::root;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Features {
    feature: Vec<Feature>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Feature {
    name: String,
    rust: Option<(String, String)>,
    typescript: Option<(String, String)>,
}

/// "yes" if there is a test of this name in its file.
fn shown(test: Option<&(String, String)>) -> &'static str {
    let Some((file, name)) = test else { return "no" };
    let source =
        std::fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    let is_there = ["fn {}()", "test('{}'", "test(`{}`"]
        .iter()
        .any(|form| source.contains(&form.replace("{}", name)));
    assert!(is_there, "{file} has no test {name}");
    "yes"
}

/// The page with the table below its last heading.
pub fn page(page: &str) -> String {
    let file = root().join("clients/conformance/features.toml");
    let text = std::fs::read_to_string(file).expect("the list of features");
    let all: Features = toml::from_str(&text).unwrap_or_else(|e| panic!("{e}"));
    let rows = all.feature.iter().map(|f| {
        format!("| {} | {} | {} |\n", f.name, shown(f.rust.as_ref()), shown(f.typescript.as_ref()))
    });
    let (before, _) = page.split_once("## What each client does\n").expect("the heading");
    let head = "| feature | Rust | TypeScript |\n|---|---|---|\n";
    format!("{before}## What each client does\n\n{head}{}", rows.collect::<String>())
}
