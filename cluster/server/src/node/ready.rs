//! The line that a process prints once clients or peers can reach it.

use serde::{Deserialize, Serialize};

/// What a process prints once it is up, after `ready`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    pub name: String,
    pub ws: Option<String>,
    pub tcp: Option<String>,
    pub console: Option<String>,
    pub logic: Option<String>,
}

/// The prefix of the line.
pub const READY: &str = "ready ";
