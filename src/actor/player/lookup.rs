//! Where a join, a teleport or a resume leads to: names become ids, places become regions, and a
//! place in a line is taken.
//!
//! A place that was taken goes to the machine with the message: the machine gives it back.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::Session;
use super::record::first_properties;
use crate::actor::admission::Admission;
use crate::actor::player_store::{LastPosition, StoredPlayer};
use crate::scene::messages::Destination;
use crate::scene::movement::ServerMs;
use crate::scene::player::{Arrival, Comeback, Problem, SceneLines, ScenePlane, TeleportTarget};
use crate::scene::terrain::{Ground, Terrain};
use crate::scene::{
    EntityId, Plane, Pos, RangeSet, RegionId, Scene, SceneSpec, ViewCap, ViewLimits,
};
use crate::wire::client::{Join, MAX_LINES, Resume, Teleport};

impl Session {
    /// Where the player of a client that comes back may be.
    pub(super) fn comeback(&self, resume: &Resume) -> Result<Comeback, Problem> {
        let pass = self.credentials.read_pass(&resume.token)?;
        let (ask, ask_then) = self.regions(|scene| scene.spec.name == pass.scene);
        let all = self.directory.knows_maps();
        Ok(Comeback { id: pass.entity, acked: resume.ack, ask, ask_then, all })
    }

    /// The regions of near scenes, and all others. The others include regions that a layout change has
    /// given up: unclaimed players may wait there, even without an owner.
    pub(super) fn regions(&self, near: impl Fn(&Scene) -> bool) -> (Vec<RegionId>, Vec<RegionId>) {
        let (near, far): (Vec<_>, Vec<_>) = self.directory.scenes().partition(|scene| near(scene));
        let of = |scenes: Vec<Arc<Scene>>| -> Vec<RegionId> {
            scenes.iter().flat_map(|scene| scene.map.regions.iter().map(|r| r.id)).collect()
        };
        let (near, mut far) = (of(near), of(far));
        let listed: FxHashSet<RegionId> = near.iter().chain(&far).copied().collect();
        far.extend(self.directory.known_regions().into_iter().filter(|r| !listed.contains(r)));
        (near, far)
    }

    /// Where a client that joins appears; a place in a line is taken for it.
    /// `kept` is what is kept of the player, `id` its number, if it has one already, and `named` the plane that the
    /// game has named for it.
    pub(super) fn arrival(
        &self,
        join: &Join,
        kept: Option<&StoredPlayer>,
        (id, named): (Option<EntityId>, Option<Plane>),
    ) -> Result<Arrival, Problem> {
        let Some(scene) = self.directory.scene_named(&join.scene) else {
            return Err(Problem::UnknownScene(join.scene.clone()));
        };
        if join.pos.is_some() {
            may_teleport(&scene)?;
        }
        let spawn = Pos::ground(scene.spec.spawn_x_cm, scene.spec.spawn_z_cm);
        let cap = ViewCap::new(join.view_cap);
        let sight = ViewLimits { rings: sight(&scene, join.sight)?, cap };
        let properties = first_properties(&scene, kept.map(|kept| &kept.place), &join.properties);
        let properties = properties.map_err(Problem::Property)?;
        let last = kept.filter(|last| join.pos.is_none() && allows(&scene, &last.place));
        let wanted = join.pos.unwrap_or(spawn);
        is_on_map(&scene, wanted)?;
        let pos = last.map_or(scene.on_ground(wanted), |last| last.place.pos);
        if let Some(plane) = join.plane {
            self.may_enter(&scene, plane)?;
        }
        let room = |plane: &Plane| {
            scene.is_line(*plane)
                && self.directory.players(scene.id, *plane) < scene.spec.line_capacity
                && !self.yields(&scene, *plane)
        };
        let chosen = named.or(join.plane).or_else(|| self.credentials.line_of(&scene));
        let plane = chosen.or_else(|| last.map(|last| last.place.plane).filter(room));
        let plane = self.directory.take_line(scene.id, plane).ok_or_else(|| no_room(&scene))?;
        let give_back = |_: &Problem| self.directory.give_back_line(scene.id, plane);
        let region = region_at(&scene, plane, pos).inspect_err(give_back)?;
        let id = id.or_else(|| self.directory.new_entity());
        let id = id.ok_or(Problem::NoNames).inspect_err(give_back)?;
        let to = Destination { scene: scene.id, region, plane, pos };
        let left_at = last.map(|last| ServerMs(last.clock_ms));
        let bonds = kept.map(|kept| kept.place.bonds.clone()).unwrap_or_default();
        Ok(Arrival { id, to, sight, left_at, properties, bonds })
    }

    /// The lines of a scene, for a client that chooses one.
    pub(super) fn lines(&self, scene: &str) -> Result<SceneLines, Problem> {
        let Some(scene) = self.directory.scene_named(scene) else {
            return Err(Problem::UnknownScene(scene.to_owned()));
        };
        let open = self.directory.open_lines(scene.id, MAX_LINES);
        Ok(SceneLines { scene: scene.id, open })
    }

