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

/// The files below a folder of the project whose names end so, in order.
pub fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found.retain(|path| path.to_string_lossy().ends_with(end));
    found.sort();
    found
}

/// Seconds of a time in a configuration, in minutes or seconds.
pub fn seconds(time: &str) -> u64 {
    match time.strip_suffix('m') {
        Some(minutes) => minutes.parse::<u64>().unwrap() * 60,
        None => time.trim_end_matches('s').parse().unwrap(),
    }
}

/// Where the packages of Python for a test are not installed.
pub fn need_python(modules: &str) -> Result<(), Missing> {
    let import = format!("import {modules}");
    let missing = |_| Missing("the Python packages of .ci/tools.txt are not on the PATH".into());
    run(Command::new("python3").args(["-c", &import])).map(drop).map_err(missing)
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
