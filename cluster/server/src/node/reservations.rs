//! Ground that operators reserve: for a while some nodes run the regions that meet it, and nothing else.

use std::collections::BTreeSet;
use std::time::Duration;

use purview::scene::RegionId;
use purview::scene::Scene;
use purview::scene::layout::{PlaneGroup, Plot};
use serde::{Deserialize, Serialize};

use super::orders::{OrderError, Orders};
use super::plan::sites;
use super::pools::suits;
use super::values::{change, read};
use crate::storage::{Incarnation, Value, View};

/// The value that holds them.
const RESERVATIONS: &str = "reservations";

/// Most reservations at once.
const MAX_RESERVATIONS: usize = 100;

/// A reservation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reservation {
    pub(super) scene: String,
    /// Its ground in lands: west, north, east and south edge, the last two exclusive.
    pub(super) lands: [i32; 4],
    /// The names of its nodes.
    pub(super) nodes: BTreeSet<String>,
    /// Until when it counts, milliseconds since 1970.
    pub(super) until_ms: u64,
}

impl Reservation {
    /// Its ground.
    pub(super) fn ground(&self) -> Plot {
        let [x0, z0, x1, z1] = self.lands;
        Plot { id: RegionId(0), group: PlaneGroup(0), x0, z0, x1, z1 }
    }

    /// Whether ground of its scene has something in common with it.
    pub(super) fn meets(&self, plot: &Plot) -> bool {
        let its = self.ground();
        plot.x0 < its.x1 && its.x0 < plot.x1 && plot.z0 < its.z1 && its.z0 < plot.z1
    }

    /// Its nodes, as far as they are there.
    pub(super) fn nodes_of(&self, view: &View) -> BTreeSet<Incarnation> {
        let its = view.nodes.iter().filter(|(_, node)| node.regions);
        its.filter(|(_, node)| self.nodes.contains(&node.name)).map(|(i, _)| *i).collect()
    }

    /// For how long it counts, whole seconds.
    pub(super) fn rest_s(&self, now: Duration) -> u64 {
        self.until_ms.saturating_sub(ms(now)).div_ceil(1_000)
    }
}

/// The reservations that count at a time of day.
pub(super) fn reservations(view: &View, now: Duration) -> Vec<Reservation> {
    standing(view.values.get(RESERVATIONS), now)
}

fn standing(kept: Option<&Value>, now: Duration) -> Vec<Reservation> {
    let kept: Vec<Reservation> = read(kept);
    kept.into_iter().filter(|of| of.until_ms > ms(now)).collect()
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What an operator reserves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    /// The scene.
    pub scene: String,
    /// Its west, north, east and south edge, metres; whole lands count.
    pub area_m: [u32; 4],
    /// How many nodes it gets.
    pub nodes: usize,
    /// For how long.
    pub time: Duration,
}

impl Orders {
    /// Reserves ground for nodes of the scene's pool, those with fewest regions, which give away all else. A time of
    /// zero ends the reservations of the ground. Returns the names of the nodes.
    ///
    /// # Errors
    /// There is no such scene or ground, too few nodes are left, the ground is reserved already, there are too many
    /// reservations, or the store does not answer.
    pub async fn reserve(&self, wish: &Reserve) -> Result<Vec<String>, OrderError> {
        let (view, now) = (self.view(), self.time_of_day());
        let scenes = self.scenes();
        let scene = scenes.iter().find(|scene| scene.spec.name == wish.scene);
        let scene = scene.ok_or_else(|| OrderError::NoScene(wish.scene.clone()))?;
        let lands = lands(scene, wish.area_m)?;
        let mut new = Reservation { scene: wish.scene.clone(), lands, ..Reservation::default() };
        let meets = |other: &Reservation| other.scene == new.scene && new.meets(&other.ground());
        let kept = self.store().get(RESERVATIONS).await?;
        let standing = standing(kept.as_ref(), now);
        if wish.time.is_zero() {
            let ended: Vec<Reservation> = standing.into_iter().filter(meets).collect();
            let stays = |other: &Reservation| !ended.contains(other);
            change(self.store(), RESERVATIONS, |all: &mut Vec<Reservation>| all.retain(stays))
                .await?;
            return Ok(ended.into_iter().flat_map(|ended| ended.nodes).collect());
        }
        if standing.iter().any(meets) {
            return Err(OrderError::Reserved(wish.scene.clone()));
        }
        if standing.len() >= MAX_RESERVATIONS {
            return Err(OrderError::TooManyReservations(MAX_RESERVATIONS));
        }
        new.nodes = free_nodes(&view, scene, &standing, wish.nodes)?;
        new.until_ms = ms(now).saturating_add(ms(wish.time));
        let names = new.nodes.iter().cloned().collect();
        change(self.store(), RESERVATIONS, |all: &mut Vec<Reservation>| {
            all.retain(|other| other.until_ms > ms(now));
            all.push(new.clone());
        })
        .await?;
        Ok(names)
    }
}

/// The lands that an area meets.
fn lands(scene: &Scene, area_m: [u32; 4]) -> Result<[i32; 4], OrderError> {
    let spec = &scene.spec;
    let [x0, z0, x1, z1] = area_m.map(|m| i64::from(m) * 100);
    let on_map = x0 < x1.min(spec.width_cm.into()) && z0 < z1.min(spec.depth_cm.into());
    if !on_map {
        let (width_m, depth_m) = (spec.width_cm / 100, spec.depth_cm / 100);
        return Err(OrderError::NoArea { area_m, width_m, depth_m });
    }
    let land = i64::from(spec.land_cm.max(1));
    let end = |cm: i64, side: i32| (cm.min(side.into()) + land - 1) / land;
    let both = [x0 / land, z0 / land, end(x1, spec.width_cm), end(z1, spec.depth_cm)];
    Ok(both.map(|land| i32::try_from(land).unwrap_or(i32::MAX)))
}

/// So many nodes of a scene's pool that are not reserved, those with fewest regions. One stays for all else.
fn free_nodes(
    view: &View,
    scene: &Scene,
    standing: &[Reservation],
    wanted: usize,
) -> Result<BTreeSet<String>, OrderError> {
    let taken: BTreeSet<&String> = standing.iter().flat_map(|other| &other.nodes).collect();
    let takes: BTreeSet<u64> = sites(view).into_iter().map(|site| site.node).collect();
    let free = view.nodes.iter().filter(|(i, _)| takes.contains(&i.0));
    let free: Vec<_> = free.filter(|(_, node)| !taken.contains(&node.name)).collect();
    let mut fit: Vec<_> =
        free.iter().filter(|(_, node)| suits(&scene.spec.pool, &node.about)).collect();
    if wanted == 0 || fit.len() < wanted || free.len() <= wanted {
        let (scene, fit, free) = (scene.spec.name.clone(), fit.len(), free.len());
        return Err(OrderError::TooFewNodes { scene, wanted, fit, free });
    }
    let regions = |node: &Incarnation| {
        view.owners.values().filter(|owner| owner.incarnation == *node).count()
    };
    fit.sort_by_key(|(node, _)| (regions(node), **node));
    Ok(fit.into_iter().take(wanted).map(|(_, node)| node.name.clone()).collect())
}
