//! The place of a trial: tracks that lead east for long enough, and a wall in the west.

use std::time::Duration;

use purview::scene::terrain::{Ground, Tile};
use purview::scene::{Kind, Plane, Pos, Scene};

use purview_server::config::{Config, ConfigErrors};

/// The configuration of the built-in scene, also as a file to start a server with.
const TRIAL: &str = include_str!("../../../../deploy/scenes/trial.toml");

/// The greatest number of tracks.
const TRACKS_MAX: usize = 16;
/// How much longer than an honest player's walk a track is, per cent, so that a cheater has room to gain.
const ROOM_PERCENT: u64 = 115;
/// How far before the wall the clients start that must go through it, centimetres.
const RUN_UP_CM: i32 = 800;

/// Why a scene has no room for a trial.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The scene has no map.
    #[error(
        "scene {scene:?} has no map, but the trial needs a wall; deploy/scenes/trial.toml has one"
    )]
    NoMap {
        /// The name of the scene.
        scene: String,
    },
    /// No free way is long enough.
    #[error(
        "scene {scene:?} has no straight, flat and free way of {need_cm} cm to the east; use a larger scene or a shorter --for"
    )]
    NoTrack {
        /// The name of the scene.
        scene: String,
        /// The length that is needed.
        need_cm: u64,
    },
    /// The scene has no wall.
    #[error(
        "scene {scene:?} has no blocked tile 8 m west of free ground (if clients cannot choose their position: 8 m west of the spawn point, and reachable in half the time)"
    )]
    NoWall {
        /// The name of the scene.
        scene: String,
    },
}

/// The direction of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heading {
    /// Along its track.
    East,
    /// To the wall.
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

    /// A step of a path.
    pub fn step(self) -> &'static str {
        match self {
            Heading::East => "7",
            Heading::West => "5",
        }
    }
}

/// The place of a trial.
#[derive(Debug, Clone)]
pub struct Field {
    /// The name of the scene.
    pub scene: String,
    /// The top speed of a player, centimetres per second.
    pub speed_cm_s: u32,
    /// The terrain.
    pub ground: Ground,
    /// The starts of the tracks; at least one.
    tracks: Vec<Pos>,
    /// The length of each track, centimetres.
    track_cm: u64,
    /// Whether clients choose their spawn position; otherwise all start at the same place.
    chosen: bool,
    /// The start of the clients that must go through the wall.
    wall: Pos,
    /// How far an honest player comes from there, centimetres.
    to_wall_cm: i32,
}

impl Field {
    /// The configuration of the built-in scene.
    ///
    /// # Errors
    /// None: a test checks the built-in scene.
    pub fn built_in() -> Result<Config, ConfigErrors> {
        Config::parse(TRIAL)
    }

    /// Finds room for a trial of `length` in a scene.
    ///
    /// # Errors
    /// The scene lacks a map, a way or a wall.
    pub fn find(scene: &Scene, length: Duration) -> Result<Field, FieldError> {
        let (name, top) = (scene.spec.name.clone(), scene.spec.top_speed_cm_s);
        let Some(terrain) = scene.terrain.clone() else {
            return Err(FieldError::NoMap { scene: name });
        };
        let player = scene.spec.kinds.get(usize::from(Kind::PLAYER.0));
        let speed_cm_s = player.and_then(|k| k.speed_cm_s).unwrap_or(top).max(1) as u32;
        let way_cm = u64::from(speed_cm_s) * length.as_millis() as u64 / 1_000;
        let track_cm = way_cm * ROOM_PERCENT / 100;
        let ground = Ground::new(terrain);
        let runs = runs(&ground);
        let chosen = scene.spec.client_teleports;
        let spawn = Pos::ground(scene.spec.spawn_x_cm, scene.spec.spawn_z_cm);
        let track = |run: &Run| {
            let start = if chosen { run.start } else { spawn };
            let fits = run.holds(spawn, &ground) || chosen;
            (fits && i64::from(run.end_x) - i64::from(start.x) > track_cm as i64).then_some(start)
        };
        let tracks = spread(runs.iter().filter_map(track).collect());
        if tracks.is_empty() {
            return Err(FieldError::NoTrack { scene: name, need_cm: track_cm });
        }
        let wall = |run: &Run| {
            let (x, most) = (run.west_x + RUN_UP_CM, way_cm as i64 / 2);
            let start = if chosen { Pos { x, ..run.start } } else { spawn };
            let to_wall_cm = start.x - run.west_x;
            let is_near = to_wall_cm > 0 && (chosen || i64::from(to_wall_cm) < most);
            let fits = (run.holds(spawn, &ground) || chosen) && start.x < run.end_x;
            (run.wall && is_near && fits).then_some((start, to_wall_cm))
        };
        let Some((wall, to_wall_cm)) = runs.iter().find_map(wall) else {
            return Err(FieldError::NoWall { scene: name });
        };
        Ok(Field { scene: name, speed_cm_s, ground, tracks, track_cm, chosen, wall, to_wall_cm })
    }

    /// The start of the n-th client that goes east.
    pub fn track(&self, n: usize) -> Pos {
        self.tracks[n % self.tracks.len()]
    }

    /// A position on the n-th track, at `share` of its length, if clients may choose one.
    pub fn place(&self, n: usize, share: f64) -> Pos {
        let start = self.track(n);
        let share = if self.chosen { share.clamp(0.0, 1.0) } else { 0.0 };
        Pos { x: start.x + (self.track_cm as f64 * share) as i32, ..start }
    }

