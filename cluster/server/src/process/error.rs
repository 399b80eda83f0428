//! Why a process does not start.

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
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The keys of tokens cannot be used.
    #[error(transparent)]
    Token(#[from] KeysError),
    /// Nothing says whose tokens hold.
    #[error(
        "token.secret_file is missing: it names the file with the secret that signs clients' tokens (or token.keys_file \
         one with public keys); make one with `head -c 32 /dev/urandom | base64 > purview.secret`"
    )]
    NoSecret,
    /// The secret of `dev` mode is public: it would admit every client.
    #[error(
        "{key} = \"{addr}\" is not on loopback: there `purview dev`, too, needs token.secret_file, the file with the \
         secret that signs clients' tokens; without it any client could sign one"
    )]
    OpenToAll {
        /// The key of the listener.
        key: &'static str,
        /// Where it would listen.
        addr: SocketAddr,
    },
    /// The process does not start.
    #[error(transparent)]
    Process(ProcessError),
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// The thread that starts the server ended before it was up.
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
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// It does not become a member of its cluster.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The store says no or nothing.
    #[error(transparent)]
    Store(#[from] LeaseError),
    /// What keeps checkpoints says no or nothing.
    #[error(transparent)]
    Checkpoints(#[from] CheckpointError),
    /// The data folder is one of other scenes.
    #[error(
        "server.data_dir holds region {0}, but the configuration has no such region; restore its scene's name, position and \
         regions, or start with an empty server.data_dir"
    )]
    UnknownRegion(RegionKey),
    /// Something would be said in plain text beyond this machine.
    #[error(
        "{key} = {address:?} is on another machine, and its traffic would be plain text: name certificates in \
         [cluster.tls], or, in a network that only the cluster can reach, set cluster.insecure = true"
    )]
    Insecure {
        /// The key of the configuration.
        key: &'static str,
        /// Where it leads.
        address: String,
    },
    /// No address of this machine reaches etcd, so none can be told to peers.
    #[error(
        "cluster.advertise = \"auto\": no address of this machine reaches the etcd at {etcd:?}, and {listen} is every \
         address; name the one for peers as host:port"
    )]
    NoAdvertise {
        /// Where peers are listened for.
        listen: SocketAddr,
        /// The etcds, as configured.
        etcd: String,
    },
    /// A password of a store cannot be had.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Peers cannot connect.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// There is no secret to sign resume tickets with.
    #[error(transparent)]
    Tickets(#[from] KeysError),
    /// Clients cannot connect.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The console cannot be served.
    #[error(transparent)]
    Console(#[from] ConsoleError),
    /// The page of visitors cannot be served.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// Visitors' tokens cannot be signed.
    #[error("play.enabled: {0}")]
    Visitors(#[from] TokenError),
    /// Logic workers cannot connect.
    #[error(transparent)]
    Logic(#[from] LogicError),
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// The configuration asks for demo entities that this build does not contain.
    #[error("server.demo = true: this program has no demo NPCs; set the key to false")]
    NoPopulation,
}
