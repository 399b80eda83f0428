//! A connection to one etcd: requests with a login and by TLS, opened again by itself after a break.
//!
//! The certificates are those in use when a connection is opened, so that new files take effect
//! without a restart. The password is shown to etcd once; requests then carry the token that etcd
//! gave for it, until etcd no longer accepts the token.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::channel::mpsc;
use http::Uri;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status, Streaming};
use tower_service::Service;

use super::rpc::auth_client::AuthClient;
use super::rpc::kv_client::KvClient;
use super::rpc::lease_client::LeaseClient;
use super::rpc::watch_client::WatchClient;
use super::rpc::{
    AuthenticateRequest, DeleteRangeRequest, DeleteRangeResponse, LeaseGrantRequest,
    LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseRevokeRequest,
    LeaseRevokeResponse, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, RangeRequest,
    RangeResponse, TxnRequest, TxnResponse, WatchRequest, WatchResponse,
};
use crate::storage::password::Password;
use crate::tls::Tls;

/// How long opening a connection may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// How long a connection may be silent before it is probed, and how long a probe may take. Servers
/// close connections that probe more often than every 5 s.
const PROBE: (Duration, Duration) = (Duration::from_secs(6), Duration::from_secs(2));

/// Largest answer that is read, bytes: a snapshot of all keys of a cluster.
const ANSWER_MAX: usize = 64 << 20;

/// How many requests wait to be written on a stream.
const STREAM_QUEUE: usize = 8;

#[derive(Clone)]
pub struct Access {
    /// The name and the password of the login, where etcd wants one.
    pub user: Option<(String, Password)>,
    /// The certificates; `None`: plain text.
    pub tls: Option<Tls>,
}

/// A connection to one etcd. Clones share it.
#[derive(Clone)]
pub struct Client {
    channel: Channel,
    login: Option<Arc<Login>>,
}

struct Login {
    name: String,
    password: Password,
    token: Mutex<Option<MetadataValue<Ascii>>>,
}

impl Client {
    /// A connection to `endpoint`, `http://host:port` or `https://host:port`, which is opened by the
    /// first request. Its work is done on the runtime on which this is called.
    pub fn to(endpoint: &str, access: &Access) -> Result<Client, tonic::transport::Error> {
        // The connector speaks TLS itself, with certificates that may change.
        let plain = match endpoint.strip_prefix("https://") {
            Some(address) => format!("http://{address}"),
            None => endpoint.to_owned(),
        };
        let endpoint = Endpoint::from_shared(plain)?
            .connect_timeout(CONNECT_LIMIT)
            .http2_keep_alive_interval(PROBE.0)
            .keep_alive_timeout(PROBE.1)
            .keep_alive_while_idle(true);
        let channel = endpoint.connect_with_connector_lazy(Connector { tls: access.tls.clone() });
        let login = access
            .user
            .clone()
            .map(|(name, password)| Arc::new(Login { name, password, token: Mutex::new(None) }));
        Ok(Client { channel, login })
    }

    pub async fn range(&self, message: RangeRequest) -> Result<RangeResponse, Status> {
        self.unary(message, |channel, request| async move {
            KvClient::new(channel).max_decoding_message_size(ANSWER_MAX).range(request).await
        })
        .await
    }

    pub async fn delete(&self, message: DeleteRangeRequest) -> Result<DeleteRangeResponse, Status> {
        let call =
            |channel, request| async move { KvClient::new(channel).delete_range(request).await };
        self.unary(message, call).await
    }

    /// Compares keys, and changes or reads keys accordingly.
    pub async fn txn(&self, message: TxnRequest) -> Result<TxnResponse, Status> {
        let call = |channel, request| async move { KvClient::new(channel).txn(request).await };
        self.unary(message, call).await
    }

    pub async fn grant(&self, message: LeaseGrantRequest) -> Result<LeaseGrantResponse, Status> {
        let call =
            |channel, request| async move { LeaseClient::new(channel).lease_grant(request).await };
        self.unary(message, call).await
    }

    pub async fn revoke(&self, lease: i64) -> Result<LeaseRevokeResponse, Status> {
        let call =
            |channel, request| async move { LeaseClient::new(channel).lease_revoke(request).await };
        self.unary(LeaseRevokeRequest { id: lease }, call).await
    }

    /// Asks how long a lease still lives.
    pub async fn time_to_live(&self, lease: i64) -> Result<LeaseTimeToLiveResponse, Status> {
        let call = |channel, request| async move {
            LeaseClient::new(channel).lease_time_to_live(request).await
        };
        self.unary(LeaseTimeToLiveRequest { id: lease }, call).await
    }

