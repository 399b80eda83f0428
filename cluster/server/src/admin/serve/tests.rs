//! The console's port under callers that mean harm, over real sockets.

use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::super::slow_reader::STALL_LIMIT;
use super::*;

/// Far longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server with a health check and a page of 1 MiB.
async fn started() -> (SocketAddr, oneshot::Sender<()>, JoinHandle<()>) {
    let page = bytes::Bytes::from(vec![b'x'; 1 << 20]);
    let router = Router::new()
        .route("/alive", get(|| async { "alive\n" }))
        .route("/page", get(move || std::future::ready(page.clone())));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (addr, (stop, stopped)) = (listener.local_addr().unwrap(), oneshot::channel());
    let serving = tokio::spawn(serve((listener, None), router, async { drop(stopped.await) }));
    (addr, stop, serving)
}

async fn status(addr: SocketAddr, path: &str) -> String {
    let asked = async {
        let mut stream = TcpStream::connect(addr).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = vec![0; 12];
        stream.read_exact(&mut answer).await?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer[9..]).into_owned())
    };
    match timeout(PATIENCE, asked).await {
        Ok(answer) => answer.unwrap_or_else(|error| error.to_string()),
        Err(_) => format!("no answer within {PATIENCE:?}"),
    }
}

/// Connections that ask for many pages and read nothing.
async fn slow_readers(addr: SocketAddr, number: usize, path: &str) -> Vec<TcpStream> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").repeat(64);
    let mut readers = Vec::new();
    for _ in 0..number {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        readers.push(stream);
    }
    readers
}

#[tokio::test]
async fn callers_that_never_read_keep_out_no_health_check_and_end() {
    let (addr, _stop, _serving) = started().await;
    let readers = slow_readers(addr, 300, "/page").await;
    for _ in 0..10 {
        assert_eq!(status(addr, "/alive").await, "200");
    }
    // Their places are free again when they have read nothing for too long.
    let until = Instant::now() + STALL_LIMIT * 6;
    while status(addr, "/page").await != "200" {
        assert!(Instant::now() < until, "slow readers keep their places");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    drop(readers);
}

#[tokio::test]
async fn callers_that_only_connect_or_only_check_health_keep_out_nobody() {
    let (addr, _stop, _serving) = started().await;
    let mut idle = slow_readers(addr, 300, "/alive").await;
    for _ in 0..600 {
        idle.push(TcpStream::connect(addr).await.unwrap());
    }
    for _ in 0..10 {
        assert_eq!(status(addr, "/alive").await, "200");
        assert_eq!(status(addr, "/page").await, "200");
    }
}

#[tokio::test]
async fn a_server_that_stops_waits_for_open_connections_but_not_for_long() {
    let (addr, stop, serving) = started().await;
    let _readers = slow_readers(addr, 3, "/page").await;
    assert_eq!(status(addr, "/alive").await, "200");
    drop(stop);
    timeout(CONSOLE + PATIENCE, serving).await.unwrap().unwrap();
    assert!(TcpStream::connect(addr).await.is_err());
}
