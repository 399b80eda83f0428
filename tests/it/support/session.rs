//! Clients with real sessions: a client's messages go to its session's state machine, whose effects
//! go to the regions.

use purview::scene::messages::{Bond, Destination, FrameBatch, Input, Order, Resume, ResumeFor};
use purview::scene::player::{
    Arrival, ClientRequest, End, Player, PlayerConfig, PlayerEffect, PlayerInput, Reply, State,
    TeleportTarget,
};
use purview::scene::{
    EntityId, Epoch, Kind, Plane, Pos, RangeSet, RegionId, SceneId, SceneSpec, Seq, SessionId,
};

use super::brute::Truth;
use super::client::Client;
use super::world::World;
use super::{look, whose};

/// Grace period of players whose clients are disconnected.
pub const GRACE_PERIOD_MS: u32 = 10_000;

/// Two players who see each other across the border of the regions 0 and 1, in a world with sessions.
pub fn neighbours(spec: SceneSpec) -> (World, SessionId, SessionId) {
    let mut w = World::new(spec, 1);
    w.sessions = true;
    neighbours_in(w)
}

/// The same in a world.
pub fn neighbours_in(mut w: World) -> (World, SessionId, SessionId) {
    let [(a, _), (b, _)] = [3_000, 3_300].map(|x| w.player(x, 500));
    w.steps(3);
    assert_eq!(w.links().len(), 1);
    (w, a, b)
}

/// The question of a client that resumes, for a region.
pub fn resume_of(session: SessionId, id: EntityId, asked: RegionId, since_ms: u64) -> Resume {
    let (subject, acked, purpose) = (whose(id), Seq(0), ResumeFor::Play);
    Resume { id, session, subject, acked, asked, since_ms, purpose }
}

impl World {
    pub fn steps(&mut self, n: u64) {
        (0..n).for_each(|_| self.step());
    }

    /// A player at a place of plane 0.
    pub fn player(&mut self, x: i32, z: i32) -> (SessionId, EntityId) {
        let session = self.join(Plane(0), Pos::ground(x, z), RangeSet::FULL);
        (session, self.clients[&session].entity)
    }

    /// The bonds of a client's player are told to its region.
    pub fn tell_bonds(&mut self, session: SessionId) {
        let (id, region) = (self.clients[&session].entity, self.clients[&session].region);
        let bonds = self.truth[&id].bonds.clone();
        self.tell(region, Input::Bonds { id, bonds });
    }

    /// Game logic sets the bonds of a client's player.
    pub fn bond(&mut self, session: SessionId, bonds: &[Bond]) {
        let id = self.clients[&session].entity;
        self.truth.get_mut(&id).unwrap().bonds = bonds.to_vec();
        self.tell_bonds(session);
    }

    pub fn now_ms(&self) -> u64 {
        self.tick.0 * 100
    }

    pub fn join_by_session(
        &mut self,
        session: SessionId,
        plane: Plane,
        pos: Pos,
        sight: RangeSet,
    ) -> SessionId {
        let id = self.next_id();
        let region = self.owner_of(SceneId(0), plane, pos);
        let config = limits();
        let player = Player::new(self.now_ms(), session, config);
        let client = Client { entity: id, region, player: Some(player), ..Client::default() };
        self.clients.insert(session, client);
        self.note_truth(id, Truth::new(Kind::PLAYER, plane, pos, sight));
        let sight = self.limits(id, Kind::PLAYER, sight);
        let to = Destination { scene: SceneId(0), region, plane, pos };
        let (properties, bonds) = (look(id), Vec::new());
        self.receive(
            session,
            PlayerInput::Request(ClientRequest::Hello(Ok((whose(id), Default::default())))),
        );
        let arrival = Arrival { id, to, sight, left_at: None, properties, bonds };
        self.receive(session, PlayerInput::Request(ClientRequest::Join(Ok(arrival))));
        session
    }

