//! A region's snapshot as bytes: an encoded snapshot decodes, anything else is refused with the
//! reason, and the form does not change unnoticed.

use crate::support::alone::recover;
use crate::support::handed_over;
use crate::support::moving::without_epochs;
use crate::support::trial::scene;
use crate::support::world::World;
use purview::scene::messages::{Bond, EntityAction, Handoff, Input, Order, Spawn};
use purview::scene::properties::Properties;
use purview::scene::region::{RegionSnapshot, RestoreError};
use purview::scene::views::{ViewMsg, ViewMsgBody};
use purview::scene::{
    EntityId, Epoch, Facing, Kind, Plane, Pos, RangeSet, Region, RegionId, Scene, SceneId,
    SceneSpec, Seq, Tick, Visibility,
};
use purview::wire::{MAX_SNAPSHOT, SNAPSHOT_VERSION, SnapshotError};

/// The same small history in every run: two regions with players, bonds, a fight, a beast, a
/// remembered handoff, and waiting inputs.
fn frozen() -> (World, RegionSnapshot) {
    let mut w = World::new(scene(Visibility::Patches, 60), 1);
    let a = w.join(Plane(0), Pos::ground(3_000, 500), RangeSet::FULL);
    let b = w.join(Plane(0), Pos::ground(3_150, 500), RangeSet::FULL);
    let c = w.join(Plane(0), Pos::ground(3_300, 500), RangeSet::FULL);
    w.spawn(Kind(1), Plane(0), Pos::ground(2_900, 600), RangeSet::FULL, None);
    w.steps(3);
    let (id, other) = (w.clients[&a].entity, w.clients[&b].entity);
    w.tell(RegionId(0), Input::Bonds { id, bonds: vec![Bond { class: 1, group: 7 }] });
    let action = EntityAction { aim: Some(other), ..EntityAction::new("hit") };
    w.order(a, Order::Act(action));
    w.walk(c, Pos::ground(3_000, 700));
    w.steps(3);
    w.walk(c, Pos::ground(3_450, 700));
    w.steps(3);
    w.walk(b, Pos::ground(3_160, 510));
    let new = Region::new(w.scene.clone(), RegionId(0)).expect("a region of the scene");
    let mut region = std::mem::replace(&mut w.regions[0], new);
    // A message for an unknown player, and a player that arrives and whose tick is not over here.
    let (from, to) = (other, EntityId(77));
    let (from_region, from_epoch, say) = (RegionId(1), Epoch(1), ViewMsgBody::Yes(1));
    region.handle(Input::View(ViewMsg { from, from_region, from_epoch, to, say }), &mut Vec::new());
    let coming = coming(w.tick.next());
    region.handle(Input::Handoff(Box::new(coming)), &mut Vec::new());
    (w, region.freeze().expect("a closed tick"))
}

/// A player that is handed over at the end of `tick`.
fn coming(tick: Tick) -> Handoff {
    let state = Spawn {
        facing: Facing::SOUTH,
        properties: Properties::with_appearance(b"look 50").unwrap(),
        ..Spawn::new(EntityId(50), Kind::PLAYER, Pos::ground(3_050, 800))
    };
    Handoff {
        epoch: Epoch(2),
        last_applied: Seq(3),
        view_counter: 4,
        disconnected_until: Some(tick.next()),
        stays_until: tick.next().next(),
        since_ms: 4,
        ..handed_over(state, Epoch(1), tick)
    }
}

fn refused(bytes: &[u8]) -> SnapshotError {
    RegionSnapshot::decode(bytes).expect_err("no snapshot")
}

#[test]
fn an_encoded_snapshot_decodes() {
    let (_, snapshot) = frozen();
    let bytes = snapshot.encode().unwrap();
    let read = RegionSnapshot::decode(&bytes).unwrap();
    assert_eq!(format!("{read:?}"), format!("{snapshot:?}"));
    assert_eq!(read.encode().unwrap(), bytes);
    assert!(read.is_whole());
    assert_eq!(read.entities().count(), 4);
}

#[test]
fn a_restored_region_has_all_that_was_frozen() {
    let (w, snapshot) = frozen();
    let before = without_epochs(&snapshot);
    assert!(before.contains("EntityId(77)") && before.contains("6c6f6f6b203530"), "{before}");
    let mut fx = Vec::new();
    let next = Region::restore(w.scene.clone(), RegionId(0), Epoch(2), snapshot, &mut fx);
    let again = next.expect("it fits").freeze().expect("a closed tick");
    assert_eq!(without_epochs(&again), before);
}

