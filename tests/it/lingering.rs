//! Players that stay in the world after their clients are gone: the scene's linger time and the game's
//! logic hold them. They are seen, keep their bonds and change regions; a new login takes them over.

use purview::actor::logins::Verdict;
use purview::scene::messages::{Input, Order, SetProperty};
use purview::scene::player::{ClientRequest, Comeback, Player, PlayerInput, State};
use purview::scene::properties::{PropertyId, PropertySpec, Value};
use purview::scene::views::{Bond, NamedBond};
use purview::scene::{
    EntityId, Kind, Plane, Pos, RangeSet, Region, RegionId, SceneSpec, Seq, SessionId, Visibility,
};
use purview::wire::CloseCode;
use purview::wire::client::Join;

use crate::stage::{self, Book, Stage, Who, calm, nine_regions};
use crate::support::brute::Truth;
use crate::support::client::Client;
use crate::support::commands::{hold_of, order_of};
use crate::support::returning::Break;
use crate::support::session::{GRACE_PERIOD_MS, limits, neighbours};
use crate::support::trial::scene;
use crate::support::whose;
use crate::support::world::World;

const HERE: RegionId = RegionId(0);
const NEXT: RegionId = RegionId(1);
const GRACE_PERIOD: u64 = GRACE_PERIOD_MS as u64 / 100;

/// Two players who see each other across a border and share a bond.
fn pair_of_players(linger_ms: u32) -> (World, SessionId, SessionId) {
    let spec = SceneSpec { linger_ms, ..scene(Visibility::Patches, 60) };
    let (mut w, a, b) = neighbours(spec);
    [a, b].into_iter().for_each(|session| w.bond(session, &[Bond { class: 0, group: 7 }]));
    w.steps(2);
    (w, a, b)
}

fn couple() -> NamedBond {
    NamedBond::new("couple", 7)
}

/// After how many ticks from now the player is gone.
fn leaves_after(w: &mut World, id: EntityId, most: u64) -> u64 {
    (0..most)
        .find(|_| {
            w.step();
            w.acting_region(id).is_none()
        })
        .unwrap_or(most)
}

/// Every region has a checkpoint as of now.
fn checkpoint(w: &mut World) {
    w.kills.checkpoint_every = 1;
    w.steps(2);
    w.kills.checkpoint_every = 0;
}

fn bonds_of(w: &World, region: RegionId, id: EntityId) -> Vec<NamedBond> {
    let known = w.regions[region.0 as usize].known(id).expect("it is known");
    assert!(known.is_real && known.is_disconnected);
    known.bonds.iter().map(|(kind, group)| NamedBond::new(kind, group)).collect()
}

/// The client of a player's subject logs in anew, while the player still holds its record.
fn log_in_anew(w: &mut World, id: EntityId) -> SessionId {
    let session = SessionId(w.next_id().0 + 3_000_000);
    let player = Some(Player::new(w.now_ms(), session, limits()));
    let client = Client { entity: id, player, returning: true, ..Client::default() };
    w.clients.insert(session, client);
    let pos = w.regions[0].known(id).map(|known| known.pos).expect("it is there");
    w.truth.insert(id, Truth::new(Kind::PLAYER, Plane(0), pos, RangeSet::FULL));
    let ask: Vec<RegionId> = w.regions.iter().map(Region::id).collect();
    let holder = Comeback { id, acked: Seq(0), ask, ask_then: Vec::new(), all: true };
    w.receive(
        session,
        PlayerInput::Request(ClientRequest::Hello(Ok((whose(id), Default::default())))),
    );
    w.receive(session, PlayerInput::Claiming);
    w.receive(session, PlayerInput::Evict(holder));
    session
}

fn state(w: &World, session: SessionId) -> Option<State> {
    w.clients.get(&session)?.player.as_ref().map(Player::state)
}

