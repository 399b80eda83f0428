//! When a region's tick begins, what it costs, and the checkpoint that follows it.
//!
//! A tick that waits for a neighbour stays open until the neighbour's ghosts are there or patience ends;
//! it is counted once, when it is over.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use actix::fut::wrap_future;
use actix::{ActorFutureExt, AsyncContext, Context, Handler};
use actix_rt::time::sleep_until;

use super::sweep::SWEEP_TICKS;
use super::{Clock, RegionActor};
use crate::actor::idle_gate::IdleGated;
use crate::actor::messages::RunTick;
use crate::clock;
use crate::scene::Tick;
use crate::scene::region::PATIENCE;

impl Handler<RunTick> for RegionActor {
    type Result = ();

    fn handle(&mut self, msg: RunTick, ctx: &mut Self::Context) {
        if self.forwarder.is_none() {
            self.run_tick(msg.0);
            self.depart_if_asked(ctx);
        }
    }
}

impl RegionActor {
    pub(super) fn wake_at_next_tick(&self, ctx: &mut Context<Self>) {
        let next = self.directory.tick_now(self.tick_ms).next();
        let at = self.directory.begin_of(next, self.tick_ms);
        let comes = wrap_future::<_, Self>(IdleGated::new(sleep_until(at)));
        ctx.spawn(comes.map(|(), me, ctx| {
            if me.forwarder.is_some() {
                return;
            }
            let now = me.directory.tick_now(me.tick_ms);
            me.run_tick(now);
            me.depart_if_asked(ctx);
            me.wake_at_next_tick(ctx);
        }));
    }

    pub(super) fn run_tick(&mut self, now: Tick) {
        self.due = self.due.max(now);
        if !self.directory.may_act() {
            return;
        }
        for msg in std::mem::take(&mut self.withheld) {
            self.take(msg);
        }
        let last = self.region.current_tick();
        let recovering = self.region.is_recovering();
        let waits = !self.region.is_closed() && !recovering;
        if now <= last || (waits && now.0 < last.0 + PATIENCE) {
            // The tick is not due yet, or the last tick waits for a neighbour, which may wait for this
            // region.
            return self.empty_outboxes();
        }
        let started = clock::now();
        if last.0 > 0 && !recovering {
            self.metrics.skipped_ticks.fetch_add(now.0 - last.0 - 1, Relaxed);
        }
        self.count_tick();
        (self.counted, self.work) = (false, Duration::ZERO);
        self.empty_outboxes();
        if now.0.is_multiple_of(SWEEP_TICKS) {
            self.sweep_clients();
        }
        self.forget_answered();
        if let Some(checkpoint_writer) = self.directory.checkpoint_writer() {
            self.region.set_durable(checkpoint_writer.oldest().unwrap_or_default());
        }
        self.region.tick(now, &mut self.fx);
        self.deliver();
        if let Some(observer) = self.directory.observer() {
            observer.acted(&self.region);
        }
        self.work += clock::now() - started;
        self.end_tick();
    }

    /// Whether the tick is over. If it is so now, it is counted and observed.
    pub(super) fn end_tick(&mut self) -> bool {
        let is_over = self.region.is_closed();
        if is_over && !self.counted {
            if let Some(observer) = self.directory.observer() {
                observer.tick_over(&self.region);
            }
            self.count_tick();
        }
        is_over
    }

    /// Counts the tick that is over, once.
    pub(super) fn count_tick(&mut self) {
        if std::mem::replace(&mut self.counted, true) {
            return;
        }
        self.bring_checkpoint();
        let (m, c) = (&self.metrics, self.region.counts());
        let us = self.work.as_micros() as u64;
        m.tick_took(us);
        let simulated = self.directory.observer().and_then(|o| o.cost_us(&self.region));
        self.costs.took(simulated.unwrap_or(us));
        m.reals.store(c.reals, Relaxed);
        m.players.store(c.players, Relaxed);
        m.ghosts.store(c.ghosts, Relaxed);
        m.handoffs.store(c.handoffs, Relaxed);
        m.frames.store(c.frames, Relaxed);
        m.updates.store(c.updates, Relaxed);
        m.view_messages.store(c.view_messages, Relaxed);
        m.forced_closes.store(c.forced_closes, Relaxed);
        m.acts_dropped.store(c.acts_dropped, Relaxed);
        m.moves_waited.store(c.moves_waited, Relaxed);
        m.border_ticks.store(c.border_ticks, Relaxed);
        m.stale_border_ticks.store(c.stale_border_ticks, Relaxed);
        m.stalest_ticks.store(c.stalest_ticks, Relaxed);
        m.arrivals.store(c.arrivals, Relaxed);
        m.late_arrivals.store(c.late_arrivals, Relaxed);
        m.implausible.store(c.implausible, Relaxed);
        m.other_subjects.store(c.other_subjects, Relaxed);
        m.inputs_refused.store(c.inputs_refused, Relaxed);
        m.view_messages_lost.store(c.view_messages_lost, Relaxed);
        m.over.store(self.region.is_over(), Relaxed);
        for (metric, count) in m.moves_refused.iter().zip(c.moves_refused) {
            metric.store(count, Relaxed);
        }
    }

    /// Hands a checkpoint to the writer when one is due; regions take turns.
    fn bring_checkpoint(&mut self) {
        let Some(checkpoint_writer) = self.directory.checkpoint_writer() else { return };
        let turn = self.region.current_tick().0 + u64::from(self.region.id().0);
        if !turn.is_multiple_of(checkpoint_writer.every_ticks()) {
            return;
        }
        if let Some(oldest) = checkpoint_writer.oldest() {
            self.region.keep_notes_since(oldest);
        }
        if let Some(snapshot) = self.region.checkpoint() {
            checkpoint_writer.keep(snapshot);
        }
    }

    /// The first tick of a new layout begins as soon as it can.
    pub(super) fn go_on_if(&mut self, was_held: bool) {
        if was_held && !self.region.is_held() {
            self.catch_up();
        }
    }

    /// A tick that waited for a late neighbour beyond its time is followed by the next tick at once.
    pub(super) fn catch_up(&mut self) {
        let now = match self.clock {
            Clock::Real => self.directory.tick_now(self.tick_ms),
            Clock::Manual => self.due,
        };
        self.run_tick(now);
    }
}