    /// The position in the join of a client that starts at `at`.
    pub fn join_at(&self, at: Pos) -> Option<Pos> {
        self.chosen.then_some(at)
    }

    /// Whether a teleport is a cheat.
    pub fn teleports_are_cheats(&self) -> bool {
        !self.chosen
    }

    /// The start of the clients that must go through the wall.
    pub fn wall(&self) -> Pos {
        self.wall
    }

    /// How far an honest player comes from there, centimetres.
    pub fn to_wall_cm(&self) -> i32 {
        self.to_wall_cm
    }
}

/// A row of free tiles of one height.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The centre of the first tile.
    start: Pos,
    /// The edges, centimetres: from `west_x` to below `end_x`.
    west_x: i32,
    end_x: i32,
    /// Whether the tile to the west is blocked, and neither a step nor beyond the map.
    wall: bool,
}

impl Run {
    fn new(from: Tile, end: i32, ground: &Ground) -> Run {
        let tile_cm = ground.tile_cm();
        let before = Tile { x: from.x - 1, ..from };
        Run {
            start: from.middle(tile_cm, ground.height_cm(from)),
            west_x: from.x * tile_cm,
            end_x: end * tile_cm,
            wall: from.x > 0 && !ground.is_free(Plane(0), before),
        }
    }

    fn holds(&self, pos: Pos, ground: &Ground) -> bool {
        let rows = [self.start, pos].map(|pos| ground.tile_of(pos).z);
        rows[0] == rows[1] && (self.west_x..self.end_x).contains(&pos.x)
    }
}

fn runs(ground: &Ground) -> Vec<Run> {
    let (width, depth) = (ground.terrain().width(), ground.terrain().depth());
    let free = |x, z| x < width && ground.is_free(Plane(0), Tile { x, z });
    let mut runs = Vec::new();
    for z in 0..depth {
        let mut x = 0;
        while x < width {
            let from = Tile { x, z };
            let height = ground.height_cm(from);
            let ends = |x: &i32| !free(*x, z) || ground.height_cm(Tile { x: *x, z }) != height;
            let end = (x..=width).find(ends).unwrap_or(width);
            if end > x {
                runs.push(Run::new(from, end, ground));
            }
            x = end.max(x + 1);
        }
    }
    runs
}

/// At most `most` entries, from all over the list.
fn spread(places: Vec<Pos>) -> Vec<Pos> {
    let step = places.len().div_ceil(TRACKS_MAX).max(1);
    places.into_iter().step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(config: &Config, length_s: u64) -> Result<Field, FieldError> {
        let scenes = config.build_scenes().unwrap();
        Field::find(&scenes[0], Duration::from_secs(length_s))
    }

    /// The east side of the wall in the built-in scene, and what lies west of it.
    const WALL: [i32; 2] = [3_200, 3_199];

    fn is_free(field: &Field, pos: Pos) -> bool {
        field.ground.is_free(Plane(0), field.ground.tile_of(pos))
    }

    #[test]
    fn the_built_in_scene_has_room_for_a_minute_and_a_wall() {
        let field = found(&Field::built_in().unwrap(), 60).unwrap();
        assert_eq!((field.speed_cm_s, field.track_cm), (500, 34_500));
        let spawn = Pos::ground(4_000, 6_400);
        assert_eq!((field.track(7), field.place(7, 0.5), field.wall()), (spawn, spawn, spawn));
        assert_eq!((field.to_wall_cm(), field.join_at(spawn)), (800, None));
        assert_eq!(WALL.map(|x| is_free(&field, Pos { x, ..spawn })), [true, false]);
        assert!(field.teleports_are_cheats());
    }

    #[test]
    fn where_clients_choose_their_positions_tracks_are_all_over_the_map() {
        let mut config = Field::built_in().unwrap();
        config.scenes[0].spec.client_teleports = true;
        let field = found(&config, 60).unwrap();
        let tracks: std::collections::BTreeSet<i32> = (0..99).map(|n| field.track(n).z).collect();
        assert_eq!(tracks.len(), 16);
        for n in 0..99 {
            let place = field.place(n, n as f64 / 98.0);
            assert!(is_free(&field, place) && field.join_at(place) == Some(place));
        }
        assert_eq!((field.wall().x, field.to_wall_cm()), (4_000, 800));
        assert_eq!(WALL.map(|x| is_free(&field, Pos { x, ..field.wall() })), [true, false]);
    }

    #[test]
    fn a_scene_without_a_map_a_way_or_a_wall_is_an_error_that_names_it() {
        let mut config = Field::built_in().unwrap();
        let too_long = found(&config, 90).unwrap_err();
        assert_eq!(too_long, FieldError::NoTrack { scene: "trial".into(), need_cm: 51_750 });
        let doors = config.scenes[0].map.as_mut().map(|map| std::mem::take(&mut map.doors));
        assert_eq!(doors.map(|d| d.len()), Some(1));
        assert_eq!(found(&config, 60).unwrap_err(), FieldError::NoWall { scene: "trial".into() });
        config.scenes[0].map = None;
        assert_eq!(found(&config, 60).unwrap_err(), FieldError::NoMap { scene: "trial".into() });
    }
}
