//! A client of the service: connects, and pairs requests with responses. Tools and tests use it; a
//! game in Rust may.

use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::Uri;
use hyper_util::rt::TokioIo;
use prost::Message;
use purview_client::{Trust, TrustError};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_util::either::Either;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};
use tower_service::Service;

use super::proto::interest_client::InterestClient;
use super::proto::{
    Acknowledgement, Batch, Change, Close, MOST_RESPONSE_BYTES, Open, Opened, Request, Response,
    Update, request, response,
};

/// How long a connection attempt may take.
const CONNECT: Duration = Duration::from_secs(5);

/// Flow-control windows of a stream and of a connection, bytes.
const WINDOWS: (u32, u32) = (4 << 20, 8 << 20);

/// Requests that wait to be sent.
const QUEUE: usize = 8;

/// Why the service cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Not an address of the service.
    #[error("{0:?} is no address: write http://host:port, https://host:port or unix:/path")]
    Address(String),
    /// The token cannot stand in metadata.
    #[error("the token has characters that metadata cannot have")]
    Token,
    /// There is nothing to judge the certificate of the service by.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// There is no connection.
    #[error("{address} cannot be reached: {source}")]
    Connect {
        /// The address.
        address: String,
        /// What went wrong.
        source: tonic::transport::Error,
    },
    /// The service has ended the stream.
    #[error("the service has ended the stream: {}: {}", .0.code(), .0.message())]
    Status(Box<Status>),
    /// The service has closed the stream, or does not keep to the protocol.
    #[error("the stream has ended before {0}")]
    Ended(&'static str),
}

impl From<Status> for ClientError {
    fn from(status: Status) -> ClientError {
        ClientError::Status(Box::new(status))
    }
}

/// Where a service is, and how to be let in.
#[derive(Debug, Clone, Default)]
pub struct Address {
    /// `http://host:port`, `https://host:port` or `unix:/path`.
    pub url: String,
    /// The token, if the service asks for one.
    pub token: Option<String>,
    /// The trusted authorities, for `https://`.
    pub trust: Trust,
}

#[derive(Debug, Clone)]
enum Target {
    Plain(String),
    Tls(String, ServerName<'static>, Arc<ClientConfig>),
    Unix(PathBuf),
}

impl Address {
    /// Without a token, and with the authorities of the machine.
    pub fn new(url: &str) -> Address {
        Address { url: url.to_owned(), token: None, trust: Trust::platform() }
    }

    fn target(&self) -> Result<Target, ClientError> {
        let bad = || ClientError::Address(self.url.clone());
        if let Some(path) = self.url.strip_prefix("unix:") {
            return Ok(Target::Unix(path.into()));
        }
        let uri: Uri = self.url.parse().map_err(|_| bad())?;
        let authority = uri.authority().filter(|a| a.port().is_some()).ok_or_else(bad)?;
        match uri.scheme_str() {
            Some("http") => Ok(Target::Plain(authority.to_string())),
            Some("https") => {
                let host = authority.host().trim_start_matches('[').trim_end_matches(']');
                let name = ServerName::try_from(host.to_owned()).map_err(|_| bad())?;
                let mut config = (*self.trust.config()?).clone();
                config.alpn_protocols = vec![b"h2".to_vec()];
                Ok(Target::Tls(authority.to_string(), name, Arc::new(config)))
            }
            _ => Err(bad()),
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn channel(&self) -> Result<Channel, ClientError> {
        let endpoint = Endpoint::from_static("http://interest")
            .connect_timeout(CONNECT)
            .initial_stream_window_size(WINDOWS.0)
            .initial_connection_window_size(WINDOWS.1);
        let connected = endpoint.connect_with_connector(Connector(self.target()?)).await;
        connected.map_err(|source| ClientError::Connect { address: self.url.clone(), source })
    }

    /// The value of the metadata `authorization`.
    ///
    /// # Errors
    /// The token has characters that metadata cannot have.
    pub fn authorization(&self) -> Result<Option<MetadataValue<Ascii>>, ClientError> {
        let value = |token: &String| format!("Bearer {token}").parse();
        self.token.as_ref().map(value).transpose().map_err(|_| ClientError::Token)
    }

    /// Begins a session.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn begin(&self) -> Result<Stream, ClientError> {
        self.open(Open { acknowledges: true, ..Open::default() }).await
    }

    /// Resumes a session of which the client has the updates up to `received`.
    ///
    /// # Errors
    /// [`ClientError`]. That the session is gone is no error: see [`Opened::resumed`].
    pub async fn resume(&self, session: Bytes, received: u64) -> Result<Stream, ClientError> {
        self.open(Open { session, received, acknowledges: true, lost: false }).await
    }

    /// Goes on with a session of which the client has nothing but the name.
    ///
    /// # Errors
    /// As [`Address::resume`].
    pub async fn recover(&self, session: Bytes) -> Result<Stream, ClientError> {
        self.open(Open { session, received: 0, acknowledges: true, lost: true }).await
    }

    /// Opens a stream by any request.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn open(&self, open: Open) -> Result<Stream, ClientError> {
        Stream::open(self, open).await
    }
}

#[derive(Debug, Clone)]
struct Connector(Target);

impl Service<Uri> for Connector {
    type Response =
        TokioIo<Either<Either<TcpStream, tokio_rustls::client::TlsStream<TcpStream>>, UnixStream>>;
    type Error = std::io::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let target = self.0.clone();
        Box::pin(async move {
            let stream = match target {
                Target::Unix(path) => Either::Right(UnixStream::connect(path).await?),
                Target::Plain(address) => Either::Left(Either::Left(tcp(&address).await?)),
                Target::Tls(address, name, config) => {
                    let stream = tcp(&address).await?;
                    let stream = TlsConnector::from(config).connect(name, stream).await?;
                    Either::Left(Either::Right(stream))
                }
            };
            Ok(TokioIo::new(stream))
        })
    }
}

