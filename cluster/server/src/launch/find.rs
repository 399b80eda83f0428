//! Finds installed programs.

use std::path::{Path, PathBuf};

use super::ServerError;

/// Looked at after the `PATH`.
const ALSO: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/usr/sbin"];

/// Where Debian keeps the versions of PostgreSQL.
const POSTGRESQL: &str = "/usr/lib/postgresql";

pub fn program(name: &'static str, package: &'static str) -> Result<PathBuf, ServerError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(ALSO.map(PathBuf::from));
    let found = folders.map(|folder| folder.join(name)).find(|file| is_program(file));
    found.ok_or_else(|| missing(name, package))
}

pub fn missing(program: &'static str, package: &'static str) -> ServerError {
    ServerError::Missing { program, package }
}

/// A program of PostgreSQL, of the newest version that is there.
pub fn of_postgres(name: &'static str) -> Result<PathBuf, ServerError> {
    let versions = std::fs::read_dir(POSTGRESQL).into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|version| {
            let number: u32 = version.file_name().to_str()?.parse().ok()?;
            Some((number, version.path().join("bin").join(name)))
        })
        .filter(|(_, file)| is_program(file))
        .max();
    match newest {
        Some((_, file)) => Ok(file),
        None => program(name, "postgresql"),
    }
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
