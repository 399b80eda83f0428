//! Numbers in messages of peers that cannot be true: the message is dropped before any part of it
//! is applied. A receiver keeps the highest epoch, tick, time or version, so one wrong number would
//! shut out everything that comes after it.
//!
//! | number | what can be true |
//! |---|---|
//! | a region's epoch | at most 2^24 above the newest one that the store has reported |
//! | an entity's epoch | at most as many lives as that |
//! | a tick | at most 2^20 ahead of the cluster's clock, with the shortest ticks that there are |
//! | a time; a version of a door or a private plane, which is a time | at most an hour ahead of the cluster's clock |
//! | the generation of a worker's leases | below 2^32 |
//!
//! Regions compare the numbers of their neighbours with their own, too
//! (`src/scene/region/plausibility.rs`).

use std::time::Duration;

use purview::scene::messages::{Change, Handoff, Input, KeptBonds, MapNews, Notice};
use purview::scene::views::GroupRelation;
use purview::scene::{Epoch, RegionId, Tick};
use purview::wire::peer::query::{Question, SubjectClaim};
use purview::wire::peer::{MoveMsg, PeerMsg, WorkerMsg, speaker};

/// How far an owner's epoch may be above the newest epoch known from the store.
const EPOCHS_AHEAD: u64 = 1 << 24;

/// The highest plausible epoch before the store has answered.
const EPOCH_MAX: u64 = 1 << 42;

/// How far ahead of the cluster's clock a tick may be.
const TICKS_AHEAD: u64 = 1 << 20;

/// How far ahead of the cluster's clock a time may be.
const TIME_AHEAD: Duration = Duration::from_secs(3_600);

/// Why a message cannot be true. No part of it was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {found}; at most {most} is plausible now")]
pub struct Implausible {
    pub what: &'static str,
    /// What the message says.
    pub found: u64,
    /// The highest that can be true.
    pub most: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// The newest epoch known from the store; 0: none yet.
    pub(super) newest: u64,
    /// The cluster's clock.
    pub(super) now: Duration,
    /// The length of the shortest ticks that there are, milliseconds.
    pub(super) tick_ms: u32,
}

impl Known {
    pub(super) fn check(self, message: &PeerMsg) -> Result<(), Implausible> {
        match message {
            PeerMsg::Region { epoch, input, .. } => self.input(*epoch, input),
            PeerMsg::Frames { batch, .. } => self.tick("the tick of frames", batch.tick),
            PeerMsg::Notice { notice, .. } => self.notice(notice),
            PeerMsg::Move(msg) => match &**msg {
                MoveMsg::Prepare { epoch, .. }
                | MoveMsg::Ready { epoch, .. }
                | MoveMsg::Cargo { epoch, .. }
                | MoveMsg::Moved { epoch, .. } => self.epoch("the epoch of a move", *epoch),
                MoveMsg::Passed { epoch, input, .. } => self.input(*epoch, input),
                MoveMsg::Marked { .. } => Ok(()),
            },
            PeerMsg::Ask { question, .. } => match question {
                Question::Claims(claims) => self.claims(claims),
                Question::Players
                | Question::Entity(_)
                | Question::Lines
                | Question::Clock
                | Question::Loads
                | Question::Balance => Ok(()),
            },
            PeerMsg::Answered { answer, .. } => self.claims(&answer.claims),
            PeerMsg::Worker(msg) => self.worker(msg),
            PeerMsg::Gone(_)
            | PeerMsg::Busy { .. }
            | PeerMsg::Suspect(_)
            | PeerMsg::CommandResult(_) => Ok(()),
        }
    }

    fn input(self, epoch: Epoch, input: &Input) -> Result<(), Implausible> {
        let of: Option<RegionId> = speaker(input);
        if of.is_some() {
            self.epoch("the epoch of a region", epoch)?;
        }
        match input {
            Input::Present(presented) => {
                self.bonds(&presented.bonds)?;
                self.ms("the time of a session", presented.since_ms)
            }
            Input::Enter(spawn) => self.bonds(&spawn.bonds),
            Input::Resume(resume) => self.ms("the time of a session", resume.since_ms),
            Input::Handoff(handoff) => self.handoff(handoff),
            Input::Claims(claims) => claims.handed.iter().try_for_each(|h| self.handoff(h)),
            Input::Group(message) => self.ms("the time of a message", message.sent_ms),
            Input::Scene(order) => {
                let (at, version) = order.when();
                self.tick("the tick of an order for a scene", at)?;
                self.version("the version of an order for a scene", version)
            }
            Input::Map(news) => self.layout(news),
            Input::Border(batch) => self.relations(&batch.relations),
            // Regions check what else these say.
            Input::BorderLost(_)
            | Input::BorderRound(_)
            | Input::View(_)
            | Input::Recovered(_)
            | Input::Elsewhere { .. }
            | Input::Leave(_)
            | Input::Client { .. }
            | Input::Bonds { .. }
            | Input::Tell { .. }
            | Input::Hold { .. }
            | Input::Release { .. }
            | Input::Resync { .. }
            | Input::Disconnected { .. }
            | Input::Kicked { .. }
            | Input::Command(_)
            | Input::Locate(_)
            | Input::CommandResult(_) => Ok(()),
        }
    }

