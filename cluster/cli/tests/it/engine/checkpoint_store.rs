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
    Postgres { server: PostgresServer, cluster: u32 },
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
        CheckpointStore::Postgres { server: server.unwrap_or_else(|e| panic!("{e}")), cluster: 0 }
    }

    /// An empty store instead; in PostgreSQL that of another cluster.
    pub fn renew(&mut self) {
        match self {
            CheckpointStore::Redb { dir } => *dir = tempfile::tempdir().unwrap(),
            CheckpointStore::Simulated { memory } => *memory = Memory::new(1),
            CheckpointStore::Postgres { cluster, .. } => *cluster += 1,
        }
    }

    /// Restarts the store, if it is a server; the others are closed.
    pub fn restart(&mut self) {
        if let CheckpointStore::Postgres { server, .. } = self {
            server.kill();
            tokio::task::block_in_place(|| server.restart()).unwrap();
        }
    }

    /// The open store; of redb there can be one at a time.
    pub async fn open(&self) -> Arc<dyn Checkpoints> {
        match self {
            CheckpointStore::Redb { dir } => {
                Arc::new(Redb::open(dir.path()).unwrap_or_else(|e| panic!("{e}")))
            }
            CheckpointStore::Simulated { memory } => Arc::new(memory.clone()),
            CheckpointStore::Postgres { server, cluster } => {
                let opened = Postgres::connect(&server.url(), &format!("test-{cluster}")).await;
                Arc::new(opened.unwrap_or_else(|e| panic!("{e}")))
            }
        }
    }
}
