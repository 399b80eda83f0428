//! The program `purview`, whose processes the lab starts.

use std::path::PathBuf;

use anyhow::ensure;

/// The program `purview` in the folder of this one.
pub fn purview() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().unwrap_or_default();
    let folder = own.parent().unwrap_or(&own);
    // Test programs are in a folder below.
    let folder = match folder.parent() {
        Some(above) if folder.ends_with("deps") => above,
        _ => folder,
    };
    let path = folder.join("purview");
    ensure!(
        path.is_file(),
        "{} is missing: build the program `purview` into the same folder (cargo build -p purview-cli)",
        path.display()
    );
    Ok(path)
}
