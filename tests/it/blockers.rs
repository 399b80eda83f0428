//! Entities that occupy tiles: nobody else enters these, on either side of a border, however the entity has come there.

mod bodies;

use std::collections::{BTreeMap, BTreeSet};

use crate::corrections::{self, Play};
use crate::support::commands::{despawn_of, motion_of, order_of};
use crate::support::world::World;
use crate::support::{Replay, Rng, seeds};
use purview::scene::messages::{Motion, Order, Refusal};
use purview::scene::movement::{Go, Move, Path, Reason, Vector};
use purview::scene::spec::{KindSpec, Moves};
use purview::scene::terrain::{Draft, Tile};
use purview::scene::{
    EntityId, Footprint, Kind, Plane, Pos, RangeSet, RegionId, Scene, SceneId, SceneSpec,
    SessionId, TileRect,
};

const PLANE: Plane = Plane(0);
const NPC: Kind = Kind(1);
const WALL: Kind = Kind(2);
const GIANT: Kind = Kind(3);
const OGRE: Kind = Kind(4);

/// Two regions of 64 m side by side, with tiles of 1 m. Walls occupy a tile, giants 6 x 3 of them, and ogres 2 x 2 or
/// 3 x 2; players and NPCs do not.
fn spec() -> SceneSpec {
    let mut spec = corrections::spec(Moves::Judged);
    for (name, size_cm) in [("wall", None), ("giant", Some([600, 300])), ("ogre", Some([250, 200]))]
    {
        spec.kinds.push(KindSpec { blocks: true, size_cm, ..KindSpec::new(name, 0) });
    }
    spec
}

fn at(x: i32, z: i32) -> Pos {
    Pos::ground(x, z)
}

fn tile(pos: Pos) -> Tile {
    Tile::of(pos, 100)
}

/// The tiles that an entity of a kind occupies.
fn body(kind: Kind, pos: Pos) -> TileRect {
    let size_cm = spec().kinds[usize::from(kind.0)].size_cm;
    Footprint::new(size_cm.unwrap_or([100; 2]), 100).at(pos)
}

fn straight(start: Pos, vx_mm_s: i32, vz_mm_s: i32, lasts_ms: Option<u32>) -> Move {
    Vector { start, vx_mm_s, vz_mm_s, lasts_ms }.into()
}

fn play() -> Play {
    Play { w: World::new(spec(), 1) }
}

impl Play {
    fn spawn(&mut self, kind: Kind, pos: Pos) -> EntityId {
        let id = self.w.spawn(kind, PLANE, pos, RangeSet::FULL, None);
        self.step(1);
        id
    }

    fn wall(&mut self, x: i32, z: i32) -> EntityId {
        self.spawn(WALL, at(x, z))
    }

    fn despawn(&mut self, id: EntityId) {
        self.w.tell(self.owner(id), despawn_of(id));
    }

    /// Logic sets an NPC in motion.
    fn go(&mut self, id: EntityId, vx_mm_s: i32, vz_mm_s: i32, lasts_ms: u32) {
        let walk = straight(self.pos(id), vx_mm_s, vz_mm_s, Some(lasts_ms));
        self.w.tell(self.owner(id), motion_of(id, Motion::Walk(walk)));
    }

    fn refusals(&mut self, session: SessionId) -> Vec<Refusal> {
        let client = self.w.clients.get_mut(&session).expect("a client");
        std::mem::take(&mut client.refusals).into_iter().map(|r| r.why).collect()
    }
}

#[test]
fn a_wall_stops_vectors_and_refuses_paths_and_lets_pass_when_it_is_gone() {
    let mut p = play();
    let wall = p.wall(1_350, 1_050);
    let a = p.join(1_050, 1_050);
    let path = |x| Path::new(at(x, 1_050), "7777".parse().expect("steps"), 500, 1);
    p.say(a, Go::Walk(path(1_050).into()));
    assert_eq!(p.refusals(a), [Refusal::Move(Reason::Blocked { tile: (13, 10) })]);
    p.walk(a, 5_000, 0);
    p.step(6);
    assert_eq!(p.pos(p.id(a)), at(1_299, 1_050));
    p.despawn(wall);
    p.step(3);
    assert_eq!(p.pos(p.id(a)), at(1_299, 1_050), "what is gone moves nobody");
    p.walk(a, 5_000, 0);
    p.step(3);
    assert_eq!(p.pos(p.id(a)), at(1_449, 1_050));
    assert_eq!(p.refusals(a), []);
}

