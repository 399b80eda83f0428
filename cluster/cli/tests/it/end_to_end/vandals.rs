//! Clients that send garbage beside honest players: the honest players are not affected.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use purview::scene::{Plane, Pos, Seq};
use purview::wire::client::{Act, ClientMsg, Hello, Move, Teleport};
use purview::wire::{MAX_CLIENT_FRAME, PROTOCOL_VERSION};
use tokio_tungstenite::tungstenite::{self, Message};

use super::process::{Served, assert_clean, run_lab};

/// A connection over either transport.
struct Way {
    ws: String,
    tcp: String,
    token: String,
}

impl Way {
    fn tcp(&self) -> Option<TcpStream> {
        let stream = TcpStream::connect(self.tcp.trim_start_matches("tcp://")).ok()?;
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        Some(stream)
    }

    /// Sends messages over WebSocket, as long as the server accepts them.
    fn ws(&self, messages: impl IntoIterator<Item = Message>) {
        let Ok(stream) = TcpStream::connect(self.ws[5..].trim_end_matches('/')) else { return };
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        let Ok((mut socket, _)) = tungstenite::client(&self.ws, stream) else { return };
        for message in messages {
            if socket.send(message).is_err() {
                break;
            }
        }
        // Until the server closes the connection, with a time limit.
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(300) && socket.read().is_ok() {}
    }

    fn hello(&self) -> ClientMsg {
        Hello { version: PROTOCOL_VERSION, token: self.token.clone(), crowd: false }.into()
    }

    fn raw(&self, bytes: &[u8]) {
        let Some(mut stream) = self.tcp() else { return };
        if stream.write_all(bytes).is_ok() {
            // Any answer, or none, is fine.
            let _received = stream.read(&mut [0; 256]);
        }
    }
}

fn join() -> ClientMsg {
    purview_client::join("meadow").into()
}

fn framed(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

fn binary(msg: ClientMsg) -> Message {
    Message::binary(msg.encode())
}

/// One kind of abuse; `n` chooses it.
fn misbehave(way: &Way, n: u64) {
    let noise: Vec<u8> = (0..200_u64).map(|i| (i * n * 31 + n) as u8).collect();
    let pos = Pos::ground(100, 100);
    let step = |seq| binary(Move { seq: Seq(seq), pos }.into());
    match n % 14 {
        0 => way.ws([Message::binary(noise)]),
        1 => way.ws([binary(way.hello()), Message::binary(noise)]),
        2 => way.ws([Message::text("let me in")]),
        3 => way.ws([Message::binary(vec![0xc1; MAX_CLIENT_FRAME + 1])]),
        // Too early: without hello and join.
        4 => way.ws([binary(join())]),
        5 => way.ws([binary(way.hello()), step(1)]),
        // A flood of legal inputs, and one of actions.
        6 => way.ws([binary(way.hello()), binary(join())].into_iter().chain((1..2_000).map(step))),
        7 => way.ws([binary(way.hello()), binary(join())].into_iter().chain((1..500).map(|seq| {
            binary(Act { seq: Seq(seq), payload: vec![7; 1_024].into(), aim: None }.into())
        }))),
        // Out of order, out of the map, to an unknown plane and to an unknown scene.
        8 => way.ws([binary(way.hello()), binary(join()), step(9), step(2), step(u32::MAX)]),
        9 => {
            let pos = Pos { x: i32::MIN, y: i32::MAX, z: i32::MAX };
            let teleport = |seq, scene: Option<&str>, plane| {
                let scene = scene.map(str::to_owned);
                binary(Teleport { seq: Seq(seq), scene, plane: Some(Plane(plane)), pos }.into())
            };
            way.ws([
                binary(way.hello()),
                binary(join()),
                teleport(1, None, i32::MIN),
                teleport(2, Some("moon"), 0),
                teleport(3, None, i32::MAX),
            ]);
        }
        10 => way.raw(&noise),
        11 => way.raw(&u32::MAX.to_be_bytes()),
        // Half a message, followed by silence.
        12 => way.raw(&framed(&way.hello().encode())[..12]),
        _ => way.raw(&[framed(&way.hello().encode()), framed(&join().encode())].concat()),
    }
}

#[test]
fn clients_that_send_garbage_affect_no_other_client() {
    let server = Served::start(&[]);
    let (ws, tcp, token) = (server.ws.clone(), server.tcp.clone(), server.token.clone());
    let way = Arc::new(Way { ws, tcp, token });
    let (over, attacks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let vandals: Vec<_> = (0..4)
        .map(|_| {
            let (way, over, attacks) = (way.clone(), over.clone(), attacks.clone());
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    misbehave(&way, attacks.fetch_add(1, Ordering::Relaxed));
                    std::thread::sleep(Duration::from_millis(10));
                }
            })
        })
        .collect();
    let args = ["load", "walk", "--connect", &server.ws, "--count", "20", "--for", "8s", "--json"];
    let done = run_lab(&args);
    over.store(true, Ordering::Relaxed);
    for vandal in vandals {
        vandal.join().unwrap();
    }
    let report = assert_clean(&done);
    assert_eq!(report["players"], 20);
    let attacks = attacks.load(Ordering::Relaxed);
    assert!(attacks >= 28, "each vandal's attack was made at least twice, not {attacks} in all");
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(0), "the server shuts down");
}
