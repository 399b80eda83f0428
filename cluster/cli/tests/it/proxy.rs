//! A TCP proxy that can stall, so that no bytes pass and neither side is told; that can break its connections; and that
//! can be slow.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A proxy for one address, until it is dropped.
pub struct Proxy {
    pub address: SocketAddr,
    state: watch::Sender<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    is_open: bool,
    /// How often all connections were broken.
    breaks: u32,
}

impl Proxy {
    /// Must be called on a runtime.
    pub fn to(target: SocketAddr) -> Proxy {
        Proxy::slow(target, usize::MAX)
    }

    /// The same; of what the target sends, so many bytes pass in a second.
    pub fn slow(target: SocketAddr, bytes_per_s: usize) -> Proxy {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let state = watch::Sender::new(State { is_open: true, breaks: 0 });
        let listener = TcpListener::from_std(listener).unwrap();
        tokio::spawn(serve(listener, target, state.subscribe(), bytes_per_s));
        Proxy { address, state }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn open(&self, is_open: bool) {
        self.state.send_modify(|state| state.is_open = is_open);
    }

    pub fn break_all(&self) {
        self.state.send_modify(|state| state.breaks += 1);
    }
}

async fn serve(
    listener: TcpListener,
    target: SocketAddr,
    state: watch::Receiver<State>,
    bytes_per_s: usize,
) {
    loop {
        let (mut end, passes) = (state.clone(), state.clone());
        let (near, _) = tokio::select! {
            accepted = listener.accept() => accepted.unwrap(),
            _ = end.wait_for(|_| false) => return,
        };
        let breaks = end.borrow().breaks;
        tokio::spawn(async move {
            tokio::select! {
                () = connect(near, target, passes, bytes_per_s) => {}
                _ = end.wait_for(|state| state.breaks != breaks) => {}
            }
        });
    }
}

async fn connect(
    near: TcpStream,
    target: SocketAddr,
    mut state: watch::Receiver<State>,
    bytes_per_s: usize,
) {
    if state.wait_for(|state| state.is_open).await.is_err() {
        return;
    }
    let Ok(far) = TcpStream::connect(target).await else { return };
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    let there = pass(near_in, far_out, state.clone(), usize::MAX);
    tokio::join!(there, pass(far_in, near_out, state, bytes_per_s));
}

/// Forwards bytes, unless the proxy stalls, until either side ends.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut state: watch::Receiver<State>,
    bytes_per_s: usize,
) {
    let mut bytes = vec![0; (64 << 10).min(bytes_per_s / 30)];
    loop {
        let Ok(count @ 1..) = from.read(&mut bytes).await else { return };
        if state.wait_for(|state| state.is_open).await.is_err() {
            return;
        }
        if bytes_per_s < usize::MAX {
            tokio::time::sleep(Duration::from_secs_f64(count as f64 / bytes_per_s as f64)).await;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
