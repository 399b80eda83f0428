//! A real etcd and a real PostgreSQL as child processes, for `purview dev` and for tests: installed
//! programs on free ports of this machine, with their data in a given or a temporary directory.
//! They must never outlive their handle or this process.
//!
//! All calls block, at most for [`READY_LIMIT`].

pub mod child;
mod etcd;
mod find;
mod postgres;
mod server;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use etcd::EtcdServer;
pub use postgres::PostgresServer;

/// How long a server may take to start.
pub const READY_LIMIT: Duration = Duration::from_secs(60);

/// Time between two checks whether a server is ready.
const READY_PAUSE: Duration = Duration::from_millis(20);

/// How often a server is started again because another process took its port.
const STARTS_MAX: usize = 5;

#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("{program} is not installed: apt-get install {package}")]
    Missing { program: &'static str, package: &'static str },
    #[error("{what}: {cause}")]
    System { what: String, cause: std::io::Error },
    #[error("{program} does not start: {cause}\n{log}")]
    NotUp {
        program: &'static str,
        cause: String,
        /// The last lines of its log.
        log: String,
    },
}

fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> ServerError {
    move |cause| ServerError::System { what: what.into(), cause }
}

pub enum DataFolder {
    /// A directory of the caller's, which stays.
    Given(PathBuf),
    /// Deleted when the server ends.
    Temporary(tempfile::TempDir),
}

impl DataFolder {
    fn new(given: Option<&Path>) -> Result<DataFolder, ServerError> {
        match given {
            Some(path) => {
                std::fs::create_dir_all(path).map_err(system(path.display().to_string()))?;
                let path = path.canonicalize().map_err(system(path.display().to_string()))?;
                Ok(DataFolder::Given(path))
            }
            None => {
                let temporary = tempfile::Builder::new().prefix("purview-").tempdir();
                Ok(DataFolder::Temporary(temporary.map_err(system("a temporary directory"))?))
            }
        }
    }

    /// Whether it stays when the server is gone.
    fn stays(&self) -> bool {
        matches!(self, DataFolder::Given(_))
    }

    fn path(&self) -> &Path {
        match self {
            DataFolder::Given(path) => path,
            DataFolder::Temporary(dir) => dir.path(),
        }
    }
}

/// A port without a listener at this moment.
fn free_port() -> Result<u16, ServerError> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0));
    let port = listener.and_then(|listener| listener.local_addr()).map(|address| address.port());
    port.map_err(system("a free port"))
}