/// FNV-1a: enough to notice a change.
fn digest(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// A change here is a change of the schema: either a new field at the end of its struct with a
/// default, which older snapshots lack, or a new [`SNAPSHOT_VERSION`] with a conversion.
#[test]
fn the_schema_has_not_changed() {
    let (_, snapshot) = frozen();
    let bytes = snapshot.encode().unwrap();
    assert_eq!(bytes[..6], [b'P', b'V', b'R', b'S', 0, 4]);
    let golden = (SNAPSHOT_VERSION, bytes.len(), digest(&bytes));
    if std::env::var_os("PURVIEW_GOLDEN").is_some_and(|how| how == "write") {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/snapshot_body/region");
        // The target adds magic number, version, length and checksum.
        let head = 4 + size_of::<u16>() + size_of::<u64>() + size_of::<u32>();
        std::fs::write(corpus, &bytes[head..]).unwrap();
    }
    assert_eq!(
        golden,
        (4, 894, 7_360_443_828_085_234_152),
        "version, length and digest of a known snapshot"
    );
}

#[test]
fn every_truncation_and_every_flipped_bit_is_detected() {
    let (_, snapshot) = frozen();
    let mut bytes = snapshot.encode().unwrap();
    for end in 0..bytes.len() {
        let why = refused(&bytes[..end]);
        assert!(matches!(why, SnapshotError::Foreign | SnapshotError::Torn { .. }), "{end}: {why}");
    }
    for at in (0..bytes.len()).step_by(7) {
        bytes[at] ^= 1 << (at % 8);
        refused(&bytes);
        bytes[at] ^= 1 << (at % 8);
    }
    bytes.push(0);
    assert_eq!(refused(&bytes), SnapshotError::Trailing { by: 1 });
}

#[test]
fn other_versions_and_impossible_lengths_are_refused_with_the_reason() {
    let (_, snapshot) = frozen();
    let mut bytes = snapshot.encode().unwrap();
    bytes[5] = 9;
    assert_eq!(refused(&bytes), SnapshotError::UnknownVersion { found: 9 });
    bytes[5] = SNAPSHOT_VERSION as u8;
    bytes[6..14].copy_from_slice(&(MAX_SNAPSHOT as u64 + 1).to_be_bytes());
    assert_eq!(refused(&bytes), SnapshotError::TooBig { len: MAX_SNAPSHOT as u64 + 1 });
    assert_eq!(refused(b"not ours at all"), SnapshotError::Foreign);
}

#[test]
fn a_snapshot_is_restored_only_where_it_fits() {
    let (w, snapshot) = frozen();
    let (here, epoch) = (RegionId(0), Epoch(2));
    let other = |spec: SceneSpec| {
        std::sync::Arc::new(Scene::new(SceneId(1), spec, 100, RegionId(0)).expect("legal"))
    };
    let no = |scene: &std::sync::Arc<Scene>, id, epoch, snapshot: &RegionSnapshot| {
        let mut fx = Vec::new();
        let gone = Region::restore(scene.clone(), id, epoch, snapshot.clone(), &mut fx);
        assert!(fx.is_empty());
        gone.expect_err("it does not fit")
    };
    let (found, wanted) = (SceneId(0), SceneId(1));
    let spec = scene(Visibility::Patches, 60);
    assert_eq!(
        no(&other(spec), here, epoch, &snapshot),
        RestoreError::WrongScene { found, wanted }
    );
    let (found, wanted) = (here, RegionId(1));
    assert_eq!(no(&w.scene, wanted, epoch, &snapshot), RestoreError::WrongRegion { found, wanted });
    let old = RestoreError::OldEpoch { given: Epoch(1), found: Epoch(1) };
    assert_eq!(no(&w.scene, here, Epoch(1), &snapshot), old);
    let kept = w.regions[1].checkpoint().expect("a closed tick");
    assert_eq!(no(&w.scene, RegionId(1), epoch, &kept), RestoreError::NotWhole);
    // A frozen region also serves for a recovery.
    let (_, fx) = recover(&w.scene, snapshot, &[RegionId(1)], 10);
    let what = "the region asks one region and two sessions, and hands over again the entity that has just left";
    assert_eq!(fx.len(), 4, "{what}: {fx:?}");
}
