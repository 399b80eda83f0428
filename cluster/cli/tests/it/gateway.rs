//! Sessions over real sockets, with a fake region that does just enough.

mod limits;
mod secure;
mod stalls;
mod support;

use std::time::Duration;

use futures::SinkExt;
use purview::scene::{Plane, SceneId, Seq};
use purview::wire::client::{Hello, Refused};
use purview::wire::{CloseCode, ErrorCode, PROTOCOL_VERSION, ServerMsg};
use purview_server::gateway::{GatewayConfig, Tokens};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Message;

use crate::common::HOUR;
use support::{Client, Flood, Said, World, act, join, leave, ping, step, teleport, until};

const SHORT: Duration = Duration::from_millis(50);

fn config() -> GatewayConfig {
    GatewayConfig::default()
}

async fn refused(client: &mut Client) -> Refused {
    client
        .receive_until(
            |msg| if let ServerMsg::Refused(refused) = msg { Some(refused) } else { None },
        )
        .await
}

async fn pong(client: &mut Client, nonce: u64) {
    client.say(ping(nonce)).await;
    let back = client
        .receive_until(|msg| if let ServerMsg::Pong(pong) = msg { Some(pong.nonce) } else { None })
        .await;
    assert_eq!(back, nonce);
}

async fn a_whole_session(world: &World, mut client: Client) {
    let me = world.enter(&mut client).await;
    assert_eq!((me.scene.as_str(), me.plane), ("meadow", Plane(0)));
    assert_eq!(me.rules.size_cm, [51_200, 51_200]);
    client.say(step(1, 700)).await;
    let Said::Msg(ServerMsg::Frame(frame)) = client.receive().await else { panic!("no frame") };
    assert_eq!((frame.ack, frame.moves[0].id, frame.moves[0].x), (Seq(1), me.id, 700));
    client.say(act(2, b"wave")).await;
    let Said::Msg(ServerMsg::Frame(frame)) = client.receive().await else { panic!("no frame") };
    assert_eq!((frame.ack, frame.acts[0].payload.as_slice()), (Seq(2), b"wave".as_slice()));
    client.say(step(3, -1)).await;
    let Said::Msg(ServerMsg::Frame(frame)) = client.receive().await else { panic!("no frame") };
    assert_eq!((frame.refused[0].seq, frame.refused[0].code), (Seq(3), ErrorCode::OutOfBounds));
    client.say(teleport(4, None, Some(3), 900)).await;
    let Said::Msg(ServerMsg::Joined(there)) = client.receive().await else { panic!("no joined") };
    assert_eq!((there.id, there.plane, there.pos.x), (me.id, Plane(3), 900));
    assert_eq!(world.directory.players(SceneId(0), Plane(0)), 0);
    assert_eq!(world.directory.players(SceneId(0), Plane(3)), 1);
    pong(&mut client, 77).await;
    client.say(leave()).await;
    assert!(matches!(client.receive().await, Said::Msg(ServerMsg::Left(_))));
    assert_eq!(client.closed().await, 1000);
    until("the place is given back", || world.directory.players(SceneId(0), Plane(3)) == 0).await;
}

#[actix_rt::test]
async fn a_session_from_hello_to_left_over_websocket() {
    let world = World::new().await;
    a_whole_session(&world, world.ws().await).await;
}

#[actix_rt::test]
async fn a_session_from_hello_to_left_over_tcp() {
    let world = World::new().await;
    a_whole_session(&world, world.tcp().await).await;
}

#[actix_rt::test]
async fn an_invalid_input_is_refused_and_the_session_goes_on() {
    let world = World::new().await;
    let mut client = world.ws().await;
    client.say(step(1, 5)).await;
    let answer = refused(&mut client).await;
    assert_eq!((answer.code, answer.seq), (ErrorCode::Premature, Some(Seq(1))));
    client.say(world.hello()).await;
    client.say_bytes(&[0x92, 50, 0x90]).await;
    assert_eq!(refused(&mut client).await.code, ErrorCode::UnknownType);
    client.say_bytes(b"garbage").await;
    assert_eq!(refused(&mut client).await.code, ErrorCode::Malformed);
    client.say_bytes(&[0x92, 3, 0x91, 0xc0]).await;
    assert_eq!(refused(&mut client).await.code, ErrorCode::BadField);
    client.say(join(None)).await;
    client.receive_until(|msg| matches!(msg, ServerMsg::Joined(_)).then_some(())).await;
    client.say(step(2, 5)).await;
    let answer = refused(&mut client).await;
    assert_eq!((answer.code, answer.seq), (ErrorCode::OutOfOrder, Some(Seq(2))));
    assert_eq!(answer.detail, "the next input must be number 1");
    client.say(teleport(1, Some("moon"), None, 5)).await;
    assert_eq!(refused(&mut client).await.code, ErrorCode::UnknownScene);
    client.say(teleport(1, None, None, 51_200)).await;
    assert_eq!(refused(&mut client).await.code, ErrorCode::OutOfBounds);
    client.say(step(1, 5)).await;
    let ack =
        client.receive_until(|m| if let ServerMsg::Frame(f) = m { Some(f.ack) } else { None });
    assert_eq!(ack.await, Seq(1));
}

