//! Judged movement over real sockets: honest clients walk, cheaters are refused and stand where the server says, and
//! doors close in front of walkers.

use std::path::Path as File;
use std::time::Duration;

use purview::actor::directory::CallError;
use purview::actor::messages::InspectEntity;
use purview::scene::inspect::InspectedEntity;
use purview::scene::messages::{Command, CommandError, Destination, Order, Refusal};
use purview::scene::movement::{ClientMs, Go, Move, MoveCommand, Path, Trajectory, Vector};
use purview::scene::terrain::{Ground, Tile};
use purview::scene::{EntityId, Plane, Pos, SceneId, Seq};
use purview::wire::client::{ClientMsg, Hello, Joined, ServerMsg, Walk};
use purview::wire::{CloseCode, ErrorCode, Form, OwnMove, PROTOCOL_VERSION};
use purview_client::{
    Client, ClientError, Clock, Event, Receiver, Sender, View, Walker, join, join_at,
};
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::logins::Duplicate;
use purview_server::process::{Background, ServerReach};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::common::{dev_token, event};

/// The number of frames within which every due message comes.
const FRAMES: usize = 100;

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
    own: OwnMove,
    ack: Seq,
    refused: Vec<(Seq, ErrorCode)>,
}

impl Player {
    async fn join(reach: &ServerReach, pos: Pos) -> Player {
        let url = reach.url().expect("the server has a listener for clients");
        let mut client = Client::connect(&url, &dev_token("test")).await.expect("a session");
        let joined =
            client.join(join_at("keep", pos)).await.expect("the server accepts the client");
        let own = joined.own.clone().expect("moves are judged");
        let ((sender, receiver), view) = (client.split(), View::of(&joined));
        let (ack, refused, clock) = (Seq(0), Vec::new(), Clock::new());
        Player { sender, receiver, joined, clock, view, own, ack, refused }
    }

    /// Receives a frame. The walker, if there is one, sends its due commands.
    async fn frame(&mut self, walker: Option<&mut Walker<Ground>>) {
        loop {
            let told = timeout(Duration::from_secs(10), self.receiver.next()).await;
            let told = told.expect("a frame comes").expect("the session goes on");
            let Event::Frame(frame) = told else { continue };
            self.view.apply(&frame).expect("a frame that fits");
            self.ack = frame.ack;
            self.refused.extend(frame.refused.iter().map(|r| (r.seq, r.code)));
            if let Some(own) = &frame.own {
                self.own = own.clone();
            }
            if let Some(walker) = walker {
                let now = self.clock.now();
                walker.frame(now, &frame);
                self.sender.walk(now, walker).await.expect("the session goes on");
            }
            return;
        }
    }

    fn trajectory(&self) -> Trajectory {
        self.own.trajectory.on_tiles(200)
    }

    /// Sends a move command and waits for its acknowledgement. Returns the code of a refusal.
    async fn say(&mut self, correction: u32, at: ClientMs, go: Go) -> Option<ErrorCode> {
        let seq =
            self.sender.send_walk(&MoveCommand { correction, at, go }).await.expect("a session");
        self.answer(seq).await
    }

    async fn answer(&mut self, seq: Seq) -> Option<ErrorCode> {
        for _ in 0..FRAMES {
            if self.ack >= seq {
                break;
            }
            self.frame(None).await;
        }
        assert!(self.ack >= seq, "input {seq} is not acknowledged");
        self.refused.iter().find(|(refused, _)| *refused == seq).map(|(_, code)| *code)
    }

