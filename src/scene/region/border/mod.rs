//! The links to the neighbours: ghosts that they mirror here, ghosts that are mirrored to them, and
//! the rounds in which neighbours exchange the border rounds of a tick.
//!
//! [`BorderLinks`] is the part. A neighbour's batch is applied in the tick whose state it is, never before.

mod ghosts_in;
mod ghosts_out;
mod inbound;
mod outbound;
mod rounds;

pub use self::ghosts_out::state_of;
use self::inbound::Inbound;
pub use self::inbound::Neighbour;
pub use self::outbound::Mirror;
use self::outbound::Outbound;
pub use self::rounds::Progress;
use self::rounds::Round;
use crate::scene::layout::RegionEntry;
use crate::scene::messages::BorderBatch;
use crate::scene::messages::Effect;
use crate::scene::{Epoch, RegionId, Tick};
use rustc_hash::FxHashMap;

/// The region's links to its neighbours.
#[derive(Debug)]
pub struct BorderLinks {
    inbound: Inbound,
    outbound: Outbound,
    round: Round,
}

impl BorderLinks {
    /// Nothing was received or sent yet.
    pub fn new(neighbours: &[RegionEntry]) -> BorderLinks {
        let (inbound, outbound) = (Inbound::new(neighbours), Outbound::new(neighbours));
        BorderLinks { inbound, outbound, round: Round::default() }
    }

    /// Keeps a batch until its tick: see [`Inbound::keep`].
    pub fn keep(&mut self, batch: BorderBatch, me: RegionId, fx: &mut Vec<Effect>) -> bool {
        self.inbound.keep(batch, me, fx)
    }

    /// Whether the ghosts of `tick` are here from every neighbour that is not silent.
    pub fn complete(&self, tick: Tick) -> bool {
        self.inbound.complete(tick)
    }

    /// Whether a region is a neighbour.
    pub fn knows(&self, region: RegionId) -> bool {
        self.inbound.knows(region)
    }

    /// Up to which tick what is known of a neighbour's entities is whole.
    pub fn sound(&self, region: RegionId) -> Option<Tick> {
        self.inbound.sound(region)
    }

    /// The neighbour missed something: its next batch is a full one.
    pub fn lost(&mut self, neighbour: RegionId) {
        self.outbound.lost(neighbour);
    }

    /// Whether there is no neighbour to mirror to.
    pub fn is_alone(&self) -> bool {
        self.outbound.is_alone()
    }

    /// All neighbours that may have ghosts of an entity, a bit each.
    pub fn everybody(&self) -> u32 {
        self.outbound.everybody()
    }

    /// A neighbour says no more until the layout has changed.
    pub fn has_ended(&mut self, region: RegionId) {
        self.inbound.has_ended(region);
    }

    /// Other neighbours from now on, by a layout that counts after this tick. Gives the new bits of old ones.
    pub fn rearrange(
        &mut self,
        neighbours: &[RegionEntry],
        after: Tick,
    ) -> impl Fn(u32) -> u32 + use<> {
        let bits = self.outbound.rearrange(neighbours);
        self.inbound.rearrange(neighbours, after);
        bits
    }

    /// A region has died: what it says under a lower epoch is late. A neighbour's first batch will say what was lost;
    /// what was said by way of any other region is lost from now on.
    pub fn outlived(&mut self, region: RegionId, epoch: Epoch) {
        if !self.inbound.outlived(region, epoch) {
            self.inbound.crashed.push(region);
        }
    }

    /// A neighbour is there, in this tick.
    pub fn note_tick_of(&mut self, region: RegionId, tick: Tick) {
        self.inbound.note_tick_of(region, tick);
    }

    /// Neighbours that have sent later ticks than this one count as silent so far.
    pub fn forget_beyond(&mut self, latest: Tick) {
        self.inbound.forget_beyond(latest);
    }

    /// Nothing of what neighbours have is known here: their ghosts count from the next full batch on.
    pub fn forget_all(&mut self) {
        self.inbound.forget_all();
    }

    /// The neighbours of these bits.
    pub fn mirrored_by(&self, bits: u32) -> Vec<RegionId> {
        let all = self.outbound.neighbours.iter().enumerate();
        all.filter(|(i, _)| bits >> i & 1 == 1).map(|(_, n)| n.id).collect()
    }

    /// What neighbours have sent, for a snapshot, with when orphans were last swept, and which regions have crashed.
    pub fn save_inbound(&self, whole: bool) -> (Vec<Neighbour>, Tick, Vec<RegionId>) {
        (self.inbound.save(whole), self.inbound.swept, self.inbound.crashed.clone())
    }

    /// What neighbours were sent, for a snapshot.
    pub fn save_outbound(&self) -> Vec<Mirror> {
        self.outbound.save()
    }

    /// What neighbours had sent by a snapshot.
    pub fn restore_inbound(
        &mut self,
        saved: Vec<Neighbour>,
        since: (Tick, Vec<RegionId>),
        fences: &FxHashMap<RegionId, Epoch>,
    ) {
        self.inbound.restore(saved, since, fences);
    }

    /// What neighbours had been sent by a snapshot.
    pub fn restore_outbound(&mut self, saved: Vec<Mirror>) {
        self.outbound.restore(saved);
    }

    /// The bits of a snapshot's neighbours as they are here.
    pub fn mirrors(&self, saved: &[Mirror], bits: u32) -> u32 {
        self.outbound.mirrors(saved, bits)
    }
}
