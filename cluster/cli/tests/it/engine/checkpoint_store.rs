//! A checkpoint store under test, which can be closed and opened again.

use std::sync::Arc;

use purview_lab::sim::store::Memory;
use purview_server::launch::PostgresServer;
use purview_server::storage::Checkpoints;
use purview_server::storage::checkpoints::postgres::Postgres;
use purview_server::storage::checkpoints::redb::Redb;

pub enum CheckpointStore {
    Redb { dir: tempfile::TempDir },
    Simulated { memory: Memory },
    Postgres { server: PostgresServer },
}

impl CheckpointStore {
    pub async fn redb() -> CheckpointStore {
        CheckpointStore::Redb { dir: tempfile::tempdir().unwrap() }
    }

    pub async fn simulated() -> CheckpointStore {
        CheckpointStore::Simulated { memory: Memory::new(1) }
    }

    pub async fn postgres() -> CheckpointStore {
        let server = tokio::task::spawn_blocking(|| PostgresServer::start(None)).await.unwrap();
        CheckpointStore::Postgres { server: server.unwrap_or_else(|e| panic!("{e}")) }
    }

    /// The open store; of redb there can be one at a time.
    pub async fn open(&self) -> Arc<dyn Checkpoints> {
        match self {
            CheckpointStore::Redb { dir } => {
                Arc::new(Redb::open(dir.path()).unwrap_or_else(|e| panic!("{e}")))
            }
            CheckpointStore::Simulated { memory } => Arc::new(memory.clone()),
            CheckpointStore::Postgres { server } => {
                let opened = Postgres::connect(&server.url(), "test").await;
                Arc::new(opened.unwrap_or_else(|e| panic!("{e}")))
            }
        }
    }
}
