//! A client's session as a state machine, sans IO.
//!
//! ```text
//!                    .---> Claiming: the subject's player of before has to leave
//!                    |<---refused--'| free: Joining
//!                    |   resume              resumed
//!                    .-------------> Resuming -----------.
//!                    |<---refused-------'                v
//!            hello   |        join             route               leave           left
//! Connected ------> Greeted ------> Joining ---------> InWorld -----------> Leaving ----> Closed
//!     |                ^  |            |  |                |                   |             ^
//!     |                '--+--refused---'  |                |                   |             |
//!     |                   |               '----------------+-------------------'             |
//!     |                   |               client gone or closed: Leave to the region         |
//!     |                   |                                |                                 |
//!     |                   |                                v         left, or patience ends  |
//!     |                   |                             Parting -----------------------------|
//!     |                   |           grace period ends, or replaced |                       |
//!     |                   |       InWorld and client gone: Disconnected ---------------------|
//!     |                   |                       Leaving or Parting --'  '-- dismissed: Parting
//!     |                   |                           and the player stays
//!     '-------------------'--------- client gone or closed ----------------------------------'
//! ```
//!
//! | state | the client may send | else |
//! |---|---|---|
//! | Connected | hello | `Premature` |
//! | Greeted | join, ping, leave | `Premature` |
//! | Claiming, Joining, Resuming | ping, leave | `Premature` |
//! | InWorld | move, walk, teleport, act, face, set, ping, leave | `Premature` |
//! | Leaving | ping | `Premature` |
//! | Disconnected, Parting, Closed | nothing: the client is gone | ignored |
//!
//! **Numbers.** A client's inputs are numbered from 1 without gaps. An input that the session itself
//! refuses (answer `Refused` with its number) *consumes no number*: the region never saw it, and the
//! client's next input carries that number again. An input that the region refuses (in a frame's
//! `refused`) *consumes its number*: it was the last one plus one, and was applied as "nothing".
//!
//! **Delivery.** An input is kept until a frame or a route of the route's epoch or a newer one
//! acknowledges it, and is sent again after a new route, after a full mailbox and when nothing was
//! acknowledged for [`PlayerConfig::resend_ms`]. The region applies only the last one plus one, so
//! sending again is always safe.
//!
//! **Presentation.** When a region continues from a checkpoint it may know less of the player than the
//! session does. The session then presents what it knows (see the module `memory`), sends nothing else
//! until a route says that the player lives there, and presents again when none comes for
//! [`PlayerConfig::resend_ms`]. Inputs wait meanwhile as they do for any acknowledgement.
//!
//! **Disconnection.** When the connection of a client in the world breaks, or the gateway stops,
//! the region is told that the client is disconnected: the player stays for
//! [`PlayerConfig::grace_period_ms`]. So does the session, unless the gateway stops: a region that
//! dies meanwhile may continue from a checkpoint that does not know the player, and then only the
//! session knows it. The session presents the player as ever, says again that its client is
//! disconnected, and is over when another session has the player. The client itself sends the
//! inputs again that were not acknowledged to it. A player may stay for longer than its session asks, and
//! after `leave` ([`Notice::Stays`](crate::scene::messages::Notice::Stays)): so does the session, in the same state.
//!
//! **Resumption.** A client that comes back has a new session, which asks the regions for its player: first
//! the regions where the player is most likely, then all others. Each region has the player, forwards the
//! question, or does not know the player; silent regions are asked again. The numbers of inputs continue
//! from the last one that the region has applied.
//!
//! **Claims.** Where players are stored, a session claims its subject's record before it joins. While an
//! entity of an earlier session holds the record, the session waits in the state Claiming: the entity
//! leaves because its session yields, or, when it has no session any more, because regions are asked to
//! let it leave. If it has to stay, the session resumes it. The shell asks the store; the machine asks the
//! regions.
//!
//! **Places.** A join or a teleport to another plane brings a place in a line, which is the
//! session's from then on: the session gives every place back, kept or not, with
//! [`PlayerEffect::GiveBack`]. The player of a disconnected client has no place.

