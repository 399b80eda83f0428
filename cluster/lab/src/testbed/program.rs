//! The program `purview`, whose processes the lab starts.

use std::path::PathBuf;

/// The program is not there.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path} is missing: build the program `purview` into the same folder (cargo build -p purview-cli)"
)]
pub struct NoProgram {
    path: String,
}

/// The program `purview` in the folder of this one.
///
/// # Errors
/// [`NoProgram`].
pub fn purview() -> Result<PathBuf, NoProgram> {
    let own = std::env::current_exe().unwrap_or_default();
    let folder = own.parent().unwrap_or(&own);
    // Test programs are in a folder below.
    let folder = match folder.parent() {
        Some(above) if folder.ends_with("deps") => above,
        _ => folder,
    };
    let path = folder.join("purview");
    match path.is_file() {
        true => Ok(path),
        false => Err(NoProgram { path: path.display().to_string() }),
    }
}
