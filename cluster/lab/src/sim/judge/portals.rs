//! A portal takes each player that walks into its area, once, and no other player.

use std::sync::Arc;

use purview::scene::portals::Portals;
use purview::scene::{Pos, Scene};

use super::Acting;

/// The farthest that a player walks from a tick to the next one, corrections included, centimetres.
const STEP_CM: i32 = 600;

/// What must hold of a player from one tick to the next one. One that teleports may have been put down a step away.
pub(super) fn portals_take_once(
    before: &Acting,
    now: &Acting,
    teleports: bool,
    scenes: &[Arc<Scene>],
) -> Result<(), String> {
    let portals_of = |acting: &Acting| {
        let scene = scenes.get(usize::from(acting.scene.0));
        scene.map(|scene| scene.portals()).filter(|portals| !portals.is_empty())
    };
    let (Some(here), Some(there)) = (portals_of(before), portals_of(now)) else { return Ok(()) };
    let is_next = now.tick == before.tick.next();
    if !is_next || before.player.epoch.is_of_a_life_before(now.player.epoch) {
        return Ok(());
    }
    let (from, to) = (before.player.pos, now.player.pos);
    let same_floor = before.place().0 == now.place().0;
    let walked = same_floor && within(from, to, STEP_CM);
    let (was_in, is_in) = (here.at(from), there.at(to));
    let id = now.player.id;
    if walked && !teleports && is_in != 0 && is_in != was_in {
        return Err(format!(
            "{id} has walked from {from:?} to {to:?} into portal {is_in}, and stays"
        ));
    }
    let target = portal_to(here, to).filter(|_| !walked);
    match target {
        Some(portal) if portal == was_in => {
            Err(format!("{id} stood in portal {portal} at {from:?}, which has taken it to {to:?}"))
        }
        _ => Ok(()),
    }
}

fn portal_to(portals: &Portals, to: Pos) -> Option<u16> {
    let leads = |number: &u16| portals.get(*number).is_some_and(|p| p.to.at.flat() == to);
    (1..).take_while(|number| portals.get(*number).is_some()).find(leads)
}

fn within(a: Pos, b: Pos, cm: i32) -> bool {
    a.x.abs_diff(b.x).max(a.z.abs_diff(b.z)) <= cm.unsigned_abs()
}
