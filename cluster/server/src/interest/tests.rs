//! The service's port under callers that say nothing, over real sockets.

use std::io::ErrorKind;

use purview_client::Trust;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::client::Address;
use super::*;
use crate::{descriptors, tls};

/// Far longer than a connection may take until its login, and than any answer takes.
const PATIENCE: Duration = Duration::from_secs(30);

const MANY: Most = Most { session: 1 << 20, all: 1 << 20 };

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn settings(folder: &std::path::Path) -> Settings {
    let token_file = folder.join("token");
    std::fs::write(&token_file, TOKEN).unwrap();
    Settings {
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        unix: None,
        metrics: None,
        tls: None,
        token_file: Some(token_file),
        insecure: false,
        limits: Limits {
            sessions: 100,
            entities: 1_000,
            pairs: MANY,
            events: MANY,
            bytes: Most { session: 1 << 30, all: 1 << 30 },
            keep_bytes: 1 << 20,
            buffer_bytes: 1 << 30,
            resume_within: PATIENCE,
            threads: 1,
        },
    }
}

async fn silent(addr: SocketAddr, number: usize) -> Vec<TcpStream> {
    descriptors::raise();
    let mut all = Vec::new();
    for _ in 0..number {
        all.push(TcpStream::connect(addr).await.unwrap());
    }
    all
}

/// Waits for the end of a connection, whatever the service says before.
async fn hung_up(socket: &mut TcpStream) {
    let mut said = [0; 1_024];
    loop {
        match socket.read(&mut said).await {
            Ok(0) => return,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return,
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// A client is let in although so many others have connected.
async fn let_in(address: &Address) -> client::Stream {
    let begun = timeout(PATIENCE / 3, address.begin()).await;
    begun.expect("an honest client is let in at once").expect("a session")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_a_login_give_way_and_end_and_those_with_one_stay() {
    let folder = tempfile::tempdir().unwrap();
    let service = start(&settings(folder.path())).await.unwrap();
    let addr = service.ready().listen.unwrap();
    let url = format!("http://{addr}");
    let honest = Address { token: Some(TOKEN.into()), ..Address::new(&url) };
    let mut first = let_in(&honest).await;
    let mut idle = silent(addr, 400).await;
    let mut second = let_in(&honest).await;
    // A call without the token is no login.
    let stranger = Address::new(&url);
    let denied = stranger.begin().await.unwrap_err().to_string();
    assert!(denied.contains("authorization"), "{denied}");
    let all_end = async {
        for socket in &mut idle {
            hung_up(socket).await;
        }
    };
    timeout(PATIENCE, all_end).await.expect("silent connections end");
    for stream in [&mut first, &mut second] {
        let ended = timeout(Duration::from_millis(200), stream.update()).await;
        assert!(ended.is_err(), "a connection with a login stays: {ended:?}");
    }
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_that_are_never_made_keep_out_no_client() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("tls");
    tls::make::make(&made, &["localhost".into()], 1).unwrap();
    let [certificate, key] = ["node.pem", "node.key"].map(|file| made.join(file));
    let tls = Some(CertificateSettings { certificate, key });
    let service = start(&Settings { tls, ..settings(folder.path()) }).await.unwrap();
    let addr = service.ready().listen.unwrap();
    let trust = Trust::file(&made.join("ca.pem")).unwrap();
    let url = format!("https://localhost:{}", addr.port());
    let honest = Address { url, token: Some(TOKEN.into()), trust };
    // Far more than there were places for handshakes, each for five seconds.
    let idle = silent(addr, 1_500).await;
    let _stream = let_in(&honest).await;
    drop(idle);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_pings_and_never_reads_is_no_login() {
    use tokio::io::AsyncWriteExt;
    let folder = tempfile::tempdir().unwrap();
    let service = start(&settings(folder.path())).await.unwrap();
    let addr = service.ready().listen.unwrap();
    let mut socket = TcpStream::connect(addr).await.unwrap();
    socket.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    // HTTP/2: pings, which are answered.
    let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8].repeat(1_000);
    let flood = async {
        while socket.write_all(&ping).await.is_ok() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, flood).await.expect("the connection ends");
    service.stop().await;
}
