//! The sending half of a session.

use purview::scene::{EntityId, Seq};
use purview::wire::ErrorCode;
use purview::wire::client::{Act, ClientMsg, Join, Leave, Ping, Refused};

use crate::ClientError;
use crate::inputs::inputs;
use crate::numbers::Numbers;
use crate::transport::Writer;

/// The sending half of a session. Numbers inputs from 1, without gaps.
pub struct Sender {
    pub(super) writer: Writer,
    pub(super) numbers: Numbers,
}

impl Sender {
    /// The number that the next input will carry.
    pub fn next_seq(&self) -> Seq {
        self.numbers.next()
    }

    /// Records a refusal that the receiving half received: the session did not use up that input's
    /// number, so the next input carries it again. [`Client::next`](super::Client::next) calls this by itself.
    pub fn note_refused(&mut self, refused: &Refused) {
        if let Some(seq) = refused.seq {
            self.numbers.refused(seq, refused.code == ErrorCode::OutOfOrder);
        }
    }

    /// Asks to enter a scene; the answer is [`Event::Joined`](super::Event::Joined) or
    /// [`Event::Refused`](super::Event::Refused).
    ///
    /// # Errors
    /// The network failed; the session is over.
    pub async fn join(&mut self, join: Join) -> Result<(), ClientError> {
        self.send(join).await
    }

    inputs!("The network failed; the session is over.");

    /// Performs an action that every client that sees the player is told; at most
    /// [`MAX_ACT`](purview::wire::MAX_ACT) bytes. Returns the input's number.
    ///
    /// # Errors
    /// The network failed; the session is over.
    pub async fn act(&mut self, payload: Vec<u8>) -> Result<Seq, ClientError> {
        self.input(|seq| Act { seq, payload: payload.into(), aim: None }.into()).await
    }

    /// As [`Self::act`], against another player. If that player is in range, the two fight for a
    /// while and have priority in each other's view list.
    ///
    /// # Errors
    /// The network failed; the session is over.
    pub async fn act_at(&mut self, aim: EntityId, payload: Vec<u8>) -> Result<Seq, ClientError> {
        self.input(|seq| Act { seq, payload: payload.into(), aim: Some(aim) }.into()).await
    }

    /// Requests a pong; also keeps the session alive.
    ///
    /// # Errors
    /// The network failed; the session is over.
    pub async fn ping(&mut self, nonce: u64) -> Result<(), ClientError> {
        self.send(Ping { nonce }).await
    }

    /// Leaves the scene and ends the session; [`Event::Left`](super::Event::Left) and
    /// [`Event::Closed`](super::Event::Closed) follow.
    ///
    /// # Errors
    /// The network failed; the session is over.
    pub async fn leave(&mut self) -> Result<(), ClientError> {
        self.send(Leave {}).await
    }

    /// Closes the connection in order without leaving first.
    ///
    /// # Errors
    /// The network failed; the session is over in any case.
    pub async fn close(&mut self) -> Result<(), ClientError> {
        self.writer.close().await
    }

    pub(super) async fn input(
        &mut self,
        with: impl FnOnce(Seq) -> ClientMsg,
    ) -> Result<Seq, ClientError> {
        let seq = self.numbers.take();
        self.send(with(seq)).await?;
        Ok(seq)
    }

    /// Sends a message as it is, legal or not, with the number that it carries. It does not count
    /// as an input.
    ///
    /// # Errors
    /// The network failed; the session is over.
    pub async fn send(&mut self, message: impl Into<ClientMsg>) -> Result<(), ClientError> {
        self.send_encoded(message.into().encode()).await
    }

    /// Sends an encoded message.
    pub(crate) async fn send_encoded(&mut self, message: Vec<u8>) -> Result<(), ClientError> {
        self.writer.send(message).await
    }
}
