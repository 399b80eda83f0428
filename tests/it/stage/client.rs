//! A client that the test plays.

use std::collections::BTreeMap;

use actix::Addr;
use actix_rt::time::timeout;
use futures::{FutureExt, StreamExt};
use purview::actor::player::PlayerActor;
use purview::actor::player::sink::{ClientOut, ClientQueue};
use purview::scene::{EntityId, Pos, SessionId};
use purview::wire::client::{Joined, Lines, Refused, Ticket};
use purview::wire::{CloseCode, ErrorCode, Frame, ServerMsg};

use super::PATIENCE;

/// What a client was told. It panics when a message contradicts earlier ones.
pub struct Client {
    pub addr: Addr<PlayerActor>,
    queue: ClientQueue,
    /// Whether it reads all messages at the end of every tick.
    pub reads: bool,
    pub seq: u32,
    pub joined: Vec<Joined>,
    pub frames: Vec<Frame>,
    /// The entities in view and their positions.
    pub shown: BTreeMap<EntityId, Pos>,
    pub entered: Vec<EntityId>,
    pub left: Vec<EntityId>,
    pub refused: Vec<Refused>,
    /// Answers to questions for lines.
    pub lines: Vec<Lines>,
    /// From the welcome.
    pub session: Option<SessionId>,
    /// The answer to its leave has arrived.
    pub parted: bool,
    /// Tickets since the join.
    pub renewed: Vec<Ticket>,
    pub closed: Option<CloseCode>,
    /// The player's position by the client's account.
    pub pos: Pos,
}

impl Client {
    pub fn new(addr: Addr<PlayerActor>, queue: ClientQueue) -> Client {
        Client {
            addr,
            queue,
            reads: true,
            seq: 0,
            joined: Vec::new(),
            frames: Vec::new(),
            shown: BTreeMap::new(),
            entered: Vec::new(),
            left: Vec::new(),
            refused: Vec::new(),
            lines: Vec::new(),
            session: None,
            parted: false,
            renewed: Vec::new(),
            closed: None,
            pos: Pos::default(),
        }
    }

    pub fn id(&self) -> EntityId {
        self.here().id
    }

    /// The last `Joined` message.
    pub fn here(&self) -> &Joined {
        self.joined.last().expect("a client that has joined")
    }

    /// Why its messages were refused.
    pub fn codes(&self) -> Vec<ErrorCode> {
        self.refused.iter().map(|refused| refused.code).collect()
    }

    pub fn in_world(&self) -> bool {
        !self.joined.is_empty() && self.closed.is_none() && !self.parted
    }

    pub fn ack(&self) -> u32 {
        self.frames.last().map_or(0, |f| f.ack.0)
    }

    /// The actions of `id` in the last frame.
    pub fn received_of(&self, id: EntityId) -> Vec<String> {
        let acts = self.frames.last().into_iter().flat_map(|f| &f.acts).filter(|a| a.id == id);
        acts.map(|a| String::from_utf8(a.payload.to_vec()).expect("text")).collect()
    }

    /// All actors and their actions, in order.
    pub fn acts(&self) -> Vec<(EntityId, String)> {
        let acts = self.frames.iter().flat_map(|f| &f.acts);
        acts.map(|a| (a.id, String::from_utf8(a.payload.to_vec()).expect("text"))).collect()
    }

    pub fn resyncs(&self) -> usize {
        self.frames.iter().filter(|f| f.resync).count()
    }

    fn take(&mut self, bytes: &[u8]) {
        match ServerMsg::decode(bytes).expect("a message of the protocol") {
            ServerMsg::Welcome(welcome) => self.session = Some(welcome.session),
            ServerMsg::Joined(joined) => {
                self.pos = joined.pos;
                self.joined.push(*joined);
            }
            ServerMsg::Frame(frame) => self.apply(*frame),
            ServerMsg::Lines(lines) => self.lines.push(lines),
            ServerMsg::Refused(refused) => self.refused.push(refused),
            ServerMsg::Left(_) => self.parted = true,
            ServerMsg::Pong(_) | ServerMsg::Unconfirmed(_) => {}
            ServerMsg::Renewed(renewed) => self.renewed.push(renewed.ticket),
            ServerMsg::Closing(closing) => self.closed = Some(closing.code),
        }
    }

    fn apply(&mut self, frame: Frame) {
        let me = self.id();
        if let Some(last) = self.frames.last() {
            assert!(last.tick < frame.tick, "{me}: {} after {}", frame.tick, last.tick);
            assert!(last.ack <= frame.ack, "{me}: acknowledged {} after {}", frame.ack, last.ack);
            assert!(last.epoch <= frame.epoch, "{me}: a frame of an old owner");
        }
        assert!(frame.ack.0 <= self.seq, "{me}: acknowledged what was not sent");
        if frame.resync {
            self.shown.clear();
        }
        for id in &frame.leaves {
            assert!(self.shown.remove(id).is_some(), "{me}: {id} left but was not there");
            self.left.push(*id);
        }
        for e in &frame.enters {
            let pos = Pos { x: e.x, y: e.y, z: e.z };
            assert!(self.shown.insert(e.id, pos).is_none(), "{me}: {} entered twice", e.id);
            assert_ne!(e.id, me, "{me} is shown itself");
            assert_eq!(e.properties[0].value.as_binary(), Some("a look".as_bytes()));
            self.entered.push(e.id);
        }
        for m in &frame.moves {
            let place = self.shown.get_mut(&m.id);
            let place = place.unwrap_or_else(|| panic!("{me}: {} moved but is not shown", m.id));
            *place = Pos { x: m.x, y: m.y, z: m.z };
        }
        for a in &frame.acts {
            assert!(self.shown.contains_key(&a.id), "{me}: {} acted but is not shown", a.id);
        }
        self.frames.push(frame);
    }

    pub fn take_ready(&mut self) {
        while let Some(bytes) = self.queue.take_ready() {
            self.take(&bytes);
        }
        if let Some(code) = self.queue.closing().now_or_never() {
            self.closed = code;
        }
    }

    /// Reads until `enough` holds.
    pub async fn read_until(&mut self, what: &str, enough: impl Fn(&Client) -> bool) {
        while !enough(self) {
            let next = timeout(PATIENCE, self.queue.next()).await;
            match next.unwrap_or_else(|_| panic!("waited in vain for {what}")) {
                Some(ClientOut::Message(bytes)) => self.take(&bytes),
                Some(ClientOut::Close(code, _)) => self.closed = Some(code),
                None => panic!("the session ended before {what}"),
                Some(ClientOut::Rest) => unreachable!("nothing is written at once here"),
            }
        }
    }
}
