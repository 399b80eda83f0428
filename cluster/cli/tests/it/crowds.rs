//! Crowds over real sockets: the clients that ask for them are told them.

use std::time::Duration;

use purview::scene::Pos;
use purview_client::{Client, Event, Login, View, join_at};
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::process::{Background, ServerReach};
use tokio::time::timeout;

use crate::common::dev_token;

/// A square whose players have lists of three.
const SQUARE: [&str; 8] = [
    "gateway.ws=127.0.0.1:0",
    "gateway.tcp=off",
    "console.listen=off",
    "token.duplicate=allow",
    "scene.0.name=square",
    "scene.0.teleports=clients",
    "scene.0.view_cap=3",
    "scene.0.crowd={ max = 50, every = \"300ms\" }",
];

struct Player {
    client: Client,
    view: View,
    crowds: u32,
}

impl Player {
    async fn join(reach: &ServerReach, x: i32, wants_crowd: bool) -> Player {
        let url = reach.url().expect("the server has a listener for clients");
        let token = dev_token("test");
        let login = Login::from(&token);
        let login = if wants_crowd { login.with_crowd() } else { login };
        let mut client = Client::connect(&url, login).await.expect("a session");
        let joined = client.join(join_at("square", Pos::ground(x, 50_000))).await;
        let view = View::of(&joined.expect("the server accepts the client"));
        Player { client, view, crowds: 0 }
    }

    async fn frame(&mut self) {
        loop {
            let told = timeout(Duration::from_secs(10), self.client.next()).await;
            let told = told.expect("a frame comes").expect("the session goes on");
            let Event::Frame(frame) = told else { continue };
            self.view.apply(&frame).expect("a frame that fits");
            self.crowds += u32::from(frame.crowd.is_some());
            return;
        }
    }
}

#[tokio::test]
async fn a_client_that_asks_for_it_sees_the_crowd_behind_its_view_list() {
    let set = SQUARE.map(|set| set.parse().expect("an override"));
    let config = Config::load(None, [], &set).expect("a legal configuration");
    let server = Background::start(config, Tokens::dev()).expect("a server");
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
}
