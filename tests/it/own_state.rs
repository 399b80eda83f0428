//! Properties, facings and messages as clients of the real actors send and receive them, and what is
//! kept of a player for its next join.

use std::collections::BTreeMap;
use std::sync::Arc;

use purview::actor::player_store::{KeptProperty, LastPosition};
use purview::scene::messages::{Order, SetProperty};
use purview::scene::movement::{ClientMs, Vector};
use purview::scene::player::PlayerConfig;
use purview::scene::properties::{Audience, PropertyId, PropertySpec, Value, Writer};
use purview::scene::spec::{MoveSpec, Moves};
use purview::scene::{EntityId, Facing, Plane, Pos, SceneSpec};
use purview::wire::client::movement::Form;
use purview::wire::client::{Face, Join, Set, Walk};
use purview::wire::{ErrorCode, FirstProperty};

use crate::stage::{self, Book, Stage, Who, calm, nine_regions};
use crate::support::commands::order_of;

/// Hit points are kept, and so are the stance, which the client sets, and the quest, which no client
/// may see; the mood is not.
fn meadow(name: &str) -> SceneSpec {
    let of = PropertySpec::new;
    let mut spec = nine_regions(name);
    spec.kinds[0].properties = vec![
        PropertySpec { persist: true, ..of(1, "hp") },
        PropertySpec { persist: true, writer: Writer::Owner, ..of(2, "stance") },
        PropertySpec { persist: true, audience: Audience::Server, ..of(3, "quest") },
        PropertySpec { writer: Writer::Owner, ..of(4, "mood") },
    ];
    spec
}

fn text(text: &str) -> Value {
    Value::of(text).unwrap()
}

/// The client of one subject joins, with a ticket by which it may come back.
pub async fn join(s: &mut Stage, scene: &str, properties: Vec<FirstProperty>) -> Who {
    let who = s.connect(PlayerConfig { grace_period_ms: 60_000, ..calm() });
    s.hello(who, "ann").await;
    s.say(who, Join { properties, ..stage::join(scene) }).await;
    s.ticks(2).await;
    who
}

async fn set(s: &mut Stage, who: Who, id: u8, value: &str) {
    let seq = s.next_seq(who);
    s.say(who, Set { seq, property: PropertyId(id), value: text(value) }).await;
}

async fn logic(s: &Stage, id: EntityId, order: Order) {
    s.give(id, order_of(id, order)).await;
}

/// Where a player was, which has no bonds.
pub fn last_at(scene: &str, pos: Pos, properties: Vec<KeptProperty>) -> LastPosition {
    LastPosition { scene: scene.into(), plane: Plane(0), pos, properties, bonds: Vec::new() }
}

fn order(id: u8, value: &str) -> Order {
    Order::Set(SetProperty { id: PropertyId(id), value: text(value) })
}

/// The properties of an entity, by the frames of a client.
fn known(s: &Stage, who: Who, id: EntityId) -> BTreeMap<u8, Value> {
    let mut known = BTreeMap::new();
    for frame in &s.clients[who].frames {
        let entered = frame.enters.iter().filter(|e| e.id == id).flat_map(|e| &e.properties);
        known.extend(entered.map(|p| (p.id.0, p.value.clone())));
        let changed = frame.properties.iter().filter(|p| p.entity == id);
        known.extend(changed.map(|p| (p.id.0, p.value.clone())));
    }
    known
}

fn values(of: &[(u8, &str)]) -> BTreeMap<u8, Value> {
    of.iter().map(|(id, value)| (*id, text(value))).collect()
}

#[actix_rt::test]
async fn a_client_sets_a_property_and_turns_and_others_see_both() {
    let mut s = Stage::new(vec![meadow("meadow")]);
    let a = s.enter("meadow", Some(0), 1_000, 1_000).await;
    let b = s.enter("meadow", Some(0), 1_200, 1_000).await;
    s.rest().await;
    let (a_id, b_id) = (s.clients[a].id(), s.clients[b].id());
    set(&mut s, a, 2, "sits").await;
    set(&mut s, a, 1, "999").await;
    let seq = s.next_seq(a);
    s.say(a, Face { seq, facing: Facing::WEST }).await;
    s.steady_tick().await;
    let last = |who: Who| s.clients[who].frames.last().unwrap();
    let refused: Vec<_> = last(a).refused.iter().map(|r| r.code).collect();
    assert_eq!(refused, [ErrorCode::MayNotWrite]);
    assert_eq!(known(&s, b, a_id)[&2], text("sits"));
    assert_eq!(known(&s, a, a_id)[&2], text("sits"));
    let turns: Vec<_> = last(b).turns.iter().map(|t| (t.id, t.facing)).collect();
    assert_eq!((turns, last(a).turns.len()), (vec![(a_id, Facing::WEST)], 0));
    logic(&s, b_id, order(3, "for the server alone")).await;
    logic(&s, b_id, order(1, "70")).await;
    s.steady_tick().await;
    assert_eq!(known(&s, a, b_id)[&1], text("70"));
    assert!(!known(&s, b, b_id).contains_key(&3) && !known(&s, a, b_id).contains_key(&3));
}

