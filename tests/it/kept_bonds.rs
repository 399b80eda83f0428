//! Bonds stay with a player: over logins, scenes whose kinds have another order, and sessions.

use std::sync::Arc;
use std::time::Duration;

use purview::actor::directory::Directory;
use purview::actor::messages::{InspectEntity, ToRegion};
use purview::scene::inspect::InspectedEntity;
use purview::scene::messages::{
    Asker, Bond, Command, CommandId, Input, KeptBonds, NamedBond, Notice, Spawn,
};
use purview::scene::player::PlayerConfig;
use purview::scene::spec::BondSpec;
use purview::scene::{
    EntityId, Kind, Pos, Region, RegionId, Scene, SceneId, SceneSpec, Seq, SessionId, Tick,
};
use purview::wire::client::Resume;

use crate::own_state::join;
use crate::stage::{Book, Stage, calm, nine_regions};
use crate::support::alone::{notices_for, recover};
use crate::support::whose;

fn scene(name: &str, kinds: &[&str]) -> SceneSpec {
    let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    SceneSpec { bonds: BondSpec { kinds, ..BondSpec::default() }, ..nine_regions(name) }
}

fn stage(book: Arc<Book>) -> Stage {
    let city = scene("city", &["couple", "party"]);
    Stage::keeping(vec![city, scene("cave", &["guild", "couple", "fight", "party"])], book)
}

/// Logic sets the bonds of a player.
async fn set(s: &mut Stage, id: EntityId, bonds: &[(u8, u64)]) {
    let bonds = bonds.iter().map(|(class, group)| Bond { class: *class, group: *group }).collect();
    s.give(id, Input::Bonds { id, bonds }).await;
    s.ticks(2).await;
}

/// The bonds that count for a player where it is.
async fn bonds(s: &Stage, id: EntityId) -> Vec<(u8, u64)> {
    let region = s.whereabouts(id).await.0[0];
    let found = s.regions[region as usize].addr.send(InspectEntity(id)).await.unwrap();
    let Some(InspectedEntity::Player(player)) = found else { panic!("{found:?}") };
    player.ties.bonds.iter().map(|bond| (bond.class, bond.group)).collect()
}

fn named(bonds: &[(&str, u64)]) -> Vec<NamedBond> {
    bonds.iter().map(|(kind, group)| NamedBond::new(*kind, *group)).collect()
}

#[actix_rt::test]
async fn bonds_last_over_logins_and_count_by_name_in_scenes_with_other_kinds() {
    let book = Arc::new(Book::default());
    let mut s = stage(book.clone());
    let a = join(&mut s, "city", Vec::new()).await;
    let id = s.clients[a].id();
    assert_eq!(bonds(&s, id).await, [] as [(u8, u64); 0]);
    set(&mut s, id, &[(0, 5), (1, 7)]).await;
    s.leave(a).await;
    s.ticks(2).await;
    assert_eq!(book.bonds("ann"), named(&[("couple", 5), ("party", 7)]));

    let a = join(&mut s, "city", Vec::new()).await;
    let id = s.clients[a].id();
    assert_eq!(bonds(&s, id).await, [(0, 5), (1, 7)]);
    s.teleport(a, Some("cave"), None, (1_000, 1_000)).await;
    s.ticks(3).await;
    assert_eq!(bonds(&s, id).await, [(1, 5), (3, 7)]);

    // Both the cave's own bonds and those that only the cave has.
    set(&mut s, id, &[(0, 9), (3, 8)]).await;
    s.teleport(a, Some("city"), None, (1_000, 1_000)).await;
    s.ticks(3).await;
    assert_eq!(bonds(&s, id).await, [(1, 8)]);
    set(&mut s, id, &[]).await;
    s.leave(a).await;
    s.ticks(2).await;
    assert_eq!(book.bonds("ann"), named(&[("guild", 9)]));
    let a = join(&mut s, "cave", Vec::new()).await;
    assert_eq!(bonds(&s, s.clients[a].id()).await, [(0, 9)]);
}

/// What a caller has game logic do with the player of a subject, by a region where it does not live.
async fn set_by_subject(s: &mut Stage, subject: &str, bonds: &[(&str, u64)]) {
    let command = Command::Bonds(EntityId::NONE, named(bonds));
    let command = Command::OfSubject(subject.into(), Box::new(command));
    let input = Input::command(CommandId { from: Asker::Process(0), number: 0 }, command);
    s.directory.region(RegionId(8)).unwrap().try_send(ToRegion { input, client: None }).unwrap();
    s.ticks(6).await;
}