/// As a door that closes: the walk ends there, and the client is told by a correction, not by a refusal.
#[test]
fn a_wall_that_is_built_in_front_of_a_player_stops_it_and_its_client_is_told() {
    let mut p = play();
    let (a, b) = (p.join(1_050, 1_050), p.join(1_050, 1_250));
    let id = p.id(a);
    p.walk(a, 5_000, 0);
    p.step(2);
    p.wall(1_350, 1_050);
    p.say(a, Go::On);
    p.step(3);
    let own = p.own(a);
    assert_eq!((p.pos(id), own.correction), (at(1_299, 1_050), 1));
    assert_eq!(own.trajectory.motion, Move::stand(p.pos(id)));
    assert_eq!(p.seen(b, id), p.pos(id));
    assert_eq!(p.refusals(a), []);
}

#[test]
fn who_stands_where_a_wall_is_built_leaves_it_and_does_not_come_back() {
    let mut p = play();
    let a = p.join(1_050, 1_050);
    p.wall(1_080, 1_020);
    p.walk(a, 5_000, 0);
    p.step(3);
    p.walk(a, -5_000, 0);
    p.step(6);
    assert_eq!((p.pos(p.id(a)), p.refusals(a)), (at(1_100, 1_050), vec![]));
    // One that is put there may leave as well.
    let id = p.id(a);
    p.w.tell(RegionId(0), order_of(id, Order::Move(at(1_050, 1_050))));
    p.step(1);
    p.walk(a, -5_000, 0);
    p.step(3);
    assert_eq!((p.pos(id), p.refusals(a)), (at(900, 1_050), vec![]));
}

/// Walls beyond the border, on it, and before it, seen from both sides.
#[test]
fn walls_on_the_other_side_of_a_border_stop_players_and_npcs_alike() {
    for wall_x in [6_250, 6_350, 6_399, 6_400, 6_450, 6_550] {
        for (from, vx) in [(6_050, 5_000), (6_750, -5_000)] {
            let mut p = play();
            p.wall(wall_x, 1_050);
            let (a, npc) = (p.join(from, 1_050), p.spawn(NPC, at(from, 1_080)));
            p.go(npc, vx, 0, 2_000);
            p.walk(a, vx, 0);
            for _ in 0..4 {
                p.step(4);
                p.say(a, Go::On);
            }
            let edge = if vx > 0 { wall_x / 100 * 100 - 1 } else { wall_x / 100 * 100 + 100 };
            let ends = [p.id(a), npc].map(|id| p.pos(id).x);
            assert_eq!(ends, [edge; 2], "a wall at {wall_x}, from {from}");
        }
    }
}

/// A monster that blocks is not in its own way, in either region.
#[test]
fn a_monster_that_blocks_walks_across_a_border_and_players_stop_before_it() {
    let mut p = play();
    let monster = p.wall(6_250, 1_050);
    let square = Path::new(at(6_250, 1_050), "7777447".parse().expect("steps"), 500, 100);
    p.w.tell(p.owner(monster), motion_of(monster, Motion::Walk(square.into())));
    p.step(3);
    let (a, b) = (p.join(6_450, 1_250), p.join(7_050, 1_250));
    p.step(20);
    assert_eq!((p.owner(monster), p.pos(monster)), (RegionId(1), at(6_750, 1_250)));
    p.walk(a, 5_000, 0);
    p.walk(b, -5_000, 0);
    for _ in 0..3 {
        p.step(3);
        p.say(a, Go::On);
        p.say(b, Go::On);
    }
    assert_eq!([a, b].map(|s| p.pos(p.id(s)).x), [6_699, 6_800]);
    // There and back: its way leads over the tile on which it stands.
    let back = Path::new(p.pos(monster), "4646".parse().expect("steps"), 500, 100);
    p.w.tell(RegionId(1), motion_of(monster, Motion::Walk(back.into())));
    p.step(10);
    let mover = p.w.regions[1].find(monster).expect("it lives here");
    assert_eq!(mover.pos, at(6_750, 1_250));
}

/// A monster whose tile is free again leaves the way open behind it.
#[test]
fn what_walks_away_frees_its_tile() {
    let mut p = play();
    let monster = p.wall(1_350, 1_050);
    let a = p.join(1_150, 1_050);
    p.walk(a, 5_000, 0);
    p.step(3);
    assert_eq!(p.pos(p.id(a)).x, 1_299);
    p.go(monster, 0, 5_000, 1_000);
    p.step(4);
    p.walk(a, 5_000, 0);
    p.step(5);
    assert_eq!(p.pos(p.id(a)).x, 1_549);
}

#[test]
fn walls_of_another_plane_are_in_nobodys_way() {
    let mut p = play();
    p.w.spawn(WALL, Plane(1), at(1_350, 1_050), RangeSet::FULL, None);
    let a = p.join(1_150, 1_050);
    p.walk(a, 5_000, 0);
    p.step(6);
    assert_eq!(p.pos(p.id(a)).x, 1_450);
}

