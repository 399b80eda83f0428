//! Messages of other regions that cannot be true are refused before any part is applied: one wrong
//! number must not shut out all messages that come after it.
//!
//! | number | what can be true |
//! |---|---|
//! | a region's epoch | at most 2^40 above this region's own: both are drawn from one counter |
//! | an entity's epoch | at most as many lives as that |
//! | a property's version | at most 2^31: half of what there is |
//! | a tick | at most 2^20 ahead of this region's own; before its first tick, below 2^62 |
//!
//! Where this region runs in a cluster, `link` compares region epochs with the store's newest, too, which is closer.

use super::Region;
use crate::scene::messages::{BorderBatch, BorderRoundBatch, Claim, Handoff};
use crate::scene::messages::{Input, Presented};
use crate::scene::properties::Properties;
use crate::scene::views::ViewMsg;
use crate::scene::{EntityId, Epoch, RegionId, Tick};

/// How far above this region's epoch another one's may be: more grants than a cluster makes in its life.
const EPOCHS_AHEAD: u64 = 1 << 40;

/// How far ahead of this region another one may be: almost three hours where a tick takes 10 ms. A
/// region that is farther has another clock.
const TICKS_AHEAD: u64 = 1 << 20;

/// The last tick that is taken for one by a region that does not know what time it is.
const LAST_TICK: u64 = 1 << 62;

/// The highest version of a property that a message may bring: each of these takes more sets than a
/// cluster makes in its life, and a version at the end of its type would be the property's last.
const LAST_VERSION: u32 = 1 << 31;

/// Why a message is refused; no part of it was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Implausible {
    /// A region's epoch is far above every other one.
    #[error("region {region} sends epoch {found}; at most {most} is plausible")]
    RegionEpoch {
        /// Whose.
        region: RegionId,
        /// What it says.
        found: Epoch,
        /// The highest that can be true.
        most: Epoch,
    },
    /// A region says that nothing was lost since a later time than its own.
    #[error("region {region} sends epoch {epoch} and names the later {lineage} as its lineage")]
    Lineage {
        /// Whose.
        region: RegionId,
        /// Its epoch.
        epoch: Epoch,
        /// What it says.
        lineage: Epoch,
    },
    /// An entity's epoch is far above every other one.
    #[error("entity {id} has epoch {found} in a message; at most {most} is plausible")]
    EntityEpoch {
        /// Whose.
        id: EntityId,
        /// What is said.
        found: Epoch,
        /// The highest that can be true.
        most: Epoch,
    },
    /// A property's version is near the end of its type.
    #[error(
        "entity {id} has a property of version {found} in a message; at most {LAST_VERSION} is plausible"
    )]
    Version {
        /// Whose.
        id: EntityId,
        /// What is said.
        found: u32,
    },
    /// A tick is far ahead of this region.
    #[error("a message names tick {found}; at most {most} is plausible now")]
    Tick {
        /// What is said.
        found: Tick,
        /// The last that can be true.
        most: Tick,
    },
}

/// The highest figures that can be true.
#[derive(Debug, Clone, Copy)]
struct Limits {
    region: Epoch,
    entity: Epoch,
    tick: Tick,
}

fn versions(id: EntityId, properties: &Properties) -> Result<(), Implausible> {
    let found = properties.levels().iter().map(|level| level.version).max().unwrap_or_default();
    if found <= LAST_VERSION { Ok(()) } else { Err(Implausible::Version { id, found }) }
}

impl Limits {
    fn epoch(&self, region: RegionId, found: Epoch) -> Result<(), Implausible> {
        let most = self.region;
        if found <= most { Ok(()) } else { Err(Implausible::RegionEpoch { region, found, most }) }
    }

    fn entity(&self, id: EntityId, found: Epoch) -> Result<(), Implausible> {
        let most = self.entity;
        if found <= most { Ok(()) } else { Err(Implausible::EntityEpoch { id, found, most }) }
    }

    fn tick(&self, found: Tick) -> Result<(), Implausible> {
        let most = self.tick;
        if found <= most { Ok(()) } else { Err(Implausible::Tick { found, most }) }
    }

