//! Many regions of a scene in one thread, with seeded deliveries, model clients, and the brute
//! force that everything is checked against.

pub mod alone;
pub mod brute;
pub mod client;
pub mod commands;
pub mod crash;
pub mod decode;
mod effects;
pub mod histories;
pub mod kill;
pub mod mapping;
pub mod moving;
pub mod returning;
#[allow(dead_code)]
#[path = "../../../cluster/demo/src/rng.rs"]
mod rng;
pub mod safety;
pub mod session;
pub mod told;
pub mod touches;
pub mod trial;
pub mod world;

pub use rng::Rng;

use purview::scene::messages::{Handoff, Presented, Spawn};
use purview::scene::spec::{KindSpec, LayerSpec, Rates};
use purview::scene::{
    Account, EntityId, Epoch, Plane, Pos, RegionId, Scene, SceneId, SceneSpec, SessionId,
    SubjectHash, Tick,
};

/// A scene of so many regions in each direction, each a square land of `side_cm`, whose clients are told everything in
/// every tick.
pub fn small_scene((columns, rows): (i32, i32), side_cm: i32, patch_cm: i32) -> SceneSpec {
    SceneSpec {
        width_cm: columns * side_cm,
        depth_cm: rows * side_cm,
        land_cm: side_cm,
        region_lands_x: 1,
        region_lands_z: 1,
        layers: vec![LayerSpec::square("common", patch_cm)],
        kinds: ["player", "npc"].map(|name| KindSpec::new(name, 0)).into(),
        view_margin_cm: 0,
        rates: Rates { near: 1, middle: 1, far: 1 },
        handoff_margin_cm: 100,
        top_speed_cm_s: 2_000,
        spawn_x_cm: 0,
        spawn_z_cm: 0,
        ..SceneSpec::default()
    }
}

/// A change of a scene.
pub type Change<'a> = &'a dyn Fn(&mut SceneSpec);

/// Fails unless a scene that is changed so is refused for this reason.
pub fn assert_wrong(spec: &SceneSpec, change: Change<'_>, says: &str) {
    let mut spec = spec.clone();
    change(&mut spec);
    let errors = Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap_err();
    let told = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(told.contains(says), "{says}: {told}");
}

/// An entity that region 1 hands over at the end of `tick`, and of which nothing else is known.
pub fn handed_over(state: Spawn, from_epoch: Epoch, tick: Tick) -> Handoff {
    Handoff {
        from: RegionId(1),
        from_epoch,
        state,
        epoch: from_epoch.of_birth().next(),
        tick,
        ..Handoff::default()
    }
}

/// What a session says of its player of region 0, which it knows since a tick.
pub fn presented_by(session: SessionId, id: EntityId, pos: Pos, tick: Tick) -> Presented {
    Presented {
        id,
        session,
        subject: whose(id),
        epoch: Epoch(1),
        pos,
        tick,
        ..Presented::default()
    }
}

/// The seeds of a run; `PURVIEW_SEEDS=FROM..TO` replaces the default ones.
pub fn seeds(most: u64) -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("PURVIEW_SEEDS") else { return 0..most };
    let (from, to) = text.split_once("..").expect("PURVIEW_SEEDS=FROM..TO");
    from.parse().expect("a number")..to.parse().expect("a number")
}

/// Prints the command that replays a seed's failure.
pub fn say_how_to_replay(file: &str, seed: u64) {
    let thread = std::thread::current();
    let all = format!("{file}::");
    let test = thread.name().filter(|name| *name != "main").unwrap_or(&all);
    eprintln!("PURVIEW_SEEDS={seed}..{} cargo test -p purview --test it {test}", seed + 1);
}

/// Says how to replay a seed if the test fails while it lives.
pub struct Replay(pub &'static str, pub u64);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            say_how_to_replay(self.0, self.1);
        }
    }
}

/// Whether `PURVIEW_SEEDS` is set.
pub fn seeds_are_given() -> bool {
    std::env::var_os("PURVIEW_SEEDS").is_some()
}

/// Whose the player of this id is.
pub fn whose(id: EntityId) -> SubjectHash {
    SubjectHash::new((u128::from(id.0) << 60).to_be_bytes())
}

/// Its account.
pub fn account_of(id: EntityId) -> Account {
    account_with(id, &[])
}

/// The same, of a token that lists these planes.
pub fn account_with(id: EntityId, planes: &[(String, Plane)]) -> Account {
    Account::new(&format!("player {id}"), Default::default(), planes).expect("short")
}

/// The appearance of an entity in these tests.
pub fn look(id: EntityId) -> purview::scene::properties::Properties {
    let look = format!("look {id}");
    purview::scene::properties::Properties::with_appearance(look.as_bytes()).expect("short")
}