//!
//! | file | part or concern |
//! |---|---|
//! | `client` | what becomes of join, teleport, leave and illegal messages |
//! | `frames`, `notices` | what regions tell the session |
//! | `flush` | what the session tells the player's region |
//! | `resume` | the search for the player of a client that comes back |
//! | `ending` | how a session ends, and its timer |
//! | `inputs`, `link`, `line_places`, `shown` | parts: numbered inputs, the region, places in lines, the view |
//! | `memory`, `rate_limit`, `slow_client` | parts: what is known of the player, limits |
//!
//! The actor of a session (`actor::player`) is the only caller. A session never waits, never knows an
//! address, and never decides what its player does: that is the region's to judge.

mod client;
mod ending;
mod flush;
mod frames;
mod inputs;
mod io;
mod line_places;
mod link;
mod memory;
mod notices;
mod rate_limit;
mod resume;
mod shown;
mod slow_client;
#[cfg(test)]
mod tests;

pub use self::io::{
    Arrival, ClientRequest, Comeback, End, PlayerConfig, PlayerEffect, PlayerInput, Problem, Reply,
    SceneLines, ScenePlane, State, TeleportTarget,
};

use self::client::{give_back, refuse};
use self::inputs::{InputOutcome, Inputs};
use self::line_places::LinePlaces;
use self::link::Link;
use self::memory::Memory;
pub use self::rate_limit::RateLimit;
use self::resume::Search;
use self::shown::Shown;
use self::slow_client::SlowClient;
use super::messages::{FIRST_SESSION, NamedBond, Order};
use super::movement::ServerMs;
use super::properties::Properties;
use super::{
    Account, EntityId, Plane, Pos, SceneId, Seq, SessionId, SubjectHash, Tick, ViewLimits,
};

/// While inputs wait for their region, there may be room after so long.
const FULL_PAUSE_MS: u64 = 10;

/// The session of one client.
#[derive(Debug)]
pub struct Player {
    session: SessionId,
    /// Whose it is, from the hello on.
    subject: SubjectHash,
    account: Account,
    id: EntityId,
    /// Since when this session has its player, as the player's region counts.
    since_ms: u64,
    config: PlayerConfig,
    state: State,
    /// An operator has ended the session.
    is_kicked: bool,
    /// When the patience of the state ends; unused in the state InWorld.
    deadline_ms: u64,
    /// When the client's last message came.
    received_ms: u64,
    /// Malformed messages of the client.
    malformed: u32,
    rate_limit: RateLimit,
    inputs: Inputs,
    link: Link,
    search: Search,
    slow_client: SlowClient,
    memory: Memory,
    line_places: LinePlaces,
    sight: ViewLimits,
    shown: Shown,
    /// The newest tick that a region told of.
    tick: Tick,
    /// Regions know of it by its number.
    has_asked: bool,
}

impl Player {
    /// A session whose client has just connected. It has no entity yet.
    pub fn new(now_ms: u64, session: SessionId, config: PlayerConfig) -> Player {
        Player {
            session,
            subject: SubjectHash::NONE,
            account: Account::NONE,
            id: EntityId::NONE,
            since_ms: FIRST_SESSION,
            state: State::Connected,
            is_kicked: false,
            deadline_ms: now_ms.saturating_add(config.handshake_ms),
            received_ms: now_ms,
            malformed: 0,
            rate_limit: RateLimit::new(now_ms, config.rate_limit, config.rate_burst),
            inputs: Inputs::new(now_ms),
            link: Link::default(),
            search: Search::default(),
            slow_client: SlowClient::new(config.send_queue),
            memory: Memory::default(),
            line_places: LinePlaces::default(),
            sight: ViewLimits::NONE,
            shown: Shown::default(),
            tick: Tick(0),
            has_asked: false,
            config,
        }
    }

