//! Clients that come back after a broken connection.

use super::*;

/// Limits of sessions whose players stay when connections break.
fn patient() -> PlayerConfig {
    PlayerConfig { grace_period_ms: 60_000, ..calm() }
}

/// Two players who see each other; the first one may resume.
async fn two(s: &mut Stage) -> (Who, Who) {
    let a = s.connect(patient());
    s.greet(a, "meadow", Some(0), 1_590, 800).await;
    let b = s.enter("meadow", Some(0), 1_700, 800).await;
    s.tick().await;
    s.walk(a, 1_580, 800).await;
    s.rest().await;
    (a, b)
}

#[actix_rt::test]
async fn a_client_resumes_after_a_broken_connection_and_others_notice_nothing() {
    let mut s = Stage::new(vec![meadow(), cave()]);
    let (a, b) = two(&mut s).await;
    let id = s.clients[a].id();
    let seen = (s.clients[b].entered.clone(), s.clients[b].left.clone());
    s.cut(a).await;
    s.ticks(5).await;
    assert!(s.clients[a].addr.connected(), "its session stays");
    assert_eq!(s.places(0), [(0, 1)], "the resume takes no second place");
    assert!(s.clients[b].shown.contains_key(&id));
    let back = s.resume(a, patient()).await;
    s.tick().await;
    let c = &s.clients[back];
    assert_eq!((c.id(), c.here().ack), (id, Seq(1)));
    assert_eq!((c.here().pos, c.here().plane), (c.pos, Plane(0)));
    assert_eq!(c.resyncs(), 1);
    assert!(!s.clients[a].addr.connected(), "the new session has the player");
    s.walk(back, 1_570, 800).await;
    s.rest().await;
    assert_eq!((s.clients[b].entered.clone(), s.clients[b].left.clone()), seen);
    assert_eq!(s.places(0), [(0, 2)]);
}

#[actix_rt::test]
async fn a_dead_session_is_detected_and_its_client_resumes() {
    let mut s = Stage::with_grace_period(vec![meadow()], Duration::from_secs(6));
    let alone = s.connect_alone(patient());
    let a = alone.who;
    s.greet(a, "meadow", Some(0), 1_590, 800).await;
    let b = s.enter("meadow", Some(0), 1_700, 800).await;
    s.rest().await;
    let id = s.clients[a].id();
    s.lose(alone).await;
    s.clients[a].parted = true;
    s.ticks(50).await;
    assert!(s.clients[b].shown.contains_key(&id), "the grace period runs");
    let back = s.resume(a, patient()).await;
    s.rest().await;
    assert_eq!(s.clients[back].id(), id);
    // And once more, without a resume.
    s.cut(back).await;
    s.ticks(605).await;
    assert!(!s.clients[b].shown.contains_key(&id), "the grace period is over");
    let late = s.resume(back, patient()).await;
    // A neighbour that remembers the player must ask on.
    s.ticks(2).await;
    assert_eq!(s.clients[late].codes(), [ErrorCode::Gone]);
    s.greet(late, "meadow", Some(0), 1_590, 800).await;
    s.rest().await;
    assert_ne!(s.clients[late].id(), id, "the client has joined as a new player");
}

#[actix_rt::test]
async fn a_client_resumes_in_the_scene_that_its_player_jumped_to() {
    let mut s = Stage::new(vec![meadow(), cave()]);
    let (a, _) = two(&mut s).await;
    s.teleport(a, Some("cave"), None, (400, 400)).await;
    // The player is on its way, and its client does not know yet.
    s.clients[a].reads = false;
    s.tick().await;
    s.cut(a).await;
    s.tick().await;
    let back = s.resume(a, patient()).await;
    s.ticks(2).await;
    let here = s.clients[back].here();
    assert_eq!((here.scene.as_str(), here.ack), ("cave", Seq(2)));
}

#[actix_rt::test]
async fn tickets_are_renewed_while_the_session_lives_and_the_newest_resumes() {
    let mut s = Stage::new(vec![meadow()]);
    let often = PlayerConfig { ticket_ms: 20, ..patient() };
    let a = s.connect(often.clone());
    s.greet(a, "meadow", Some(0), 1_590, 800).await;
    s.tick().await;
    s.clients[a].read_until("two newer tickets", |c| c.renewed.len() >= 2).await;
    let first = s.clients[a].here().ticket.clone().expect("a ticket");
    let newest = s.clients[a].renewed.last().cloned().expect("a ticket");
    assert_eq!(newest.grace_period_ms, 60_000);
    assert_ne!(first, newest, "each ticket has its own expiry");
    s.cut(a).await;
    let id = s.clients[a].id();
    s.clients[a].joined.last_mut().expect("the client has joined").ticket = Some(newest);
    let back = s.resume(a, patient()).await;
    s.tick().await;
    assert_eq!(s.clients[back].id(), id);
}