async fn tcp(address: &str) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn authorized<T>(
    mut request: tonic::Request<T>,
    authorization: Option<&MetadataValue<Ascii>>,
) -> tonic::Request<T> {
    if let Some(value) = authorization {
        request.metadata_mut().insert("authorization", value.clone());
    }
    request
}

/// A stream with its session. Dropping it breaks the stream: the session can be resumed.
#[derive(Debug)]
pub struct Stream {
    /// What the service said first.
    pub opened: Opened,
    /// The number of the last batch that was sent.
    pub batches: u64,
    /// The number of the last update that was returned, and bytes of updates that are not
    /// acknowledged, if the client does so.
    received: u64,
    unacknowledged: Option<u64>,
    client: InterestClient<Channel>,
    authorization: Option<MetadataValue<Ascii>>,
    requests: mpsc::Sender<Request>,
    responses: Streaming<Response>,
}

impl Stream {
    async fn open(address: &Address, open: Open) -> Result<Stream, ClientError> {
        let (requests, mut queue) = mpsc::channel(QUEUE);
        let mut client = InterestClient::new(address.channel().await?)
            .max_decoding_message_size(MOST_RESPONSE_BYTES);
        let queue = futures::stream::poll_fn(move |cx| queue.poll_recv(cx));
        let authorization = address.authorization()?;
        let request = authorized(tonic::Request::new(queue), authorization.as_ref());
        let (received, unacknowledged) = (open.received, open.acknowledges.then_some(0));
        let message = Some(request::Message::Open(open));
        // The queue is empty.
        drop(requests.try_send(Request { message }));
        let mut responses = client.world(request).await?.into_inner();
        let first = responses.message().await?.and_then(|response| response.message);
        match first {
            Some(response::Message::Opened(opened)) => {
                let batches = opened.applied;
                Ok(Stream {
                    opened,
                    batches,
                    received,
                    unacknowledged,
                    client,
                    authorization,
                    requests,
                    responses,
                })
            }
            _ => Err(ClientError::Ended("it was open")),
        }
    }

    /// Sends changes as the next batch, and returns its number. Waits while the service does not
    /// read.
    ///
    /// # Errors
    /// The stream has ended; [`Stream::update`] says why.
    pub async fn send(&mut self, changes: Vec<Change>) -> Result<u64, ClientError> {
        self.batches += 1;
        let batch = Batch { sequence: self.batches, changes, received: 0 };
        self.send_raw(Request { message: Some(request::Message::Batch(batch)) }).await?;
        Ok(self.batches)
    }

    /// Sends any request.
    ///
    /// # Errors
    /// As [`Stream::send`].
    pub async fn send_raw(&self, request: Request) -> Result<(), ClientError> {
        self.requests.send(request).await.map_err(|_| ClientError::Ended("all was sent"))
    }

    /// The sender of requests, for a task that sends while another one reads.
    pub fn sender(&self) -> mpsc::Sender<Request> {
        self.requests.clone()
    }

    /// The next update; `None`: the service has closed the stream. The caller has applied the updates
    /// before it: they are acknowledged now and then.
    ///
    /// # Errors
    /// The stream is broken, or has ended with an error.
    pub async fn update(&mut self) -> Result<Option<Update>, ClientError> {
        if self.unacknowledged.is_some_and(|bytes| bytes >= self.opened.window_bytes / 2) {
            self.acknowledge(self.received).await?;
        }
        match self.responses.message().await?.and_then(|response| response.message) {
            Some(response::Message::Update(update)) => {
                self.received = update.sequence;
                if let Some(bytes) = &mut self.unacknowledged {
                    *bytes += update.encoded_len() as u64;
                }
                Ok(Some(update))
            }
            Some(response::Message::Opened(_)) => Err(ClientError::Ended("a second opening")),
            None => Ok(None),
        }
    }

    /// Tells the service that updates were applied.
    ///
    /// # Errors
    /// The session is gone, or the update was not sent.
    pub async fn acknowledge(&mut self, received: u64) -> Result<(), ClientError> {
        let session = self.opened.session.clone();
        let request = tonic::Request::new(Acknowledgement { session, received });
        let request = authorized(request, self.authorization.as_ref());
        self.client.acknowledge(request).await?;
        self.unacknowledged = self.unacknowledged.map(|_| 0);
        Ok(())
    }

    /// Ends the session. What is left to read are its last updates.
    ///
    /// # Errors
    /// As [`Stream::send`].
    pub async fn close(self) -> Result<Streaming<Response>, ClientError> {
        self.send_raw(Request { message: Some(request::Message::Close(Close {})) }).await?;
        Ok(self.responses)
    }

    /// Closes this side of the stream. The session can be resumed.
    pub fn half_close(self) -> Streaming<Response> {
        self.responses
    }
}
