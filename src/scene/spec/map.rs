//! What a map adds to a scene: terrain, contents and portals.

use std::sync::Arc;

use super::bodies::check_on_map;
use super::contents::check_contents;
use super::portals::check_portals;
use super::{Scene, SpecError};
use crate::scene::contents::{ContentSpec, Contents};
use crate::scene::movement::Tiles;
use crate::scene::portals::{PortalSpec, Portals, Target};
use crate::scene::spec_error::err;
use crate::scene::terrain::{Ground, Terrain, misfits, too_high};
use crate::scene::{MAX_CONTENTS, Pos};

impl Scene {
    /// The scene with these contents more, for example those of its map. The numbers of all begin at
    /// `first`: above those of every other scene of the server.
    ///
    /// # Errors
    /// All rules that the contents break.
    pub fn with_contents(
        mut self,
        first: u32,
        more: Vec<ContentSpec>,
    ) -> Result<Scene, Vec<SpecError>> {
        let mut errors = Vec::new();
        self.spec.contents.extend(more);
        check_contents(&self.spec, &self.schemas, &mut errors);
        let all = self.spec.contents.len() + first as usize;
        if all > MAX_CONTENTS as usize {
            let rule = format!("a server has at most {MAX_CONTENTS} contents");
            err(&mut errors, "contents", format!("{all} contents of all scenes"), rule);
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        self.contents = Contents::new(first, &self.spec.contents);
        Ok(self)
    }

    /// The scene with a terrain, which must cover it exactly and leave its spawn point free.
    ///
    /// # Errors
    /// All rules that the terrain breaks.
    pub fn with_terrain(self, terrain: Arc<Terrain>) -> Result<Scene, Vec<SpecError>> {
        let spec = &self.spec;
        let spawn = Pos::ground(spec.spawn_x_cm, spec.spawn_z_cm);
        let mut errors = misfits((spec.width_cm, spec.depth_cm), spawn, &terrain);
        errors.extend(too_high(spec.height_limit_cm, &terrain));
        check_on_map(spec, terrain.tile_cm(), self.reach_cm, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Scene { terrain: Some(terrain), ..self })
    }

    /// The scene with these portals more, for example those of its map.
    ///
    /// # Errors
    /// All rules that the portals break.
    pub fn with_portals(mut self, more: Vec<PortalSpec>) -> Result<Scene, Vec<SpecError>> {
        let mut errors = Vec::new();
        self.spec.portals.extend(more);
        check_portals(&self.spec, self.tick_ms, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        self.portals = Portals::new(&self.spec.portals, self.spec.land_cm);
        Ok(self)
    }

    /// Areas that take players elsewhere.
    #[inline]
    pub fn portals(&self) -> &Portals {
        &self.portals
    }

    /// What each plane contains from the start.
    #[inline]
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The place where a journey ends in this scene.
    pub fn place_of(&self, target: Target) -> Pos {
        match target {
            Target::Exact(pos) => pos,
            Target::Ground(Pos { x, z, .. }) => self.on_ground(Pos::ground(x, z)),
        }
    }

    /// The position at the height of the ground, where the scene has heights.
    pub fn on_ground(&self, pos: Pos) -> Pos {
        let terrain = self.terrain.as_ref();
        terrain.map_or(pos, |terrain| Ground::new(terrain.clone()).grounded(pos))
    }

    /// Side of a tile, centimetres.
    pub fn tile_cm(&self) -> i32 {
        self.terrain.as_ref().map_or(self.spec.moves.tile_cm, |t| t.tile_cm())
    }
}
