//! Why a process does not start.
#![allow(missing_docs, reason = "the messages say it")]

use std::net::SocketAddr;

use crate::admin::ConsoleError;
use crate::config::{ConfigErrors, PasswordError};
use crate::gateway::GatewayError;
use crate::gateway::token::TokenError;
use crate::gateway::token::keys::KeysError;
use crate::logic::LogicError;
use crate::node::NodeError;
use crate::peer::LinkError;
use crate::play::PlayError;
use crate::storage::{CheckpointError, LeaseError, RegionKey};
use crate::tls::TlsError;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    #[error(transparent)]
    Token(#[from] KeysError),
    #[error(
        "token.secret_file is missing: it names the file with the secret that signs clients' tokens (or token.keys_file \
         one with public keys); make one with `head -c 32 /dev/urandom | base64 > purview.secret`"
    )]
    NoSecret,
    #[error(
        "{key} = \"{addr}\" is not on loopback: there `purview dev`, too, needs token.secret_file, the file with the \
         secret that signs clients' tokens; without it any client could sign one"
    )]
    OpenToAll { key: &'static str, addr: SocketAddr },
    #[error(transparent)]
    Process(ProcessError),
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
    #[error("the server ended before it was up")]
    Ended,
}

impl From<ProcessError> for ServerError {
    fn from(error: ProcessError) -> ServerError {
        match error {
            ProcessError::Config(errors) => ServerError::Config(errors),
            other => ServerError::Process(other),
        }
    }
}

/// Why a process of a cluster does not start.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Store(#[from] LeaseError),
    #[error(transparent)]
    Checkpoints(#[from] CheckpointError),
    #[error(
        "server.data_dir holds region {0}, but the configuration has no such region; restore its scene's name, position and \
         regions, or start with an empty server.data_dir"
    )]
    UnknownRegion(RegionKey),
    #[error(
        "{key} = {address:?} is on another machine, and its traffic would be plain text: name certificates in \
         [cluster.tls], or, in a network that only the cluster can reach, set cluster.insecure = true"
    )]
    Insecure { key: &'static str, address: String },
    #[error(
        "cluster.advertise = \"auto\": no address of this machine reaches the etcd at {etcd:?}, and {listen} is every \
         address; name the one for peers as host:port"
    )]
    NoAdvertise { listen: SocketAddr, etcd: String },
    #[error(transparent)]
    Password(#[from] PasswordError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Tickets(#[from] KeysError),
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    #[error(transparent)]
    Console(#[from] ConsoleError),
    #[error(transparent)]
    Play(#[from] PlayError),
    #[error("play.enabled: {0}")]
    Visitors(#[from] TokenError),
    #[error(transparent)]
    Logic(#[from] LogicError),
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
    #[error("server.demo = true: this program has no demo NPCs; set the key to false")]
    NoPopulation,
}