    /// Takes what happened and appends what is to be done, in order.
    pub fn handle(&mut self, now_ms: u64, input: PlayerInput<'_>, out: &mut Vec<PlayerEffect>) {
        match input {
            PlayerInput::Request(request) => self.request(now_ms, request, out),
            PlayerInput::Gone => self.part(now_ms, true, out),
            PlayerInput::Stop => self.stop(now_ms, End::GoingAway, "the server stops", out),
            PlayerInput::Drain => {
                self.stop(now_ms, End::Elsewhere, "this gateway stops: resume elsewhere", out);
            }
            PlayerInput::Dismiss(end, why) => self.dismiss(now_ms, end, why, out),
            PlayerInput::Frame { batch, index, queued } => {
                self.frame(now_ms, batch, index, queued, out);
            }
            PlayerInput::Claiming => self.wait_for_claim(now_ms),
            PlayerInput::Evict(player) => self.evict(now_ms, player),
            PlayerInput::Claimed(arrival) => self.claimed(now_ms, arrival, out),
            PlayerInput::Lost => self.slow_client.lost_before(),
            PlayerInput::Notice(notice) => self.notice(now_ms, notice, out),
            PlayerInput::Undelivered(input) => self.undelivered(&input),
            PlayerInput::Owner(region, epoch) => self.owner_is_new(region, epoch),
            PlayerInput::Choked => self.close(now_ms, End::Slow, "answers pile up unread", out),
            PlayerInput::Timer { queued } => self.timer(now_ms, queued, out),
        }
        self.flush(now_ms, out);
    }

    /// The client asks for something: each state has its legal messages.
    fn request(&mut self, now_ms: u64, request: ClientRequest, out: &mut Vec<PlayerEffect>) {
        if !self.client_is_here() {
            return give_back(&request, out);
        }
        self.received_ms = now_ms;
        self.rate_limit.draw(now_ms);
        if self.rate_limit.empty_for_ms(now_ms) >= self.config.flood_ms {
            give_back(&request, out);
            let (limit, s) = (self.config.rate_limit, self.config.flood_ms / 1_000);
            let why = format!("more than {limit} messages per second for {s} s");
            return self.close(now_ms, End::Rate, why, out);
        }
        match (self.state, request) {
            (_, ClientRequest::Alive) => {}
            (_, ClientRequest::Unsupported) => {
                self.close(now_ms, End::Unsupported, "only binary messages are taken", out);
            }
            (_, ClientRequest::TooBig(max)) => {
                let why = format!("a message may have at most {max} bytes");
                self.close(now_ms, End::TooBig, why, out);
            }
            (_, ClientRequest::Unframed) => {
                self.close(now_ms, End::Protocol, "a message of no bytes was announced", out);
            }
            (_, ClientRequest::TooManyFrames) => {
                let why = "far more WebSocket frames than messages are allowed";
                self.close(now_ms, End::Rate, why, out);
            }
            (_, ClientRequest::Garbage(problem)) => self.garbage(now_ms, problem, out),
            (State::Connected, ClientRequest::Hello(Ok((subject, account)))) => {
                (self.subject, self.account) = (subject, account);
                self.state = State::Greeted;
                out.push(PlayerEffect::Reply(Reply::Welcome));
            }
            (State::Connected, ClientRequest::Hello(Err((end, why)))) => {
                self.close(now_ms, end, why, out)
            }
            (State::Connected, request) => self.premature(&request, out),
            (_, ClientRequest::Ping(nonce)) => {
                out.push(PlayerEffect::Reply(Reply::Pong { nonce, tick: self.tick }));
            }
            (_, ClientRequest::AskLines(Ok(lines))) => {
                out.push(PlayerEffect::Reply(Reply::Lines(lines)))
            }
            (_, ClientRequest::AskLines(Err(problem))) => refuse(problem, None, out),
            (State::Greeted, ClientRequest::Join(Ok(arrival))) => self.join(now_ms, arrival),
            (State::Greeted, ClientRequest::Join(Err(problem))) => refuse(problem, None, out),
            (State::Greeted, ClientRequest::Resume(Ok(back))) => self.come_back(now_ms, back),
            (State::Greeted, ClientRequest::Resume(Err(problem))) => refuse(problem, None, out),
            (State::Greeted | State::Claiming | State::Resuming, ClientRequest::Leave) => {
                self.close(now_ms, End::Normal, "left", out)
            }
            (State::Joining | State::InWorld, ClientRequest::Leave) => self.leave(now_ms, out),
            (State::InWorld, ClientRequest::Input(seq, order)) => {
                self.order(now_ms, seq, order, out);
            }
            (State::InWorld, ClientRequest::Teleport(seq, target)) => {
                self.teleport(now_ms, seq, target, out)
            }
            (_, request) => self.premature(&request, out),
        }
    }

