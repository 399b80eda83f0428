//! The byte stream of a client's connection: plain TCP or TLS.

use std::io;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use crate::tls::server::ServerTls;

pub(super) type Socket = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Performs the TLS handshake if there is a certificate.
pub(super) async fn secure(socket: TcpStream, tls: Option<&ServerTls>) -> io::Result<Socket> {
    match tls {
        None => Ok(Either::Left(socket)),
        Some(tls) => {
            let accepted = TlsAcceptor::from(tls.config()).accept(socket).await?;
            Ok(Either::Right(Box::new(accepted)))
        }
    }
}
