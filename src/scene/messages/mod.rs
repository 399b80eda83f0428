//! The messages of the scene, as closed sets: what goes into a region and what comes out of it.
//!
//! | module | holds |
//! |---|---|
//! | [`order`] | what an entity is ordered to do, and what it begins as |
//! | [`frame`] | what clients are told in a tick |
//! | [`session`] | what a region and a player's session tell each other about the player |
//! | [`border`] | what regions tell each other |
//! | [`logic`] | what the game's logic is told, and what it wants done |
//! | [`logic_message`] | what the game's logic tells clients |
//! | [`input`] | all that a region is told |
//! | [`effect`] | all that a region wants done |
//!
//! These modules hold data and no rule. Regions, sessions, `wire` and the actors use them; they use
//! none of these.

pub mod border;
pub mod effect;
pub mod frame;
pub mod heard;
pub mod input;
pub mod logic;
pub mod logic_message;
pub mod order;
pub mod session;

pub use crate::scene::spec::MAX_ACTION_BYTES;
pub use border::{
    ActionsDue, BorderBatch, BorderRoundBatch, Change, Claim, Claims, GhostChange, GhostLeave,
    GhostLevels, GhostLinks, GhostState, Handoff, MapNews, PastAction, Recovered, SeenState,
};
pub use effect::Effect;
pub use frame::{
    Crowd, Entering, Following, FrameBatch, InputRefused, KIND_OF, KINDS, LISTS, Moving,
    PropertyUpdate, Refusal, SessionFrame, Subset, TrajectoryUpdate,
};
pub use heard::Heard;
pub use input::Input;
pub use logic::{
    After, Asked, Asker, Command, CommandError, CommandId, CommandResult, EnterCause, Found,
    LeaveCause, Locate, LogicEvent, MAX_HOLD_MS, Mark, SentCommand, Sight, Sought, Taken,
    UNANSWERED_TICKS, WatchState,
};
pub use logic_message::{
    GroupMessage, LogicMessage, MAX_MESSAGE_BYTES, MessageId, MessageKind, Recipients,
};
pub use order::{
    Destination, EntityAction, Motion, Order, SceneChange, SceneOrder, SetProperty, Spawn, Speaker,
};
pub use session::{
    Departed, FIRST_SESSION, Notice, Presented, Resume, ResumeFor, Resumed, RouteNotice,
};

pub use super::views::{Bond, KeptBonds, MAX_BONDS, NamedBond};