#[test]
fn a_player_that_has_left_lingers_is_seen_and_keeps_its_bonds() {
    let (mut w, a, b) = pair_of_players(3_000);
    let id = w.clients[&a].entity;
    w.leave(a);
    w.steps(2);
    assert!(!w.clients.contains_key(&a), "the client was told that it has left");
    assert_eq!(bonds_of(&w, HERE, id), [couple()]);
    assert!(w.clients[&b].shown.contains_key(&id), "it is in a view list");
    w.tell(HERE, order_of(id, Order::Move(Pos::ground(2_950, 500))));
    w.steps(2);
    assert_eq!(w.clients[&b].shown[&id].0, Pos::ground(2_950, 500), "the rules move it");
    assert_eq!(leaves_after(&mut w, id, 100), 26, "3 s after the leave");
    w.steps(1);
    assert!(!w.clients[&b].shown.contains_key(&id));
}

#[test]
fn the_longest_of_grace_period_linger_time_and_hold_counts() {
    for (linger_ms, held_ms, ticks) in
        [(0, 0, GRACE_PERIOD), (3_000, 0, GRACE_PERIOD), (15_000, 0, 150), (3_000, 20_000, 200)]
    {
        let (mut w, a, _) = pair_of_players(linger_ms);
        let id = w.clients[&a].entity;
        w.tell(HERE, hold_of(id, held_ms));
        w.break_off(a, Break::Heard);
        let gone = leaves_after(&mut w, id, 300);
        assert_eq!(gone, ticks, "{linger_ms} {held_ms}");
    }
}

#[test]
fn logic_holds_a_player_that_has_left_longer_and_lets_it_go() {
    let (mut w, a, _) = pair_of_players(1_000);
    let id = w.clients[&a].entity;
    w.leave(a);
    w.steps(5);
    w.tell(HERE, hold_of(id, 60_000));
    // A shorter hold changes nothing.
    w.tell(HERE, hold_of(id, 100));
    w.steps(200);
    assert_eq!(w.acting_region(id), Some(HERE));
    w.tell(HERE, hold_of(id, 0));
    w.steps(2);
    assert_eq!(w.acting_region(id), None);
}

#[test]
fn a_lingering_player_is_handed_over_with_its_time() {
    let (mut w, a, b) = pair_of_players(5_000);
    let id = w.clients[&a].entity;
    w.leave(a);
    w.steps(20);
    let to = Pos::ground(3_500, 500);
    w.tell(HERE, order_of(id, Order::Move(to)));
    w.steps(5);
    assert_eq!(w.acting_region(id), Some(NEXT));
    assert_eq!((w.clients[&b].shown[&id].0, bonds_of(&w, NEXT, id)), (to, vec![couple()]));
    assert_eq!(leaves_after(&mut w, id, 100), 25, "5 s after the leave");
}

#[test]
fn a_lingering_player_migrates_with_its_time() {
    let (mut w, a, _) = pair_of_players(5_000);
    let id = w.clients[&a].entity;
    w.leave(a);
    w.steps(20);
    assert!(w.relocate(HERE));
    w.steps(5);
    assert_eq!(bonds_of(&w, HERE, id), [couple()]);
    assert_eq!(leaves_after(&mut w, id, 100), 25, "5 s after the leave");
}

#[test]
fn a_lingering_player_of_a_dead_region_goes_on_and_leaves_in_time() {
    let (mut w, a, b) = pair_of_players(8_000);
    let id = w.clients[&a].entity;
    w.leave(a);
    checkpoint(&mut w);
    w.kill(HERE, 5);
    w.steps(20);
    assert_eq!(bonds_of(&w, HERE, id), [couple()]);
    assert!(w.clients[&b].shown.contains_key(&id));
    assert_eq!(leaves_after(&mut w, id, 100), 58, "8 s after the leave");
}

#[test]
fn a_held_player_whose_session_dies_with_its_region_goes_on_disconnected() {
    let (mut w, a, b) = pair_of_players(0);
    let id = w.clients[&a].entity;
    w.tell(HERE, hold_of(id, 30_000));
    checkpoint(&mut w);
    w.break_off(a, Break::Lost);
    w.away.clear();
    w.kill(HERE, 5);
    w.steps(40);
    assert_eq!(bonds_of(&w, HERE, id), [couple()]);
    assert!(w.clients[&b].shown.contains_key(&id));
    w.steps(200);
    assert_eq!(w.acting_region(id), Some(HERE));
    assert!(leaves_after(&mut w, id, 100) < 62, "30 s after the hold");
}

