//! What a session is told and what it wants done, as closed sets; its limits and its states.

use crate::scene::messages::{Destination, FrameBatch, Input, NamedBond, Notice, Order, Refusal};
use crate::scene::movement::{Own, ServerMs};
use crate::scene::properties::{Properties, PropertyRefusal};
use crate::scene::{Account, SubjectHash, Tick};
use crate::scene::{
    EntityId, Epoch, Facing, Plane, Pos, RangeSet, RegionId, SceneId, Seq, ViewLimits,
};

/// Where a session stands; see the chart in [`super`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing was said yet.
    Connected,
    /// The client may join.
    Greeted,
    /// The region was asked to add the entity.
    Joining,
    /// The client wants to join, and the entity that played its player before has to leave first.
    Claiming,
    /// Regions are asked for the entity of a client that comes back.
    Resuming,
    /// The entity lives in a region.
    InWorld,
    /// The client asked to leave and waits for the region's answer.
    Leaving,
    /// The client is disconnected and may come back with another session; the entity stays for a while.
    Disconnected,
    /// The client is gone for good; the region has still to remove the entity.
    Parting,
    /// Over.
    Closed,
}

/// The limits of a session. Times in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayerConfig {
    /// Messages that are read of the client per second.
    pub rate_limit: u32,
    /// Messages that are read at once after a silence.
    pub rate_burst: u32,
    /// How long a client may send as much as is read of it, before it counts as hostile.
    pub flood_ms: u64,
    /// The client must send a message at least this often.
    pub heartbeat_ms: u64,
    /// Time for the hello and the join; also for the region's answer to a join.
    pub handshake_ms: u64,
    /// Messages that may wait for the client. Beyond half of them the region is asked to hold.
    pub send_queue: usize,
    /// How long the client may be held before it is closed.
    pub slow_close_ms: u64,
    /// Malformed messages that are forgiven in a session.
    pub malformed_allowed: u32,
    /// Inputs that may wait for the region's acknowledgement; beside them the client is not read.
    pub unacknowledged_max: usize,
    /// After how long without an acknowledgement everything is sent again.
    pub resend_ms: u64,
    /// How long a client that leaves waits for the region's answer.
    pub leave_ms: u64,
    /// How long a session without a client waits for the region's answer.
    pub part_ms: u64,
    /// For how long a player stays in its scene when its client's connection breaks; 0: it leaves at once.
    pub grace_period_ms: u32,
    /// How long regions are asked for the player of a client that comes back.
    pub resume_ms: u64,
    /// Time between two resume tickets of a session. Each holds for `grace_period_ms` and twice
    /// this time.
    pub ticket_ms: u32,
}

impl Default for PlayerConfig {
    fn default() -> Self {
        PlayerConfig {
            rate_limit: 100,
            rate_burst: 1_000,
            flood_ms: 10_000,
            heartbeat_ms: 30_000,
            handshake_ms: 5_000,
            send_queue: 32,
            slow_close_ms: 10_000,
            malformed_allowed: 8,
            unacknowledged_max: 256,
            resend_ms: 1_000,
            leave_ms: 5_000,
            part_ms: 60_000,
            grace_period_ms: 0,
            resume_ms: 10_000,
            ticket_ms: 30_000,
        }
    }
}

