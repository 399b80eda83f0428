//! Starts the regions of a directory's scenes, each as an actor of its own.

use std::sync::Arc;

use actix::{Actor, Addr, ArbiterHandle};

use super::metrics::RegionMetrics;
use super::{Clock, RegionActor};
use crate::actor::directory::Directory;
use crate::scene::messages::Effect;
use crate::scene::{Region, RegionId, Scene, SceneId};

/// A running region.
#[derive(Debug, Clone)]
pub struct RegionRef {
    /// Its scene.
    pub scene: SceneId,
    /// Its name.
    pub region: RegionId,
    /// Its mailbox.
    pub addr: Addr<RegionActor>,
    /// Its figures.
    pub metrics: Arc<RegionMetrics>,
}

/// Starts every region of the directory's scenes, each as an actor of its own, on the arbiters in
/// turn, and tells the directory their addresses.
pub fn start_regions(
    directory: &Arc<Directory>,
    arbiters: &[ArbiterHandle],
    clock: Clock,
) -> Vec<RegionRef> {
    let empty = |scene: &Arc<Scene>, id| Some((Region::new(scene.clone(), id)?, Vec::new()));
    start_regions_as(directory, arbiters, clock, empty)
}

/// The same with regions that `begin` makes: each, and what it has to say at once. What it does not make
/// does not run.
pub fn start_regions_as(
    directory: &Arc<Directory>,
    arbiters: &[ArbiterHandle],
    clock: Clock,
    mut begin: impl FnMut(&Arc<Scene>, RegionId) -> Option<(Region, Vec<Effect>)>,
) -> Vec<RegionRef> {
    let mut started = Vec::new();
    let scenes: Vec<_> = directory.scenes().collect();
    for scene in scenes {
        for entry in &scene.map.regions {
            let Some((region, fx)) = begin(&scene, entry.id) else { continue };
            let metrics = Arc::new(RegionMetrics::default());
            let actor = RegionActor::new(region, scene.tick_ms, clock, directory, &metrics);
            let actor = actor.saying(fx);
            let addr = match arbiters.is_empty() {
                true => actor.start(),
                false => {
                    let arbiter = &arbiters[started.len() % arbiters.len()];
                    RegionActor::start_in_arbiter(arbiter, move |_| actor)
                }
            };
            started.push(RegionRef { scene: scene.id, region: entry.id, addr, metrics });
        }
    }
    let addresses = started.iter().map(|r| (r.region, r.addr.clone().recipient()));
    directory.set_regions(addresses.collect());
    started
}
