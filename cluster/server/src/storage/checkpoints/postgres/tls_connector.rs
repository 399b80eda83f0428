//! TLS for connections to PostgreSQL, with the same rustls as for peers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::{BoxFuture, FutureExt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::tls::{Tls, Untrusted};

/// Makes encrypted connections with certificates on both sides, if there are any.
#[derive(Clone)]
pub struct Secure(Option<Tls>);

impl Secure {
    pub fn new(tls: Option<&Tls>) -> Secure {
        Secure(tls.cloned())
    }

    pub fn is_there(&self) -> bool {
        self.0.is_some()
    }
}

impl MakeTlsConnect<Socket> for Secure {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = Untrusted;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, Untrusted> {
        // Asked for plain connections, too, whose host needs no name.
        let name = ServerName::try_from(domain.to_owned());
        let both = self.0.as_ref().zip(name.ok());
        let made = both.map(|(tls, name)| (tls.database().into(), name));
        Ok(Handshake(made.ok_or_else(|| Untrusted::Name(domain.into()))))
    }
}

/// A TLS handshake that may begin; otherwise why not.
pub struct Handshake(Result<(TlsConnector, ServerName<'static>), Untrusted>);

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = Untrusted;
    type Future = BoxFuture<'static, Result<Encrypted, Untrusted>>;

    fn connect(self, stream: Socket) -> Self::Future {
        let shaken = async move {
            let (connector, name) = self.0?;
            connector.connect(name, stream).await.map(Encrypted).map_err(|e| (&e).into())
        };
        shaken.boxed()
    }
}

pub struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    /// No channel binding: both sides show certificates, so there is no man in the middle.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
