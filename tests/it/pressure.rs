//! The real actors where a queue is full, slow or gone: only frames may be lost, and a lost frame
//! is made good.

use std::sync::atomic::Ordering::Relaxed;

use crate::stage::{Stage, calm, nine_regions};
use crate::support::commands::order_of;
use purview::actor::messages::ToRegion;
use purview::scene::messages::{Destination, Order};
use purview::scene::player::PlayerConfig;
use purview::scene::{Plane, Pos, RegionId, SceneId};

fn meadow() -> Stage {
    Stage::new(vec![nine_regions("meadow")])
}

/// Limits of a client whose queue holds eight messages.
fn tight() -> PlayerConfig {
    PlayerConfig { send_queue: 8, slow_close_ms: 600_000, ..calm() }
}

#[actix_rt::test]
async fn a_slow_client_is_held_then_gets_the_latest_state_while_others_get_every_frame() {
    let mut s = meadow();
    let slow = s.connect(tight());
    s.greet(slow, "meadow", Some(0), 1_500, 1_500).await;
    // The client's neighbours live across the border.
    let walks = s.enter("meadow", Some(0), 1_700, 1_500).await;
    let goes = s.enter("meadow", Some(0), 1_700, 1_400).await;
    s.rest().await;
    let walker = s.clients[walks].id();
    s.clients[slow].reads = false;
    for i in 0..20 {
        s.walk(walks, 1_710 + i * 10, 1_500).await;
        if i == 10 {
            s.teleport(goes, None, Some(1), (1_700, 1_400)).await;
        }
        s.wait_all_idle().await;
        s.steady_tick().await;
    }
    let (before, frames) = (s.clients[slow].shown.clone(), s.clients[slow].frames.len());
    assert_eq!(before[&walker], Pos::ground(1_700, 1_500));
    s.clients[slow].reads = true;
    s.read();
    let waited = s.clients[slow].frames.len() - frames;
    assert!((4..8).contains(&waited), "{waited} frames waited: the region was to hold");
    until_released(&mut s, slow).await;
    let c = &s.clients[slow];
    assert_eq!(c.frames[frames + waited].moves.len(), 1, "all its steps in one");
    assert_eq!((c.resyncs(), c.left.len()), (0, 1), "a held back leave is not lost");
    s.rest().await;
}

/// Ticks until the client gets frames again: its session checks the queue now and then.
async fn until_released(s: &mut Stage, who: usize) {
    let frames = s.clients[who].frames.len();
    s.until("the client is released", |s| s.clients[who].frames.len() > frames).await;
}

#[actix_rt::test]
async fn a_session_that_stalled_gets_a_resync() {
    let mut s = meadow();
    // The session has room for all messages that its mailbox held: only the others were lost.
    let alone = s.connect_alone(PlayerConfig { send_queue: 1_000, ..calm() });
    s.greet(alone.who, "meadow", Some(0), 1_500, 1_500).await;
    let other = s.enter("meadow", Some(0), 1_700, 1_500).await;
    let goes = s.enter("meadow", Some(0), 1_500, 1_700).await;
    s.rest().await;
    let go_on = alone.hold_up();
    s.clients[alone.who].reads = false;
    for i in 0..60 {
        if i == 50 {
            s.leave(goes).await;
        }
        s.walk(other, 1_700 + i * 5, 1_500).await;
        s.steady_tick().await;
    }
    let lost: u64 = s.regions.iter().map(|r| r.metrics.frames_lost.load(Relaxed)).sum();
    assert!(lost > 0, "the mailbox was never full");
    drop(go_on);
    s.clients[alone.who].reads = true;
    let up_to_date = |s: &Stage| {
        let c = &s.clients[alone.who];
        c.resyncs() > 0 && c.frames.last().is_some_and(|f| f.tick == s.tick)
    };
    s.until("the client is up to date", up_to_date).await;
    s.rest().await;
}

