//! The region's shell: a clock, mailboxes, and the one place where a region's effects become
//! deliveries.
//!
//! | what | when the receiver's mailbox is full |
//! |---|---|
//! | frames | lost; the region is told to resync that client |
//! | everything else | waits, in order, within the bounds of `outbox`, and is sent again every tick; lost, and said so, when the region is gone |
//!
//! A player whose session has ended without a leave is disconnected, and leaves unless its client
//! is back in time: a frame that finds no session says so, and sessions that get no frames are
//! checked now and then.
//!
//! | file | what it does |
//! |---|---|
//! | `start` | starts actors for all regions of a process |
//! | `receive` | inputs: they go to the region, or wait while the region may not act |
//! | `tick` | when a tick begins, what it costs, and its checkpoint |
//! | `deliver` | the region's effects become deliveries |
//! | `depart` | the last states of players that have left are stored |
//! | `load` | what ticks cost lately, for those who share regions out |
//! | `sweep` | looks for sessions that are gone |
//! | `operate` | operators' looks, and steps of a layout change |
//! | `leave`, `migration` | the region goes on in another process |
//! | `sessions`, `outbox`, `metrics` | parts: where sessions are, what waits, figures |
//!
//! A region acts only while its process may act ([`Fence`](super::directory::Fence)); nothing here
//! waits for a store or a peer.

mod absent;
mod deliver;
mod depart;
mod leave;
mod load;
pub mod metrics;
pub mod migration;
mod operate;
mod outbox;
mod receive;
mod sessions;
mod start;
mod sweep;
mod tick;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context};
use rustc_hash::FxHashMap;

use self::absent::Absent;
use self::load::TickCosts;
use self::metrics::RegionMetrics;
use self::migration::depart::Depart;
use self::migration::forwarder::Forwarder;
pub use self::outbox::MAILBOX;
use self::outbox::{Notices, Outbox};
use self::sessions::Sessions;
pub use self::start::{RegionRef, start_regions, start_regions_as};
use super::address::{SessionAddress, ToRegion};
use super::directory::Directory;
use crate::scene::messages::Effect;
use crate::scene::{Region, RegionId, SessionId, Tick};
use crate::wire::EncodedBatch;

/// What decides when a tick begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The directory's clock.
    Real,
    /// [`RunTick`](super::messages::RunTick): for tests and benchmarks.
    Manual,
}

/// A region's actor.
pub struct RegionActor {
    region: Region,
    /// Its own mailbox, once it has started.
    me: Option<Addr<RegionActor>>,
    tick_ms: u32,
    clock: Clock,
    directory: Arc<Directory>,
    metrics: Arc<RegionMetrics>,
    sessions: Sessions,
    /// What waits for other regions.
    outbox: FxHashMap<RegionId, Outbox>,
    /// What waits for sessions.
    notices: Notices,
    /// Encoded frames whose memory is kept for another tick.
    batches: VecDeque<Arc<EncodedBatch>>,
    fx: Vec<Effect>,
    /// Kept for its memory.
    spare: Vec<Effect>,
    /// Messages that came while the region may not act.
    withheld: Vec<ToRegion>,
    /// It is to leave as soon as it may.
    departing: Option<Depart>,
    /// It has left.
    forwarder: Option<Forwarder>,
    /// The newest tick that was asked for.
    due: Tick,
    /// Bonds of players that do not play, which wait for the store.
    absent: Absent,
    /// Work done so far for the tick that is open.
    work: Duration,
    /// Whether the newest tick is over and counted.
    counted: bool,
    /// What the last ticks cost.
    costs: TickCosts,
}

impl RegionActor {
    /// An actor for `region`, with the directory's logic.
    pub fn new(
        mut region: Region,
        tick_ms: u32,
        clock: Clock,
        directory: &Arc<Directory>,
        metrics: &Arc<RegionMetrics>,
    ) -> RegionActor {
        region.set_workers(directory.workers().clone());
        region.set_atlas(directory.clone());
        let scene = directory.scene(region.scene_id());
        let made = directory.logic().zip(scene).and_then(|(f, scene)| f.make(&scene, region.id()));
        if let Some(logic) = made {
            let names = directory.clone();
            region.set_logic(logic, Box::new(move || names.new_entity()));
        }
        if directory.player_store().is_some() {
            region.store_players();
        }
        RegionActor {
            region,
            me: None,
            tick_ms,
            clock,
            directory: directory.clone(),
            metrics: metrics.clone(),
            sessions: Sessions::default(),
            outbox: FxHashMap::default(),
            notices: Notices::default(),
            batches: VecDeque::new(),
            fx: Vec::new(),
            spare: Vec::new(),
            withheld: Vec::new(),
            departing: None,
            forwarder: None,
            due: Tick(0),
            absent: Absent::new(),
            work: Duration::ZERO,
            counted: true,
            costs: TickCosts::new(tick_ms),
        }
    }

    /// The same, with what the region has to say before its first tick.
    pub fn saying(mut self, fx: Vec<Effect>) -> RegionActor {
        self.fx = fx;
        self
    }

    /// The same, to sessions of players that sleep until these present them, each of which `find` finds.
    pub fn reaching(mut self, find: impl Fn(SessionId) -> Option<SessionAddress>) -> RegionActor {
        for (entity, session) in self.region.unclaimed_sessions() {
            if let Some(to) = find(session) {
                self.sessions.insert(session, entity, to);
            }
        }
        self
    }
}

impl Actor for RegionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        self.me = Some(ctx.address());
        if let Some(checkpoint_writer) = self.directory.checkpoint_writer() {
            let (id, epoch) = (self.region.id(), self.region.epoch());
            checkpoint_writer.begin(id, epoch, self.region.lost_since());
        }
        self.empty_outboxes();
        self.deliver();
        if self.clock == Clock::Real {
            self.wake_at_next_tick(ctx);
        }
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        // One that has left has said so then.
        if self.forwarder.is_none()
            && let Some(checkpoint_writer) = self.directory.checkpoint_writer()
        {
            checkpoint_writer.forget(self.region.id(), self.region.epoch());
        }
    }
}
