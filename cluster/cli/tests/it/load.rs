//! Crowds, velocities and byte budgets over real sockets.

use std::time::Duration;

use purview::scene::{EntityId, Pos};
use purview_client::{Client, Event, Login, Receiver, Sender, View, join_at};
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::process::{Background, ServerReach};
use tokio::time::timeout;

use crate::common::dev_token;

/// A square that trusts positions.
fn square(more: &[&str]) -> Background {
    let set = [
        "gateway.ws=127.0.0.1:0",
        "gateway.tcp=127.0.0.1:0",
        "gateway.rate_limit=1000",
        "gateway.burst=1000",
        "console.listen=off",
        "token.duplicate=allow",
        "scene.0.name=square",
        "scene.0.moves=trusted",
        "scene.0.teleports=clients",
        "scene.0.view_cap=3",
    ];
    let set: Vec<_> = set.iter().chain(more).map(|o| o.parse().expect("an override")).collect();
    let config = Config::load(None, [], &set).expect("a legal configuration");
    Background::start(config, Tokens::dev()).expect("a server")
}

struct Player {
    id: EntityId,
    sender: Sender,
    receiver: Receiver,
    view: View,
    crowds: u32,
}

impl Player {
    async fn join(reach: &ServerReach, x: i32, wants_crowd: bool) -> Player {
        let token = dev_token("test");
        let url = reach.url().expect("the server has a listener for clients");
        let login = Login::from(&token);
        let login = if wants_crowd { login.with_crowd() } else { login };
        let mut client = Client::connect(&url, login).await.expect("a session");
        let join = join_at("square", Pos::ground(x, 50_000));
        let joined = client.join(join).await.expect("the server accepts the client");
        let ((sender, receiver), view) = (client.split(), View::of(&joined));
        Player { id: joined.id, sender, receiver, view, crowds: 0 }
    }

    async fn frame(&mut self) {
        loop {
            let told = timeout(Duration::from_secs(10), self.receiver.next()).await;
            let told = told.expect("a frame comes").expect("the session goes on");
            let Event::Frame(frame) = told else { continue };
            self.view.apply(&frame).expect("a frame that fits");
            self.crowds += u32::from(frame.crowd.is_some());
            return;
        }
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

#[test]
fn a_client_that_asks_for_it_sees_the_crowd_behind_its_view_list() {
    let server = square(&["scene.0.crowd={ max = 50, every = \"300ms\" }"]);
    run(async {
        let mut players = Vec::new();
        for i in 0..12 {
            players.push(Player::join(server.reach(), 50_000 + 150 * i, i < 2).await);
        }
        let (asks, others) = players.split_at_mut(2);
        let all_are_there = |p: &Player| {
            let crowd = p.view.crowd().map_or(0, |crowd| crowd.len());
            crowd == 12 && p.view.len() == 3
        };
        for player in asks {
            while !all_are_there(player) {
                player.frame().await;
            }
            let crowd = player.view.crowd().expect("a crowd");
            let known = player.view.iter().map(|(_, seen)| seen.pos);
            assert_eq!(crowd.beyond(known).len(), 12 - 3, "its own dot and those of strangers");
            assert!(crowd.dots().all(|dot| (dot.z - 50_000).abs() <= 200), "rows of four metres");
        }
        for player in others {
            for _ in 0..10 {
                player.frame().await;
            }
            assert_eq!((player.crowds, player.view.crowd()), (0, None), "it did not ask");
        }
    });
}

#[test]
fn a_client_goes_on_showing_a_walk_that_it_is_told_once() {
    let server = square(&[]);
    run(async {
        let mut viewer = Player::join(server.reach(), 50_000, false).await;
        let mut walker = Player::join(server.reach(), 51_000, false).await;
        let mut told = 0;
        for step in 1..=40 {
            let to = Pos::ground(51_000 + 30 * step, 50_000);
            walker.sender.send_move(to).await.expect("the session goes on");
            walker.frame().await;
            let before = viewer.view.tick();
            while viewer.view.tick() < walker.view.tick() {
                viewer.frame().await;
            }
            let tick = viewer.view.tick().expect("a frame came");
            told += u32::from(before.is_some());
            let shown = viewer.view.position(walker.id, viewer.view.time_of(tick));
            // Its last step or two may not have come to the server in this tick.
            if let Some(shown) = shown.filter(|_| step > 5) {
                assert!((shown.x - to.x).abs() <= 120, "step {step}: {shown:?}, not {to:?}");
            }
        }
        assert!(told > 10);
        let seen = viewer.view.get(walker.id).expect("it is in view");
        assert!(seen.trajectory.is_some(), "it is told to walk on");
        // It stops, and is shown exactly where.
        let at = |p: &Player| {
            p.view.position(walker.id, p.view.time_of(p.view.tick().unwrap_or_default()))
        };
        for _ in 0..100 {
            if at(&viewer) == Some(Pos::ground(52_200, 50_000))
                && viewer.view.get(walker.id).is_some_and(|s| s.trajectory.is_none())
            {
                return;
            }
            viewer.frame().await;
        }
        panic!("it stands at 522 m, not at {:?}", at(&viewer));
    });
}

#[test]
fn a_budget_stretches_rates_and_the_last_position_comes() {
    let server = square(&[
        "scene.0.view_cap=60",
        "scene.0.update_error=off",
        "scene.0.rates={ near = \"100ms\", middle = \"100ms\", far = \"100ms\" }",
        "scene.0.egress=8kbps",
    ]);
    run(async {
        let mut players = Vec::new();
        for i in 0..12 {
            players.push(Player::join(server.reach(), 50_000 + 300 * i, false).await);
        }
        for _ in 0..10 {
            players[0].frame().await;
        }
        let before = (players[0].receiver.bytes_received(), players[0].view.tick());
        for step in 1..=30 {
            for (i, player) in players.iter_mut().enumerate().skip(1) {
                let to = Pos::ground(50_000 + 300 * i as i32, 50_000 + 40 * step);
                player.sender.send_move(to).await.expect("the session goes on");
            }
            for player in &mut players {
                player.frame().await;
            }
        }
        let bytes = players[0].receiver.bytes_received() - before.0;
        let ticks = players[0].view.tick().unwrap_or_default().0 - before.1.unwrap_or_default().0;
        // 100 bytes a tick, and the two ticks that the bucket holds.
        assert!(bytes <= 100 * (ticks + 3), "{bytes} bytes in {ticks} ticks");
        let viewer = &mut players[0];
        for _ in 0..200 {
            viewer.frame().await;
            if viewer.view.len() == 11 && viewer.view.iter().all(|(_, seen)| seen.pos.z == 51_200) {
                return;
            }
        }
        panic!("not all stand where they do: {:?}", viewer.view);
    });
}
