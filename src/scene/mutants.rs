//! Deliberate bugs (mutants), by which the simulation proves that its judge notices them: see
//! `docs/contributing/simulation.md`.
//!
//! They exist only in builds with debug assertions, and only on a thread that has enabled one. In
//! all other builds [`has`] is a constant `false`, so a mutant must never change production code
//! otherwise.

use std::cell::Cell;

/// A deliberate bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutant {
    /// The region applies an input whatever its number.
    AnyNumber,
    /// One of sixteen inputs is acknowledged but not applied.
    AckUnapplied,
    /// A handoff does not increase the entity's epoch.
    SameEpoch,
    /// A region ignores neighbours that share only a corner with it.
    NoCorners,
    /// A handoff drops the number of the last input that was applied.
    NumberLost,
    /// A handoff drops the player's view registers.
    PeersLost,
    /// A handoff drops which entities the client is shown.
    ShownLost,
    /// A handoff drops whose the player is.
    AccountLost,
    /// A player that goes to another scene leaves its bonds behind.
    BondsLost,
    /// The new owner makes a frame for a tick in which the old owner has made one.
    TwoFrames,
    /// A client is told actions again after a handoff that the old region has told it.
    ActsAgain,
    /// A player that resumes or is presented gets its position from the checkpoint.
    OldPlace,
    /// A region keeps an entity although it learns that another region owns it under a higher
    /// epoch.
    KeepsOld,
    /// The source of a handoff keeps no escrow copy.
    NoEscrow,
    /// A player whose client is disconnected leaves at once, without a grace period.
    NoGracePeriod,
    /// A session does not repeat unacknowledged inputs to a new owner.
    SaysOnce,
    /// A resync does not tell the actions of the frames that were lost.
    GapActsLost,
    /// A session passes frames on without those that were lost before.
    GapShown,
    /// A session that has missed frames does not request a resync.
    NoResync,
    /// A session does not wait for the old owner's last frame.
    NoReorder,
    /// A migrated region's old process does not forward what arrives by the old route.
    NothingPassed,
    /// A message for a region with an unknown address is lost.
    NowhereLost,
    /// Processes and regions accept messages from former owners.
    AnyEpoch,
    /// A channel does not resend what was lost with a connection.
    SentOnce,
    /// A channel accepts a message twice.
    ReceivedTwice,
    /// A node acts beyond its lease.
    NoFence,
    /// A migrating region resumes before all marks have arrived.
    NoMarks,
    /// A region arrives before its new process has heard of migrations that the old one knew.
    MovesUnheard,
    /// A region starts empty after its owner's death.
    StartsEmpty,
    /// Sessions are not told that a region has a new owner.
    OwnerUntold,
    /// Third regions are not told the actions of the first tick after a handoff.
    NewcomersMute,
    /// A full batch does not repeat the actions that the neighbour may have missed.
    ActionsOnce,
    /// An entity does not take its actions along to its next region.
    ActionsLeft,
    /// A player that comes is not told the actions that it has missed on its way.
    WayUntold,
    /// A late handoff makes an entity act where it has already moved on from.
    LateHandoff,
    /// A region gives up an entity that a third party reports elsewhere, even if that report is of
    /// a dead region.
    Hearsay,
    /// A region that has missed a neighbour's border batch does not request a resync.
    GapUnasked,
    /// The next owner of a dead region accepts handoffs to it even if it knows better.
    HandedTwice,
    /// The record of a region that is given up is written once, whether or not the store received
    /// it.
    GivenUpOnce,
    /// The next owner of a region does not repeat the handoffs that its predecessor made just
    /// before it died.
    HandedOnce,
    /// A migration that was ordered and failed is not tried again.
    MovedOnce,
    /// A session that searches for its player ignores that a region has another owner.
    OwnerPassedOver,
    /// A restored owner that is behind its predecessor is taken for a sender of duplicates.
    BehindSilent,
    /// A restored region does not know which regions own the entities that it handed on.
    OwnersUnknown,
    /// A region arrives in a process that has restored it meanwhile, and runs there twice.
    RunsTwice,
    /// Messages that a dead process had received are sent unchanged to the next owner, too.
    /// Combined with late acknowledgements.
    SaidToBoth,
    /// A new neighbour's batch counts as the continuation of earlier batches, which never arrived.
    AheadSilent,
    /// Thresholds from a neighbour that is ahead are dropped once its earlier batches are caught up
    /// with.
    ThresholdOutdated,
    /// A question of a restored region about an entity, asked where the entity is about to arrive,
    /// is never answered.
    AskedEarly,
    /// A restored region gets back only the entities handed to it directly, not those that a second
    /// dead region had passed on to it.
    PassedOnLost,
    /// An entity that is handed over again after a death stays with the receiver, even if a former
    /// owner may have continued it since.
    KeptByOlder,
    /// A process that its peers no longer count as a member believes the store alone.
    Disowned,
    /// A handoff drops which entities the entity has in its watch radius.
    WatchLost,
    /// Entities that watch overlook ghosts.
    GhostsUnwatched,
    /// The logic is not told that an entity has left a watch radius.
    LostUntold,
    /// Entities are sighted as soon as they are within the leave radius.
    SightedFar,
    /// A command of another region is applied again when it comes again.
    CommandTwice,
    /// One of eight commands for entities of other regions gets lost.
    CommandLost,
    /// The first region that does not have an entity decides that nobody has it.
    SearchedOnce,
    /// A region says of every tick at once that nothing can undo it.
    DurableAtOnce,
    /// A handoff takes along only the properties that a client may be told.
    SecretsLost,
    /// Clients are told the properties for the server, too.
    SecretsTold,
    /// One of eight changes of a property is not told to clients.
    ChangeUntold,
    /// What happens in a region after the call of its logic is never told to the logic.
    EventsLost,
    /// A handoff drops which commands of other regions were applied.
    NumbersLost,
    /// A worker's batches are told to be durable as soon as they count.
    DurableEarly,
    /// A region counts answers of any lease, of any worker and under any epoch.
    AnyLease,
    /// A checkpoint has none of the commands that wait in a region's outbox.
    OutboxLost,
    /// A held command leaves before its batch is saved.
    HeldEarly,
    /// A worker that wants more ids gets those again that it had first.
    IdsAgain,
    /// The next worker of a region is not told of actions that the one before has not handled.
    ActsForgotten,
    /// A region that was given up ends before its worker has handled all actions.
    ActsGivenUp,
    /// The next worker of a region is told of actions, too, that the one before has handled.
    ActsToldAgain,
    /// A player that has changed the region is told messages to groups again.
    ToldAgain,
    /// A player that arrives is not told the messages to groups that it has missed on its way.
    MissedUntold,
    /// While a layout changes, messages for a scene go to the regions of the new layout alone.
    FormerUntold,
    /// A client is told the messages of a tick in the wrong order.
    ToldBackwards,
    /// A message to a bond is told to all.
    ToldToAll,
    /// A player begins with what was read before its record was claimed.
    EarlyRead,
    /// A player whose client has left leaves at once, whatever holds it.
    LeavesAtOnce,
    /// Handoffs and snapshots forget how long a player stays.
    StayLost,
    /// Entities in view of each other stay so, however far apart in height they are.
    HeightForgotten,
    /// A handoff forgets that a client has asked for a shorter view list.
    CapForgotten,
    /// A portal takes players that were put down in its area.
    PortalBounces,
    /// Entities that live beyond a border block nobody's way.
    GhostsPassable,
    /// A region that recovers does not make the contents anew that its checkpoint has left out.
    ContentsForgotten,
    /// Regions do not learn from their neighbours how groups stand to each other.
    RelationsUnlearned,
    /// A handoff forgets how far logic lets a player see.
    SightForgotten,
    /// Commands are done whatever epoch they name.
    TermsIgnored,
    /// Of a row of commands those that can be done are done.
    RowTorn,
    /// Players see entities of every kind as far as each other, whatever the circle of the kind.
    CircleIgnored,
    /// A node is relieved as soon as it is hot.
    RelievedAtOnce,
    /// The planner counts no ghosts.
    GhostsFree,
    /// The planner starts any number of moves in a minute.
    MovesUnlimited,
    /// The planner cuts regions that are narrower than the band of a border.
    NarrowCut,
    /// Not a bug by itself, and not in [`ALL`]: all acknowledgements are late. A run must hold
    /// nevertheless.
    AckedLate,
}

