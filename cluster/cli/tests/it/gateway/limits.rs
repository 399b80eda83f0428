//! The limits of a source address, and proxies that name it. Addresses are 127.0.0.1, 127.0.0.2 and so on.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use proxy_header::{ProxiedAddress, ProxyHeader};
use purview::wire::client::Hello;
use purview::wire::{CloseCode, PROTOCOL_VERSION, ServerMsg};
use purview_server::admission::{AddressLimits, RefusalReason};
use purview_server::gateway::GatewayConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::support::{Client, Flood, Said, World, until};

/// No address is exempt; no client is closed for being slow.
fn config(limits: AddressLimits) -> GatewayConfig {
    let limits = AddressLimits { exempt: Vec::new(), ..limits };
    let handshake_timeout = Duration::from_secs(600);
    GatewayConfig { limits, handshake_timeout, ..GatewayConfig::default() }
}

async fn from(source: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((source, 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

fn tcp(world: &World) -> SocketAddr {
    world.gateway.tcp_addr().unwrap()
}

/// A client of 127.0.0.`n`.
async fn client(world: &World, n: u8) -> Client {
    Client::Tcp(from([127, 0, 0, n], tcp(world)).await)
}

fn refused(world: &World, why: RefusalReason) -> u64 {
    world.gateway.metrics().admission.refusals().find(|(known, _)| *known == why).unwrap().1
}

/// Waits for the end of a silent connection.
async fn hung_up(socket: &mut TcpStream) -> bool {
    let end = tokio::time::timeout(Duration::from_secs(20), socket.read(&mut [0; 64])).await;
    matches!(end, Ok(Ok(0) | Err(_)))
}

/// The whole answer of a server.
async fn answer(to: SocketAddr, request: &str) -> String {
    let mut socket = TcpStream::connect(to).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut text = vec![0; 4_096];
    let mut len = 0;
    loop {
        let read = tokio::time::timeout(Duration::from_secs(20), socket.read(&mut text[len..]));
        match read.await.expect("an answer").unwrap() {
            0 => break,
            more => len += more,
        }
        if text[..len].windows(4).any(|end| end == b"\r\n\r\n") && text.starts_with(b"HTTP/1.1 101")
        {
            break;
        }
    }
    String::from_utf8_lossy(&text[..len]).into_owned()
}

#[actix_rt::test]
async fn connections_without_a_hello_block_no_other_client() {
    let config = GatewayConfig { max_sessions: 500, ..GatewayConfig::default() };
    let world = World::with(config, Flood::No).await;
    let mut idle = Vec::new();
    for _ in 0..600 {
        idle.push(TcpStream::connect(tcp(&world)).await.unwrap());
    }
    until("all are accepted", || world.gateway.metrics().admission.waiting.load(Relaxed) == 600)
        .await;
    assert_eq!(world.gateway.metrics().admission.sessions_open.load(Relaxed), 0);
    world.enter(&mut world.tcp().await).await;
    world.enter(&mut world.ws().await).await;
}

#[actix_rt::test]
async fn the_oldest_connection_without_a_hello_makes_room() {
    let unauthenticated = 10;
    let config = GatewayConfig { unauthenticated, ..config(AddressLimits::default()) };
    let world = World::with(config, Flood::No).await;
    let mut idle = Vec::new();
    for _ in 0..10 {
        idle.push(from([127, 0, 0, 2], tcp(&world)).await);
    }
    until("all are accepted", || world.gateway.metrics().admission.waiting.load(Relaxed) == 10)
        .await;
    let mut honest = world.tcp().await;
    assert!(hung_up(&mut idle[0]).await);
    world.enter(&mut honest).await;
    assert_eq!(
        (refused(&world, RefusalReason::Evicted), refused(&world, RefusalReason::Full)),
        (1, 0)
    );
}

#[actix_rt::test]
async fn the_limit_of_an_address_does_not_affect_other_addresses() {
    let limits = AddressLimits { connections: 2, ..AddressLimits::default() };
    let world = World::with(config(limits), Flood::No).await;
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let mut client = client(&world, 2).await;
        world.enter(&mut client).await;
        sessions.push(client);
    }
    let mut third = client(&world, 2).await;
    let Said::Msg(ServerMsg::Closing(closing)) = third.receive().await else {
        panic!("the connection was accepted")
    };
    assert_eq!(closing.code, CloseCode::Overload);
    assert!(
        closing.detail.contains("from your address; at most 2 are allowed"),
        "{}",
        closing.detail
    );
    world.enter(&mut client(&world, 3).await).await;
    // A client that leaves makes room.
    drop(sessions);
    until("both are gone", || world.gateway.metrics().connections_open.load(Relaxed) == 0).await;
    world.enter(&mut client(&world, 2).await).await;
}

#[actix_rt::test]
async fn an_address_with_failing_tokens_is_blocked() {
    let limits = AddressLimits { failed_tokens: 3, ..AddressLimits::default() };
    let world = World::with(config(limits), Flood::No).await;
    let mut friend = client(&world, 2).await;
    world.enter(&mut friend).await;
    for _ in 0..3 {
        let mut guess = client(&world, 2).await;
        guess
            .say(Hello { version: PROTOCOL_VERSION, token: "guess".into(), crowd: false }.into())
            .await;
        assert_eq!(guess.closed().await, u16::from(CloseCode::Token));
    }
    let mut blocked = client(&world, 2).await;
    assert_eq!(blocked.closed().await, u16::from(CloseCode::Overload));
    assert_eq!(refused(&world, RefusalReason::Blocked), 1);
    assert_eq!(world.gateway.metrics().admission.tokens_failed.load(Relaxed), 3);
    // Other addresses and existing sessions are not affected.
    world.enter(&mut client(&world, 3).await).await;
    super::pong(&mut friend, 9).await;
}

#[actix_rt::test]
async fn only_a_listed_proxy_names_the_client() {
    let limits = AddressLimits { connections: 1, ..AddressLimits::default() };
    let proxies = vec!["127.0.0.2/32".parse().unwrap()];
    let world = World::with(GatewayConfig { proxies, ..config(limits) }, Flood::No).await;
    let named = |client: &str| {
        let client = SocketAddr::new(client.parse::<IpAddr>().unwrap(), 4_000);
        let mut header = Vec::new();
        let address = ProxiedAddress::stream(client, client);
        ProxyHeader::with_address(address).encode_v2(&mut header).unwrap();
        header
    };
    let by_proxy = async |client: &str| {
        let mut socket = from([127, 0, 0, 2], tcp(&world)).await;
        socket.write_all(&named(client)).await.unwrap();
        Client::Tcp(socket)
    };
    let (mut one, mut two) = (by_proxy("203.0.113.1").await, by_proxy("2001:db8::1").await);
    world.enter(&mut one).await;
    world.enter(&mut two).await;
    // Each client counts by itself, not as the proxy.
    let mut again = by_proxy("203.0.113.1").await;
    assert_eq!(again.closed().await, u16::from(CloseCode::Overload));
    let mut same = by_proxy("2001:db8::ffff").await;
    assert_eq!(same.closed().await, u16::from(CloseCode::Overload));
    // A listed proxy must name the client; the same header from any other address is ignored.
    let mut bare = from([127, 0, 0, 2], tcp(&world)).await;
    bare.write_all(&[0; 16]).await.unwrap();
    assert!(hung_up(&mut bare).await);
    assert_eq!(refused(&world, RefusalReason::Proxy), 1);
    let mut liar = from([127, 0, 0, 3], tcp(&world)).await;
    liar.write_all(&named("203.0.113.9")).await.unwrap();
    assert_ne!(Client::Tcp(liar).closed().await, u16::from(CloseCode::Overload));
}

#[actix_rt::test]
async fn a_request_that_is_no_websocket_gets_an_explanation() {
    let world = World::new().await;
    let ws = world.gateway.ws_addr().unwrap();
    for request in [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\n\r\n",
    ] {
        let answer = answer(ws, request).await;
        assert!(answer.starts_with("HTTP/1.1 426 Upgrade Required\r\n"), "{answer}");
        assert!(answer.contains("\r\nupgrade: websocket\r\n"), "{answer}");
    }
    let long = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(9_000));
    assert!(answer(ws, &long).await.starts_with("HTTP/1.1 431 "));
    assert!(answer(ws, "\x16\x03\x01 nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
    world.enter(&mut world.ws().await).await;
}

#[actix_rt::test]
async fn pages_of_other_origins_may_not_connect() {
    let origins = vec!["https://game.example".to_owned()];
    let config = GatewayConfig { origins, ..GatewayConfig::default() };
    let world = World::with(config, Flood::No).await;
    let ws = world.gateway.ws_addr().unwrap();
    let of = async |origin: &str| {
        let request = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{origin}\r\n"
        );
        answer(ws, &request).await[..12].to_owned()
    };
    assert_eq!(of("Origin: https://game.example\r\n").await, "HTTP/1.1 101");
    assert_eq!(of("Origin: https://evil.example\r\n").await, "HTTP/1.1 403");
    assert_eq!(of("Origin: https://game.example.evil\r\n").await, "HTTP/1.1 403");
    assert_eq!(of("Origin: null\r\n").await, "HTTP/1.1 403");
    // Programs other than browsers send no origin.
    assert_eq!(of("").await, "HTTP/1.1 101");
}