    /// Takes an input in, to be sent to the player's region; false when it is not.
    fn order(&mut self, now_ms: u64, seq: Seq, order: Order, out: &mut Vec<PlayerEffect>) -> bool {
        match self.inputs.take(now_ms, seq, order) {
            InputOutcome::Yes => return true,
            InputOutcome::Known => {}
            InputOutcome::OutOfOrder { expected } => {
                refuse(Problem::OutOfOrder { expected }, Some(seq), out);
            }
        }
        false
    }

    /// For how long the client's connection reads nothing, milliseconds: until there is room for the next message.
    pub fn pause_ms(&self, now_ms: u64) -> u64 {
        if !self.client_is_here() {
            return 0;
        }
        let is_full = self.inputs.waiting() >= self.config.unacknowledged_max;
        self.rate_limit.wait_ms(now_ms).max(if is_full { FULL_PAUSE_MS } else { 0 })
    }

    /// The client's connection reads nothing, because it was told so: the client is not silent.
    pub fn is_not_read(&mut self, now_ms: u64) {
        self.received_ms = now_ms;
    }

    /// Where the session stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// The session's number.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Whether regions were asked for a player, or to add one, under this number.
    pub fn has_asked(&self) -> bool {
        self.has_asked
    }

    /// Regions are asked under this number from now on.
    pub fn renumber(&mut self, session: SessionId) {
        (self.session, self.has_asked) = (session, false);
    }

    /// Whether a region may have added the session's entity.
    pub fn may_have_entered(&self) -> bool {
        self.link.may_have_entered()
    }

    /// The session's entity, which it has from the join on; [`EntityId::NONE`] before.
    pub fn id(&self) -> EntityId {
        self.id
    }

    /// Scene and plane of the entity; `None` before the join.
    pub fn place(&self) -> Option<ScenePlane> {
        self.line_places.now()
    }

    /// Where the player is, or was last, in ticks of `tick_ms` milliseconds; `None` before it was
    /// anywhere, and between two scenes.
    pub fn last_position(&self, tick_ms: u32) -> Option<(SceneId, Plane, Pos)> {
        self.memory.last_position(ServerMs(self.tick.0.saturating_mul(tick_ms.into())))
    }

    /// The player's properties as a region told them last.
    pub fn properties(&self) -> &Properties {
        self.memory.properties()
    }

    /// The player's bonds as a region told them last.
    pub fn bonds(&self) -> &[NamedBond] {
        &self.memory.bonds().named
    }

    /// The newest tick that a region told of.
    pub fn last_tick(&self) -> Tick {
        self.tick
    }

    /// The entities that the client is shown, in the order of their ids.
    pub fn shown(&self) -> &[EntityId] {
        self.shown.ids()
    }

    fn client_is_here(&self) -> bool {
        !matches!(self.state, State::Disconnected | State::Parting | State::Closed)
    }
}
