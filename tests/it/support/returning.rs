//! Clients whose connections break and that resume with other sessions.

use purview::scene::inspect::EntityDetails;
use purview::scene::messages::{Input, Order};
use purview::scene::player::{ClientRequest, Comeback, Player, PlayerInput, Problem};
use purview::scene::{EntityId, Region, RegionId, Seq, SessionId};

use super::client::Client;
use super::commands::order_of;
use super::session::{GRACE_PERIOD_MS, limits};
use super::whose;
use super::world::World;

/// How a connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// The session is told.
    Heard,
    /// The session dies, as with its gateway; regions find out later.
    Lost,
    /// No one notices: the session goes on.
    Unnoticed,
}

pub struct Remote {
    pub client: Client,
    pub session: SessionId,
    /// Whether its region has not been told.
    silent: bool,
}

impl World {
    pub fn break_off(&mut self, session: SessionId, how: Break) {
        if how == Break::Heard {
            self.receive(session, PlayerInput::Gone);
        }
        let mut client = self.clients.remove(&session).expect("a client");
        let player = client.player.take();
        if how == Break::Unnoticed {
            let entity = client.entity;
            let deaf = Client { entity, player, deaf: true, ..Client::default() };
            self.clients.insert(session, deaf);
        }
        self.away.push(Remote { client, session, silent: how == Break::Lost });
    }

    /// The only region that owns the entity.
    pub fn acting_region(&self, id: EntityId) -> Option<RegionId> {
        let lives = |r: &&Region| r.find(id).is_some_and(|e| !e.ghost);
        let acting: Vec<_> = self.regions.iter().filter(lives).map(Region::id).collect();
        assert!(acting.len() <= 1, "{id} lives in {acting:?}");
        acting.first().copied()
    }

    /// A region where an entity lives, awake.
    pub fn home(&self, id: EntityId) -> Option<&Region> {
        self.regions.iter().find(|region| region.find(id).is_some_and(|entity| !entity.ghost))
    }

    pub fn home_id(&self, id: EntityId) -> Option<RegionId> {
        self.home(id).map(Region::id)
    }

    /// An entity as it is where it lives.
    pub fn living(&self, id: EntityId) -> Option<EntityDetails> {
        self.home(id)?.find(id)
    }

    /// Game logic orders something of an entity, if it lives anywhere.
    pub fn order_by_logic(&mut self, id: EntityId, order: Order) {
        if let Some(home) = self.home_id(id) {
            self.tell(home, order_of(id, order));
        }
    }

    /// Regions check for sessions that are gone, now and then.
    pub fn notice_dead_sessions(&mut self) {
        for which in 0..self.away.len() {
            let Remote { client, session, silent } = &self.away[which];
            let (id, session) = (client.entity, *session);
            if !silent || !self.rng.chance(10) {
                continue;
            }
            if let Some(region) = self.acting_region(id) {
                self.away[which].silent = false;
                self.tell(region, Input::Disconnected { id, session, ms: GRACE_PERIOD_MS });
            }
        }
    }

    pub fn resume(&mut self, which: usize) -> SessionId {
        let Remote { mut client, .. } = self.away.swap_remove(which);
        let session = SessionId(self.next_id().0 + 2_000_000);
        let player = Player::new(self.now_ms(), session, limits());
        let mut ask: Vec<RegionId> = self.regions.iter().map(Region::id).collect();
        let ask_then = ask.split_off(self.rng.below(ask.len() + 1));
        let back = Comeback { id: client.entity, acked: client.ack, ask, ask_then, all: true };
        let subject = whose(client.entity);
        client.player = Some(player);
        (client.returning, client.returns) = (true, client.returns + 1);
        self.clients.insert(session, client);
        self.receive(
            session,
            PlayerInput::Request(ClientRequest::Hello(Ok((subject, Default::default())))),
        );
        self.receive(session, PlayerInput::Request(ClientRequest::Resume(Ok(back))));
        session
    }

    /// The client is in its scene again: it repeats inputs that were not applied.
    pub fn has_returned(&mut self, session: SessionId, ack: Seq) {
        let Some(client) = self.clients.get_mut(&session).filter(|c| c.returning) else { return };
        client.returning = false;
        assert!(ack >= client.ack, "{}: resumes at {ack} after {}", client.entity, client.ack);
        client.unacked.retain(|(seq, _)| *seq > ack);
        (client.seq, client.ack) = (client.seq.max(ack), ack);
        for (seq, order) in client.unacked.clone() {
            self.say(session, seq, order);
        }
    }

    /// Whether a resuming client may get such a refusal.
    pub fn may_be_refused(
        &mut self,
        session: SessionId,
        problem: &Problem,
        seq: Option<Seq>,
    ) -> bool {
        let Some(client) = self.clients.get_mut(&session) else { return false };
        match problem {
            Problem::Gone => client.forgotten = true,
            // The input was applied through the old session.
            Problem::OutOfOrder { expected } => {
                return client.returns > 0 && seq.is_some_and(|seq| seq < *expected);
            }
            _ => return false,
        }
        client.returns > 0
    }

    /// Removes clients whose players were younger than the checkpoint of a region that died, or
    /// that did not resume within their grace period.
    pub fn forget_the_young(&mut self) {
        let forgotten: Vec<_> =
            self.clients.iter().filter(|(_, c)| c.forgotten).map(|(s, c)| (*s, c.entity)).collect();
        for (session, id) in forgotten {
            assert!(!self.kills.deaths.is_empty(), "{id} is gone although no region died");
            assert_eq!(self.acting_region(id), None, "{id} is reported gone");
            self.clients.remove(&session);
            self.truth.remove(&id);
        }
    }
}
