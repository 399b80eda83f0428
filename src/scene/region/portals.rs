//! Players that walk into portals, and entities that the game's logic sends elsewhere.
//!
//! A player's mark says in which portal's area it stood at the end of the last tick, or where it was put down since: by
//! a join, a teleport, a handoff or a recovery. A portal takes the player when the mark changes to it. A player that is
//! put down in an area has to leave the area first, so that two portals may lead into each other's areas. The mark
//! follows from the place and is neither handed over nor saved.

use std::fmt;
use std::sync::Arc;

use super::Region;
use crate::scene::messages::{CommandError, Destination, Effect};
use crate::scene::mutants::{self, Mutant};
use crate::scene::portals::{Journey, ToPlane};
use crate::scene::{Plane, Pos, Scene, SceneId};

/// The scenes of a cluster with their present layouts: every journey is looked up when it begins.
pub trait Atlas: fmt::Debug + Send + Sync {
    /// The scene of this name; `None`: there is no such scene.
    fn scene_named(&self, name: &str) -> Option<Arc<Scene>>;

    /// The line of a scene for the next player; `None`: not known.
    fn next_line(&self, scene: SceneId) -> Option<Plane>;
}

/// No scene but a region's own.
#[derive(Debug)]
pub(super) struct OneScene;

impl Atlas for OneScene {
    fn scene_named(&self, _: &str) -> Option<Arc<Scene>> {
        None
    }

    fn next_line(&self, _: SceneId) -> Option<Plane> {
        None
    }
}

impl Region {
    /// Lets portals and logic send entities to other scenes, which `atlas` knows.
    pub fn set_atlas(&mut self, atlas: Arc<dyn Atlas>) {
        self.atlas = atlas;
    }

    /// Portals take the players that the tick's moves have brought into their areas.
    pub(super) fn enter_portals(&mut self, fx: &mut Vec<Effect>) {
        if self.identity.scene().portals().is_empty() {
            return;
        }
        for ix in 0..self.views.viewers().len() {
            let Some(viewer) = self.views.viewers().get(ix) else { continue };
            let (slot, before) = (viewer.slot, viewer.portal);
            let on_its_way = self.entities.real(slot).is_none_or(|real| real.bound_for.is_some());
            if on_its_way || self.entities.record(slot).plane == Plane::LIMBO {
                continue;
            }
            let now = self.identity.scene().portals().at(self.entities.body(slot).pos);
            if now != before {
                self.mark(slot, now);
                self.take_by_portal(slot, now, fx);
            }
        }
    }

    fn take_by_portal(&mut self, slot: u32, portal: u16, fx: &mut Vec<Effect>) {
        let portal = self.identity.scene().portals().get(portal);
        let Some((name, to)) = portal.map(|p| (p.name.clone(), p.to.clone())) else { return };
        if let Err(why) = self.travel(slot, &to, fx) {
            crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), portal = name, %why, "a portal leads nowhere");
        }
    }

    fn mark(&mut self, slot: u32, portal: u16) {
        if let Some(viewer) = self.views.of_mut(&self.entities, slot) {
            viewer.portal = portal;
        }
    }

    /// The entity at `slot` is put down at a place of this scene: a portal there does not take it.
    pub(super) fn mark_put_down(&mut self, slot: u32, at: Pos) {
        if !mutants::has(Mutant::PortalBounces) {
            self.mark(slot, self.identity.scene().portals().at(at));
        }
    }

    /// Teleports the entity at `slot`, and finds the region of the place.
    pub(super) fn travel(
        &mut self,
        slot: u32,
        to: &Journey,
        fx: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        let to = self.destination(to, slot)?;
        self.teleport(slot, to, fx).map_err(CommandError::Order)
    }

    /// Where a journey leads the entity at `slot`.
    fn destination(&self, to: &Journey, slot: u32) -> Result<Destination, CommandError> {
        let (own, from) = (self.identity.scene(), self.entities.record(slot).plane);
        let viewer = self.views.of(&self.entities, slot);
        let other = match to.scene.as_deref().filter(|name| *name != own.spec.name) {
            Some(name) => Some(self.atlas.scene_named(name).ok_or(CommandError::NoPlace)?),
            None => None,
        };
        let scene = other.as_deref().unwrap_or(own);
        let plane = match to.plane {
            ToPlane::Of(plane) => plane,
            ToPlane::Same => from,
            ToPlane::Line => {
                let leaves_line = other.is_some() && own.is_line(from);
                let viewer = viewer.filter(|_| leaves_line);
                let named = viewer.map(|viewer| viewer.account.line_of(scene));
                named.map_or(from, |line| {
                    line.or_else(|| self.atlas.next_line(scene.id)).unwrap_or(from)
                })
            }
        };
        let pos = scene.place_of(to.at);
        if !scene.contains(pos) {
            return Err(CommandError::NoPlace);
        }
        let region = scene.map.at(plane, pos).ok_or(CommandError::NoPlace)?.id;
        Ok(Destination { scene: scene.id, region, plane, pos })
    }
}