    /// The client stands where the server says; a move from there is accepted.
    async fn stands(&mut self, reach: &ServerReach, correction: u32) -> Pos {
        assert_eq!(self.own.correction, correction);
        let here = self.trajectory().motion.start();
        assert_eq!(self.trajectory().motion, Move::stand(here));
        assert_eq!(place(reach, self.joined.id).await, here);
        let still = Go::Walk(Move::stand(here));
        assert_eq!(self.say(correction, self.clock.now(), still).await, None);
        here
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

fn vector(start: Pos, vx_mm_s: i32, vz_mm_s: i32) -> Go {
    Go::Walk(Vector { start, vx_mm_s, vz_mm_s, lasts_ms: None }.into())
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
    assert_eq!((a.refused.len(), a.own.correction), (0, 0));
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
async fn a_cheater_is_refused_with_a_code_and_stands_where_the_server_says() {
    let server = keep();
    let reach = server.reach();
    let mut p = Player::join(reach, SQUARE).await;
    // At another position at once.
    let far = Pos { x: SQUARE.x + 1_000, ..SQUARE };
    let now = p.clock.now();
    assert_eq!(p.say(0, now, vector(far, 5_000, 0)).await, Some(ErrorCode::Displaced));
    assert_eq!(p.stands(reach, 1).await, SQUARE);
    // A twentieth above its top speed.
    let now = p.clock.now();
    assert_eq!(p.say(1, now, vector(SQUARE, 5_250, 0)).await, Some(ErrorCode::TooFast));
    assert_eq!(p.stands(reach, 2).await, SQUARE);
    // Positions instead of move commands.
    let seq = p.sender.send_move(far).await.expect("a session");
    assert_eq!(p.answer(seq).await, Some(ErrorCode::WrongForm));
    assert_eq!(place(reach, p.joined.id).await, SQUARE);
    // The answer to a correction that does not exist.
    let now = p.clock.now();
    assert_eq!(p.say(7, now, Go::On).await, Some(ErrorCode::UnknownCorrection));
    // A clock that goes back.
    let earlier = ClientMs(0);
    assert_eq!(p.say(3, earlier, Go::On).await, Some(ErrorCode::ClockBack));
    assert_eq!(p.stands(reach, 4).await, SQUARE);
}

#[tokio::test]
async fn many_small_moves_and_a_fast_clock_gain_no_more_than_the_allowance() {
    let server = keep();
    let reach = server.reach();
    let mut p = Player::join(reach, SQUARE).await;
    // A second's walk of 20 ms steps, sent at once, again and again.
    let (mut at, mut here, mut last) = (p.clock.now(), SQUARE, Seq(0));
    for _ in 0..150 {
        let order = MoveCommand { correction: 0, at, go: vector(here, 5_000, 0) };
        last = p.sender.send_walk(&order).await.expect("a session");
        (at, here) = (at.plus(20), Pos { x: here.x + 10, ..here });
    }
    p.answer(last).await;
    let codes: Vec<_> = p.refused.iter().map(|(_, code)| *code).collect();
    assert_eq!(
        codes,
        [ErrorCode::ClockAhead],
        "one correction, and commands under way are dropped"
    );
    // Until the claimed time has come.
    for _ in 0..35 {
        p.frame(None).await;
    }
    let gained = p.stands(reach, 1).await.x - SQUARE.x;
    assert!((0..=560).contains(&gained), "{gained} cm of 15 m");
}

#[tokio::test]
async fn where_only_logic_may_teleport_players_clients_may_not() {
    let server = keep_with(&["scene.0.teleports=logic"]);
    let reach = server.reach();
    let url = reach.url().expect("the server has a listener for clients");
    let mut client = Client::connect(&url, &dev_token("test")).await.expect("a session");
    let refused = |error| match error {
        ClientError::Refused(refused) => refused.code,
        other => panic!("{other}"),
    };
    let chosen = client.join(join_at("keep", SQUARE)).await.expect_err("it chose a place");
    assert_eq!(refused(chosen), ErrorCode::MayNotTeleport);
    let joined = client.join(join("keep")).await.expect("the server accepts the client");
    let far = Pos { x: joined.pos.x + 3_000, ..joined.pos };
    client.teleport(None, None, far).await.expect("a session");
    client.act(b"behind a teleport that is refused".to_vec()).await.expect("a session");
    let code = refusal(&mut client).await;
    assert_eq!(code, ErrorCode::MayNotTeleport);
    // The number of the teleport is used again.
    let seq = client.act(b"hello".to_vec()).await.expect("a session");
    assert_eq!(seq, Seq(1));
    let is_acked = |event| matches!(event, Event::Frame(frame) if frame.ack >= seq).then_some(());
    event(&mut client, is_acked).await;
    assert_eq!(
        place(reach, joined.id).await,
        joined.own.expect("judged").trajectory.on_tiles(200).motion.start()
    );
    // The server's logic may.
    let scene = reach.directory.scenes().next().expect("a scene");
    let region = scene.map.at(joined.plane, joined.pos).expect("on the map").id;
    let to = scene.map.at(joined.plane, far).expect("on the map").id;
    let to = Destination { scene: scene.id, region: to, plane: joined.plane, pos: far };
    let order = Command::Order(joined.id, Order::Teleport(to));
    reach.directory.command(region, order).await.expect("logic may");
    // What it may not do, it is told.
    let off_the_map = Pos::ground(-1, 0);
    let order = Command::Order(joined.id, Order::Move(off_the_map));
    let refused = reach.directory.command(region, order).await;
    let why = CommandError::Order(Refusal::OutOfBounds);
    assert_eq!(refused, Err(CallError::Refused(why)));
    let arrived =
        event(&mut client, |event| if let Event::Joined(at) = event { Some(at) } else { None });
    let arrived = arrived.await;
    assert_eq!((arrived.pos.x, arrived.pos.z), (far.x, far.z));
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

#[tokio::test]
async fn a_wall_of_the_map_blocks_movement() {
    let server = keep();
    let reach = server.reach();
    let map = ground(reach);
    let free = |x, z| map.is_free(Plane(0), Tile { x, z });
    // Free ground with a wall to its east.
    let places = (1..125).flat_map(|z| (1..188).map(move |x| (x, z)));
    let (x, z) = places
        .into_iter()
        .find(|(x, z)| free(*x, *z) && !free(*x + 1, *z))
        .expect("the keep has walls");
    let start = Tile { x, z }.middle(200, 0);
    let mut p = Player::join(reach, start).await;
    let start = p.trajectory().motion.start();
    let through = Path::new(start, "77".parse().expect("steps"), 500, 200);
    let now = p.clock.now();
    assert_eq!(p.say(0, now, Go::Walk(through.into())).await, Some(ErrorCode::Blocked));
    assert_eq!(p.stands(reach, 1).await, start);
    // The wall stops a vector, and no entity is beyond it.
    let now = p.clock.now();
    assert_eq!(p.say(1, now, vector(start, 5_000, 0)).await, None);
    for _ in 0..3 {
        p.frame(None).await;
    }
    let beyond = ClientMs(now.0 + 700);
    let behind = Pos { x: start.x + 350, ..start };
    assert_eq!(p.say(1, beyond, vector(behind, 5_000, 0)).await, Some(ErrorCode::Blocked));
    let here = p.stands(reach, 2).await;
    assert_eq!(Tile::of(here, 200), Tile { x, z });
}

#[tokio::test]
async fn a_gate_closes_in_front_of_a_walker() {
    let server = keep();
    let reach = server.reach();
    let (scene, plane, gate) = (SceneId(0), Plane(0), "north gate");
    let set = async |open| {
        let set = reach.directory.set_door(scene, plane, gate, open, None).await;
        set.expect("there is a gate")
    };
    let at = set(true).await;
    // On the street to the gate, 8 m in front of it.
    let mut p = Player::join(reach, Pos::ground(12_600, 6_800)).await;
    while p.view.tick() < Some(at) {
        p.frame(None).await;
    }
    p.joined.plane = plane;
    let mut walker = Walker::on(p.clock.now(), &p.joined, opened(reach)).expect("judged");
    walker.walk(0, -1, 500);
    for _ in 0..3 {
        p.frame(Some(&mut walker)).await;
    }
    set(false).await;
    for _ in 0..FRAMES {
        if p.own.correction > 0 {
            break;
        }
        p.frame(Some(&mut walker)).await;
    }
    // The client's map has the gate open; the server brings the client back to where it stopped.
    let now = p.clock.now();
    assert_eq!((p.own.correction, walker.correction()), (1, 1));
    assert_eq!(
        walker.position(now),
        Pos { y: walker.position(now).y, ..Pos::ground(12_600, 6_000) }
    );
    assert_eq!(place(reach, p.joined.id).await, walker.position(now));
    // Its own command or the server may be first to tell it.
    assert!(p.refused.iter().all(|(_, code)| *code == ErrorCode::Blocked), "{:?}", p.refused);
}

/// The map with its north gate open.
fn opened(reach: &ServerReach) -> Ground {
    use purview::scene::Tick;
    use purview::scene::terrain::{DoorChange, DoorOrder};
    let mut map = ground(reach);
    let door = map.terrain().door_named("north gate").expect("there is a gate");
    let change = DoorChange::Set { door, open: true };
    map.order(DoorOrder { plane: Plane(0), change, at: Tick(0), version: 1 }).expect("a door");
    map.turn(Tick(1));
    map
}

/// A client that chooses its input numbers itself.
struct Raw(TcpStream);

impl Raw {
    async fn send(&mut self, message: impl Into<ClientMsg>) {
        let bytes = message.into().encode();
        let framed = [&(bytes.len() as u32).to_be_bytes(), &bytes[..]].concat();
        self.0.write_all(&framed).await.expect("a connection");
    }

    async fn next(&mut self) -> ServerMsg {
        let mut bytes = vec![0; self.0.read_u32().await.expect("a message") as usize];
        self.0.read_exact(&mut bytes).await.expect("a whole message");
        ServerMsg::decode(&bytes).expect("a legal message")
    }
}

#[tokio::test]
async fn a_number_that_is_used_again_is_refused_and_moves_no_entity() {
    let server = keep();
    let reach = server.reach();
    let mut raw = Raw(TcpStream::connect(reach.tcp.expect("TCP")).await.expect("a connection"));
    raw.send(Hello { version: PROTOCOL_VERSION, token: dev_token("test"), crowd: false }).await;
    raw.send(join_at("keep", SQUARE)).await;
    let walk = |seq, vx_mm_s| {
        let stand = Vector::stand(SQUARE);
        let form = Some(Form::Vector(Vector { vx_mm_s, lasts_ms: Some(100), ..stand }));
        Walk { seq: Seq(seq), correction: 0, at_ms: ClientMs(5_000), form }
    };
    let (mut id, mut refused, mut acked) = (None, Vec::new(), false);
    while !(acked && refused.len() == 3) {
        match timeout(Duration::from_secs(10), raw.next()).await.expect("an answer") {
            ServerMsg::Joined(joined) => {
                id = Some(joined.id);
                for seq in [1, 1, 1, 3] {
                    raw.send(walk(seq, 1_000)).await;
                }
            }
            ServerMsg::Refused(r) => refused.push((r.code, r.seq)),
            ServerMsg::Frame(frame) => acked |= frame.ack == Seq(1),
            ServerMsg::Closing(closing) => assert_eq!(closing.code, CloseCode::Normal),
            ServerMsg::Welcome(_)
            | ServerMsg::Lines(_)
            | ServerMsg::Pong(_)
            | ServerMsg::Left(_)
            | ServerMsg::Unconfirmed(_)
            | ServerMsg::Renewed(_) => {}
        }
    }
    let order = |seq| (ErrorCode::OutOfOrder, Some(Seq(seq)));
    assert_eq!(refused, [order(1), order(1), order(3)]);
    let id = id.expect("it has joined");
    for _ in 0..5 {
        raw.next().await;
    }
    assert_eq!(place(reach, id).await, Pos { x: SQUARE.x + 10, ..SQUARE });
}
