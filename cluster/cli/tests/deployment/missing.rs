//! What a machine may lack.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What this machine cannot do, and why.
#[derive(Debug)]
pub struct Missing(pub String);

impl Missing {
    /// Prints that a test is skipped, by its name.
    pub fn skips(&self, test: &str) {
        println!("SKIPPED {test}: {}", self.0);
        eprintln!("SKIPPED {test}: {}", self.0);
    }
}

/// The root of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A folder for what tests keep from run to run: images, and the data of the engine.
pub fn kept() -> PathBuf {
    let folder = root().join("target/deployment");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The program `name`, somewhere on this machine.
pub fn program(name: &str) -> Result<PathBuf, Missing> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).map(|folder| folder.join(name));
    let others =
        ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(|folder| Path::new(folder).join(name));
    let found = folders.chain(others).find(|path| path.is_file());
    found.ok_or_else(|| Missing(format!("there is no program {name}")))
}

/// Whether this process is root.
pub fn need_root() -> Result<(), Missing> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(Missing("only root may make network namespaces".into())),
    }
}

/// Runs a command; its output, or what it said when it failed.
pub fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(said(&output.stdout)),
        false => Err(format!(
            "{command:?}: {}\n{}{}",
            output.status,
            said(&output.stdout),
            said(&output.stderr)
        )),
    }
}
