//! A worker in Rust: connects, and passes requests and responses. Tools and tests use it; a game in Rust may, where its
//! rules are to live outside of the server.

use tokio::sync::mpsc;
use tonic::Streaming;

use super::proto::logic_client::LogicClient;
use super::proto::{
    Answer, Close, Command, Got, MOST_RESPONSE_BYTES, Open, Opened, Refused, Request, Response,
    Told, request, response,
};
use crate::interest::client::{Address, ClientError};

/// Requests that wait to be sent.
const QUEUE: usize = 64;

/// A stream with its session. Dropping it ends the session.
#[derive(Debug)]
pub struct Stream {
    /// What the server said first.
    pub opened: Opened,
    requests: mpsc::Sender<Request>,
    responses: Streaming<Response>,
}

impl Stream {
    /// Begins a session as a worker of a scene.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn begin(address: &Address, open: Open) -> Result<Stream, ClientError> {
        let (requests, mut queue) = mpsc::channel(QUEUE);
        let mut client = LogicClient::new(address.channel().await?)
            .max_decoding_message_size(MOST_RESPONSE_BYTES);
        let queue = futures::stream::poll_fn(move |cx| queue.poll_recv(cx));
        let mut request = tonic::Request::new(queue);
        if let Some(value) = address.authorization()? {
            request.metadata_mut().insert("authorization", value);
        }
        // The queue is empty.
        drop(requests.try_send(Request { message: Some(request::Message::Open(open)) }));
        let mut responses = client.attach(request).await?.into_inner();
        let first = responses.message().await?.and_then(|response| response.message);
        match first {
            Some(response::Message::Opened(opened)) => Ok(Stream { opened, requests, responses }),
            _ => Err(ClientError::Ended("it was open")),
        }
    }

    /// The next response; `None`: the server has closed the stream.
    ///
    /// # Errors
    /// The stream is broken, or has ended with an error.
    pub async fn next(&mut self) -> Result<Option<response::Message>, ClientError> {
        let response = self.responses.message().await?;
        Ok(response.and_then(|response| response.message))
    }

    /// Answers what a region has told.
    ///
    /// # Errors
    /// The stream has ended; [`Stream::next`] says why.
    pub async fn answer(&self, told: &Told, commands: Vec<Command>) -> Result<(), ClientError> {
        let answer = Answer { lease: told.lease, seq: told.seq, commands };
        self.send_raw(request::Message::Answer(answer)).await
    }

    /// Says that refusals are known.
    ///
    /// # Errors
    /// As [`Stream::answer`].
    pub async fn got(&self, refused: &Refused) -> Result<(), ClientError> {
        let Refused { region, epoch, last, .. } = *refused;
        self.send_raw(request::Message::Got(Got { region, epoch, last })).await
    }

    /// Sends any request.
    ///
    /// # Errors
    /// As [`Stream::answer`].
    pub async fn send_raw(&self, message: request::Message) -> Result<(), ClientError> {
        let request = Request { message: Some(message) };
        self.requests.send(request).await.map_err(|_| ClientError::Ended("all was sent"))
    }

    /// Ends the session.
    ///
    /// # Errors
    /// As [`Stream::answer`].
    pub async fn close(self) -> Result<Streaming<Response>, ClientError> {
        self.send_raw(request::Message::Close(Close {})).await?;
        Ok(self.responses)
    }
}
