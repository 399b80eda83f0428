//! Connections of clients: TCP, TLS, or a Unix socket of this machine.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use crate::tls::server::ServerTls;

/// How long a client may take for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Most handshakes at the same time; further connections wait.
const HANDSHAKES: usize = 256;

/// Most accepted connections that wait to be served.
const QUEUE: usize = 128;

/// Pause after a failed accept, for example when file descriptors ran out.
const AGAIN: Duration = Duration::from_millis(100);

/// A connection with a client.
#[derive(Debug)]
pub enum Connection {
    /// Plain text.
    Tcp(TcpStream),
    /// Encrypted.
    Tls(Box<TlsStream<TcpStream>>),
    /// On this machine.
    Unix(UnixStream),
}

/// Accepted connections.
pub type Accepted = mpsc::Sender<Connection>;

/// A queue of accepted connections, and the stream that serves them.
pub fn connections() -> (Accepted, impl Stream<Item = io::Result<Connection>>) {
    let (accepted, mut queue) = mpsc::channel(QUEUE);
    (accepted, futures::stream::poll_fn(move |cx| queue.poll_recv(cx).map(|c| c.map(Ok))))
}

/// Accepts connections until nothing takes them any more.
pub async fn accept_tcp(listener: TcpListener, tls: Option<ServerTls>, accepted: Accepted) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES));
    while let Some(stream) = next(&accepted, || listener.accept()).await {
        let (stream, from) = stream;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, %from, "a client closed its connection at once");
            continue;
        }
        let Some(tls) = tls.clone() else {
            drop(accepted.send(Connection::Tcp(stream)).await);
            continue;
        };
        // The semaphore is never closed.
        let Ok(turn) = handshakes.clone().acquire_owned().await else { return };
        let accepted = accepted.clone();
        tokio::spawn(async move {
            let handshake = TlsAcceptor::from(tls.config()).accept(stream);
            match tokio::time::timeout(HANDSHAKE, handshake).await {
                // An error means that the service has stopped.
                Ok(Ok(stream)) => drop(accepted.send(Connection::Tls(Box::new(stream))).await),
                Ok(Err(error)) => tracing::debug!(%from, %error, "a TLS handshake failed"),
                Err(_) => tracing::debug!(%from, "a TLS handshake took too long"),
            }
            drop(turn);
        });
    }
}

/// The same for a Unix socket.
pub async fn accept_unix(listener: UnixSocket, accepted: Accepted) {
    while let Some((stream, _)) = next(&accepted, || listener.listener.accept()).await {
        drop(accepted.send(Connection::Unix(stream)).await);
    }
}

/// The next connection; `None`: nothing takes connections any more.
async fn next<T, F: Future<Output = io::Result<T>>>(
    accepted: &Accepted,
    accept: impl Fn() -> F,
) -> Option<T> {
    loop {
        let connection = tokio::select! {
            connection = accept() => connection,
            () = accepted.closed() => return None,
        };
        match connection {
            Ok(connection) => return Some(connection),
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// A Unix socket. Its file goes with it.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl UnixSocket {
    /// Listens. A socket that a dead process left behind is replaced. Only the user of this process
    /// can connect.
    ///
    /// # Errors
    /// Something else is at the path, or a process listens there.
    pub fn bind(path: &Path) -> io::Result<UnixSocket> {
        match std::fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => {
                if std::os::unix::net::UnixStream::connect(path).is_ok() {
                    return Err(io::Error::new(
                        io::ErrorKind::AddrInUse,
                        "a process listens there",
                    ));
                }
                std::fs::remove_file(path)?;
            }
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "not a socket")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(UnixSocket { listener, path: path.into() })
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(path = %self.path.display(), %error, "a socket could not be removed");
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Connection::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            Connection::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Connection::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Connection::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
            Connection::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Connection::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Connection::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Connection::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Connection::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Connection::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Connection::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Connection::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Connection::Tcp(stream) => stream.is_write_vectored(),
            Connection::Tls(stream) => stream.is_write_vectored(),
            Connection::Unix(stream) => stream.is_write_vectored(),
        }
    }
}
