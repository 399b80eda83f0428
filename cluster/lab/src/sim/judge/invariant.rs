//! The invariants, and what a violation of one says.

use std::fmt;
use std::time::Duration;

use purview::scene::EntityId;

/// What must hold at any time. `docs/contributing/simulation.md` has the table for readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Invariant {
    /// At most one place acts for an entity: the one of the newer epoch, from its first tick on.
    OneReal,
    /// Under each epoch one process acts for a region, and none under an older epoch than one that has acted.
    OneAuthority,
    /// Inputs are applied in order and once, within one incarnation of the entity.
    InputOrder,
    /// A client receives each action of a player at most once, and in order.
    ActOrder,
    /// A client receives every action of the players that it is shown, except what a fault may cost.
    ActReceived,
    /// An acknowledged input stays applied.
    AckHolds,
    /// A client is told an enter only for an entity out of view, and a leave or a move only for one in view.
    ViewSound,
    /// A client is never shown a player where it never was, or at an older position than the last one.
    PlaceOrder,
    /// Entities in view never flicker out.
    ViewContinuity,
    /// Players that stay near each other are shown to each other soon, while no process dies and no link is cut.
    ViewComplete,
    /// A client is shown at most as many players as the cap allows.
    ViewCap,
    /// Ghosts are at most one tick old while every link works, and gone after 31 ticks of silence.
    GhostAge,
    /// No client loses its player.
    ClientStays,
    /// Game logic is told whose each player is, wherever the player goes.
    AccountTold,
    /// At rest every entity is where its client put it, and is shown to exactly the clients near it.
    Quiescence,
    /// Queues for a peer stay within their bound.
    Bounded,
    /// At rest all gold is what lairs have given out, and clients know every property as it is.
    Wealth,
    /// Hit points never return by themselves.
    HitPoints,
    /// A monster that is dead does nothing any more.
    DeadActs,
    /// At most one player has the gold of a drop.
    TakenOnce,
    /// What the logic of a region was told adds up to what lives there.
    LogicTold,
    /// What the logic was told to be sighted and lost is what is in the watch radius.
    Sighted,
    /// A command is applied once, and its end is told.
    CommandOnce,
    /// No client is told a property that is for the server.
    Audience,
    /// Logic workers answer each action of a client once.
    AnsweredOnce,
    /// A worker's command that was acknowledged as durable stays applied.
    Durable,
    /// A region gives the commands of one worker.
    OneWorker,
    /// A worker knows of its regions what is there, and is told in order.
    WorkerTold,
    /// An id for a new entity is given to one worker, once.
    NewIds,
    /// A player has the bonds that logic has given it, wherever it goes.
    BondsLast,
    /// A client is told a message of the logic only if it is for it, and once.
    ToldOnce,
    /// A client is told the messages of one sender in their order.
    ToldOrder,
    /// A client is told every message that is for it, except what a fault may cost.
    ToldAll,
    /// A persistent value never goes back behind what a client was shown as stored.
    StoredHolds,
    /// A portal takes each player that walks into its area, once, and no other player.
    PortalTakes,
    /// Nobody walks onto a tile that another entity occupies, on either side of a border.
    TilesHeld,
    /// A player's limit of sight is what logic has given it last, wherever it goes.
    SightLasts,
    /// A player is shown the things within its sight, and none beyond.
    ThingsShown,
    /// A player that has left stays until its linger time is over, and a new login takes it over.
    Lingers,
}

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub invariant: Invariant,
    /// The step after which the judge noticed it.
    pub step: u64,
    /// The virtual time since the start.
    pub at: Duration,
    /// The entities concerned.
    pub who: Vec<EntityId>,
    /// What the judge saw.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { invariant, step, at, text, .. } = self;
        write!(f, "{invariant:?} at step {step} ({:.3} s): {text}", at.as_secs_f64())
    }
}