#[actix_rt::test]
async fn bonds_are_set_by_subject_wherever_the_player_is_and_while_it_does_not_play() {
    let book = Arc::new(Book::default());
    let mut s = stage(book.clone());
    set_by_subject(&mut s, "ann", &[("party", 3)]).await;
    assert_eq!(book.bonds("ann"), [], "nobody has played as ann");
    let a = join(&mut s, "city", Vec::new()).await;
    set_by_subject(&mut s, "ann", &[("party", 4)]).await;
    assert_eq!(bonds(&s, s.clients[a].id()).await, [(1, 4)]);
    s.teleport(a, Some("cave"), None, (1_000, 1_000)).await;
    s.ticks(3).await;
    set_by_subject(&mut s, "ann", &[("party", 5), ("couple", 6)]).await;
    let mut found = bonds(&s, s.clients[a].id()).await;
    found.sort_unstable();
    assert_eq!(found, [(1, 6), (3, 5)], "in the scene where she is");
    let id = s.clients[a].id();
    set(&mut s, id, &[(0, 9), (1, 6)]).await;
    s.leave(a).await;
    s.ticks(3).await;
    assert_eq!(book.bonds("ann"), named(&[("guild", 9), ("couple", 6)]));

    set_by_subject(&mut s, "ann", &[("party", 7)]).await;
    assert_eq!(book.bonds("ann"), named(&[("party", 7), ("guild", 9)]), "the city has no guilds");
    let a = join(&mut s, "cave", Vec::new()).await;
    let mut found = bonds(&s, s.clients[a].id()).await;
    found.sort_unstable();
    assert_eq!(found, [(0, 9), (3, 7)]);
}

#[actix_rt::test]
async fn sessions_know_the_bonds_of_their_players_and_report_them() {
    let book = Arc::new(Book::told_every(Duration::ZERO));
    let more = |directory: Directory| {
        directory.with_player_store(book.clone()).with_grace_period(Duration::from_secs(60))
    };
    let mut s = Stage::with(vec![scene("city", &["couple", "party"])], more);
    let a = join(&mut s, "city", Vec::new()).await;
    let id = s.clients[a].id();
    set(&mut s, id, &[(1, 7)]).await;
    s.until("a report", |_| book.bonds("ann") == named(&[("party", 7)])).await;
    // A session that has found the player by a ticket reports no less.
    let b = s.connect(PlayerConfig { grace_period_ms: 60_000, ..calm() });
    let token = s.clients[a].here().ticket.clone().expect("a ticket").token;
    s.hello(b, "ann").await;
    s.say(b, Resume { token, ack: Seq(s.clients[a].ack()) }).await;
    s.until("the player", |s| s.clients[b].in_world()).await;
    for x in [200, 300, 400] {
        s.walk(b, x, 100).await;
        s.tick().await;
        assert_eq!(book.bonds("ann"), named(&[("party", 7)]));
    }
    set(&mut s, id, &[]).await;
    s.until("a report of none", |_| book.bonds("ann").is_empty()).await;
}

/// A region dies after its checkpoint and before the session of a player that has joined was told so: the session asks
/// again.
#[test]
fn a_player_that_enters_again_has_the_bonds_that_logic_has_given_it_meanwhile() {
    let whole =
        SceneSpec { region_lands_x: 3, region_lands_z: 3, ..scene("city", &["couple", "party"]) };
    let scene = Arc::new(Scene::new(SceneId(0), whole, 50, RegionId(0)).unwrap());
    let (id, session) = (EntityId(7), SessionId(5));
    let spawn = Spawn {
        session: Some(session),
        subject: whose(id),
        bonds: KeptBonds { named: named(&[("party", 1), ("guild", 2)]), ..KeptBonds::default() },
        ..Spawn::new(id, Kind::PLAYER, Pos::ground(100, 100))
    };
    let enter = || Input::Enter(Box::new(spawn.clone()));
    let (mut region, mut fx) = (Region::new(scene.clone(), RegionId(0)).unwrap(), Vec::new());
    region.handle(enter(), &mut fx);
    region.tick(Tick(1), &mut fx);
    region.handle(Input::Bonds { id, bonds: vec![Bond { class: 0, group: 9 }] }, &mut fx);
    region.tick(Tick(2), &mut fx);
    let kept = region.checkpoint().expect("a closed tick");
    let (mut next, mut fx) = recover(&scene, kept, &[], 100);
    fx.clear();
    next.handle(enter(), &mut fx);
    (3..9).for_each(|tick| next.tick(Tick(tick), &mut fx));
    let told = notices_for(session, &fx).into_iter().find_map(|notice| match notice {
        Notice::Bonds { bonds, .. } => Some(bonds),
        _ => None,
    });
    let all = named(&[("couple", 9), ("guild", 2)]);
    assert_eq!(told, Some(KeptBonds { at: Tick(2), named: all }));
    assert_eq!(next.inspect_player(id).unwrap().ties.bonds, [Bond { class: 0, group: 9 }]);
}
