//! Messages of the game's logic: to one player, to a group wherever its members are, to a plane and to
//! a scene. Each is told once and in order, also to players who walk from region to region.

use crate::support::trial::{CIRCLE, Trial, scene};
use crate::support::world::{Weather, World};
use crate::support::{Replay, seeds};
use bytes::Bytes;
use purview::scene::messages::{
    Bond, GroupMessage, Input, MAX_MESSAGE_BYTES, MessageId, MessageKind, NamedBond, Recipients,
};
use purview::scene::{Plane, Pos, RangeSet, RegionId, SceneId, SessionId, Visibility};

/// The sender of messages for groups, which has a way of its own to each region.
const SENDER: RegionId = RegionId(10_000);

fn now_ms(w: &World) -> u64 {
    w.tick.0 * 100
}

/// Sends a message for a group on its way to every region.
fn tell_group(w: &mut World, number: u64, to: Recipients) {
    let payload = Bytes::from(number.to_string());
    let message =
        GroupMessage { id: MessageId { sender: 7, number }, to, payload, sent_ms: now_ms(w) };
    for region in 0..w.regions.len() as u32 {
        let input = Input::Group(Box::new(message.clone()));
        w.queues.entry((SENDER, RegionId(region))).or_default().push_back(input);
    }
}

fn numbers(w: &World, session: SessionId, kind: MessageKind) -> Vec<u64> {
    let told = w.clients[&session].told.messages.iter().filter(|told| told.kind == kind);
    told.map(|told| std::str::from_utf8(&told.payload).unwrap().parse().unwrap()).collect()
}

const PARTY: Bond = Bond { class: 1, group: 77 };

fn bonded(w: &mut World, x: i32, z: i32, bonds: &[Bond]) -> SessionId {
    let (session, _) = w.player(x, z);
    w.step();
    w.bond(session, bonds);
    session
}

/// Messages go out in every tick while all players walk over borders, and batches are late. Every
/// fifth message is for the scene.
fn walk_and_talk(seed: u64, visibility: Visibility, restless: u64) -> u64 {
    let mut t = Trial::new(scene(visibility, 20), seed);
    let members: Vec<_> =
        (0..6).map(|i| bonded(&mut t.w, 3_000 + 200 * i, 3_100, &[PARTY])).collect();
    let stranger = bonded(&mut t.w, 3_100, 3_300, &[Bond { group: 78, ..PARTY }]);
    t.w.steps(2);
    t.w.weather = Weather { skip: 10, lose: 5, delay: 20, mute: 0 };
    t.w.restless = restless;
    for number in 1..=100_u64 {
        let to = match number.is_multiple_of(5) {
            true => Recipients::Scene(SceneId(0)),
            false => Recipients::Bond(NamedBond::new("party", PARTY.group)),
        };
        tell_group(&mut t.w, number, to);
        for session in members.iter().chain([&stranger]) {
            t.stroll(*session);
        }
        t.w.step();
    }
    (t.w.weather, t.w.restless) = (Weather::default(), 0);
    t.w.steps(40);
    let all = |announced: bool| (1..=100).filter(move |i: &u64| i.is_multiple_of(5) == announced);
    for session in &members {
        let got = numbers(&t.w, *session, MessageKind::Bond);
        assert_eq!(got, all(false).collect::<Vec<_>>(), "each once and in order");
        let got = numbers(&t.w, *session, MessageKind::Announcement);
        assert_eq!(got, all(true).collect::<Vec<_>>());
    }
    assert_eq!(numbers(&t.w, stranger, MessageKind::Bond), [0_u64; 0]);
    assert_eq!(numbers(&t.w, stranger, MessageKind::Announcement).len(), 20);
    t.w.handoffs
}

fn every_seed(visibility: Visibility, restless: u64) {
    let mut handoffs = 0;
    for seed in seeds(12) {
        let _replay = Replay("messages", seed);
        handoffs += walk_and_talk(seed, visibility, restless);
    }
    assert!(handoffs > 20, "{handoffs} handoffs");
}

#[test]
fn a_party_that_walks_over_borders_gets_every_message_once_and_in_order() {
    every_seed(Visibility::Patches, 0);
    every_seed(CIRCLE, 0);
}

#[test]
fn a_party_gets_every_message_while_regions_migrate() {
    every_seed(Visibility::Patches, 2);
}

#[test]
fn a_message_for_one_player_follows_it_and_waits_while_its_client_is_held() {
    let mut w = World::new(scene(Visibility::Patches, 20), 1);
    let session = bonded(&mut w, 3_150, 3_000, &[]);
    let other = bonded(&mut w, 3_000, 3_000, &[]);
    w.step();
    let (id, old) = (w.clients[&session].entity, w.clients[&session].region);
    let tell = |w: &mut World, n: u64| {
        let payload = Bytes::from(n.to_string());
        w.tell(old, Input::Tell { id, payload });
    };
    tell(&mut w, 1);
    w.walk(session, Pos::ground(3_330, 3_000));
    w.step();
    w.steps(2);
    assert_eq!(w.handoffs, 1);
    // The old owner passes it on.
    tell(&mut w, 2);
    w.steps(3);
    assert_eq!(numbers(&w, session, MessageKind::Tell), [1, 2]);
    let new = w.clients[&session].region;
    w.tell(new, Input::Hold { id, session });
    w.step();
    (3..=5).for_each(|n| tell(&mut w, n));
    w.steps(3);
    assert_eq!(numbers(&w, session, MessageKind::Tell), [1, 2]);
    w.tell(new, Input::Release { id, session });
    w.step();
    assert_eq!(numbers(&w, session, MessageKind::Tell), [1, 2, 3, 4, 5]);
    assert_eq!(numbers(&w, other, MessageKind::Tell), [0_u64; 0]);
}

#[test]
fn an_announcement_reaches_its_plane_alone_and_one_that_is_too_long_nobody() {
    let mut w = World::new(scene(Visibility::Patches, 20), 1);
    let here = w.join(Plane(0), Pos::ground(3_000, 3_000), RangeSet::FULL);
    let there = w.join(Plane(1), Pos::ground(9_000, 3_000), RangeSet::FULL);
    w.steps(2);
    tell_group(&mut w, 1, Recipients::Plane(SceneId(0), Plane(1)));
    tell_group(&mut w, 2, Recipients::Scene(SceneId(0)));
    tell_group(&mut w, 2, Recipients::Scene(SceneId(0)));
    tell_group(&mut w, 3, Recipients::Scene(SceneId(5)));
    let id = MessageId { sender: 7, number: 4 };
    let payload = Bytes::from(vec![b'9'; MAX_MESSAGE_BYTES + 1]);
    let long = GroupMessage { id, to: Recipients::Scene(SceneId(0)), payload, sent_ms: now_ms(&w) };
    (0..9).for_each(|region| w.tell(RegionId(region), Input::Group(Box::new(long.clone()))));
    w.steps(3);
    assert_eq!(numbers(&w, here, MessageKind::Announcement), [2]);
    assert_eq!(numbers(&w, there, MessageKind::Announcement), [1, 2]);
}
