//! A TCP proxy that can be cut: then no bytes pass, and neither side is told.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A proxy for one address.
pub struct Proxy {
    port: u16,
    open: Arc<watch::Sender<bool>>,
}

impl Proxy {
    /// Must be called on a runtime.
    pub fn start(url: &str) -> Proxy {
        let target = url.trim_start_matches("http://").to_owned();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let open = Arc::new(watch::Sender::new(true));
        tokio::spawn(serve(TcpListener::from_std(listener).unwrap(), target, open.subscribe()));
        Proxy { port, open }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn open(&self, open: bool) {
        self.open.send_replace(open);
    }
}

/// Ends with the proxy.
async fn serve(listener: TcpListener, target: String, open: watch::Receiver<bool>) {
    loop {
        let mut gone = open.clone();
        let (near, _) = tokio::select! {
            accepted = listener.accept() => accepted.unwrap(),
            _ = gone.wait_for(|_| false) => return,
        };
        let (target, mut open) = (target.clone(), open.clone());
        tokio::spawn(async move {
            if open.wait_for(|open| *open).await.is_err() {
                return;
            }
            let Ok(far) = TcpStream::connect(&target).await else { return };
            let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
            tokio::spawn(pass(near_in, far_out, open.clone()));
            pass(far_in, near_out, open).await;
        });
    }
}

/// Forwards bytes, unless the proxy is cut, until either side ends.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut open: watch::Receiver<bool>) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let Ok(count) = from.read(&mut bytes).await else { return };
        if open.wait_for(|open| *open).await.is_err() {
            return;
        }
        if count == 0 || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
