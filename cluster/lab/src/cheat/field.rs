//! The place of a trial: a way that leads east for long enough, and a wall in the west.

use std::time::Duration;

use anyhow::{Context, ensure};
use purview::scene::terrain::{Ground, Tile};
use purview::scene::{Kind, Plane, Pos, Scene};
use purview_server::config::{Config, ConfigErrors};

/// The configuration of the built-in scene, also as a file to start a server with.
const TRIAL: &str = include_str!("../../../../deploy/scenes/trial.toml");

/// How much longer than an honest player's walk the way is, per cent, so that a cheater has room to gain.
const ROOM_PERCENT: u64 = 115;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heading {
    East,
    West,
}

impl Heading {
    /// The sign of its movement along `x`.
    pub fn sign(self) -> i32 {
        match self {
            Heading::East => 1,
            Heading::West => -1,
        }
    }

    pub fn step(self) -> &'static str {
        match self {
            Heading::East => "7",
            Heading::West => "5",
        }
    }
}

/// All clients start at the spawn position of the scene.
#[derive(Debug, Clone)]
pub struct Field {
    pub scene: String,
    pub speed_cm_s: u32,
    pub ground: Ground,
    /// How far an honest player comes to the west, centimetres.
    pub to_wall_cm: i32,
}

impl Field {
    /// The configuration of the built-in scene, which is there twice, for cheats that change scenes.
    pub fn built_in() -> Result<Config, ConfigErrors> {
        let mut config = Config::parse(TRIAL)?;
        let mut second = config.scenes[0].clone();
        second.spec.name = "trial-2".into();
        config.scenes.push(second);
        Ok(config)
    }

    /// Finds room for a trial of `length` in a scene.
    pub fn find(scene: &Scene, length: Duration) -> anyhow::Result<Field> {
        let spec = &scene.spec;
        let terrain = scene.terrain.clone().context(
            "the scene has no map, but the trial needs a wall; deploy/scenes/trial.toml has one",
        )?;
        ensure!(!spec.client_teleports, "the scene lets clients teleport, so it would be no cheat");
        let speed = spec.kinds.get(usize::from(Kind::PLAYER.0)).and_then(|kind| kind.speed_cm_s);
        let speed_cm_s = speed.unwrap_or(spec.top_speed_cm_s).max(1) as u32;
        let ground = Ground::new(terrain);
        let spawn = Pos::ground(spec.spawn_x_cm, spec.spawn_z_cm);
        let (tile_cm, at) = (ground.tile_cm(), ground.tile_of(spawn));
        let is_free = |tile| ground.is_free(Plane(0), tile);
        // The last tile of the way with this step along `x`.
        let last = |step: i32| {
            let tiles = (0..).map(|n| Tile { x: at.x + n * step, ..at });
            let level = ground.height_cm(at);
            let ends = |tile: &Tile| {
                let on_map = (0..ground.terrain().width()).contains(&tile.x);
                on_map && is_free(*tile) && ground.height_cm(*tile) == level
            };
            tiles.take_while(ends).last().unwrap_or(at).x
        };
        let (east, west) = (last(1), last(-1));
        let way_cm = i64::from(speed_cm_s) * length.as_millis() as i64 / 1_000;
        let need_cm = way_cm * ROOM_PERCENT as i64 / 100;
        let room_cm = i64::from((east + 1) * tile_cm - spawn.x);
        ensure!(
            room_cm > need_cm,
            "the scene has only {room_cm} cm of flat and free ground east of the spawn point, \
             {need_cm} cm are needed; use a larger scene or a shorter --for"
        );
        let to_wall_cm = spawn.x - west * tile_cm;
        let is_wall = west > 0 && !is_free(Tile { x: west - 1, ..at });
        ensure!(
            is_wall && i64::from(to_wall_cm) < way_cm / 2,
            "the scene has no wall west of the spawn point that is reached in half the time"
        );
        Ok(Field { scene: spec.name.clone(), speed_cm_s, ground, to_wall_cm })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(config: &Config, length_s: u64) -> Result<Field, String> {
        let scenes = config.build_scenes().unwrap();
        Field::find(&scenes[0], Duration::from_secs(length_s)).map_err(|e| e.to_string())
    }

    #[test]
    fn the_built_in_scene_has_room_for_a_minute_and_a_wall() {
        let field = found(&Field::built_in().unwrap(), 60).unwrap();
        assert_eq!((field.speed_cm_s, field.to_wall_cm), (500, 800));
        let is_free =
            |x| field.ground.is_free(Plane(0), field.ground.tile_of(Pos::ground(x, 6_400)));
        assert_eq!([3_200, 3_199].map(is_free), [true, false]);
    }

    #[test]
    fn a_scene_without_a_map_a_way_or_a_wall_is_an_error() {
        let mut config = Field::built_in().unwrap();
        assert!(found(&config, 90).unwrap_err().contains("51750 cm are needed"));
        config.scenes[0].spec.client_teleports = true;
        assert!(found(&config, 60).unwrap_err().contains("no cheat"));
        config.scenes[0].spec.client_teleports = false;
        config.scenes[0].map.as_mut().unwrap().doors.clear();
        assert!(found(&config, 60).unwrap_err().contains("no wall"));
        config.scenes[0].map = None;
        assert!(found(&config, 60).unwrap_err().contains("no map"));
    }
}
