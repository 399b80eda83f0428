//! The console of one process of the cluster: what it shows of all, and commands to it.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use purview_server::http;
use purview_server::node::ClusterSurvey;
use serde::Serialize;
use tokio::runtime::Runtime;

use crate::testbed::local_cluster::Member;

pub struct Console<'a> {
    runtime: &'a Runtime,
    url: String,
}

impl<'a> Console<'a> {
    pub fn of(member: &Member, runtime: &'a Runtime) -> anyhow::Result<Console<'a>> {
        let console = member.ready().and_then(|ready| ready.console);
        let url = format!("http://{}", console.context("the process has no console")?);
        Ok(Console { runtime, url })
    }

    pub fn survey(&self) -> anyhow::Result<ClusterSurvey> {
        Ok(serde_json::from_slice(&self.get("/api/cluster")?)?)
    }

    /// The node of each region that has one.
    pub fn owners(&self) -> anyhow::Result<BTreeMap<u32, String>> {
        Ok(self.survey()?.regions.into_iter().map(|r| (r.region, r.node)).collect())
    }

    pub fn metrics(&self) -> anyhow::Result<String> {
        Ok(String::from_utf8(self.get("/metrics")?)?)
    }

    fn get(&self, path: &str) -> anyhow::Result<Vec<u8>> {
        let answer = self.runtime.block_on(http::get(&self.url, path))?;
        ensure!(answer.status == 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        Ok(answer.body.into())
    }

    pub fn order(&self, path: &str, order: &impl Serialize) -> anyhow::Result<()> {
        let body = serde_json::to_vec(order)?.into();
        let token = purview_server::admin::token_at(&self.url);
        let post = http::post_as(&self.url, path, body, token.as_deref());
        let answer = self.runtime.block_on(post)?;
        match answer.status {
            202 => Ok(()),
            _ => bail!("{path}: {}", String::from_utf8_lossy(&answer.body)),
        }
    }
}

/// The values of all series of a metric in this text, whole.
pub fn values_of(metrics: &str, name: &str) -> Vec<u64> {
    let lines = metrics.lines().filter(|line| !line.starts_with('#'));
    let ours = lines.filter(|line| line.split(['{', ' ']).next() == Some(name));
    let values = ours.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    values.map(|value| value as u64).collect()
}