/// Between two walls that touch at their corners nobody slips through, as on the map.
#[test]
fn corners_of_walls_are_closed_on_a_map_with_blocked_tiles_too() {
    let mut draft = Draft::new(100, 128, 64).expect("a draft");
    draft.set_blocked(Tile { x: 11, z: 10 }, true).expect("a tile");
    let scene = Scene::new(SceneId(0), spec(), 100, RegionId(0)).expect("legal");
    let terrain = std::sync::Arc::new(draft.finish());
    let mut p = Play { w: World::of(scene.with_terrain(terrain).expect("it fits"), 1) };
    p.wall(1_050, 1_150);
    let a = p.join(1_050, 1_050);
    let path = Path::new(at(1_050, 1_050), "0".parse().expect("a step"), 500, 100);
    p.say(a, Go::Walk(path.into()));
    assert_eq!(p.refusals(a), [Refusal::Move(Reason::Squeezed { tile: (11, 11) })]);
}

#[test]
fn walls_stand_after_the_death_of_their_region_and_of_the_neighbour() {
    for dies in [0, 1] {
        let mut p = play();
        p.w.sessions = true;
        p.w.kills.checkpoint_every = 3;
        let walls = [p.wall(6_250, 1_050), p.wall(6_450, 2_050)];
        let npcs = [p.spawn(NPC, at(6_050, 1_080)), p.spawn(NPC, at(6_050, 2_080))];
        p.step(8);
        p.w.kill(RegionId(dies), 3);
        p.step(60);
        assert_eq!(p.w.kills.recovered, 1);
        assert_eq!(walls.map(|id| p.owner(id)), [RegionId(0), RegionId(1)]);
        npcs.into_iter().for_each(|npc| p.go(npc, 5_000, 0, 3_000));
        p.step(30);
        assert_eq!(npcs.map(|npc| p.pos(npc).x), [6_199, 6_399], "region {dies} has died");
    }
}

/// The end of a walk as the definition has it: millisecond by millisecond, until a body stops the next step.
fn end_of(walk: &Move, lasts_ms: u32, bodies: &[TileRect]) -> Pos {
    let mut here = walk.start();
    for ms in 1..=lasts_ms {
        let next = walk.position(ms);
        let (from, to) = (tile(here), tile(next));
        let is_free = |x, z| {
            let next = Tile { x, z };
            !bodies.iter().any(|body| body.contains(next) && !body.contains(from))
        };
        let cut = from.x != to.x && from.z != to.z;
        let passes = !cut || is_free(from.x, to.z) || is_free(to.x, from.z);
        if from != to && !(is_free(to.x, to.z) && passes) {
            return here;
        }
        here = next;
    }
    here
}

#[test]
fn walks_among_random_walls_end_where_a_walk_millisecond_by_millisecond_does() {
    for seed in seeds(12) {
        let _replay = Replay("blockers", seed);
        let mut rng = Rng::new(seed);
        let mut p = play();
        let place = |rng: &mut Rng| {
            at(5_600 + (rng.next() % 1_600) as i32, 2_400 + (rng.next() % 1_600) as i32)
        };
        let kinds = [(WALL, 25), (GIANT, 2), (OGRE, 4)].into_iter();
        let kinds = kinds.flat_map(|(kind, count)| std::iter::repeat_n(kind, count));
        let walls: Vec<(Kind, Pos)> = kinds.map(|kind| (kind, place(&mut rng))).collect();
        for (kind, wall) in &walls {
            p.w.spawn(*kind, PLANE, *wall, RangeSet::FULL, None);
        }
        let occupied: Vec<_> = walls.iter().map(|(kind, wall)| body(*kind, *wall)).collect();
        p.step(2);
        let mut expected = BTreeMap::new();
        for _ in 0..30 {
            let start = place(&mut rng);
            let id = p.w.spawn(NPC, PLANE, start, RangeSet::FULL, None);
            let mut v = || (rng.next() % 14_001) as i32 - 7_000;
            let (vx, vz) = (v(), v());
            let lasts_ms = 2_500;
            let walk = straight(start, vx, vz, Some(lasts_ms));
            expected.insert(id, (walk, end_of(&walk, lasts_ms, &occupied)));
        }
        p.step(1);
        for (id, (walk, _)) in &expected {
            p.w.tell(p.owner(*id), motion_of(*id, Motion::Walk(*walk)));
        }
        p.step(27);
        let stopped = expected.values().filter(|(walk, end)| walk.position(2_500) != *end).count();
        assert!(stopped > 5, "seed {seed}: walls are in nobody's way");
        for (id, (walk, end)) in expected {
            assert_eq!(p.pos(id), end, "seed {seed}: {walk:?}");
        }
    }
}