/// Why a message was refused; the session goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Problem {
    #[error("{0}")]
    Malformed(String),
    #[error("{0}")]
    UnknownType(String),
    #[error("{0}")]
    BadField(String),
    #[error("{0}")]
    ActTooLong(String),
    #[error("{what} is not legal {}", during(.state))]
    Premature { what: &'static str, state: State },
    #[error("the next input must be number {expected}")]
    OutOfOrder { expected: Seq },
    #[error(
        "the position [{}, {}, {}] lies outside the scene of {width_cm} x {depth_cm} cm and heights within {height_limit_cm} cm of 0",
        .pos.x, .pos.y, .pos.z
    )]
    OutOfBounds { pos: Pos, width_cm: i32, depth_cm: i32, height_limit_cm: i32 },
    #[error("no scene is named {0:?}")]
    UnknownScene(String),
    #[error(
        "no line of scene {scene:?} has room: {lines} lines for {capacity} players each are full"
    )]
    NoRoom { scene: String, lines: i32, capacity: u32 },
    #[error("scene {scene:?} has no sight {}; a client may ask for one of {allowed:?}", .wanted.bits())]
    Sight { wanted: RangeSet, scene: String, allowed: Vec<u8> },
    #[error("only the server's logic says where players of scene {0:?} appear and teleport to")]
    MayNotTeleport(String),
    #[error(
        "plane {plane} of scene {scene:?} is none of its {lines} lines: the token must name it in `planes`, or the \
         server's logic brings players there"
    )]
    PrivatePlane { scene: String, plane: Plane, lines: i32 },
    #[error("the game does not let the player in: {0}")]
    NotAdmitted(String),
    #[error("another session of the same subject exists and has precedence")]
    SubjectTaken,
    #[error("the subject joins too often: it may join again in {wait_ms} ms")]
    JoinsTooOften { wait_ms: u64 },
    #[error("a teleport is under way: wait for its joined message")]
    Teleporting,
    #[error("{0}")]
    Property(PropertyRefusal),
    #[error("the region refused: {0:?}")]
    Region(Refusal),
    #[error("there is no such player any more: join anew")]
    Gone,
    #[error("the player was not found in time: try again, or join anew")]
    NotFound,
    #[error("{0}")]
    StoreAway(String),
    #[error("the player's earlier session has not ended yet: join again")]
    NotFree,
    #[error("the server has no names left for new players: use another gateway")]
    NoNames,
    #[error("the resume ticket is invalid: its player is another subject's")]
    OtherSubject,
    #[error("the resume ticket is invalid: {0}")]
    Ticket(String),
}

fn during(state: &State) -> &'static str {
    match state {
        State::Connected => "before the hello",
        State::Greeted => "between hello and join",
        State::Joining | State::Claiming | State::Resuming => "before the joined message",
        State::InWorld => "in a scene",
        State::Leaving | State::Disconnected | State::Parting | State::Closed => "after leave",
    }
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client left, or game logic removed its player.
    Normal,
    /// The server stops.
    GoingAway,
    /// This gateway stops; others go on.
    Elsewhere,
    /// The client has come back by another connection, or another session of its subject counts.
    Replaced,
    /// An operator ended the session, or bars its subject for a while.
    Kicked,
    /// Data that is no binary message.
    Unsupported,
    /// A message beyond the size limit.
    TooBig,
    /// Too many malformed messages.
    Protocol,
    /// Another protocol version.
    Version,
    /// A token that does not hold.
    Token,
    /// No hello or join in time.
    Handshake,
    /// A silent client.
    Heartbeat,
    /// Too many messages.
    Rate,
    /// A client that does not read.
    Slow,
    /// The server is too busy.
    Overload,
}

impl End {
    /// Whether the end is not the client's fault, so that the client may come back.
    pub fn is_excused(self) -> bool {
        match self {
            End::GoingAway | End::Elsewhere | End::Heartbeat | End::Slow | End::Overload => true,
            End::Normal
            | End::Replaced
            | End::Kicked
            | End::Unsupported
            | End::TooBig
            | End::Protocol
            | End::Version
            | End::Token
            | End::Handshake
            | End::Rate => false,
        }
    }
}

/// A join whose names were looked up and whose place in a line was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The player's entity.
    pub id: EntityId,
    /// Where to.
    pub to: Destination,
    /// Its sight: one that the scene allows.
    pub sight: ViewLimits,
    /// When the player was last where it appears: see
    /// [`Spawn::left_at`](crate::scene::messages::Spawn::left_at).
    pub left_at: Option<ServerMs>,
    /// The properties with which the player begins.
    pub properties: Properties,
    /// The bonds that were kept of the player.
    pub bonds: Vec<NamedBond>,
}

/// A client that comes back for its player.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comeback {
    /// The player.
    pub id: EntityId,
    /// The last input that the client knows to have been applied.
    pub acked: Seq,
    /// The regions in which the player is, most likely.
    pub ask: Vec<RegionId>,
    /// All others.
    pub ask_then: Vec<RegionId>,
    /// Whether these are all regions: if not, the player may exist although none of them knows it.
    pub all: bool,
}

/// A teleport whose names were looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TeleportTarget {
    /// Where to.
    pub to: Destination,
    /// Whether a place in a line was taken for it: it goes to another scene or plane.
    pub takes_place: bool,
}

/// The lines of a scene.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SceneLines {
    /// The scene.
    pub scene: SceneId,
    /// The open lines, and those with players, each with its players.
    pub open: Vec<(Plane, u32)>,
}