    fn border(&self, batch: &BorderBatch) -> Result<(), Implausible> {
        let BorderBatch { from: region, epoch, lineage, tick, prev, .. } = *batch;
        self.epoch(region, epoch)?;
        self.tick(tick.max(prev))?;
        batch.earlier.iter().try_for_each(|action| self.tick(action.tick))?;
        if lineage > epoch {
            return Err(Implausible::Lineage { region, epoch, lineage });
        }
        batch.enters.iter().try_for_each(|ghost| self.entity(ghost.id, ghost.epoch))?;
        batch.enters.iter().try_for_each(|ghost| versions(ghost.id, &ghost.properties))?;
        batch.levels.iter().try_for_each(|ghost| versions(ghost.id, &ghost.properties))?;
        batch.changes.iter().try_for_each(|ghost| self.entity(ghost.id, ghost.epoch))?;
        batch.levels.iter().try_for_each(|ghost| self.entity(ghost.id, ghost.epoch))?;
        batch.leaves.iter().try_for_each(|ghost| self.entity(ghost.id, ghost.epoch))
    }

    fn view(&self, msg: &ViewMsg) -> Result<(), Implausible> {
        self.epoch(msg.from_region, msg.from_epoch)
    }

    fn border_round(&self, batch: &BorderRoundBatch) -> Result<(), Implausible> {
        self.epoch(batch.from, batch.epoch)?;
        self.tick(batch.tick)?;
        batch.view_messages.iter().try_for_each(|msg| self.view(msg))
    }

    fn handoff(&self, handoff: &Handoff) -> Result<(), Implausible> {
        self.epoch(handoff.from, handoff.from_epoch)?;
        self.entity(handoff.state.id, handoff.epoch)?;
        self.tick(handoff.tick)?;
        versions(handoff.state.id, &handoff.state.properties)?;
        handoff.peers.iter().try_for_each(|peer| self.entity(peer.id, peer.epoch))
    }

    fn claim(&self, claim: &Claim) -> Result<(), Implausible> {
        self.entity(claim.id, claim.epoch)
    }

    fn presented(&self, presented: &Presented) -> Result<(), Implausible> {
        self.entity(presented.id, presented.epoch)?;
        versions(presented.id, &presented.properties)?;
        let own = presented.own.as_ref().map_or(Tick(0), |(tick, _)| *tick);
        self.tick(presented.tick.max(own))
    }

    fn check(&self, input: &Input) -> Result<(), Implausible> {
        match input {
            Input::Border(batch) => self.border(batch),
            Input::BorderRound(batch) => self.border_round(batch),
            Input::View(msg) => self.view(msg),
            Input::Handoff(handoff) => self.handoff(handoff),
            Input::Elsewhere { claim, .. } => self.claim(claim),
            Input::Recovered(news) => {
                self.epoch(news.region, news.epoch)?;
                news.holds.iter().try_for_each(|(id, epoch)| self.entity(*id, *epoch))
            }
            Input::Claims(claims) => {
                self.tick(claims.tick)?;
                claims.lives.iter().try_for_each(|claim| self.claim(claim))?;
                claims.handed.iter().try_for_each(|handoff| self.handoff(handoff))
            }
            Input::Present(presented) => self.presented(presented),
            Input::Enter(_)
            | Input::Leave(_)
            | Input::Client { .. }
            | Input::Bonds { .. }
            | Input::Tell { .. }
            | Input::Group(_)
            | Input::Hold { .. }
            | Input::Release { .. }
            | Input::Resync { .. }
            | Input::BorderLost(_)
            | Input::Disconnected { .. }
            | Input::Kicked { .. }
            | Input::Resume(_)
            | Input::Map(_)
            | Input::Scene(_)
            | Input::Command(_)
            | Input::Locate(_)
            | Input::CommandResult(_) => Ok(()),
        }
    }
}

impl Region {
    fn limits(&self) -> Limits {
        let region = Epoch(self.identity.epoch().0.saturating_add(EPOCHS_AHEAD));
        let latest = self.clock.due().0.saturating_add(TICKS_AHEAD);
        let tick = Tick(if self.clock.due() == Tick(0) { LAST_TICK } else { latest });
        Limits { region, entity: region.of_birth(), tick }
    }

    /// Whether an input can be true.
    ///
    /// # Errors
    /// It cannot, and is to be dropped.
    pub fn check_plausible(&self, input: &Input) -> Result<(), Implausible> {
        self.limits().check(input)
    }

    /// Drops and counts what cannot be true; tells of the first one in a tick.
    pub(super) fn is_plausible(&mut self, input: &Input) -> bool {
        let Err(why) = self.check_plausible(input) else { return true };
        self.counts.implausible += 1;
        if self.inbox.note_implausible(self.clock.tick()) {
            crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), %why, "an implausible message is refused");
        }
        false
    }

    /// A region that begins to tick knows what time it is: what it has believed before of times far ahead was wrong.
    pub(super) fn know_time(&mut self, now: Tick) {
        if self.clock.expect(now) {
            let latest = self.limits().tick;
            self.border.forget_beyond(latest);
            self.custody.forget_beyond(latest, now);
        }
    }
}
