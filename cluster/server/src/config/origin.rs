//! Where a setting was said: an error points there.

use std::fmt;
use std::path::PathBuf;

/// Where a setting was said.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A line of a file, from 1; 0 = the file as a whole.
    File(PathBuf, usize),
    /// An environment variable.
    Env(String),
    /// A `--set` flag, as written.
    Flag(String),
    /// Nowhere: the built-in default.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File(path, 0) => write!(f, "{}", path.display()),
            Origin::File(path, line) => write!(f, "{}:{line}", path.display()),
            Origin::Env(name) => write!(f, "environment {name}"),
            Origin::Flag(text) => write!(f, "--set {text}"),
            Origin::Default => write!(f, "default"),
        }
    }
}
