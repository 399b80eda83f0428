//! What a region has to do, by its lands and towards its neighbours. Nothing is changed here.
//!
//! The cost of a tick is measured as a whole. It is shared out among entities by what each is known to cost against
//! the others: a player costs more with each in its view list, a ghost [`GHOST`] times its original.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::Region;
use super::entities::{Body, Role};
use crate::scene::layout::MAX_NEIGHBOURS;
use crate::scene::load::{GHOST, LandReport, NeighbourReport, RegionReport};
use crate::scene::{Kind, Pos, RegionId};

/// What an entry of a view list costs, against a player without any.
const ENTRY: f32 = 0.022;

/// What an entity costs that no client steers, against a player without anyone in view.
const OTHER: f32 = 0.25;

/// Pairs are counted of so many players at least, and taken to be like this for all.
const COUNTED: usize = 250;

impl Region {
    /// Its load, of which the actor has measured the CPU time per tick: mean and 99th percentile, microseconds.
    /// `by_lands`: whether that is shared out among its lands.
    pub fn load(&self, (tick_us, tick_us_p99): (f32, f32), by_lands: bool) -> RegionReport {
        RegionReport {
            tick_us,
            tick_us_p99,
            players: self.views.viewers().len() as u32,
            lands: by_lands.then(|| self.lands(tick_us)),
            neighbours: self.shared(),
        }
    }

    /// What each entity costs against a player without anyone in view.
    fn weight(&self, body: &Body) -> f32 {
        match self.views.get(body.viewer).filter(|_| body.kind == Kind::PLAYER) {
            Some(viewer) => 1.0 + ENTRY * viewer.registers.links() as f32,
            None => OTHER,
        }
    }

    /// The lands on which something lives.
    fn lands(&self, tick_us: f32) -> Vec<LandReport> {
        let (mut own, mut players, mut ghosts) = (0.0, (0.0_f32, 0.0_f32), 0.0);
        let mut weights: Vec<(&Body, f32)> = Vec::with_capacity(self.entities.len());
        for (body, record) in self.entities.all() {
            match record.role {
                Role::Real(_) => {
                    let weight = self.weight(body);
                    own += weight;
                    if body.kind == Kind::PLAYER {
                        players = (players.0 + weight, players.1 + 1.0);
                    }
                    weights.push((body, weight));
                }
                Role::Ghost(_) if body.kind == Kind::PLAYER => ghosts += 1.0,
                Role::Ghost(_) => ghosts += OTHER,
                Role::Free => {}
            }
        }
        // Ghosts are taken to see as many as the players here.
        let mean = if players.1 > 0.0 { players.0 / players.1 } else { 1.0 };
        let all = own + GHOST * mean * ghosts;
        let us = if all > 0.0 { tick_us / all } else { 0.0 };
        let mut lands: FxHashMap<(i32, i32), LandReport> = FxHashMap::default();
        let scene = self.identity.scene();
        let (land, part) = (scene.spec.land_cm, scene.border_band_cm() % scene.spec.land_cm);
        for (body, weight) in weights {
            let pos = self.inside(body.pos);
            let (x, z) = (pos.x / land, pos.z / land);
            let report =
                lands.entry((z, x)).or_insert(LandReport { x, z, ..LandReport::default() });
            report.players += u32::from(body.kind == Kind::PLAYER);
            report.weight_us += weight * us;
            let (west, north) = (pos.x % land, pos.z % land);
            let distances = [west, land - 1 - west, north, land - 1 - north];
            for (near, distance) in report.near_us.iter_mut().zip(distances) {
                *near += if distance < part { weight * us } else { 0.0 };
            }
        }
        let mut lands: Vec<LandReport> = lands.into_values().collect();
        lands.sort_unstable_by_key(|land| (land.z, land.x));
        lands
    }

    /// The position, or that on the region's ground next to it: entities may be past a border by the margin.
    fn inside(&self, pos: Pos) -> Pos {
        let rect = self.identity.rect();
        let into = |at: i32, from: i32, to: i32| at.min(to - 1).max(from);
        Pos { x: into(pos.x, rect.x0, rect.x1), z: into(pos.z, rect.z0, rect.z1), ..pos }
    }

    /// What it has in common with each neighbour.
    fn shared(&self) -> Vec<NeighbourReport> {
        let scene = self.identity.scene();
        let near = scene.map.neighbours(self.identity.id(), scene.bonded_band_cm);
        let mut shared: BTreeMap<RegionId, NeighbourReport> = near
            .iter()
            .map(|near| (near.id, NeighbourReport { region: near.id, pairs: 0, ghosts: 0 }))
            .collect();
        if shared.is_empty() {
            return Vec::new();
        }
        for (_, record) in self.entities.all() {
            if let Role::Ghost(ghost) = &record.role
                && let Some(shared) = shared.get_mut(&ghost.owner)
            {
                shared.ghosts += 1;
            }
        }
        let viewers = self.views.viewers();
        let every = (viewers.len() / COUNTED).max(1);
        for viewer in viewers.iter().step_by(every) {
            let (peers, ids) = (viewer.registers.peers(), viewer.registers.yes_ids());
            for (peer, of) in peers.iter().zip(ids).filter(|(peer, _)| peer.linked()) {
                if self.entities.is_at(peer.slot, of.id)
                    && let Some(ghost) = self.entities.ghost(peer.slot)
                    && let Some(shared) = shared.get_mut(&ghost.owner)
                {
                    shared.pairs += every as u32;
                }
            }
        }
        shared.into_values().take(MAX_NEIGHBOURS).collect()
    }
}
