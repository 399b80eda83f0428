//! The command `purview-lab`.

use std::process::{Command, Output};

/// `purview-lab ARGS`, without the environment of the tests.
pub fn lab(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_purview-lab"));
    command.args(args).env_remove("PURVIEW_CONFIG");
    command
}

pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The exit code, standard output and standard error.
pub fn out(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}
