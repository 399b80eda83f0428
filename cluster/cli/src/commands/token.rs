//! `purview token`: signs a token for a client.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use purview::actor::player::Planes;
use purview::scene::Plane;

use purview_demo::flags::ConfigFlags;
use purview_server::config::Override;
use purview_server::gateway::token::keys::Files;
use purview_server::process::dev_tokens;
use serde_json::Value;

/// `purview token`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview token ada --for 1h --config purview.toml\n  \
    purview token ada --for 1h --scene city --plane 7 --plane 8\n  \
    purview token ada --for 1h --claim guild=red --claim level=7\n\n\
    Prints a token with the configured `iss` and `aud`. Its signature uses token.secret_file, or the first secret \
    (kty oct) of token.keys_file. Without either the token is for `purview dev` on this machine only.")]
pub struct TokenArgs {
    /// The subject of the token (`sub`): the name of the player.
    pub name: String,
    /// How long the token is valid, for example 1h.
    #[arg(long = "for", value_name = "TIME", value_parser = purview_demo::flags::time)]
    pub length: Duration,
    /// The scene of the --plane planes.
    #[arg(long, value_name = "NAME", requires = "planes")]
    pub scene: Option<String>,
    /// A plane of that scene that the client may enter, beside its lines; may be repeated.
    #[arg(long = "plane", value_name = "N", requires = "scene", allow_negative_numbers = true)]
    pub planes: Vec<i32>,
    /// A further claim, as JSON or as a text, for game logic (`token.claims`); may be repeated.
    #[arg(long = "claim", value_name = "NAME=VALUE", value_parser = claim)]
    pub claims: Vec<(String, Value)>,
    /// The configuration file; without it every key has its default.
    #[arg(long = "config", value_name = "FILE", env = "PURVIEW_CONFIG")]
    pub file: Option<PathBuf>,
    /// Override one key, for example `token.secret_file=purview.secret`; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
}

/// `level=7`, `guild="red"`, or as a text `guild=red`.
fn claim(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE, for example guild=red")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((name.to_owned(), value))
}

/// Runs `purview token`.
///
/// # Errors
/// The configuration has errors, or its secret cannot be used.
pub fn run_token(args: &TokenArgs) -> anyhow::Result<u8> {
    let TokenArgs { file, set, .. } = args.clone();
    let config = ConfigFlags { file, set, log: None }.load()?;
    if let Some(scene) = &args.scene
        && !config.scenes.iter().any(|known| known.spec.name == *scene)
    {
        let names = config.scenes.iter().map(|known| format!("{:?}", known.spec.name));
        let names: Vec<String> = names.collect();
        bail!("--scene {scene:?}: no such scene; expected one of {}", names.join(", "));
    }
    let of_scene =
        |scene: &String| args.planes.iter().map(|p| (scene.clone(), Plane(*p))).collect();
    let planes = Planes::Listed(args.scene.as_ref().map(of_scene).unwrap_or_default());
    let tokens = dev_tokens(&config)?;
    if config.token.files() == Files::default() {
        eprintln!(
            "note: token.secret_file is not set; this token is valid for `purview dev` on this machine only"
        );
    }
    let claims = args.claims.iter().cloned().collect();
    let token = tokens.mint_with(&args.name, Some(args.length), &planes, claims)?;
    writeln!(std::io::stdout().lock(), "{token}").context("standard output cannot be written")?;
    Ok(0)
}
