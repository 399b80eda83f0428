//! The ways to start a process of a cluster: by the configuration, over any store, and in a simulator.

use std::sync::Arc;

use tokio::runtime::Runtime;

use super::assemble::{Stores, assemble};
use super::cluster::ClusterProcess;
use super::environment::{Environment, Simulated};
use super::error::ProcessError;
use super::inside::Inside;
use super::patience::patiently;
use super::plain_text;
use super::runtime::TaskRuntime;
use super::stores::{Begins, certificates, etcd, postgres};
use crate::config::Config;
use crate::gateway::token::{random_cluster, random_secret};
use crate::gateway::{ClusterTokens, TestListener, Tokens};
use crate::node::Roles;
use crate::node::startup::{has_begun, identity};
use crate::storage::{Checkpoints, Leases};
use crate::tls::Tls;

impl ClusterProcess {
    /// Joins the cluster of the configuration; to be called inside a running actix system.
    ///
    /// # Errors
    /// What cannot be started, or the store's answer.
    pub async fn start(
        config: &Config,
        roles: Roles,
        tokens: Tokens,
        inside: Inside,
    ) -> Result<ClusterProcess, ProcessError> {
        if let Some((key, address)) = plain_text::leaves(config) {
            return Err(ProcessError::Insecure { key, address });
        }
        let runtime = TaskRuntime::new()?;
        let (asked, tls) = (config.clone(), certificates(config)?);
        let executor = runtime.executor().clone();
        let opened = patiently(config, async || {
            let (asked, tls) = (asked.clone(), tls.clone());
            // Clients of the store live where they were made.
            let opened = executor.run(async move { open(&asked, roles, tls.as_ref()).await });
            let stores = opened.await?;
            let tokens = in_cluster(tokens.clone(), &stores, &runtime).await?;
            Ok((stores, tokens))
        });
        let (stores, tokens) = opened.await?;
        let environment = Environment::Machine(tokens, inside);
        Ok(assemble(config, roles, stores, (runtime, environment)).await?.0)
    }

    /// The same with any store; `runtime` must be the one on which the store was made, or another that outlives the
    /// process.
    ///
    /// # Errors
    /// As [`ClusterProcess::start`].
    pub async fn join(
        config: &Config,
        roles: Roles,
        tokens: Tokens,
        store: Arc<dyn Leases>,
        checkpoints: Option<Arc<dyn Checkpoints>>,
        runtime: Runtime,
    ) -> Result<ClusterProcess, ProcessError> {
        let runtime = TaskRuntime::of(runtime);
        let stores = (store, checkpoints);
        let tokens = in_cluster(tokens, &stores, &runtime).await?;
        let environment = Environment::Machine(tokens, Inside::default());
        Ok(assemble(config, roles, stores, (runtime, environment)).await?.0)
    }

    /// The same in a simulator; with where clients are brought in, if it holds sessions.
    ///
    /// # Errors
    /// As [`ClusterProcess::start`].
    pub async fn simulate(
        config: &Config,
        roles: Roles,
        store: Arc<dyn Leases>,
        checkpoints: Option<Arc<dyn Checkpoints>>,
        environment: Simulated,
    ) -> Result<(ClusterProcess, Option<TestListener>), ProcessError> {
        let runtime = TaskRuntime::at(environment.executor.clone());
        let environment = Environment::Simulated(environment);
        assemble(config, roles, (store, checkpoints), (runtime, environment)).await
    }
}

async fn open(config: &Config, roles: Roles, tls: Option<&Tls>) -> Result<Stores, ProcessError> {
    let checkpoints = postgres(config, tls).await?;
    // A gateway begins no cluster: its user may not read checkpoints.
    let begins = roles.regions.then_some(Begins { checkpoints: checkpoints.as_deref() });
    let store = etcd(config, tls, begins).await?;
    if !roles.regions {
        has_begun(&store).await?;
    }
    Ok((Arc::new(store), checkpoints))
}

pub(super) async fn in_cluster(
    tokens: Tokens,
    (store, checkpoints): &Stores,
    runtime: &TaskRuntime,
) -> Result<ClusterTokens, ProcessError> {
    let (store, checkpoints) = (store.clone(), checkpoints.clone());
    let fresh = (random_cluster()?, random_secret()?);
    let identity = async move { identity(&*store, checkpoints.as_deref(), fresh).await };
    let (cluster, secret) = runtime.executor().run(identity).await?;
    Ok(tokens.in_cluster(cluster, &secret))
}