/// Mutants that the product tolerates: a run must hold with them.
pub const WITHSTOOD: [Mutant; 1] = [Mutant::AckedLate];

/// All mutants that are bugs and that a run without a game shows.
pub const ALL: [Mutant; 55] = [
    Mutant::AnyNumber,
    Mutant::AckUnapplied,
    Mutant::SameEpoch,
    Mutant::NoCorners,
    Mutant::NumberLost,
    Mutant::PeersLost,
    Mutant::ShownLost,
    Mutant::TwoFrames,
    Mutant::ActsAgain,
    Mutant::OldPlace,
    Mutant::KeepsOld,
    Mutant::NoEscrow,
    Mutant::NoGracePeriod,
    Mutant::SaysOnce,
    Mutant::GapActsLost,
    Mutant::GapShown,
    Mutant::NoResync,
    Mutant::NoReorder,
    Mutant::NothingPassed,
    Mutant::NowhereLost,
    Mutant::AnyEpoch,
    Mutant::SentOnce,
    Mutant::ReceivedTwice,
    Mutant::NoFence,
    Mutant::NoMarks,
    Mutant::MovesUnheard,
    Mutant::StartsEmpty,
    Mutant::OwnerUntold,
    Mutant::NewcomersMute,
    Mutant::ActionsOnce,
    Mutant::ActionsLeft,
    Mutant::WayUntold,
    Mutant::LateHandoff,
    Mutant::Hearsay,
    Mutant::GapUnasked,
    Mutant::HandedTwice,
    Mutant::GivenUpOnce,
    Mutant::HandedOnce,
    Mutant::MovedOnce,
    Mutant::OwnerPassedOver,
    Mutant::BehindSilent,
    Mutant::OwnersUnknown,
    Mutant::RunsTwice,
    Mutant::SaidToBoth,
    Mutant::AheadSilent,
    Mutant::ThresholdOutdated,
    Mutant::AskedEarly,
    Mutant::PassedOnLost,
    Mutant::KeptByOlder,
    Mutant::Disowned,
    Mutant::HeightForgotten,
    Mutant::CapForgotten,
    Mutant::PortalBounces,
    Mutant::GhostsPassable,
    Mutant::ContentsForgotten,
];

