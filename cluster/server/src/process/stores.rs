//! The stores that a configuration names, and the certificates by which they are reached.

use std::sync::Arc;

use purview::scene::Epoch;

use super::error::ProcessError;
use crate::config::Config;
use crate::storage::Checkpoints;
use crate::storage::checkpoints::postgres::Postgres;
use crate::storage::leases::etcd::{Etcd, EtcdOptions};
use crate::tls::{Tls, TlsError};

/// What a process knows that may begin a cluster, in an etcd that does not know it.
#[derive(Clone, Copy)]
pub struct Begins<'a> {
    /// What keeps checkpoints, where the cluster goes on.
    pub checkpoints: Option<&'a dyn Checkpoints>,
}

/// The etcd that a configuration names. Without `begins` the process begins no cluster there.
///
/// # Errors
/// It does not answer, refuses the login, or no process has begun the cluster.
pub async fn etcd(
    config: &Config,
    tls: Option<&Tls>,
    begins: Option<Begins<'_>>,
) -> Result<Etcd, ProcessError> {
    let endpoints = config.cluster.etcd.split(',').map(|e| e.trim().to_owned()).collect();
    let mut options = EtcdOptions::new(endpoints, config.cluster.name.clone());
    options.tls = tls.cloned();
    options.user = config.cluster.etcd_login()?;
    options.epochs_above = match begins {
        // An etcd that lost everything must grant higher epochs than checkpoints have.
        Some(Begins { checkpoints: Some(checkpoints) }) => Some(checkpoints.highest_epoch().await?),
        Some(Begins { checkpoints: None }) => Some(Epoch(0)),
        None => None,
    };
    Ok(Etcd::connect(options).await?)
}

/// The PostgreSQL that a configuration names, if any.
///
/// # Errors
/// It does not answer, or refuses the login.
pub async fn postgres(
    config: &Config,
    tls: Option<&Tls>,
) -> Result<Option<Arc<dyn Checkpoints>>, ProcessError> {
    let name = &config.cluster.name;
    let Some(url) = config.cluster.postgres_login()? else { return Ok(None) };
    Ok(Some(Arc::new(Postgres::connect_with(&url, name, tls).await?)))
}

/// The certificates that a configuration names, if any.
///
/// # Errors
/// They cannot be read, or do not fit together.
pub fn certificates(config: &Config) -> Result<Option<Tls>, TlsError> {
    config.cluster.tls.as_ref().map(Tls::load).transpose()
}