    /// Opens a stream of keep-alives, which begins with `first`.
    pub async fn keep_alive_with(
        &self,
        first: LeaseKeepAliveRequest,
    ) -> Result<Stream<LeaseKeepAliveRequest, LeaseKeepAliveResponse>, Status> {
        let (requests, sent) = queue(first)?;
        let request = self.authorized(sent).await?;
        let answers = LeaseClient::new(self.channel.clone()).lease_keep_alive(request).await;
        Ok(Stream { requests, answers: self.noted(answers)?.into_inner() })
    }

    /// Opens a stream of changes, which begins with `first`.
    pub async fn watch(
        &self,
        first: WatchRequest,
    ) -> Result<Stream<WatchRequest, WatchResponse>, Status> {
        let (requests, sent) = queue(first)?;
        let request = self.authorized(sent).await?;
        let client = WatchClient::new(self.channel.clone());
        let answers = client.max_decoding_message_size(ANSWER_MAX).watch(request).await;
        Ok(Stream { requests, answers: self.noted(answers)?.into_inner() })
    }

    /// Makes one request; once more, with a new token, where etcd does not accept the token.
    async fn unary<M: Clone, R, F>(
        &self,
        message: M,
        call: impl Fn(Channel, Request<M>) -> F,
    ) -> Result<R, Status>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let request = self.authorized(message.clone()).await?;
        match self.noted(call(self.channel.clone(), request).await) {
            Err(status) if self.login.is_some() && is_bad_token(&status) => {
                let request = self.authorized(message).await?;
                self.noted(call(self.channel.clone(), request).await).map(Response::into_inner)
            }
            answered => answered.map(Response::into_inner),
        }
    }

    /// Forgets the token where etcd does not accept it.
    fn noted<R>(&self, answered: Result<R, Status>) -> Result<R, Status> {
        if let (Err(status), Some(login)) = (&answered, &self.login)
            && is_bad_token(status)
        {
            *login.token.lock() = None;
        }
        answered
    }

    /// A request that only an etcd with a leader answers, with the token of the login.
    async fn authorized<M>(&self, message: M) -> Result<Request<M>, Status> {
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        metadata.insert("hasleader", MetadataValue::from_static("true"));
        if let Some(login) = &self.login {
            metadata.insert("token", login.log_in(self.channel.clone()).await?);
        }
        Ok(request)
    }
}

impl Login {
    /// The token, a new one if there is none.
    async fn log_in(&self, channel: Channel) -> Result<MetadataValue<Ascii>, Status> {
        if let Some(token) = self.token.lock().clone() {
            return Ok(token);
        }
        let (name, password) = (self.name.clone(), self.password.text().to_owned());
        let request = AuthenticateRequest { name, password };
        let answer = AuthClient::new(channel).authenticate(request).await?.into_inner();
        let token = MetadataValue::try_from(answer.token);
        let mut token = token.map_err(|_| Status::internal("etcd gave a token that is no text"))?;
        token.set_sensitive(true);
        *self.token.lock() = Some(token.clone());
        Ok(token)
    }
}

/// The requests of a stream, of which one waits already.
fn queue<Q>(first: Q) -> Result<(mpsc::Sender<Q>, mpsc::Receiver<Q>), Status> {
    let (mut requests, sent) = mpsc::channel(STREAM_QUEUE);
    requests.try_send(first).map_err(|e| Status::internal(e.to_string()))?;
    Ok((requests, sent))
}

/// Whether a token is expired, or unknown since etcd was restarted.
fn is_bad_token(status: &Status) -> bool {
    status.code() == Code::Unauthenticated
}

pub struct Stream<Q, A> {
    requests: mpsc::Sender<Q>,
    answers: Streaming<A>,
}

impl<Q, A> Stream<Q, A> {
    /// Sends a request.
    ///
    /// # Errors
    /// The stream is broken, or etcd reads nothing.
    pub fn send(&mut self, request: Q) -> Result<(), Status> {
        self.requests.try_send(request).map_err(|e| Status::unavailable(e.to_string()))
    }

    /// The next answer; `None`: the stream has ended.
    pub async fn message(&mut self) -> Result<Option<A>, Status> {
        self.answers.message().await
    }
}

#[derive(Clone)]
struct Connector {
    tls: Option<Tls>,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn Connection>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Box<dyn Connection>>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let tls = self.tls.clone();
        Box::pin(async move {
            let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
            let host = to.host().ok_or_else(|| wrong("the address has no host"))?;
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            let stream = TcpStream::connect((host.as_str(), to.port_u16().unwrap_or(2379))).await?;
            stream.set_nodelay(true)?;
            let Some(tls) = tls else { return Ok(TokioIo::new(Box::new(stream) as _)) };
            let name = ServerName::try_from(host).map_err(|e| wrong(&e.to_string()))?;
            let stream = TlsConnector::from(tls.etcd()).connect(name, stream).await?;
            Ok(TokioIo::new(Box::new(stream) as _))
        })
    }
}

/// An open connection, in plain text or by TLS.
trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}
