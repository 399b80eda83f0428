//! A worker in Rust: connects, and passes requests and responses. Tools and tests use it; a game in Rust may, where its
//! rules are to live outside of the server.

use bytes::Bytes;
use tokio::sync::mpsc;
use tonic::Streaming;

use super::proto::logic_client::LogicClient;
use super::proto::{
    Batch, Close, Command, MOST_RESPONSE_BYTES, Open, Opened, Received, Request, Response, request,
    response,
};
use crate::interest::client::{Address, ClientError};

/// Requests that wait to be sent.
const QUEUE: usize = 64;

/// A lease of a region, and the tick up to which the worker has handled it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The region.
    pub region: u32,
    /// The epoch.
    pub epoch: u64,
    /// The number of the lease.
    pub lease: u64,
    /// The tick.
    pub tick: u64,
}

/// A stream with its session. Dropping it breaks the stream: the session can be resumed.
#[derive(Debug)]
pub struct Stream {
    /// What the server said first.
    pub opened: Opened,
    /// The number of the last response.
    pub received: u64,
    requests: mpsc::Sender<Request>,
    responses: Streaming<Response>,
}

impl Stream {
    /// Begins a session as a worker of a scene.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn begin(address: &Address, open: Open) -> Result<Stream, ClientError> {
        Stream::open(address, open).await
    }

    /// Resumes a session of which the worker has handled the responses up to `received`.
    ///
    /// # Errors
    /// [`ClientError`]. That the session is gone is no error: see [`Opened::resumed`].
    pub async fn resume(
        address: &Address,
        (session, received): (Bytes, u64),
        open: Open,
    ) -> Result<Stream, ClientError> {
        Stream::open(address, Open { session, received, ..open }).await
    }

    async fn open(address: &Address, open: Open) -> Result<Stream, ClientError> {
        let (requests, mut queue) = mpsc::channel(QUEUE);
        let mut client = LogicClient::new(address.channel().await?)
            .max_decoding_message_size(MOST_RESPONSE_BYTES);
        let queue = futures::stream::poll_fn(move |cx| queue.poll_recv(cx));
        let mut request = tonic::Request::new(queue);
        if let Some(value) = address.authorization()? {
            request.metadata_mut().insert("authorization", value);
        }
        let received = open.received;
        // The queue is empty.
        drop(requests.try_send(Request { message: Some(request::Message::Open(open)) }));
        let mut responses = client.attach(request).await?.into_inner();
        let first = responses.message().await?.and_then(|response| response.message);
        match first {
            Some(response::Message::Opened(opened)) => {
                let received = if opened.resumed { received } else { 0 };
                Ok(Stream { opened, received, requests, responses })
            }
            _ => Err(ClientError::Ended("it was open")),
        }
    }

    /// The next response; `None`: the server has closed the stream.
    ///
    /// # Errors
    /// The stream is broken, or has ended with an error.
    pub async fn next(&mut self) -> Result<Option<response::Message>, ClientError> {
        let response = self.responses.message().await?;
        if let Some(response) = &response {
            self.received = response.sequence;
        }
        Ok(response.and_then(|response| response.message))
    }

    /// Sends the batch for a tick of a lease.
    ///
    /// # Errors
    /// The stream has ended; [`Stream::next`] says why.
    pub async fn send(&self, lease: Lease, commands: Vec<Command>) -> Result<(), ClientError> {
        let Lease { region, epoch, lease, tick: handled } = lease;
        let received = self.received;
        let batch = Batch { region, epoch, lease, handled, received, commands };
        self.send_raw(request::Message::Batch(batch)).await
    }

    /// Acknowledges all responses so far.
    ///
    /// # Errors
    /// As [`Stream::send`].
    pub async fn acknowledge(&self) -> Result<(), ClientError> {
        let received = self.received;
        self.send_raw(request::Message::Received(Received { received })).await
    }

    /// Sends any request.
    ///
    /// # Errors
    /// As [`Stream::send`].
    pub async fn send_raw(&self, message: request::Message) -> Result<(), ClientError> {
        let request = Request { message: Some(message) };
        self.requests.send(request).await.map_err(|_| ClientError::Ended("all was sent"))
    }

    /// Ends the session.
    ///
    /// # Errors
    /// As [`Stream::send`].
    pub async fn close(self) -> Result<Streaming<Response>, ClientError> {
        self.send_raw(request::Message::Close(Close {})).await?;
        Ok(self.responses)
    }
}
