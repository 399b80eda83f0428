//! A scene and a gateway in a process of your own: clients connect, your code does the rest.
//!
//! cargo run -p purview-server --example server

use std::time::Duration;

use purview_server::config::Config;
use purview_server::process::{Background, run_tokens};

/// One scene of four regions. Clients may send positions.
const CONFIG: &str = r#"
[gateway]
ws = "127.0.0.1:0"
tcp = "off"

[console]
listen = "off"

[[scene]]
name = "field"
width = "1024m"
depth = "1024m"
region = [1, 1]
moves = "trusted"
teleports = "clients"
"#;

/// A running server, where clients connect, and a token that lets one player in for an hour.
pub struct Started {
    /// The server; it stops when this value is dropped.
    pub server: Background,
    /// The address for clients.
    pub url: String,
    /// The token.
    pub token: String,
}

/// Starts the server.
pub fn start(subject: &str) -> Result<Started, Box<dyn std::error::Error>> {
    let config = Config::parse(CONFIG)?;
    let tokens = run_tokens(&config)?;
    let token = tokens.mint(subject, Some(Duration::from_secs(3_600)))?;
    let server = Background::start(config, tokens)?;
    let url = server.reach().url().unwrap_or_default();
    Ok(Started { server, url, token })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let started = start("ann")?;
    println!("clients connect to {} with the token {}", started.url, started.token);
    println!("press Enter to stop");
    std::io::stdin().read_line(&mut String::new())?;
    let figures = started.server.reach().figures();
    println!("skipped ticks: {}, lost frames: {}", figures.skipped_ticks, figures.frames_lost);
    Ok(())
}
