//! The example game `siege` in one process: `cargo run -p purview-server --example siege`.

mod rules;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use purview_server::config::Config;
use purview_server::process::{Background, run_tokens};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/siege/siege.toml");
    let config = Config::load(Some(&file), [], &[])?;
    let tokens = run_tokens(&config)?;
    let token = tokens.mint("ann", Some(Duration::from_secs(3_600)))?;
    let server = Background::start_with(config, tokens, Some(Arc::new(rules::Siege::default())))?;
    println!("{} token {token}, Enter stops", server.reach().url().unwrap_or_default());
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}
