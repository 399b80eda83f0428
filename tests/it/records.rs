//! Players' records: two sessions of one subject never begin from one reading, and a client is told that it
//! has left when its last state is stored.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::ready;
use purview::actor::admission::{Admission, PendingDecision, Visitor};
use purview::actor::directory::Directory;
use purview::actor::logic::LogicFactory;
use purview::scene::messages::{Order, SetProperty};
use purview::scene::player::PlayerConfig;
use purview::scene::properties::{PropertyId, PropertySpec, Value};
use purview::scene::region::GameLogic;
use purview::scene::{EntityId, Plane, Pos, RegionId, Scene, SceneId, SceneSpec};
use purview::wire::ErrorCode;
use purview::wire::client::{Join, Resume};

use crate::own_state::last_at;
use crate::stage::{self, Book, Stage, Who, calm, nine_regions, until};
use crate::support::commands::order_of;

const GOLD: PropertyId = PropertyId(1);

fn meadow() -> SceneSpec {
    let mut spec = nine_regions("meadow");
    spec.kinds[0].properties = vec![PropertySpec { persist: true, ..PropertySpec::new(1, "gold") }];
    spec
}

fn stage() -> (Stage, Arc<Book>) {
    let book = Arc::new(Book::default());
    (Stage::keeping(vec![meadow()], book.clone()), book)
}

async fn hello(s: &mut Stage, token: &str) -> Who {
    let who = s.connect(calm());
    s.hello(who, token).await;
    who
}

async fn join(s: &Stage, who: Who) {
    join_in(s, who, "meadow").await;
}

async fn join_in(s: &Stage, who: Who, scene: &str) {
    s.say(who, Join { plane: Some(Plane(0)), properties: Vec::new(), ..stage::join(scene) }).await;
}

async fn set(s: &mut Stage, id: EntityId, gold: i64) {
    let value = Value::of(&gold).unwrap();
    s.give(id, order_of(id, Order::Set(SetProperty { id: GOLD, value }))).await;
    s.tick().await;
}

/// The gold that a client knows its player to have.
fn gold(s: &Stage, who: Who) -> Option<i64> {
    let id = s.clients[who].id();
    let updates = s.clients[who].frames.iter().flat_map(|frame| &frame.properties);
    let told = updates.filter(|update| update.entity == id && update.id == GOLD);
    told.last().map(|update| update.value.read().unwrap())
}

fn stored(book: &Book) -> Option<i64> {
    book.properties("ann").get(&GOLD.0).map(|value| value.read().unwrap())
}

async fn rich(s: &mut Stage) -> Who {
    let a = hello(s, "ann").await;
    join(s, a).await;
    s.rest().await;
    let id = s.clients[a].id();
    set(s, id, 100).await;
    s.tick().await;
    assert_eq!(gold(s, a), Some(100));
    a
}

/// Ticks until a client has joined.
async fn until_joined(s: &mut Stage, who: Who) {
    s.until("the client has joined", |s| s.clients[who].in_world()).await;
    s.tick().await;
}

#[actix_rt::test]
async fn a_session_that_greets_early_and_joins_late_begins_with_the_newest_state() {
    let (mut s, book) = stage();
    let a = rich(&mut s).await;
    s.leave(a).await;
    s.rest().await;
    assert_eq!((stored(&book), book.holder("ann")), (Some(100), None));
    let a = hello(&mut s, "ann").await;
    join(&s, a).await;
    s.rest().await;
    // The second session reads nothing before its join.
    let b = hello(&mut s, "ann").await;
    let id = s.clients[a].id();
    set(&mut s, id, 0).await;
    s.leave(a).await;
    s.rest().await;
    join(&s, b).await;
    s.rest().await;
    assert_eq!(gold(&s, b), Some(0));
    s.leave(b).await;
    s.rest().await;
    assert_eq!(stored(&book), Some(0));
}