    /// The client sends an order.
    pub fn say(&mut self, session: SessionId, seq: Seq, order: Order) {
        let request = match order {
            Order::Teleport(to) => {
                ClientRequest::Teleport(seq, Ok(TeleportTarget { to, takes_place: false }))
            }
            order => ClientRequest::Input(seq, order),
        };
        self.receive(session, PlayerInput::Request(request));
    }

    /// A session handles an input, and its effects are delivered.
    pub fn receive(&mut self, session: SessionId, input: PlayerInput<'_>) {
        let effects = self.handle(session, input);
        self.obey(session, effects);
    }

    fn handle(&mut self, session: SessionId, input: PlayerInput<'_>) -> Vec<PlayerEffect> {
        let now_ms = self.now_ms();
        let mut out = Vec::new();
        let client = self.clients.get_mut(&session);
        if let Some(player) = client.and_then(|c| c.player.as_mut()) {
            player.handle(now_ms, input, &mut out);
        }
        out
    }

    fn obey(&mut self, session: SessionId, effects: Vec<PlayerEffect>) {
        for effect in effects {
            match effect {
                PlayerEffect::ToRegion(region, input) => self.tell(region, input),
                PlayerEffect::Reply(Reply::Joined { ack, .. }) => self.has_returned(session, ack),
                PlayerEffect::Reply(Reply::Unconfirmed { first, last }) => {
                    self.clients.get_mut(&session).unwrap().unconfirmed.push((first, last));
                }
                PlayerEffect::Reply(Reply::Refused { problem, seq }) => {
                    if self.may_be_refused(session, &problem, seq) {
                        continue;
                    }
                    panic!("session {session} was refused {seq:?}: {problem}")
                }
                PlayerEffect::Close(End::Normal | End::Replaced, _) => {
                    self.clients.get_mut(&session).unwrap().gone = true;
                }
                PlayerEffect::Close(end, why) => panic!("session {session}: {end:?}: {why}"),
                _ => {}
            }
        }
    }

    /// Whether a frame reaches the client.
    pub fn passes_on(&mut self, batch: &FrameBatch, index: usize) -> bool {
        let session = batch.sessions[index].session;
        let Some(client) = self.clients.get(&session) else { return false };
        if client.player.is_none() || client.loses_frames {
            return !client.loses_frames;
        }
        let effects = self.handle(session, PlayerInput::Frame { batch, index, queued: 0 });
        let forward = effects.iter().any(|e| matches!(e, PlayerEffect::Forward));
        self.obey(session, effects);
        forward && self.clients.contains_key(&session)
    }

    /// Sessions check the clock.
    pub fn pass_time(&mut self) {
        for session in self.clients.keys().copied().collect::<Vec<_>>() {
            self.receive(session, PlayerInput::Timer { queued: 0 });
        }
    }

    /// Sessions learn that a region has another owner.
    pub fn tell_sessions_of_owner(&mut self, region: RegionId, epoch: Epoch) {
        for session in self.clients.keys().copied().collect::<Vec<_>>() {
            self.receive(session, PlayerInput::Owner(region, epoch));
        }
    }

    /// Clients whose sessions are in the world.
    pub fn in_world(&self) -> impl Iterator<Item = &Client> {
        self.clients.values().filter(|c| !c.leaving && in_world(c))
    }
}

/// Limits that no client reaches.
pub fn limits() -> PlayerConfig {
    PlayerConfig {
        rate_limit: 10_000,
        rate_burst: 10_000,
        heartbeat_ms: u64::MAX,
        handshake_ms: 60_000,
        leave_ms: 60_000,
        grace_period_ms: GRACE_PERIOD_MS,
        resume_ms: 600_000,
        ..PlayerConfig::default()
    }
}

/// Whether the client's orders are accepted.
pub fn in_world(client: &Client) -> bool {
    !client.deaf && client.player.as_ref().is_none_or(|p| p.state() == State::InWorld)
}