#[actix_rt::test]
async fn malformed_empty_and_oversize_messages_and_text_close_the_session() {
    let world = World::new().await;
    let mut client = world.tcp().await;
    for _ in 0..9 {
        client.say_bytes(b"garbage").await;
    }
    assert_eq!(client.closed().await, 4000);
    let mut client = world.tcp().await;
    client.say_bytes(&[]).await;
    assert_eq!(client.closed().await, 4000);
    let mut client = world.ws().await;
    client.say_bytes(&[0; 4_097]).await;
    assert_eq!(client.closed().await, 1009);
    let mut client = world.tcp().await;
    client.say_bytes(&[0; 60_000]).await;
    assert_eq!(client.closed().await, 1009);
    let mut client = world.ws().await;
    client.say_bytes(&[0; 4_096]).await;
    assert_eq!(refused(&mut client).await.code, ErrorCode::Malformed, "the longest message");
    let mut client = world.ws().await;
    let Client::Ws(ws) = &mut client else { panic!("no WebSocket") };
    ws.send(Message::text("hello")).await.unwrap();
    assert_eq!(client.closed().await, 1003);
}

#[actix_rt::test]
async fn another_version_and_a_bad_token_close_the_session() {
    let world = World::new().await;
    let mut hellos = Vec::new();
    let good = world.tokens.mint("ada", Some(HOUR)).unwrap();
    hellos.push((PROTOCOL_VERSION + 1, good, 4001));
    let foreign = Tokens::new(&[7; 32]).unwrap().mint("ada", Some(HOUR)).unwrap();
    hellos.push((PROTOCOL_VERSION, foreign, 4002));
    hellos.push((PROTOCOL_VERSION, String::new(), 4002));
    let claims = serde_json::json!({ "sub": "ada", "exp": 1_000 });
    let dev = jsonwebtoken::EncodingKey::from_secret(b"purview dev mode: this is no secret");
    let header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256);
    let expired = jsonwebtoken::encode(&header, &claims, &dev).unwrap();
    hellos.push((PROTOCOL_VERSION, expired, 4002));
    for (version, token, code) in hellos {
        let mut client = world.ws().await;
        client.say(Hello { version, token, crowd: false }.into()).await;
        assert_eq!(client.closed().await, code);
    }
}

#[actix_rt::test]
async fn a_client_without_a_hello_in_time_is_closed() {
    let world = World::with(GatewayConfig { handshake_timeout: SHORT, ..config() }, Flood::No);
    let world = world.await;
    let mut client = world.tcp().await;
    assert_eq!(client.closed().await, 4003);
}

#[actix_rt::test]
async fn a_connection_that_never_becomes_a_websocket_is_closed() {
    let world = World::with(GatewayConfig { handshake_timeout: SHORT, ..config() }, Flood::No);
    let world = world.await;
    let addr = world.gateway.ws_addr().unwrap();
    let mut silent = tokio::net::TcpStream::connect(addr).await.unwrap();
    let mut other = tokio::net::TcpStream::connect(addr).await.unwrap();
    other.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").await.unwrap();
    let mut received = Vec::new();
    assert_eq!(silent.read_to_end(&mut received).await.unwrap(), 0);
    let gone = &world.gateway.metrics().sessions_gone;
    until("both are counted", || gone.load(std::sync::atomic::Ordering::Relaxed) == 2).await;
}

#[actix_rt::test]
async fn a_silent_client_is_closed_and_removed() {
    let world = World::with(GatewayConfig { heartbeat: SHORT, ..config() }, Flood::No).await;
    let mut client = world.ws().await;
    world.enter(&mut client).await;
    assert_eq!(client.closed().await, 4004);
    until("the region removes the player", || world.log.has("leave")).await;
}

