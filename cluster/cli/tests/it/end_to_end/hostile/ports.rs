//! Attackers of the other ports: the console's, and those of logic workers and of peers, which speak gRPC.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep, timeout};
use tonic::Request;

use super::Attacker;
use super::client::{connect, connect_small, until_closed};
use super::players::nested;
use crate::interest::support::Plain;

/// The beginning of a connection of HTTP/2, with empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";

fn one_of(all: &[SocketAddr], number: u32) -> SocketAddr {
    all[number as usize % all.len()]
}

/// Asks the console for much and reads nothing, until the server closes.
pub async fn slow_readers(a: Attacker) {
    // Half of them at one console.
    let number = if a.number.is_multiple_of(2) { 0 } else { a.number / 2 };
    let to = one_of(&a.targets.consoles, number);
    let Some(mut stream) = connect_small(a.source, to).await else { return a.refused() };
    a.done();
    let asked = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(50);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        match timeout(Duration::from_millis(500), stream.write_all(&asked)).await {
            Ok(Err(_)) => return a.refused(),
            // Nothing is read, so the answers and then the requests wait.
            Ok(Ok(())) | Err(_) => sleep(Duration::from_millis(200)).await,
        }
    }
}

/// Says nothing, or begins HTTP/2 byte by byte, or sends noise.
pub async fn silent_calls(a: Attacker) {
    let to = one_of(&a.targets.grpc, a.number);
    let Some(mut stream) = connect(a.source, to).await else { return a.refused() };
    a.done();
    let bytes: &[u8] = match a.number % 4 {
        0 => b"",
        1 => PREFACE,
        2 => b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 this is no HTTP/2 at all",
        _ => {
            for byte in PREFACE {
                if stream.write_all(&[*byte]).await.is_err() {
                    return a.refused();
                }
                sleep(Duration::from_millis(400)).await;
            }
            b""
        }
    };
    if until_closed(stream, bytes, Duration::from_secs(60)).await {
        a.refused();
    }
}

/// Calls without a right to: workers and peers that send nothing but malformed messages.
pub async fn calls(a: Attacker) {
    let to = one_of(&a.targets.grpc, a.number);
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{to}"));
    let endpoint = endpoint.expect("an address").local_address(Some(IpAddr::from(a.source)));
    let connected = timeout(Duration::from_secs(10), endpoint.connect()).await;
    let Ok(Ok(channel)) = connected else { return a.refused() };
    for method in ["/purview.Peers/Channel", "/purview.logic.v1.Logic/Attach"] {
        let mut grpc = tonic::client::Grpc::new(channel.clone());
        if grpc.ready().await.is_err() {
            return a.refused();
        }
        let said = match a.done() % 3 {
            0 => nested(60_000),
            1 => vec![0xff; 60_000],
            _ => [vec![0x0a, 0xff, 0xff, 0xff, 0x0f], vec![0x0a; 1_000]].concat(),
        };
        let frames = stream::iter(vec![Bytes::from(said); 3]);
        let call = grpc.streaming(Request::new(frames), method.parse().unwrap(), Plain);
        match timeout(Duration::from_secs(15), call).await {
            Ok(Ok(answer)) => {
                let mut answers = answer.into_inner();
                let end = async { while let Ok(Some(_)) = answers.message().await {} };
                if timeout(Duration::from_secs(15), end).await.is_ok() {
                    a.refused();
                }
            }
            Ok(Err(_)) => a.refused(),
            Err(_) => {}
        }
    }
}
