//! Where clients connect: TCP, TLS, or a Unix socket of this machine.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_rustls::TlsAcceptor;

use crate::admission::{AdmissionControl, Counters};
use crate::socket::{self, Accepted, Connection, HANDSHAKE, Socket};
use crate::tls::server::ServerTls;

/// Most connections with a login, which have made a request with the token.
const SESSIONS: u64 = 1_024;

/// Most connections without a login. One more makes the oldest one of the busiest source end.
const WAITING: usize = 256;

/// Most connections of one address, and of these without a login.
const OF_ADDRESS: (u32, u32) = (256, 64);

/// Accepts connections until nothing takes them any more.
pub async fn accept_tcp(
    listener: TcpListener,
    tls: Option<ServerTls>,
    accepted: Accepted<()>,
    counters: Arc<Counters>,
) {
    let admission = AdmissionControl::of_listener(SESSIONS, WAITING, OF_ADDRESS, counters);
    socket::accept(listener, admission, accepted, move |stream, from| {
        let tls = tls.clone();
        async move {
            let socket = greet(stream, tls).await;
            let refused = |error| tracing::debug!(%from, %error, "a TLS handshake failed");
            Some(Connection::new(socket.map_err(refused).ok()?, ()))
        }
    })
    .await;
}

async fn greet(stream: TcpStream, tls: Option<ServerTls>) -> io::Result<Socket> {
    let Some(tls) = tls else { return Ok(Socket::Tcp(stream)) };
    let handshake = TlsAcceptor::from(tls.config()).accept(stream);
    let stream = tokio::time::timeout(HANDSHAKE, handshake).await??;
    Ok(Socket::Tls(Box::new(stream.into())))
}

pub async fn accept_unix(listener: UnixSocket, accepted: Accepted<()>) {
    let nothing = || {};
    while let Some((stream, _)) =
        socket::next(&accepted, || listener.listener.accept(), nothing).await
    {
        // An error means that the service has stopped.
        drop(accepted.send(Connection::new(Socket::Unix(stream), ())).await);
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
