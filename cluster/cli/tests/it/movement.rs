//! Judged movement over real sockets. How cheaters fare on a server is for the cheat trial of the lab.

use std::path::Path as File;
use std::time::Duration;

use purview::actor::directory::CallError;
use purview::actor::messages::InspectEntity;
use purview::scene::inspect::InspectedEntity;
use purview::scene::messages::{Command, CommandError, Destination, Order, Refusal};
use purview::scene::terrain::{Ground, Tile};
use purview::scene::{EntityId, Plane, Pos, SceneId};
use purview::wire::ErrorCode;
use purview::wire::client::Joined;
use purview_client::{Client, ClientError, Clock, Event, Receiver, Sender, View, Walker, join_at};
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::logins::Duplicate;
use purview_server::process::{Background, ServerReach};
use tokio::time::timeout;

use crate::common::{dev_token, event};

/// The keep, where players walk at 5 m/s and may teleport.
fn keep() -> Background {
    keep_with(&[])
}

fn keep_with(more: &[&str]) -> Background {
    let file = File::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/scenes/keep.toml");
    let set = [
        "gateway.ws=127.0.0.1:0",
        "gateway.tcp=127.0.0.1:0",
        "gateway.rate_limit=1000",
        "gateway.burst=1000",
        "console.listen=off",
        "scene.0.top_speed=8m/s",
        "scene.0.kind=[{ name = \"player\", speed = \"5m/s\" }]",
    ];
    let set = set.iter().chain(more).map(|o| o.parse().expect("an override"));
    let set: Vec<_> = set.collect();
    let mut config = Config::load(Some(&file), [], &set).expect("a legal configuration");
    config.token.duplicate = Some(Duplicate::Allow);
    Background::start(config, Tokens::dev()).expect("a server")
}

struct Player {
    sender: Sender,
    receiver: Receiver,
    joined: Joined,
    clock: Clock,
    view: View,
}

impl Player {
    async fn join(reach: &ServerReach, pos: Pos) -> Player {
        let url = reach.url().expect("the server has a listener for clients");
        let mut client = Client::connect(&url, &dev_token("test")).await.expect("a session");
        let joined =
            client.join(join_at("keep", pos)).await.expect("the server accepts the client");
        let ((sender, receiver), view) = (client.split(), View::of(&joined));
        Player { sender, receiver, joined, clock: Clock::new(), view }
    }

    /// Receives a frame, which refuses and corrects nothing. The walker, if there is one, sends its due commands.
    async fn frame(&mut self, walker: Option<&mut Walker<Ground>>) {
        loop {
            let told = timeout(Duration::from_secs(10), self.receiver.next()).await;
            let told = told.expect("a frame comes").expect("the session goes on");
            let Event::Frame(frame) = told else { continue };
            self.view.apply(&frame).expect("a frame that fits");
            assert!(frame.refused.is_empty(), "{:?}", frame.refused);
            assert!(frame.own.as_ref().is_none_or(|own| own.correction == 0), "{:?}", frame.own);
            if let Some(walker) = walker {
                let now = self.clock.now();
                walker.frame(now, &frame);
                self.sender.walk(now, walker).await.expect("the session goes on");
            }
            return;
        }
    }
}

/// The code of the next message that refuses an input.
async fn refusal(client: &mut Client) -> ErrorCode {
    event(client, |event| if let Event::Refused(r) = event { Some(r.code) } else { None }).await
}

/// The position of an entity by its region's account.
async fn place(reach: &ServerReach, id: EntityId) -> Pos {
    for region in reach.hosted.now().iter() {
        if let Ok(Some(found)) = region.inspect_entity.send(InspectEntity(id)).await {
            return match found {
                InspectedEntity::Player(p) => p.pos,
                InspectedEntity::Other(e) => e.pos,
            };
        }
    }
    panic!("{id} is in no region");
}

fn ground(reach: &ServerReach) -> Ground {
    let scene = reach.directory.scenes().next().expect("a scene");
    Ground::new(scene.terrain.clone().expect("it has a map"))
}