/// Walls and ogres come, go and walk; nobody comes into a body that has been there at the end of three ticks.
#[test]
fn nobody_enters_a_tile_that_was_occupied_whatever_walls_do() {
    for seed in seeds(12) {
        let _replay = Replay("blockers", seed);
        Siege::new(seed).run(150);
    }
}

struct Siege {
    p: Play,
    rng: Rng,
    seed: u64,
    walls: Vec<EntityId>,
    ogres: BTreeSet<EntityId>,
    npcs: Vec<EntityId>,
    /// Which tiles were occupied in the last ticks, newest last.
    occupied: Vec<BTreeMap<(i32, i32), Vec<EntityId>>>,
}

impl Siege {
    fn new(seed: u64) -> Siege {
        let (p, rng) = (play(), Rng::new(seed));
        let mut siege = Siege {
            p,
            rng,
            seed,
            walls: vec![],
            ogres: BTreeSet::new(),
            npcs: vec![],
            occupied: vec![],
        };
        for _ in 0..25 {
            siege.build();
            let pos = siege.place();
            let npc = siege.p.w.spawn(NPC, PLANE, pos, RangeSet::FULL, None);
            siege.npcs.push(npc);
        }
        siege.p.step(2);
        siege
    }

    fn place(&mut self) -> Pos {
        let mut along = |from: i32| from + (self.rng.next() % 1_200) as i32;
        at(along(5_800), along(1_000))
    }

    fn build(&mut self) {
        let (pos, is_ogre) = (self.place(), self.rng.chance(20));
        let kind = if is_ogre { OGRE } else { WALL };
        let id = self.p.w.spawn(kind, PLANE, pos, RangeSet::FULL, None);
        self.walls.push(id);
        self.ogres.extend(is_ogre.then_some(id));
    }

    fn is_there(&self, id: EntityId) -> bool {
        self.p.w.home(id).is_some()
    }

    fn some_velocity(&mut self) -> (i32, i32) {
        let mut v = || (self.rng.next() % 14_001) as i32 - 7_000;
        (v(), v())
    }

    fn act(&mut self) {
        let all: Vec<EntityId> = self.npcs.iter().chain(&self.walls).copied().collect();
        for id in all {
            let walks = self.rng.chance(if self.npcs.contains(&id) { 10 } else { 3 });
            if walks && self.is_there(id) {
                let (vx, vz) = self.some_velocity();
                self.p.go(id, vx, vz, 2_000);
            }
        }
        if self.rng.chance(30) {
            self.build();
        }
        if self.rng.chance(30) && !self.walls.is_empty() {
            let wall = self.rng.next() as usize % self.walls.len();
            if self.is_there(self.walls[wall]) {
                let gone = self.walls.swap_remove(wall);
                self.p.despawn(gone);
            }
        }
    }

    fn note(&mut self) {
        let mut now: BTreeMap<(i32, i32), Vec<EntityId>> = BTreeMap::new();
        for id in self.walls.iter().filter(|id| self.is_there(**id)) {
            let kind = if self.ogres.contains(id) { OGRE } else { WALL };
            for tile in body(kind, self.p.pos(*id)).tiles() {
                now.entry((tile.x, tile.z)).or_default().push(*id);
            }
        }
        self.occupied.push(now);
    }

    /// Whether another entity occupied the tile at the end of each of the last three ticks, and never the tile from which
    /// the entity comes.
    fn was_taken(&self, id: EntityId, (from, to): (Tile, Tile)) -> bool {
        let ticks_on = |at: Tile, other: EntityId| {
            let is_on = |all: &Vec<EntityId>| all.contains(&other);
            let last = self.occupied.iter().rev().take(3);
            last.filter(|tiles| tiles.get(&(at.x, at.z)).is_some_and(is_on)).count()
        };
        let mut others = self.walls.iter().filter(|other| **other != id);
        others.any(|other| ticks_on(to, *other) == 3 && ticks_on(from, *other) == 0)
    }

    fn run(&mut self, ticks: u64) {
        let mut entered = 0;
        for _ in 0..3 {
            self.p.step(1);
            self.note();
        }
        for _ in 0..ticks {
            self.act();
            let movers: Vec<EntityId> = self.npcs.iter().chain(&self.walls).copied().collect();
            let movers = movers.into_iter().filter(|id| self.is_there(*id));
            let before: Vec<(EntityId, Pos)> = movers.map(|id| (id, self.p.pos(id))).collect();
            self.p.step(1);
            for (id, was) in before.into_iter().filter(|(id, _)| self.is_there(*id)) {
                let (from, to) = (tile(was), tile(self.p.pos(id)));
                entered += u32::from(from != to);
                let taken = from != to && self.was_taken(id, (from, to));
                assert!(!taken, "seed {}: {id} enters {to:?} from {from:?}", self.seed);
            }
            self.note();
        }
        assert!(entered > 500, "seed {}: {entered} tiles entered", self.seed);
    }
}