    fn handoff(self, handoff: &Handoff) -> Result<(), Implausible> {
        self.bonds(&handoff.state.bonds)?;
        self.ms("the time of a session", handoff.since_ms)
    }

    fn bonds(self, bonds: &KeptBonds) -> Result<(), Implausible> {
        self.tick("the tick of bonds", bonds.at)
    }

    fn relations(self, relations: &[GroupRelation]) -> Result<(), Implausible> {
        relations.iter().try_for_each(|relation| {
            self.tick("the tick of a relation", relation.at)?;
            self.version("the version of a relation", relation.version)
        })
    }

    fn layout(self, news: &MapNews) -> Result<(), Implausible> {
        match &news.change {
            Change::Ceded { doors, relations, contents } => {
                self.relations(relations)?;
                let version = |version| self.version("the version of a door", version);
                if let Some(contents) = contents {
                    let resets = contents.planes.iter().map(|(_, open)| open.reset.0);
                    let orders = contents.orders.iter().map(|order| order.version);
                    resets.chain(orders).try_for_each(version)?;
                }
                let Some(doors) = doors else { return Ok(()) };
                doors.doors.iter().try_for_each(|door| version(door.version))?;
                doors.resets.iter().try_for_each(|(_, reset, _)| version(*reset))?;
                doors.orders.iter().try_for_each(|order| version(order.version))
            }
            Change::Ended => Ok(()),
        }
    }

    fn notice(self, notice: &Notice) -> Result<(), Implausible> {
        match notice {
            Notice::Route(route) => {
                self.entity(route.epoch)?;
                self.tick("the tick of a route", route.tick)
            }
            Notice::Present { owner, epoch, .. } => {
                self.epoch("the epoch of an owner", *owner)?;
                self.entity(*epoch)
            }
            Notice::Resumed(found) => {
                self.entity(found.epoch)?;
                self.tick("the tick of a resumed player", found.tick)?;
                self.ms("the time of a session", found.since_ms)
            }
            Notice::Stays { epoch, .. } => self.entity(*epoch),
            Notice::Bonds { epoch, bonds } => {
                self.entity(*epoch)?;
                self.bonds(bonds)
            }
            // The session ends with it.
            Notice::Left { .. }
            | Notice::Nowhere { .. }
            | Notice::Replaced
            | Notice::OtherSubject
            | Notice::Refused(_)
            | Notice::Kicked => Ok(()),
        }
    }

    fn claims(self, claims: &[SubjectClaim]) -> Result<(), Implausible> {
        claims.iter().try_for_each(|claim| self.ms("the time of a claim", claim.stamp.at_ms))
    }

    fn worker(self, msg: &WorkerMsg) -> Result<(), Implausible> {
        match msg {
            WorkerMsg::Planes(news) => news.iter().try_for_each(|news| {
                self.version("the version of a private plane", news.version.count)
            }),
            WorkerMsg::Told(told) => self.epoch("the epoch of a lease", told.lease.epoch),
            WorkerMsg::Answer(answer) => self.epoch("the epoch of a lease", answer.lease.epoch),
            WorkerMsg::Ended { lease, .. } => self.epoch("the epoch of a lease", lease.epoch),
            WorkerMsg::Got(got) => self.epoch("the epoch of a region", got.epoch),
            WorkerMsg::Here { .. }
            | WorkerMsg::Refused { .. }
            | WorkerMsg::Ask(_)
            | WorkerMsg::Verdict { .. } => Ok(()),
        }
    }

    fn most_epoch(self) -> Epoch {
        Epoch(match self.newest {
            0 => EPOCH_MAX,
            newest => newest.saturating_add(EPOCHS_AHEAD),
        })
    }

    fn epoch(self, what: &'static str, found: Epoch) -> Result<(), Implausible> {
        at_most(what, found.0, self.most_epoch().0)
    }

    fn entity(self, found: Epoch) -> Result<(), Implausible> {
        at_most("the epoch of an entity", found.0, self.most_epoch().of_birth().0)
    }

    fn tick(self, what: &'static str, found: Tick) -> Result<(), Implausible> {
        let now = whole(self.now.as_millis()) / u64::from(self.tick_ms.max(1));
        at_most(what, found.0, now.saturating_add(TICKS_AHEAD))
    }

    fn ms(self, what: &'static str, found: u64) -> Result<(), Implausible> {
        at_most(what, found, whole((self.now + TIME_AHEAD).as_millis()))
    }

    /// A version is the cluster's clock in microseconds.
    fn version(self, what: &'static str, found: u64) -> Result<(), Implausible> {
        at_most(what, found, whole((self.now + TIME_AHEAD).as_micros()))
    }
}

fn at_most(what: &'static str, found: u64, most: u64) -> Result<(), Implausible> {
    if found <= most { Ok(()) } else { Err(Implausible { what, found, most }) }
}

fn whole(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
