//! Which nodes may run which regions: by the labels, the zone and the number of nodes that a scene asks for, and by
//! reservations. Pure.
//!
//! Better elsewhere than nowhere: while no node of a pool is there, the regions run on others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use purview::scene::Scene;
use purview::scene::layout::Plot;
use purview::scene::spec::PoolSpec;

use super::placement::{Pool, Site};
use super::reservations::Reservation;
use crate::storage::{About, Incarnation, View};

pub(super) fn suits(pool: &PoolSpec, node: &About) -> bool {
    let is_in_zone = pool.zone.is_empty() || pool.zone == node.zone;
    is_in_zone && pool.labels.iter().all(|(key, value)| node.labels.get(key) == Some(value))
}

#[derive(Debug, Default)]
pub(super) struct Pools {
    /// The nodes of each.
    pub(super) all: Vec<Pool<u64>>,
    /// Of each scene that has any: the pool of what is not reserved, and those of its reservations.
    scenes: BTreeMap<String, (usize, Vec<(Reservation, usize)>)>,
    pub(super) reserved: BTreeSet<u64>,
    /// Scenes of whose pool no node is there.
    pub(super) without: Vec<String>,
}

impl Pools {
    /// Of these scenes, among these nodes.
    pub(super) fn new(
        (view, sites): (&View, &[Site<u64>]),
        scenes: &[Arc<Scene>],
        reservations: &[Reservation],
    ) -> Pools {
        let takes: BTreeSet<u64> = sites.iter().map(|site| site.node).collect();
        let nodes_of = |reservation: &Reservation| -> BTreeSet<u64> {
            let its = reservation.nodes_of(view).into_iter().map(|node| node.0);
            its.filter(|node| takes.contains(node)).collect()
        };
        let reserved = reservations.iter().flat_map(nodes_of).collect();
        let mut pools = Pools { reserved, ..Pools::default() };
        let unreserved: BTreeSet<u64> = takes.difference(&pools.reserved).copied().collect();
        let others = if unreserved.is_empty() { &takes } else { &unreserved };
        for scene in scenes {
            let spec = &scene.spec.pool;
            let fits = |node: &u64| {
                let info = view.nodes.get(&Incarnation(*node));
                info.is_some_and(|info| suits(spec, &info.about))
            };
            if !takes.iter().any(fits) {
                pools.without.push(scene.spec.name.clone());
            }
            let mut nodes: BTreeSet<u64> = others.iter().copied().filter(fits).collect();
            if nodes.is_empty() {
                nodes.clone_from(others);
            }
            if nodes == takes && spec.max_nodes == 0 {
                continue;
            }
            let mut add = |nodes, most| {
                pools.all.push(Pool { nodes, most });
                pools.all.len() - 1
            };
            let open = add(nodes, spec.max_nodes as usize);
            let its = reservations.iter().filter(|other| other.scene == scene.spec.name);
            let its = its.filter_map(|reservation| {
                let nodes = nodes_of(reservation);
                (!nodes.is_empty()).then(|| (reservation.clone(), add(nodes, 0)))
            });
            let its = its.collect();
            pools.scenes.insert(scene.spec.name.clone(), (open, its));
        }
        pools
    }

    /// The pool of a region by its ground; an index that is not there: every node.
    pub(super) fn of(&self, scene: &str, ground: Option<&Plot>) -> usize {
        let Some((open, reserved)) = self.scenes.get(scene) else { return usize::MAX };
        let meets = |(of, _): &&(Reservation, usize)| ground.is_some_and(|plot| of.meets(plot));
        reserved.iter().find(meets).map_or(*open, |(_, pool)| *pool)
    }
}

#[cfg(test)]
mod tests;
