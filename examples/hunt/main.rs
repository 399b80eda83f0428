//! The example game `hunt` in one process: `cargo run -p purview-server --example hunt`.

mod rules;
use std::sync::Arc;

use purview_server::config::Config;
use purview_server::process::{Background, run_tokens};

// ANCHOR: main
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = Config::parse(include_str!("hunt.toml"))?;
    let tokens = run_tokens(&config)?;
    let token = tokens.mint("ann", Some(std::time::Duration::from_secs(3_600)))?;
    let server = Background::start_with(config, tokens, Some(Arc::new(rules::Hunt::default())))?;
    println!("{} token {token}, Enter stops", server.reach().url().unwrap_or_default());
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}
// ANCHOR_END: main
