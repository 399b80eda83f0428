//! A server for one machine: a cluster of one, whose leases live in the process and whose checkpoints are in one file.
//!
//! It is assembled as every process of a cluster is, so that its layout can change, too. What must never happen here: a
//! data folder of other scenes is taken for an empty one.

use std::sync::Arc;

use bytes::Bytes;
use purview::scene::{Epoch, RegionId, Scene};

use super::assemble::{Stores, assemble};
use super::cluster::ClusterProcess;
use super::environment::Environment;
use super::error::{ProcessError, ServerError};
use super::inside::Inside;
use super::reach::ServerReach;
use super::runtime::TaskRuntime;
use super::start::in_cluster;
use crate::config::Config;
use crate::gateway::Tokens;
use crate::node::startup::PROCESSES;
use crate::node::{NodeError, Roles};
use crate::storage::checkpoints::redb::Redb;
use crate::storage::leases::embedded::Embedded;
use crate::storage::{Checkpoints, Leases, Whole};

/// The node's name, unless the configuration names it.
const NAME: &str = "local";

/// A running server. It lives inside an actix system.
#[derive(Debug)]
pub struct Server {
    process: ClusterProcess,
    reach: ServerReach,
    file: Option<Redb>,
}

impl Server {
    /// Starts everything, and waits until every region runs or is down; to be called inside a running actix system.
    ///
    /// # Errors
    /// What cannot be started; what was started before it is stopped again.
    pub async fn start(
        config: &Config,
        tokens: Tokens,
        inside: Inside,
    ) -> Result<Server, ServerError> {
        let mut config = config.clone();
        if config.cluster.node.is_empty() {
            config.cluster.node = NAME.into();
        }
        let runtime = TaskRuntime::new()?;
        let (stores, file) = stores(&config, &runtime).await?;
        let tokens = in_cluster(tokens, &stores, &runtime).await?;
        let environment = Environment::Alone(tokens, inside);
        let (process, _) = assemble(&config, Roles::ALL, stores, (runtime, environment)).await?;
        let mut status = process.status();
        tokio::select! {
            // An error says that the lease is lost, which is told below.
            Ok(_) = status.wait_for(|status| {
                status.regions > 0 && status.located + status.down >= status.regions
            }) => {}
            lost = process.lost() => return Err(ProcessError::Node(lost).into()),
        }
        let reach = ServerReach::of(&process)?;
        Ok(Server { process, reach, file })
    }

    /// Where it can be reached.
    pub fn reach(&self) -> &ServerReach {
        &self.reach
    }

    /// The process that it is.
    pub fn process(&self) -> &ClusterProcess {
        &self.process
    }

    /// Closes every session, then stops everything, and keeps how it was where that is configured.
    pub async fn stop(self) {
        self.process.stop().await;
        let Some(file) = self.file else { return };
        // Others may still hold it, and another process may want it.
        if tokio::task::spawn_blocking(move || file.close()).await.is_err() {
            tracing::warn!("the file of checkpoints could not be closed");
        }
    }
}

/// Leases of this process, and checkpoints in `server.data_dir`, if there is one.
async fn stores(
    config: &Config,
    runtime: &TaskRuntime,
) -> Result<(Stores, Option<Redb>), ProcessError> {
    let scenes = config.build_scenes()?;
    let data_dir = config.server.data_dir.clone();
    let opened = runtime.executor().run(async move {
        let Some(data_dir) = data_dir else {
            let leases: Arc<dyn Leases> = Arc::new(Embedded::new(Epoch(0)));
            return Ok(((leases, None), None));
        };
        let kept = Redb::open(&data_dir)?;
        knows_all(&kept, &scenes).await?;
        let leases = Embedded::new(kept.highest_epoch().await?);
        // Each run has a number of its own, from which its entities have their ids.
        let before = kept.count_run()?.saturating_sub(1);
        let before = Bytes::from(before.to_string());
        leases.get_or_create(PROCESSES, before).await.map_err(NodeError::from)?;
        let checkpoints: Arc<dyn Checkpoints> = Arc::new(kept.clone());
        let leases: Arc<dyn Leases> = Arc::new(leases);
        Ok::<_, ProcessError>(((leases, Some(checkpoints)), Some(kept)))
    });
    opened.await
}

/// Every saved region is one of these scenes: by its present layout, or by the saved one that counts.
async fn knows_all(kept: &Redb, scenes: &[Arc<Scene>]) -> Result<(), ProcessError> {
    let changed = kept.layouts().await?;
    for key in kept.regions().await? {
        let scene = scenes.iter().find(|scene| scene.spec.name == key.scene);
        let is_known = scene.is_some_and(|scene| {
            let id = RegionId(key.region);
            changed.iter().any(|layout| layout.scene == key.scene)
                || scene.map.regions.iter().any(|entry| entry.id == id)
        });
        if !is_known {
            return Err(ProcessError::UnknownRegion(key));
        }
    }
    Ok(())
}
