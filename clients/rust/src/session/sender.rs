//! The sending half of a session.

use purview::scene::movement::{ClientMs, MoveCommand, Tiles};
use purview::scene::properties::{PropertyId, Value};
use purview::scene::{EntityId, Facing, Plane, Pos, Seq};
use purview::wire::ErrorCode;
use purview::wire::client::{
    Act, ClientMsg, Face, Join, Leave, Move, Ping, Refused, Set, Teleport, Walk,
};

use crate::ClientError;
use crate::numbers::Numbers;
use crate::transport::Writer;
use crate::walker::Walker;

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

    /// Sends a new position (centimetres), in a scene that trusts positions. Returns the input's
    /// number, which a frame's `ack` reaches once it is applied.
    ///
    /// # Errors
    /// The network failed; the session is over.
    pub async fn send_move(&mut self, pos: Pos) -> Result<Seq, ClientError> {
        self.input(|seq| Move { seq, pos }.into()).await
    }

    /// Sends the commands that a [`Walker`] has at `now`, in a scene that judges moves. Call it in
    /// every frame of the game.
    ///
    /// # Errors
    /// The network failed; the session is over.
    pub async fn walk<T: Tiles>(
        &mut self,
        now: ClientMs,
        walker: &mut Walker<T>,
    ) -> Result<(), ClientError> {
        while let Some(order) = walker.poll(now, self.next_seq()) {
            self.send_walk(&order).await?;
        }
        Ok(())
    }

    /// Sends one move command as it is. Returns the input's number.
    ///
    /// # Errors
    /// The network failed; the session is over.
    pub async fn send_walk(&mut self, order: &MoveCommand) -> Result<Seq, ClientError> {
        self.input(|seq| Walk::of(seq, order).into()).await
    }

    /// Teleports; `None` keeps the scene or plane. Returns the input's number.
    ///
    /// # Errors
    /// The network failed; the session is over.
    pub async fn teleport(
        &mut self,
        scene: Option<String>,
        plane: Option<Plane>,
        pos: Pos,
    ) -> Result<Seq, ClientError> {
        self.input(|seq| Teleport { seq, scene, plane, pos }.into()).await
    }

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

    /// Turns the player, walking or standing. Returns the input's number.
    ///
    /// # Errors
    /// The network failed; the session is over.
    pub async fn face(&mut self, facing: Facing) -> Result<Seq, ClientError> {
        self.input(|seq| Face { seq, facing }.into()).await
    }

    /// Gives a property of the player a value. Returns the input's number.
    ///
    /// # Errors
    /// The network failed; the session is over.
    pub async fn set(&mut self, property: PropertyId, value: Value) -> Result<Seq, ClientError> {
        self.input(|seq| Set { seq, property, value }.into()).await
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

    async fn input(&mut self, with: impl FnOnce(Seq) -> ClientMsg) -> Result<Seq, ClientError> {
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
