//! A single fault against a cluster: the random choice of its target and time. `inflict` carries it out.
//!
//! The order of the random draws is part of the meaning of a seed and of a recorded schedule: do not change it.

mod inflict;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::rng::Rng;

use super::cluster::Cluster;
use super::faults::Fault;
use super::network::Host;
use super::written::{quoted, seconds};

/// A single fault with everything that was drawn for it. If the run leaves the fault out, its time passes all the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Blow {
    pub fault: Fault,
    pub node: Host,
    pub gateway: Host,
    pub other: Host,
    #[serde(rename = "lasts_s", with = "seconds")]
    pub lasts: Duration,
    /// Whether the last messages of a crashed process are lost.
    pub lost: bool,
    /// Whether a node that is cut off does not reach the checkpoint store either.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stores: bool,
    /// The first client concerned, as a fraction of all clients: 0 to below 1.
    pub first: f64,
    /// The seed of the choices that depend on the state of the cluster: a region, a place.
    #[serde(with = "quoted")]
    pub seed: u64,
}

impl Blow {
    pub(super) fn draw(fault: Fault, cluster: &Cluster, mut rng: Rng) -> Blow {
        let (nodes, gateways, all) = (cluster.nodes(), cluster.gateways(), cluster.all());
        let node = choose(&mut rng, &nodes).unwrap_or_default();
        let gateway = choose(&mut rng, &gateways).unwrap_or_default();
        let other = choose(&mut rng, &all).unwrap_or_default();
        let (least, most) = match fault {
            Fault::Crash | Fault::Gateway | Fault::Checkpoint => (0.3, 8.0),
            Fault::Stop => (0.5, 8.0),
            Fault::Partition | Fault::OneWay | Fault::CutOff => (0.5, 9.0),
            Fault::Delay | Fault::Answers | Fault::CheckpointStore => (1.0, 8.0),
            Fault::Engine => (0.5, 6.0),
            Fault::Move => (0.2, 2.0),
            Fault::Map => (0.5, 4.0),
            Fault::Drain => (0.3, 2.0),
            Fault::Clients => (0.2, 3.0),
            Fault::Slow | Fault::Lease => (0.5, 6.0),
            // Shorter than the lease.
            Fault::Twice => (0.5, 2.0),
            Fault::HotSpot => (2.0, 10.0),
            Fault::Logins => (0.5, 3.0),
            Fault::Skew => (0.1, 0.1),
            Fault::Worker => (0.3, 6.0),
            Fault::WorkerStop => (0.3, 8.0),
            Fault::WorkerLink => (0.1, 3.0),
        };
        let lasts = Duration::from_secs_f64(least + (most - least) * rng.unit());
        let (lost, first) = (rng.one_in(2), rng.unit());
        let seed = rng.state();
        let stores = rng.one_in(2);
        Blow { fault, node, gateway, other, lasts, lost, stores, first, seed }
    }

    /// Lets the time of the fault pass without the fault.
    pub(super) async fn pass(self) {
        sleep(self.lasts).await;
    }
}

fn choose<T: Copy>(rng: &mut Rng, of: &[T]) -> Option<T> {
    let at = (rng.unit() * of.len() as f64) as usize;
    of.get(at.min(of.len().saturating_sub(1))).copied()
}