/// The logic makes a player teleport and then walk over a border while its session is stalled.
#[actix_rt::test]
async fn a_jump_lost_on_a_full_session_is_reported_by_the_next_region() {
    let mut s = meadow();
    let alone = s.connect_alone(PlayerConfig { send_queue: 1_000, ..calm() });
    s.greet(alone.who, "meadow", Some(0), 1_300, 1_300).await;
    s.rest().await;
    let id = s.clients[alone.who].id();
    let go_on = alone.hold_up();
    s.clients[alone.who].reads = false;
    for _ in 0..60 {
        s.steady_tick().await;
    }
    let (region, scene, plane) = (RegionId(0), SceneId(0), Plane(0));
    let door = s.directory.region(region).expect("a region of the stage");
    let order = |order| {
        let sent = door.try_send(ToRegion { input: order_of(id, order), client: None });
        assert!(sent.is_ok(), "the region has room");
    };
    let pos = Pos::ground(1_500, 1_300);
    order(Order::Teleport(Destination { scene, region, plane, pos }));
    s.steady_tick().await;
    let pos = Pos::ground(1_750, 1_300);
    order(Order::Move(pos));
    s.steady_tick().await;
    s.steady_tick().await;
    assert_eq!(s.handoffs(), 1);
    drop(go_on);
    s.clients[alone.who].reads = true;
    s.until("the client is told of the jump", |s| s.clients[alone.who].joined.len() == 2).await;
    assert_eq!(s.clients[alone.who].here().pos, pos);
    s.rest().await;
}

/// The gate of the region is shut, and all but the first inputs are refused there.
#[actix_rt::test]
async fn inputs_refused_by_a_full_mailbox_are_sent_again_in_order() {
    let mut s = Stage::gated(vec![nine_regions("meadow")]);
    // The next frame triggers the repetition, not the session's timer.
    s.check_every = std::time::Duration::from_secs(3_600);
    let a = s.enter("meadow", Some(0), 1_500, 1_500).await;
    let b = s.enter("meadow", Some(0), 1_400, 1_500).await;
    s.rest().await;
    s.shut(0, 1).await;
    for i in 1..=30 {
        s.walk(a, 1_500 - i, 1_500).await;
        s.act(a, &format!("act {i}")).await;
    }
    s.open_tick().await;
    s.open_tick().await;
    s.open(0);
    s.until("every input is acknowledged", |s| s.clients[a].ack() == 60).await;
    s.until("every act has arrived", |s| s.clients[b].acts().len() == 30).await;
    let id = s.clients[a].id();
    let acks: Vec<u32> = s.clients[a].frames.iter().map(|f| f.ack.0).collect();
    assert!(acks.iter().any(|ack| (1..60).contains(ack)), "nothing was refused: {acks:?}");
    let want: Vec<_> = (1..=30).map(|i| (id, format!("act {i}"))).collect();
    assert_eq!(s.clients[b].acts(), want, "each once and in order");
    s.rest().await;
    assert!(s.clients.iter().all(|c| c.entered.len() == 1 && c.left.is_empty()));
}

#[actix_rt::test]
async fn a_handoff_waits_for_a_full_mailbox_and_shows_no_leave() {
    let mut s = Stage::gated(vec![nine_regions("meadow")]);
    let a = s.enter("meadow", Some(0), 3_100, 2_400).await;
    let b = s.enter("meadow", Some(0), 2_900, 2_400).await;
    s.rest().await;
    let id = s.clients[a].id();
    s.walk(a, 3_301, 2_400).await;
    s.wait_idle().await;
    s.shut_full(5).await;
    let from = s.regions[4].clone();
    let handed_off = || from.metrics.handoffs.load(Relaxed) == 1;
    s.open_ticks_until("the player is handed off", handed_off).await;
    s.walk(a, 3_350, 2_400).await;
    s.open_tick().await;
    s.walk(a, 3_400, 2_400).await;
    s.open(5);
    s.until("every input is acknowledged", |s| s.clients[a].ack() == 3).await;
    assert_eq!(s.whereabouts(id).await.0, [5]);
    s.rest().await;
    for who in [a, b] {
        assert_eq!((s.clients[who].entered.len(), s.clients[who].left.len()), (1, 0));
    }
}

#[actix_rt::test]
async fn a_session_dropped_while_its_client_is_held_leaves_no_entity_behind() {
    let mut s = meadow();
    let alone = s.connect_alone(tight());
    s.greet(alone.who, "meadow", Some(0), 1_500, 1_500).await;
    let other = s.enter("meadow", Some(0), 1_700, 1_500).await;
    s.rest().await;
    let id = s.clients[alone.who].id();
    s.clients[alone.who].reads = false;
    for _ in 0..10 {
        s.wait_all_idle().await;
        s.tick().await;
    }
    s.lose(alone).await;
    s.until("the player has left", |s| s.clients[other].left == [id]).await;
    assert_eq!(s.whereabouts(id).await, (vec![], vec![]));
}
