//! Deliberate bugs, by which a judge proves that it notices them: see `docs/simulation.md`.
//!
//! They exist only in builds with debug assertions, and there only on a thread that has asked for one. Everywhere
//! else each question after one is `false` before the program runs.

use std::cell::Cell;

/// A deliberate bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutant {
    /// An input is applied whatever its number is.
    AnyNumber,
    /// One of sixteen inputs is acknowledged and not applied.
    AckUnapplied,
    /// A handoff does not raise the entity's epoch.
    SameEpoch,
    /// A region does not know of neighbours that share no more than a corner with it.
    NoCorners,
    /// A handoff forgets the last input that was applied.
    NumberLost,
    /// A handoff forgets what the player has agreed on with others.
    PeersLost,
    /// A handoff forgets whom the client is shown.
    ShownLost,
    /// The new owner makes a frame of a tick of which the old one has made one.
    TwoFrames,
    /// Who has come is told of acts of a tick that it was told of where it lived before.
    ActsAgain,
    /// A player that comes back, or is presented, is taken as the checkpoint has it.
    OldPlace,
    /// Who hears that an entity lives elsewhere under a higher epoch keeps it.
    KeepsOld,
    /// What is handed over is not kept until it is safe.
    NoEscrow,
    /// A player whose client is away leaves at once.
    NoLinger,
    /// A session does not say again what was not acknowledged, to whatever owner.
    SaysOnce,
    /// A session passes frames on without those that were lost before.
    GapShown,
    /// A session that has missed frames does not ask for everything anew.
    NoResync,
    /// A session does not wait for the old owner's last frame.
    NoTurns,
    /// A region that has moved does not pass on what comes by the old way.
    NothingPassed,
    /// What is for a region whose address is not known is lost.
    NowhereLost,
    /// A former owner is believed, by processes and by regions.
    AnyEpoch,
    /// A lane does not send again what was lost with a connection.
    SentOnce,
    /// A lane takes what it has taken before.
    TakenTwice,
    /// A node acts beyond its lease.
    NoFence,
    /// A region that moves goes on before all marks are there.
    NoMarks,
    /// A region goes on empty after its owner's death.
    StartsEmpty,
    /// Sessions are not told that a region has a new owner.
    OwnerUntold,
    /// Acts of the first tick after a handoff are not told in third regions.
    NewcomersMute,
    /// A handoff that comes late has an entity act where it has gone on from.
    LateHandoff,
    /// Whoever is said by hearsay to live elsewhere is given up, whoever has died.
    Hearsay,
    /// A region that has missed what a neighbour said of its entities does not ask for it.
    GapUnasked,
    /// What was handed to a region that died is taken by its next owner, whatever that knows.
    HandedTwice,
    /// A region that is over is given up once, whether or not the store has heard it.
    GivenUpOnce,
    /// Whom a region has handed over just before its owner died its next owner does not hand over again.
    HandedOnce,
    /// A move that was ordered and did not come to pass is not tried again.
    MovedOnce,
    /// A session that searches for its player passes over that a region has another owner.
    OwnerPassedOver,
    /// An owner that is behind what was heard of the one before is taken for one that says everything twice.
    BehindUnheard,
    /// A region that goes on from a checkpoint does not know who owns the others.
    OwnersUnknown,
    /// A region that comes to a process in which it has gone on from a checkpoint meanwhile runs there twice.
    RunsTwice,
    /// What a dead process had taken is said once more to the next owner, as it was, since everything is acknowledged late.
    SaidToBoth,
    /// What a new neighbour says counts as a sequel to what it has said before, which was not heard.
    AheadUnheard,
    /// What a neighbour that is ahead says of thresholds counts for nothing once what it has said before is caught up with.
    ThresholdOutdated,
    /// A region that goes on from a checkpoint and asks of somebody where that one is about to come is never answered.
    AskedEarly,
    /// A region that dies gets back only those who were handed to it, not who was passed on to it by another that has died, too.
    PassedOnLost,
    /// Who is handed over again after a death stays where that was to, though an owner that is none any more may have gone on with it.
    KeptByOlder,
    /// A process that its peers hold for no member any more believes the store alone.
    Disowned,
    /// No bug by itself, and not among [`ALL`]: everything is acknowledged late. Nothing may come of it.
    AckedLate,
}

/// Those that the product makes up for: a run must hold with them.
pub const WITHSTOOD: [Mutant; 1] = [Mutant::AckedLate];

/// All that are bugs.
pub const ALL: [Mutant; 45] = [
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
    Mutant::NoLinger,
    Mutant::SaysOnce,
    Mutant::GapShown,
    Mutant::NoResync,
    Mutant::NoTurns,
    Mutant::NothingPassed,
    Mutant::NowhereLost,
    Mutant::AnyEpoch,
    Mutant::SentOnce,
    Mutant::TakenTwice,
    Mutant::NoFence,
    Mutant::NoMarks,
    Mutant::StartsEmpty,
    Mutant::OwnerUntold,
    Mutant::NewcomersMute,
    Mutant::LateHandoff,
    Mutant::Hearsay,
    Mutant::GapUnasked,
    Mutant::HandedTwice,
    Mutant::GivenUpOnce,
    Mutant::HandedOnce,
    Mutant::MovedOnce,
    Mutant::OwnerPassedOver,
    Mutant::BehindUnheard,
    Mutant::OwnersUnknown,
    Mutant::RunsTwice,
    Mutant::SaidToBoth,
    Mutant::AheadUnheard,
    Mutant::ThresholdOutdated,
    Mutant::AskedEarly,
    Mutant::PassedOnLost,
    Mutant::KeptByOlder,
    Mutant::Disowned,
];

thread_local! {
    static PRESENT: Cell<Option<Mutant>> = const { Cell::new(None) };
}

/// Whether this build has any.
pub const fn exist() -> bool {
    cfg!(debug_assertions)
}

/// From now on this thread has a bug, or none.
pub fn set(mutant: Option<Mutant>) {
    PRESENT.set(mutant);
}

/// Whether this thread has a bug.
#[inline]
pub fn has(mutant: Mutant) -> bool {
    exist() && PRESENT.get() == Some(mutant)
}