    /// Where a teleport leads to; a place in a line is taken for it if it changes the plane.
    pub(super) fn teleport_target(&self, teleport: &Teleport) -> Result<TeleportTarget, Problem> {
        let here = self.player.place();
        let scene = match (&teleport.scene, here) {
            (Some(name), _) => self.directory.scene_named(name),
            (None, Some((scene, _))) => self.directory.scene(scene),
            (None, None) => None,
        };
        let Some(scene) = scene else {
            return Err(Problem::UnknownScene(teleport.scene.clone().unwrap_or_default()));
        };
        let from = here.and_then(|(scene, _)| self.directory.scene(scene));
        from.iter().chain([&scene]).try_for_each(|scene| may_teleport(scene))?;
        is_on_map(&scene, teleport.pos)?;
        let stays = |(there, plane): &ScenePlane| {
            *there == scene.id
                && match teleport.plane {
                    Some(wanted) => wanted == *plane,
                    None => !self.yields(&scene, *plane),
                }
        };
        let (plane, takes_place) = match here.filter(stays) {
            Some((_, plane)) => (plane, false),
            None => {
                if let Some(plane) = teleport.plane {
                    self.may_enter(&scene, plane)?;
                }
                let chosen = teleport.plane.or_else(|| self.credentials.line_of(&scene));
                let taken = self.directory.take_line(scene.id, chosen);
                (taken.ok_or_else(|| no_room(&scene))?, true)
            }
        };
        let region = region_at(&scene, plane, teleport.pos).inspect_err(|_| {
            if takes_place {
                self.directory.give_back_line(scene.id, plane);
            }
        })?;
        let to = Destination { scene: scene.id, region, plane, pos: scene.on_ground(teleport.pos) };
        Ok(TeleportTarget { to, takes_place })
    }

    /// The game names a plane for a teleport, which has a place in another one.
    pub(super) fn lead_to(
        &self,
        target: TeleportTarget,
        plane: Plane,
    ) -> Result<TeleportTarget, Problem> {
        let TeleportTarget { to, takes_place } = target;
        if to.plane == plane {
            return Ok(target);
        }
        if takes_place {
            self.directory.give_back_line(to.scene, to.plane);
        }
        let unknown = || Problem::UnknownScene(String::new());
        let scene = self.directory.scene(to.scene).ok_or_else(unknown)?;
        let region = region_at(&scene, plane, to.pos)?;
        let takes_place = self.player.place() != Some((to.scene, plane));
        if takes_place {
            self.directory.take_line(to.scene, Some(plane));
        }
        Ok(TeleportTarget { to: Destination { region, plane, ..to }, takes_place })
    }

    /// Whether players leave a plane with their next teleport or login.
    fn yields(&self, scene: &Scene, plane: Plane) -> bool {
        scene.spec.lines_yield && self.directory.is_closing(scene.id, plane)
    }

    /// Whether the client may choose a plane.
    fn may_enter(&self, scene: &Scene, plane: Plane) -> Result<(), Problem> {
        let name = &scene.spec.name;
        let opened = |game: &dyn Admission| game.opens(scene.id, plane, self.credentials.subject());
        let is_opened = || self.directory.admission().is_some_and(opened);
        match scene.is_line(plane) || self.credentials.may_enter(name, plane) || is_opened() {
            true => Ok(()),
            false => {
                let (scene, lines) = (name.clone(), scene.spec.lines);
                Err(Problem::PrivatePlane { scene, plane, lines })
            }
        }
    }
}

fn no_room(scene: &Scene) -> Problem {
    let SceneSpec { name, lines, line_capacity, .. } = &scene.spec;
    Problem::NoRoom { scene: name.clone(), lines: *lines, capacity: *line_capacity }
}

/// The rings in which the client is shown what is not a player. How far the player itself is seen is
/// the scene's alone to say.
fn sight(scene: &Scene, wanted: Option<RangeSet>) -> Result<RangeSet, Problem> {
    let range = scene.spec.range;
    let sights = scene.spec.kinds.first().map_or(&[][..], |player| &player.sights);
    match wanted {
        None => Ok(range),
        Some(wanted) if wanted == range || sights.contains(&wanted) => Ok(wanted),
        Some(wanted) => {
            let allowed = std::iter::once(&range).chain(sights).map(|sight| sight.bits()).collect();
            Err(Problem::Sight { wanted, scene: scene.spec.name.clone(), allowed })
        }
    }
}

fn may_teleport(scene: &Scene) -> Result<(), Problem> {
    match scene.spec.client_teleports {
        true => Ok(()),
        false => Err(Problem::MayNotTeleport(scene.spec.name.clone())),
    }
}

/// Whether a player may come back to where it was: the scene may have changed meanwhile.
fn allows(scene: &Scene, last: &LastPosition) -> bool {
    let free = |terrain: &Arc<Terrain>| {
        let ground = Ground::new(terrain.clone());
        ground.is_free(last.plane, ground.tile_of(last.pos))
    };
    scene.spec.name == last.scene
        && scene.contains(last.pos)
        && scene.terrain.as_ref().is_none_or(free)
}

fn is_on_map(scene: &Scene, pos: Pos) -> Result<(), Problem> {
    scene.contains(pos).then_some(()).ok_or_else(|| outside(scene, pos))
}

fn region_at(scene: &Scene, plane: Plane, pos: Pos) -> Result<RegionId, Problem> {
    scene.map.at(plane, pos).map(|region| region.id).ok_or_else(|| outside(scene, pos))
}

fn outside(scene: &Scene, pos: Pos) -> Problem {
    let SceneSpec { width_cm, depth_cm, height_limit_cm, .. } = scene.spec;
    Problem::OutOfBounds { pos, width_cm, depth_cm, height_limit_cm }
}
