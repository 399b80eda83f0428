//! Reserves ground for nodes of its own, see [`super::super::reservations`].

use std::collections::BTreeSet;
use std::time::Duration;

use purview::scene::Scene;

use super::{OrderError, Orders};
use crate::node::plan::sites;
use crate::node::pools::suits;
use crate::node::reservations::{RESERVATIONS, Reservation, ms, standing};
use crate::node::values::change;
use crate::storage::{Incarnation, View};

const MAX_RESERVATIONS: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    pub scene: String,
    /// Its west, north, east and south edge, metres; whole lands count.
    pub area_m: [u32; 4],
    pub nodes: usize,
    pub time: Duration,
}

impl Orders {
    /// Reserves ground for nodes of the scene's pool, those with fewest regions, which give away all else. A time of
    /// zero ends the reservations of the ground. Returns the names of the nodes.
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
