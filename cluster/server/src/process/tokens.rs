//! The tokens by which clients are let in, as the configuration and the command have it.

use std::net::SocketAddr;

use super::error::ServerError;
use crate::config::Config;
use crate::gateway::Tokens;
use crate::gateway::token::keys::Files;

/// The tokens that a configuration asks for.
///
/// # Errors
/// It names no secret, or the secret's file cannot be read or is too short.
pub fn tokens(config: &Config) -> Result<Tokens, ServerError> {
    configured_tokens(config)?.ok_or(ServerError::NoSecret)
}

/// The tokens of `purview dev` in one process: as configured, else with the public secret, as long
/// as no other machine can connect.
///
/// # Errors
/// As [`tokens`]; or there is no secret, and a listener is not on loopback.
pub fn dev_tokens(config: &Config) -> Result<Tokens, ServerError> {
    if let Some(tokens) = configured_tokens(config)? {
        return Ok(tokens);
    }
    let listeners = [
        ("gateway.ws", Some(config.gateway.ws)),
        ("gateway.tcp", config.gateway.tcp),
        ("console.listen", config.console.listen),
        ("play.listen", config.play.enabled.then_some(config.play.listen)),
    ];
    let open = |(key, addr): (_, Option<SocketAddr>)| {
        Some((key, addr.filter(|addr| !addr.ip().is_loopback())?))
    };
    match listeners.into_iter().find_map(open) {
        Some((key, addr)) => Err(ServerError::OpenToAll { key, addr }),
        None => Ok(Tokens::dev().with_rules(config.token.rules())),
    }
}

/// The tokens of a server that a command starts for its own clients: as configured, else with a secret that is made
/// for this run.
///
/// # Errors
/// The secret's file cannot be read or is too short, or the system gives no random bytes.
pub fn run_tokens(config: &Config) -> Result<Tokens, ServerError> {
    match configured_tokens(config)? {
        Some(tokens) => Ok(tokens),
        None => Ok(Tokens::random()?.with_rules(config.token.rules())),
    }
}

fn configured_tokens(config: &Config) -> Result<Option<Tokens>, ServerError> {
    match config.token.files() {
        files if files == Files::default() => Ok(None),
        files => Ok(Some(Tokens::of_files(files, config.token.rules())?)),
    }
}
