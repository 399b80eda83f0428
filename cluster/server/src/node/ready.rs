//! The line that a process prints once clients or peers can reach it.

use serde::{Deserialize, Serialize};

/// What a process prints once it is up, after `ready`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Its name.
    pub name: String,
    /// Where WebSocket clients connect.
    pub ws: Option<String>,
    /// Where TCP clients connect.
    pub tcp: Option<String>,
    /// Where console, metrics and health are served.
    pub console: Option<String>,
    /// Where logic workers connect.
    #[serde(default)]
    pub logic: Option<String>,
}

/// The prefix of the line.
pub const READY: &str = "ready ";