#[actix_rt::test]
async fn a_join_waits_until_the_player_of_an_earlier_session_has_left_and_is_stored() {
    let (mut s, book) = stage();
    let a = rich(&mut s).await;
    let (id, b) = (s.clients[a].id(), hello(&mut s, "ann").await);
    book.slow_down();
    join(&s, b).await;
    for gold in [70, 40, 10] {
        set(&mut s, id, gold).await;
    }
    // Here no registry of subjects lets the first session yield: regions are asked to let its player leave.
    s.clients[a].parted = true;
    for _ in 0..60 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        s.tick().await;
    }
    assert!(s.whereabouts(id).await.0.is_empty(), "the player has left");
    assert!(!s.clients[b].in_world(), "its last state is not stored yet");
    assert_eq!(book.holder("ann"), Some(id));
    book.catch_up();
    until_joined(&mut s, b).await;
    assert_eq!(gold(&s, b), Some(10));
    assert_ne!(s.clients[b].id(), id);
    assert_eq!(book.holder("ann"), Some(s.clients[b].id()));
    assert!(!s.clients[a].addr.connected(), "the earlier session is over");
}

#[actix_rt::test]
async fn left_is_told_when_the_last_state_is_stored_and_no_earlier() {
    let (mut s, book) = stage();
    let a = rich(&mut s).await;
    book.slow_down();
    s.leave(a).await;
    s.ticks(5).await;
    assert!(!s.clients[a].parted, "nothing is stored yet");
    book.catch_up();
    s.ticks(2).await;
    assert!(s.clients[a].parted);
    assert_eq!(stored(&book), Some(100));
}

#[actix_rt::test]
async fn a_player_whose_session_is_gone_is_stored_by_its_region() {
    let (mut s, book) = stage();
    let alone = s.connect_alone(calm());
    let a = alone.who;
    s.hello(a, "ann").await;
    join(&s, a).await;
    s.rest().await;
    let id = s.clients[a].id();
    set(&mut s, id, 7).await;
    s.lose(alone).await;
    s.clients[a].parted = true;
    s.ticks(60).await;
    assert_eq!((stored(&book), book.holder("ann")), (Some(7), None));
}

#[actix_rt::test]
async fn a_join_that_is_refused_after_its_claim_frees_the_record() {
    let (mut s, book) = stage();
    let a = hello(&mut s, "ann").await;
    join_in(&s, a, "nowhere").await;
    s.tick().await;
    assert_eq!(s.clients[a].refused.last().unwrap().code, ErrorCode::UnknownScene);
    assert_eq!(book.holder("ann"), None);
    // The client leaves before a tick has begun: its player was never in the world.
    join(&s, a).await;
    s.cut(a).await;
    s.rest().await;
    s.tick().await;
    assert_eq!(book.holder("ann"), None);
}

/// The players of line 0.
fn in_line(s: &Stage) -> u32 {
    s.directory.players(SceneId(0), Plane(0))
}

#[actix_rt::test]
async fn a_client_that_goes_while_its_join_waits_gives_its_place_back_and_holds_no_record() {
    for claim_is_under_way in [false, true] {
        let (mut s, book) = stage();
        let a = rich(&mut s).await;
        let b = hello(&mut s, "ann").await;
        join(&s, b).await;
        // From then on the join waits beside the client's messages, and claims again and again.
        until("the first claim is refused", || book.claims_refused() > 0).await;
        assert_eq!(in_line(&s), 2);
        if claim_is_under_way {
            book.hold_claims();
            s.until("a claim is under way", |_| book.claims_under_way() == 1).await;
        }
        s.cut(b).await;
        s.leave(a).await;
        s.until("the first player is stored", |_| book.holder("ann").is_none()).await;
        book.decide_claims();
        s.until("both places are free", |s| in_line(s) == 0).await;
        s.until("the session stops", |s| !s.clients[b].addr.connected()).await;
        s.until("the record is free", |_| book.holder("ann").is_none()).await;
        assert_eq!(stored(&book), Some(100));
    }
}

