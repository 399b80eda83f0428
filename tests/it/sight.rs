//! How far a player is shown what is no player, by the word of game logic, wherever the player goes.

use std::collections::BTreeSet;

use purview::scene::messages::{Command, CommandError, Order};
use purview::scene::{EntityId, Plane, Pos, RangeSet, RegionId, SceneSpec, Visibility};

use crate::commands::{ends, posted_in};
use crate::logic::{MONSTER, region_of, somewhere, spec};
use crate::support::world::World;
use crate::support::{Rng, seeds};

/// How far a blinded player sees.
const NEAR_CM: u32 = 300;

fn in_patches() -> SceneSpec {
    SceneSpec { visibility: Visibility::Patches, ..spec() }
}

/// What the client of the only player is shown that is no player.
fn shown(w: &World) -> BTreeSet<EntityId> {
    w.clients.values().next().expect("one player").shown.keys().copied().collect()
}

/// Whether what is shown is what is within `cm`: surely what is nearer, surely not what is an eighth farther.
fn assert_within(w: &World, monsters: &[(EntityId, Pos)], at: Pos, cm: i64) {
    let shown = shown(w);
    for (id, pos) in monsters {
        let (dx, dz) = (i64::from(pos.x - at.x), i64::from(pos.z - at.z));
        let d2 = dx * dx + dz * dz;
        assert!(d2 > cm * cm || shown.contains(id), "{id} at {pos:?} from {at:?}");
        let leave = cm + cm / 8;
        assert!(d2 <= leave * leave || !shown.contains(id), "{id} at {pos:?} from {at:?}");
    }
}

fn blinded_player_walks(spec: SceneSpec, seed: u64) {
    let (mut w, events, post) = posted_in(spec, RegionId(0), seed);
    let mut rng = Rng::new(seed);
    let (width, depth) = (w.scene.spec.width_cm, w.scene.spec.depth_cm);
    let places: Vec<Pos> = (0..200).map(|_| somewhere(&w, &mut rng)).collect();
    let spawn = |pos| (w.spawn(MONSTER, Plane(0), pos, RangeSet::FULL, None), pos);
    let monsters: Vec<(EntityId, Pos)> = places.into_iter().map(spawn).collect();
    let mut at = Pos::ground(100, 100);
    let (_, id) = w.player(at.x, at.z);
    w.steps(3);
    let all = shown(&w);
    post.lock().unwrap().push(Command::Sight(id, Some(NEAR_CM)));
    let monster = monsters[0].0;
    post.lock().unwrap().push(Command::Sight(monster, Some(NEAR_CM)));
    w.steps(30);
    let refused = ends(&events).pop().expect("it is told");
    assert_eq!(refused.1, Some(CommandError::NoPlayer(monster)));
    assert_within(&w, &monsters, at, NEAR_CM.into());
    let mut regions = BTreeSet::new();
    while at.x + 150 < width && at.z + 150 < depth {
        at = Pos::ground(at.x + 150, at.z + 150);
        w.order_by_logic(id, Order::Move(at));
        w.steps(4);
        regions.insert(region_of(&w, id));
        assert_within(&w, &monsters, at, NEAR_CM.into());
    }
    assert!(regions.len() > 1, "{regions:?}");
    post.lock().unwrap().push(Command::Sight(id, None));
    w.steps(30);
    at = Pos::ground(100, 100);
    for _ in 0..3 {
        w.order_by_logic(id, Order::Move(at));
        w.steps(4);
    }
    assert!(all.is_subset(&shown(&w)), "its sight alone counts again");
}

#[test]
fn a_blinded_player_is_shown_what_is_near_over_borders_and_all_again_afterwards() {
    for seed in seeds(4) {
        blinded_player_walks(spec(), seed);
        blinded_player_walks(in_patches(), seed);
    }
}