/// Where the streets meet.
const SQUARE: Pos = Pos { x: 12_600, y: 0, z: 12_800 };

#[tokio::test]
async fn an_honest_client_its_viewers_and_the_server_agree_on_its_position() {
    let server = keep();
    let mut a = Player::join(server.reach(), SQUARE).await;
    let mut b = Player::join(server.reach(), Pos { x: SQUARE.x + 200, ..SQUARE }).await;
    let (id, map) = (a.joined.id, ground(server.reach()));
    let mut walker = Walker::on(a.clock.now(), &a.joined, map).expect("moves are judged");
    // To and fro across the border of two regions, which runs through the square.
    for turn in 0..6 {
        walker.walk(if turn % 2 == 0 { 1 } else { -1 }, turn - 3, 500);
        for _ in 0..12 {
            a.frame(Some(&mut walker)).await;
        }
    }
    walker.stop();
    for _ in 0..15 {
        a.frame(Some(&mut walker)).await;
    }
    let here = walker.position(a.clock.now());
    assert!(here.dist2(SQUARE) > 100 * 100, "it has walked: {here:?}");
    assert_eq!(place(server.reach(), id).await, here);
    let tick = a.view.tick();
    while b.view.tick() < tick {
        b.frame(None).await;
    }
    let now = b.view.time_of(b.view.tick().expect("a frame"));
    assert_eq!(b.view.position(id, now), Some(here));
}

#[tokio::test]
async fn the_server_puts_players_on_the_ground_and_refuses_heights_beyond_the_limit() {
    let server = keep_with(&["scene.0.height_limit=50m"]);
    let reach = server.reach();
    let map = ground(reach);
    let tiles = (1..125).flat_map(|z| (1..188).map(move |x| Tile { x, z }));
    let is_hill = |tile: &Tile| map.is_free(Plane(0), *tile) && map.height_cm(*tile) > 0;
    let hill = tiles.into_iter().find(is_hill).expect("the keep has a hill");
    let top = hill.middle(200, map.height_cm(hill));
    let url = reach.url().expect("the server has a listener for clients");
    let mut client = Client::connect(&url, &dev_token("test")).await.expect("a session");
    for y in [5_001, -5_001, i32::MAX, i32::MIN] {
        let why = client.join(join_at("keep", Pos { y, ..top })).await.expect_err("it is refused");
        let ClientError::Refused(refused) = why else { panic!("{why}") };
        assert_eq!(refused.code, ErrorCode::OutOfBounds);
        assert!(refused.detail.contains("5000 cm"), "{}", refused.detail);
    }
    let joined = client.join(join_at("keep", Pos { y: 5_000, ..top })).await.expect("a player");
    assert_eq!(joined.pos, top);
    client.teleport(None, None, Pos { y: 2_000_000_000, ..SQUARE }).await.expect("a session");
    let code = refusal(&mut client).await;
    assert_eq!(code, ErrorCode::OutOfBounds);
    client.teleport(None, None, Pos { y: 5_000, ..SQUARE }).await.expect("a session");
    while place(reach, joined.id).await != SQUARE {
        client.next().await.expect("the session goes on");
    }
    // Logic has its own mind, within the limit.
    let tower = Pos { y: 4_000, ..SQUARE };
    let keep = reach.directory.scenes().next().expect("a scene");
    let (scene, region) = (SceneId(0), keep.map.at(joined.plane, tower).expect("on the map").id);
    let to = |y| Destination { scene, region, plane: joined.plane, pos: Pos { y, ..tower } };
    let order = |y| Command::Order(joined.id, Order::Teleport(to(y)));
    let refused = reach.directory.command(region, order(5_001)).await;
    let why = CommandError::Order(Refusal::OutOfBounds);
    assert_eq!(refused, Err(CallError::Refused(why)));
    reach.directory.command(region, order(4_000)).await.expect("logic may");
    while place(reach, joined.id).await.y == 0 {
        client.next().await.expect("the session goes on");
    }
}