#[actix_rt::test]
async fn a_flood_is_read_slowly_and_affects_no_other() {
    let world = World::with(GatewayConfig { rate_limit: 10, burst: 12, ..config() }, Flood::No);
    let world = world.await;
    let (mut good, mut bad) = (world.ws().await, world.ws().await);
    world.enter(&mut good).await;
    world.enter(&mut bad).await;
    for seq in 1..=20 {
        bad.say(step(seq, 5)).await;
    }
    pong(&mut good, 1).await;
    good.say(step(1, 8)).await;
    let acked = |seq| {
        move |m| if let ServerMsg::Frame(f) = m { (f.ack == Seq(seq)).then_some(()) } else { None }
    };
    good.receive_until(acked(1)).await;
    // All of it is read in time.
    bad.receive_until(acked(20)).await;
}

#[actix_rt::test]
async fn a_client_that_breaks_off_is_removed_and_frees_its_place() {
    let world = World::new().await;
    let mut clients = [world.ws().await, world.tcp().await];
    for client in &mut clients {
        world.enter(client).await;
    }
    assert_eq!(world.directory.players(SceneId(0), Plane(0)), 2);
    drop(clients);
    until("both places are free", || world.directory.players(SceneId(0), Plane(0)) == 0).await;
    let open = &world.gateway.metrics().admission.sessions_open;
    until("no session is open", || open.load(std::sync::atomic::Ordering::Relaxed) == 0).await;
}

#[actix_rt::test]
async fn half_a_message_followed_by_silence_ends_only_its_own_session() {
    let world = World::new().await;
    let mut good = world.tcp().await;
    world.enter(&mut good).await;
    let Client::Tcp(mut bad) = world.tcp().await else { panic!("no TCP") };
    bad.write_all(&[0, 0, 0, 9, 0x92]).await.unwrap();
    drop(bad);
    pong(&mut good, 5).await;
}

#[actix_rt::test]
async fn a_slow_reader_is_held_back_until_it_reads_again() {
    let slow = GatewayConfig { slow_close: Duration::from_secs(600), ..config() };
    let world = World::with(slow, Flood::Polite).await;
    let mut client = world.ws().await;
    world.enter(&mut client).await;
    until("the region holds", || world.log.has("hold")).await;
    client.receive_until(|_| world.log.has("release").then_some(())).await;
    pong(&mut client, 5).await;
}

#[actix_rt::test]
async fn a_slow_reader_that_lost_frames_receives_a_full_resync() {
    let slow = GatewayConfig { slow_close: Duration::from_secs(600), ..config() };
    let world = World::with(slow, Flood::Stubborn).await;
    let mut client = world.tcp().await;
    world.enter(&mut client).await;
    until("the region is asked to resync", || world.log.has("resync")).await;
    let resync = |m| if let ServerMsg::Frame(f) = m { f.resync.then_some(()) } else { None };
    client.receive_until(resync).await;
}

#[actix_rt::test]
async fn a_client_that_never_reads_is_closed() {
    let world = World::with(GatewayConfig { slow_close: SHORT, ..config() }, Flood::Polite).await;
    let mut client = world.ws().await;
    world.enter(&mut client).await;
    until("the session is closed as slow", || {
        world.gateway.metrics().closes().any(|(code, n)| code == CloseCode::Slow && n == 1)
    })
    .await;
    until("the region removes the player", || world.log.has("leave")).await;
}

#[actix_rt::test]
async fn a_slow_client_that_reads_again_in_time_learns_why_it_was_closed() {
    let grace = Duration::from_secs(600);
    let slow = GatewayConfig { slow_close: SHORT, close_grace: grace, ..config() };
    let world = World::with(slow, Flood::Polite).await;
    let mut client = world.ws().await;
    world.enter(&mut client).await;
    until("the region removes the player", || world.log.has("leave")).await;
    assert_eq!(client.closed().await, 4006);
}

#[actix_rt::test]
async fn a_full_gateway_refuses_clients() {
    let world = World::with(GatewayConfig { max_sessions: 1, ..config() }, Flood::No).await;
    let mut first = world.ws().await;
    world.enter(&mut first).await;
    assert_eq!(world.ws().await.closed().await, 4007);
    assert_eq!(world.tcp().await.closed().await, 4007);
    pong(&mut first, 1).await;
}

#[actix_rt::test]
async fn a_gateway_that_stops_notifies_every_client() {
    let world = World::new().await;
    let (mut one, mut two) = (world.ws().await, world.tcp().await);
    world.enter(&mut one).await;
    let stop = world.gateway.stop();
    let ((), one, two) = futures::join!(stop, one.closed(), two.closed());
    assert_eq!((one, two), (1001, 1001));
}
