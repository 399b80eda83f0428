//! The server that a trial starts in this process.

use std::time::Duration;

use purview::actor::player::Planes;
use purview_server::config::Config;
use purview_server::gateway::{TokenError, Tokens};
use purview_server::logins::Duplicate;
use purview_server::process::{Background, ServerError, run_tokens};

use super::sessions::Sessions;

/// More than the clients of a trial beside its roaming honest players.
const CHEATS_MAX: u32 = 160;
/// The lifetime of the tokens: longer than any trial.
const HOLDS: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Why the server of a trial does not start.
#[derive(Debug, thiserror::Error)]
pub enum TrialServerError {
    /// No folder for the players' records.
    #[error("there is no folder for the players' records: {0}")]
    Folder(#[from] std::io::Error),
    /// The server does not start.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// No token can be signed.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The configuration has no listener.
    #[error("the server has no listener for clients: gateway.ws is \"off\"")]
    NoListener,
}

/// A server with its players' records in a folder of its own. Dropping it stops it.
pub struct TrialServer {
    server: Background,
    tokens: Tokens,
    scenes: Vec<String>,
    _folder: tempfile::TempDir,
}

/// How the clients of a trial reach a server.
pub struct Access {
    /// Its URL.
    pub url: String,
    /// A token for each client, each of a subject of its own.
    pub tokens: Vec<String>,
    /// For the cheats that change their sessions.
    pub sessions: Sessions,
}

impl TrialServer {
    /// Starts a server with a configuration, but with a free port, without a console, and with one session
    /// for each subject.
    ///
    /// # Errors
    /// The server does not start.
    pub fn start(mut config: Config) -> Result<TrialServer, TrialServerError> {
        let folder = tempfile::tempdir()?;
        config.gateway.ws.set_port(0);
        config.gateway.tcp = None;
        config.console.listen = None;
        config.server.data_dir = Some(folder.path().to_owned());
        config.token.duplicate = Some(Duplicate::Replace);
        let tokens = run_tokens(&config)?;
        let scenes = config.scenes.iter().map(|scene| scene.spec.name.clone()).collect();
        let server = Background::start(config, tokens.clone())?;
        Ok(TrialServer { server, tokens, scenes, _folder: folder })
    }

    /// Access for a trial with so many roaming honest players.
    ///
    /// # Errors
    /// A token cannot be signed.
    pub fn access(&self, honest: u32) -> Result<Access, TrialServerError> {
        let url = self.server.reach().url().ok_or(TrialServerError::NoListener)?;
        let mint = |group: &str, n: u32| {
            self.tokens.mint_for(&format!("{group}-{n}"), Some(HOLDS), &Planes::Any)
        };
        let tokens =
            (0..CHEATS_MAX + honest).map(|n| mint("trial", n)).collect::<Result<_, _>>()?;
        let hoppers = (0..Sessions::CHEATS).map(|n| mint("hopper", n)).collect::<Result<_, _>>()?;
        let (urls, scenes) = (vec![url.clone()], self.scenes.clone());
        Ok(Access { url, tokens, sessions: Sessions { urls, tokens: hoppers, scenes } })
    }
}