#[actix_rt::test]
async fn a_claim_that_comes_after_the_patience_of_its_join_makes_no_player() {
    let (mut s, book) = stage();
    let a = rich(&mut s).await;
    let hasty = PlayerConfig { resume_ms: 300, ..calm() };
    s.check_every = Duration::from_millis(50);
    let b = s.connect(hasty);
    s.hello(b, "ann").await;
    join(&s, b).await;
    until("the first claim is refused", || book.claims_refused() > 0).await;
    book.hold_claims();
    s.until("a claim is under way", |_| book.claims_under_way() == 1).await;
    s.leave(a).await;
    s.until("patience ends", |s| s.clients[b].refused.len() == 1).await;
    // Until the claim is decided the session asks for no other player.
    join(&s, b).await;
    s.until("the next join is refused", |s| s.clients[b].refused.len() == 2).await;
    assert_eq!(s.clients[b].codes(), [ErrorCode::Busy; 2]);
    book.decide_claims();
    s.until("the place is free", |s| in_line(s) == 0).await;
    s.until("the record is free", |_| book.holder("ann").is_none()).await;
    assert!(!s.clients[b].in_world());
    join(&s, b).await;
    until_joined(&mut s, b).await;
    assert_eq!((gold(&s, b), in_line(&s)), (Some(100), 1));
    assert_eq!(book.holder("ann"), Some(s.clients[b].id()));
}

/// A game that notes where players want to join, and refuses all places beyond x = 500.
#[derive(Debug, Default)]
struct Choosy(Mutex<Vec<Pos>>);

impl LogicFactory for Choosy {
    fn make(&self, _: &Arc<Scene>, _: RegionId) -> Option<Box<dyn GameLogic>> {
        None
    }

    fn admission(&self) -> Option<&dyn Admission> {
        Some(self)
    }
}

impl Admission for Choosy {
    fn ask(&self, visitor: Visitor) -> Option<PendingDecision> {
        self.0.lock().unwrap().push(visitor.to.pos);
        let answer = if visitor.to.pos.x > 500 { Err("too far".into()) } else { Ok(None) };
        Some(ready(answer).boxed())
    }

    fn opens(&self, _: SceneId, _: Plane, _: &str) -> bool {
        false
    }
}

#[actix_rt::test]
async fn the_game_is_asked_again_when_the_record_has_changed_before_its_claim() {
    let place = |x| last_at("meadow", Pos::ground(x, 300), Vec::new());
    for (second, enters) in [(200, true), (900, false)] {
        let (book, game) = (Arc::new(Book::default()), Arc::new(Choosy::default()));
        let with = |directory: Directory| {
            directory.with_player_store(book.clone()).with_logic(game.clone())
        };
        let mut s = Stage::with(vec![meadow()], with);
        book.begin("ann", place(100), 1);
        book.hold_claims();
        let a = hello(&mut s, "ann").await;
        join(&s, a).await;
        // No tick: the session answers nothing until then.
        until("a claim is under way", || book.claims_under_way() == 1).await;
        book.begin("ann", place(second), 2);
        book.decide_claims();
        let ended = |s: &Stage| s.clients[a].in_world() || !s.clients[a].refused.is_empty();
        s.until("the join ends", ended).await;
        assert_eq!(*game.0.lock().unwrap(), [place(100).pos, place(second).pos]);
        assert_eq!(s.clients[a].in_world(), enters);
        if enters {
            assert_eq!(s.clients[a].here().pos, place(second).pos);
        } else {
            assert_eq!(s.clients[a].refused[0].code, ErrorCode::NotAdmitted);
            s.until("the record is free", |_| book.holder("ann").is_none()).await;
        }
        assert_eq!(in_line(&s), u32::from(enters));
    }
}

#[actix_rt::test]
async fn a_player_that_has_left_and_is_stored_is_not_resumed() {
    let (mut s, _book) = stage();
    let a = rich(&mut s).await;
    let ticket = s.clients[a].here().ticket.clone();
    s.leave(a).await;
    s.rest().await;
    let b = hello(&mut s, "ann").await;
    let token = ticket.map_or_else(String::new, |ticket| ticket.token);
    s.say(b, Resume { token, ack: Default::default() }).await;
    s.tick().await;
    let code = s.clients[b].refused.last().unwrap().code;
    assert!(matches!(code, ErrorCode::Gone | ErrorCode::BadTicket), "{code:?}");
}