/// Bugs that only a run with a game's logic can show.
pub const GAME: [Mutant; 14] = [
    Mutant::AccountLost,
    Mutant::BondsLost,
    Mutant::WatchLost,
    Mutant::GhostsUnwatched,
    Mutant::LostUntold,
    Mutant::SightedFar,
    Mutant::CommandTwice,
    Mutant::CommandLost,
    Mutant::SearchedOnce,
    Mutant::DurableAtOnce,
    Mutant::SecretsLost,
    Mutant::SecretsTold,
    Mutant::ChangeUntold,
    Mutant::EventsLost,
];

/// Bugs that only a run shows whose logic limits sights.
pub const SIGHTS: [Mutant; 2] = [Mutant::SightForgotten, Mutant::CircleIgnored];

/// Bugs that only a run with messages of the logic can show.
pub const MESSAGES: [Mutant; 6] = [
    Mutant::ToldAgain,
    Mutant::MissedUntold,
    Mutant::FormerUntold,
    Mutant::ToldBackwards,
    Mutant::ToldToAll,
    Mutant::RelationsUnlearned,
];

/// Bugs that only a run with several sessions of a subject can show.
pub const SESSIONS: [Mutant; 3] = [Mutant::EarlyRead, Mutant::LeavesAtOnce, Mutant::StayLost];

/// Bugs that only a run with logic workers can show.
pub const WORKERS: [Mutant; 11] = [
    Mutant::NumbersLost,
    Mutant::DurableEarly,
    Mutant::AnyLease,
    Mutant::OutboxLost,
    Mutant::HeldEarly,
    Mutant::IdsAgain,
    Mutant::ActsForgotten,
    Mutant::ActsGivenUp,
    Mutant::ActsToldAgain,
    Mutant::TermsIgnored,
    Mutant::RowTorn,
];

/// Bugs of the planner, which decides on loads.
pub const BALANCING: [Mutant; 4] =
    [Mutant::RelievedAtOnce, Mutant::GhostsFree, Mutant::MovesUnlimited, Mutant::NarrowCut];

/// Every mutant that is a bug.
pub fn every() -> impl Iterator<Item = Mutant> {
    let of_logic = GAME.into_iter().chain(WORKERS).chain(MESSAGES).chain(SESSIONS).chain(SIGHTS);
    ALL.into_iter().chain(of_logic).chain(BALANCING)
}

thread_local! {
    static PRESENT: Cell<Option<Mutant>> = const { Cell::new(None) };
    /// One bit for each mutant.
    static REACHED: Cell<u128> = const { Cell::new(0) };
}

/// Whether mutants exist in this build.
pub const fn exist() -> bool {
    cfg!(debug_assertions)
}

/// Enables a mutant on this thread; `None` disables it.
pub fn set(mutant: Option<Mutant>) {
    PRESENT.set(mutant);
}

/// Whether a test fails with the mutant, on this thread: for tests beside a protocol whose bug no run of the simulator is
/// known to find.
pub fn is_noticed_by(mutant: Mutant, test: fn()) -> bool {
    set(Some(mutant));
    let result = std::panic::catch_unwind(test);
    set(None);
    result.is_err()
}

/// Whether this thread has the mutant enabled. Asked where the answer makes a difference, and nowhere else: a run that
/// never asks is the same with the mutant.
#[inline]
pub fn has(mutant: Mutant) -> bool {
    if !exist() {
        return false;
    }
    REACHED.set(REACHED.get() | 1 << mutant as u32);
    PRESENT.get() == Some(mutant)
}

/// Which of these mutants this thread has enabled: [`has`] of each.
#[inline]
pub fn has_one_of(mutants: &[Mutant]) -> Option<Mutant> {
    let enabled = |one, mutant: &Mutant| if has(*mutant) { Some(*mutant) } else { one };
    if exist() { mutants.iter().fold(None, enabled) } else { None }
}

/// Tells which mutants this thread has asked for since the last call.
pub fn take_reached() -> impl Fn(Mutant) -> bool {
    let reached = REACHED.take();
    move |mutant| reached & (1 << mutant as u32) != 0
}