/// What a client asks for, decoded; names were looked up and the token was judged by the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientRequest {
    /// Hello, with whose the token is; the error is the end of the session and says why.
    Hello(Result<(SubjectHash, Account), (End, String)>),
    /// Join.
    Join(Result<Arrival, Problem>),
    /// Resume.
    Resume(Result<Comeback, Problem>),
    /// Move, walk, act, face or set.
    Input(Seq, Order),
    /// Teleport.
    Teleport(Seq, Result<TeleportTarget, Problem>),
    /// Ping with its nonce.
    Ping(u64),
    /// A question for the lines of a scene, with the answer.
    AskLines(Result<SceneLines, Problem>),
    /// Leave.
    Leave,
    /// What could not be decoded, and why.
    Garbage(Problem),
    /// Data that is no binary message.
    Unsupported,
    /// A message beyond the size limit, in bytes.
    TooBig(usize),
    /// The stream cannot be cut into messages any more.
    Unframed,
    /// Far more frames below the protocol than messages are allowed.
    TooManyFrames,
    /// A sign of life below the protocol (a WebSocket ping or pong).
    Alive,
}

/// What happens to a session.
#[derive(Debug)]
pub enum PlayerInput<'a> {
    /// The client asks for something.
    Request(ClientRequest),
    /// The client's connection ended.
    Gone,
    /// The server stops.
    Stop,
    /// This gateway stops, and others go on.
    Drain,
    /// The session ends, for this reason, and its player leaves at once.
    Dismiss(End, &'static str),
    /// A region's frame for this session.
    Frame {
        /// The region's frames.
        batch: &'a FrameBatch,
        /// Which of them is this session's.
        index: usize,
        /// Messages that now wait for the client.
        queued: usize,
    },
    /// A join waits until the entity has left that played the session's player before.
    Claiming,
    /// That entity does not leave by itself.
    Evict(Comeback),
    /// The join goes on, or is refused.
    Claimed(Result<Arrival, Problem>),
    /// The last messages of a former owner did not come in time.
    Lost,
    /// A region's notice.
    Notice(Notice),
    /// A region's mailbox was full (or closed): this was not delivered.
    Undelivered(Input),
    /// The region continues from a checkpoint, under this epoch: its owner may know less of its players than
    /// their sessions do. (A region that was only migrated knows all.)
    Owner(RegionId, Epoch),
    /// An answer found no room in the client's queue.
    Choked,
    /// Time passes: a few times a second.
    Timer {
        /// Messages that now wait for the client.
        queued: usize,
    },
}

/// A message for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To a hello.
    Welcome,
    /// To a join or a teleport.
    Joined {
        /// The scene.
        scene: SceneId,
        /// The plane.
        plane: Plane,
        /// Where the player stands.
        pos: Pos,
        /// The way it faces.
        facing: Facing,
        /// The tick from which this holds.
        tick: Tick,
        /// The sight in force.
        sight: ViewLimits,
        /// Its movement; `None` where places are trusted.
        own: Option<Box<Own>>,
        /// The last input that was applied.
        ack: Seq,
    },
    /// To a question for the lines of a scene.
    Lines(SceneLines),
    /// To a ping.
    Pong {
        /// The ping's nonce.
        nonce: u64,
        /// The newest tick that the session knows of.
        tick: Tick,
    },
    /// A message was refused.
    Refused {
        /// Why.
        problem: Problem,
        /// The input's number, where it had one; it is not consumed.
        seq: Option<Seq>,
    },
    /// A region has died that had applied these inputs: not all viewers may have been told of actions among them.
    Unconfirmed {
        /// The first.
        first: Seq,
        /// The last.
        last: Seq,
    },
    /// To a leave.
    Left {
        /// The first tick in which no client is shown the player.
        tick: Tick,
    },
}

/// What a session wants done.
#[derive(Debug, Clone)]
pub enum PlayerEffect {
    /// Tell a region. To [`Input::Enter`] the shell adds the session's address.
    ToRegion(RegionId, Input),
    /// Tell the client.
    Reply(Reply),
    /// Pass the frame that is being handled on to the client.
    Forward,
    /// Take a place in a plane to which game logic brought the player.
    Take(SceneId, Plane),
    /// Give a place in a plane back.
    GiveBack(SceneId, Plane),
    /// Tell the client why, and close its connection.
    Close(End, String),
    /// Nothing is left to do.
    Done,
}

/// Scene and plane of a player: what it occupies a place in.
pub type ScenePlane = (SceneId, Plane);