#[test]
fn the_leave_of_a_client_whose_region_recovers_counts_when_the_player_is_back() {
    let (mut w, a, _) = pair_of_players(6_000);
    let (id, session) = (w.clients[&a].entity, a);
    checkpoint(&mut w);
    w.break_off(a, Break::Lost);
    w.away.clear();
    w.kill(HERE, 2);
    w.steps(2);
    w.tell(HERE, Input::Disconnected { id, session, ms: 0 });
    w.steps(20);
    assert_eq!(bonds_of(&w, HERE, id), [couple()]);
    assert!(leaves_after(&mut w, id, 100) < 60);
}

#[test]
fn a_new_login_takes_the_player_over_where_it_stands() {
    for takes in [true, false] {
        let (mut w, a, b) = pair_of_players(if takes { 5_000 } else { 0 });
        let id = w.clients[&a].entity;
        w.walk(a, Pos::ground(2_980, 500));
        w.steps(2);
        let before = w.clients[&b].entered.clone();
        if takes {
            w.leave(a);
            w.steps(10);
        }
        let again = log_in_anew(&mut w, id);
        w.steps(4);
        if !takes {
            assert_eq!(w.acting_region(id), None, "nothing holds it");
            continue;
        }
        assert_eq!(state(&w, again), Some(State::InWorld));
        assert_eq!(w.clients[&again].player.as_ref().map(Player::id), Some(id));
        assert_eq!(w.clients[&again].seq, Seq(1), "input numbers continue");
        w.walk(again, Pos::ground(2_960, 500));
        w.steps(80);
        let known = w.regions[0].known(id).expect("it stays");
        assert_eq!((known.pos, known.bonds.group("couple")), (Pos::ground(2_960, 500), Some(7)));
        assert_eq!(w.clients[&b].entered, before, "others notice nothing");
    }
}

#[test]
fn a_new_login_while_the_client_is_there_takes_the_player_over_if_it_would_linger() {
    for held in [false, true] {
        let (mut w, a, _) = pair_of_players(if held { 0 } else { 5_000 });
        let id = w.clients[&a].entity;
        if held {
            w.tell(HERE, hold_of(id, 5_000));
            w.step();
        }
        let again = log_in_anew(&mut w, id);
        w.steps(4);
        assert_eq!(state(&w, again), Some(State::InWorld));
        assert!(!w.clients.contains_key(&a), "the earlier session is over");
        assert_eq!(w.acting_region(id), Some(HERE));
        // A question that was late changes nothing.
        let known = &w.regions[0].known(id).expect("it is there");
        assert!(!known.is_disconnected);
    }
}

#[test]
fn a_kick_by_an_operator_ends_what_holds_a_player() {
    let (mut w, a, _) = pair_of_players(60_000);
    let id = w.clients[&a].entity;
    w.tell(HERE, Input::Kicked { id, session: SessionId(99) });
    w.steps(2);
    assert_eq!(w.acting_region(id), Some(HERE), "another session has no say");
    w.tell(HERE, Input::Kicked { id, session: a });
    w.steps(2);
    assert_eq!(w.acting_region(id), None);
}

// With real actors, and players' records.

const GOLD: PropertyId = PropertyId(1);

fn meadow_and_cave(linger_ms: u32) -> (Stage, std::sync::Arc<Book>) {
    let mut spec = SceneSpec { linger_ms, ..nine_regions("meadow") };
    let gold = PropertySpec { persist: true, ..PropertySpec::new(GOLD.0, "gold") };
    spec.kinds[0].properties.push(gold);
    let cave = SceneSpec { name: "cave".into(), ..spec.clone() };
    let book = std::sync::Arc::new(Book::default());
    (Stage::keeping(vec![spec, cave], book.clone()), book)
}

async fn enter(s: &mut Stage, token: &str, scene: &str, (x, z): (i32, i32)) -> Who {
    let who = s.connect(calm());
    s.hello(who, token).await;
    let (plane, pos) = (Some(Plane(0)), Some(Pos::ground(x, z)));
    s.say(who, Join { plane, pos, ..stage::join(scene) }).await;
    who
}

async fn tell(s: &mut Stage, id: EntityId, input: Input) {
    s.give(id, input).await;
    s.tick().await;
}