#[actix_rt::test]
async fn a_join_with_what_its_client_may_not_set_is_refused_and_takes_no_place() {
    let mut s = Stage::new(vec![meadow("meadow")]);
    let of = |id, value: &str| vec![FirstProperty { id: PropertyId(id), value: text(value) }];
    let long = "x".repeat(300);
    for (properties, code) in [
        (of(1, "999"), ErrorCode::MayNotWrite),
        (of(9, "?"), ErrorCode::UnknownProperty),
        (of(2, &long), ErrorCode::ValueTooLong),
    ] {
        let who = join(&mut s, "meadow", properties).await;
        assert_eq!(s.clients[who].codes(), [code]);
        assert_eq!(s.places(0), []);
    }
}

#[actix_rt::test]
async fn persistent_properties_are_those_of_the_next_join_wherever_it_is() {
    let book = Arc::new(Book::default());
    let mut s = Stage::keeping(vec![meadow("meadow"), nine_regions("cave")], book.clone());
    let first = vec![FirstProperty { id: PropertyId(4), value: text("glad") }];
    let a = join(&mut s, "meadow", first).await;
    let id = s.clients[a].id();
    set(&mut s, a, 2, "sits").await;
    for (property, value) in [(1, "70"), (3, "the ring")] {
        logic(&s, id, order(property, value)).await;
    }
    s.tick().await;
    let want = values(&[(1, "70"), (2, "sits"), (4, "glad")]);
    assert_eq!(known(&s, a, id), want);
    s.leave(a).await;
    s.ticks(2).await;
    let kept = values(&[(1, "70"), (2, "sits"), (3, "the ring")]);
    assert_eq!(book.properties("ann"), kept);

    // A scene that does not have these properties leaves what was kept.
    let a = join(&mut s, "cave", Vec::new()).await;
    let id = s.clients[a].id();
    assert_eq!(known(&s, a, id), BTreeMap::new());
    s.leave(a).await;
    s.ticks(2).await;
    assert_eq!(book.properties("ann"), kept);

    // What the client says at its join goes first.
    let says = vec![FirstProperty { id: PropertyId(2), value: text("runs") }];
    let a = join(&mut s, "meadow", says).await;
    let id = s.clients[a].id();
    assert_eq!(known(&s, a, id), values(&[(1, "70"), (2, "runs")]));
    s.leave(a).await;
    s.ticks(2).await;
    assert_eq!(book.properties("ann"), values(&[(1, "70"), (2, "runs"), (3, "the ring")]));
}

#[actix_rt::test]
async fn a_kept_value_that_is_not_allowed_any_more_is_left_out() {
    let book = Arc::new(Book::default());
    let kept = |id, value: &str| KeptProperty { id: PropertyId(id), value: text(value) };
    let properties = vec![kept(1, &"9".repeat(300)), kept(2, "sits"), kept(4, "sad")];
    book.begin("ann", last_at("meadow", Pos::ground(1_000, 1_000), properties), 1);
    let mut s = Stage::keeping(vec![meadow("meadow")], book);
    let a = join(&mut s, "meadow", Vec::new()).await;
    assert_eq!(known(&s, a, s.clients[a].id()), values(&[(2, "sits")]));
}

#[actix_rt::test]
async fn a_player_that_joins_again_where_it_was_owes_what_it_may_have_owed() {
    // The stage begins at tick 100, at 10 s.
    for (clock_ms, codes) in [(10_000, vec![ErrorCode::ClockAhead]), (0, Vec::new())] {
        let pos = Pos::ground(400, 800);
        let book = Arc::new(Book::default());
        book.begin("ann", last_at("cave", pos, Vec::new()), clock_ms);
        let moves = MoveSpec { mode: Moves::Judged, ..MoveSpec::default() };
        let cave = SceneSpec { width_cm: 1_600, depth_cm: 1_600, ..nine_regions("cave") };
        let mut s = Stage::keeping(vec![SceneSpec { moves, ..cave }], book);
        let a = join(&mut s, "cave", Vec::new()).await;
        assert_eq!(s.clients[a].here().pos, pos);
        let east = Form::Vector(Vector { vx_mm_s: 5_000, ..Vector::stand(pos) });
        // A second of walking, all at once.
        for (at, form) in [(5_000, Some(east)), (6_000, None)] {
            let (seq, correction, at_ms) = (s.next_seq(a), 0, ClientMs(at));
            s.say(a, Walk { seq, correction, at_ms, form }).await;
        }
        s.steady_tick().await;
        let refused = s.clients[a].frames.iter().flat_map(|frame| &frame.refused);
        assert_eq!(refused.map(|r| r.code).collect::<Vec<_>>(), codes, "since {clock_ms} ms");
    }
}
