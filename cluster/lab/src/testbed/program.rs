//! Processes that the lab starts, above all of the program `purview`.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};

/// A process that ends when this is dropped.
pub struct Spawned(pub Child);

impl Spawned {
    /// Starts a process, and gives the first line that it prints.
    pub fn with_line(command: &mut Command) -> anyhow::Result<(Spawned, String)> {
        let mut process = Spawned(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?);
        let out = process.0.stdout.take().context("the process has no output")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        Ok((process, line))
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

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