fn gold_is(id: EntityId, gold: i64) -> Input {
    order_of(id, Order::Set(SetProperty { id: GOLD, value: Value::of(&gold).unwrap() }))
}

fn stored(book: &Book) -> Option<i64> {
    book.properties("ann").get(&GOLD.0).map(|value| value.read().unwrap())
}

#[actix_rt::test]
async fn a_held_player_that_leaves_can_be_hit_and_is_stored_when_its_time_is_over() {
    let (mut s, book) = meadow_and_cave(0);
    let a = enter(&mut s, "ann", "meadow", (100, 100)).await;
    let b = enter(&mut s, "bob", "meadow", (150, 100)).await;
    s.rest().await;
    let id = s.clients[a].id();
    tell(&mut s, id, gold_is(id, 100)).await;
    tell(&mut s, id, hold_of(id, 2_000)).await;
    s.leave(a).await;
    s.ticks(2).await;
    assert_eq!(s.clients[a].closed, Some(CloseCode::Normal), "the client is told at once");
    assert!(s.clients[a].parted);
    tell(&mut s, id, gold_is(id, 40)).await;
    s.tick().await;
    let updates = s.clients[b].frames.iter().flat_map(|frame| &frame.properties);
    let told = updates.filter(|update| (update.entity, update.id) == (id, GOLD)).last();
    assert_eq!(told.map(|update| update.value.read().unwrap()), Some(40_i64));
    assert!(s.clients[b].shown.contains_key(&id));
    assert_eq!(book.holder("ann"), Some(id), "it holds its record until it has left");
    s.ticks(20).await;
    assert!(!s.clients[b].shown.contains_key(&id), "its time is over");
    assert_eq!((stored(&book), book.holder("ann")), (Some(40), None));
}

#[actix_rt::test]
async fn a_login_to_another_scene_takes_over_the_player_that_lingers() {
    let (mut s, book) = meadow_and_cave(60_000);
    let a = enter(&mut s, "ann", "meadow", (100, 100)).await;
    s.rest().await;
    let id = s.clients[a].id();
    tell(&mut s, id, gold_is(id, 100)).await;
    s.walk(a, 130, 100).await;
    s.tick().await;
    s.leave(a).await;
    s.ticks(5).await;
    assert_eq!(s.places(0), [], "it has no place in a line");
    let again = enter(&mut s, "ann", "cave", (300, 300)).await;
    s.clients[again].seq = 1;
    s.until("the client has joined", |s| s.clients[again].in_world()).await;
    let here = s.clients[again].here();
    assert_eq!((here.id, here.scene.as_str(), here.pos), (id, "meadow", Pos::ground(130, 100)));
    assert_eq!(here.ack, Seq(1), "the numbers of inputs continue");
    s.walk(again, 160, 100).await;
    s.until("the join's place is free", |s| s.places(1).is_empty()).await;
    assert_eq!(s.places(0), [(0, 1)]);
    assert_eq!(book.holder("ann"), Some(id));
    assert!(!s.clients[a].addr.connected(), "the earlier session is over");
    // The next leave lingers anew, and the record is written when that is over.
    tell(&mut s, id, hold_of(id, 0)).await;
    assert_eq!(book.holder("ann"), Some(id), "its client is there");
    s.leave(again).await;
    s.tick().await;
    tell(&mut s, id, hold_of(id, 0)).await;
    s.tick().await;
    assert_eq!((stored(&book), book.holder("ann")), (Some(100), None));
}

#[actix_rt::test]
async fn a_player_that_is_kicked_does_not_linger() {
    for has_left in [false, true] {
        let (mut s, book) = meadow_and_cave(60_000);
        let a = enter(&mut s, "ann", "meadow", (100, 100)).await;
        s.rest().await;
        if has_left {
            s.cut(a).await;
            s.tick().await;
        }
        let id = s.clients[a].id();
        assert_eq!(s.whereabouts(id).await.0.len(), 1);
        s.clients[a].addr.send(Verdict::Kicked).await.expect("the session is there");
        s.ticks(2).await;
        assert_eq!(s.whereabouts(id).await.0, [0_u32; 0], "{has_left}");
        assert_eq!(book.holder("ann"), None);
    }
}
