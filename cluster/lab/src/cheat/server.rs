//! The server that a trial starts in this process.

use anyhow::Context;
use purview::actor::player::Planes;
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::logins::Duplicate;
use purview_server::process::{Background, run_tokens};

use crate::load::clients::HOLDS;

/// More than the clients of a trial beside its roaming honest players.
const CLIENTS_MAX: u32 = 200;

/// A server with its players' records in a folder of its own. Dropping it stops it.
pub struct TrialServer {
    server: Background,
    tokens: Tokens,
    scenes: Vec<String>,
    _folder: tempfile::TempDir,
}

#[derive(Debug, Clone)]
pub struct Access {
    /// The gateways, at least one.
    pub urls: Vec<String>,
    /// A token for each client, each of a subject of its own.
    pub tokens: Vec<String>,
    /// The scenes, at least one, with the same spawn position.
    pub scenes: Vec<String>,
}

impl TrialServer {
    /// Starts a server with a configuration as [`TrialServer::prepare`] changes it.
    pub fn start(mut config: Config) -> anyhow::Result<TrialServer> {
        let folder = tempfile::tempdir().context("no folder for the players' records")?;
        TrialServer::prepare(&mut config);
        config.server.data_dir = Some(folder.path().to_owned());
        let tokens = run_tokens(&config)?;
        let scenes = config.scenes.iter().map(|scene| scene.spec.name.clone()).collect();
        let server = Background::start(config, tokens.clone())?;
        Ok(TrialServer { server, tokens, scenes, _folder: folder })
    }

    /// A free port, no console, and one session for each subject.
    pub fn prepare(config: &mut Config) {
        config.gateway.ws.set_port(0);
        config.gateway.tcp = None;
        config.console.listen = None;
        config.token.duplicate = Some(Duplicate::Replace);
    }

    /// Access for a trial with so many roaming honest players.
    pub fn access(&self, honest: u32) -> anyhow::Result<Access> {
        let url = self.server.reach().url().context("gateway.ws is \"off\"")?;
        let mint = |n| self.tokens.mint_for(&format!("trial-{n}"), Some(HOLDS), &Planes::Any);
        let tokens = (0..CLIENTS_MAX + honest).map(mint).collect::<Result<_, _>>()?;
        Ok(Access { urls: vec![url], tokens, scenes: self.scenes.clone() })
    }
}
