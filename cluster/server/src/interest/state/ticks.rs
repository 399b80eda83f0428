//! The ends of ticks: those that the client asks for, and those that are due.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use purview::interest::{TickBounds, TickError};

use super::super::convert::Fault;
use super::super::draft::ChangeSource;
use super::super::job::Job;
use super::super::proto::Reason;
use super::{State, unknown};

/// How long a scene waits after a tick that was refused: to find that out takes time.
const REFUSED: Duration = Duration::from_secs(1);

impl State {
    pub(super) fn client_tick(&mut self, scene: u64) -> Result<(), Fault> {
        let of = self.scenes.get(&scene).ok_or_else(|| unknown(scene))?;
        if of.every.is_some() {
            let text = format!("scene {scene} ticks by itself");
            return Err(Fault::new(Reason::OwnTick, text));
        }
        self.tick(scene, true)
    }

    /// Ends a tick. `always`: it is told without events, too.
    fn tick(&mut self, id: u64, always: bool) -> Result<(), Fault> {
        let Some(scene) = self.scenes.get_mut(&id) else { return Ok(()) };
        let (before, events) = (scene.world.pairs(), self.events.room(self.limits.events));
        let pairs = before.saturating_add(self.pairs.room(self.limits.pairs));
        let ended = scene.world.end_tick(TickBounds { events, pairs });
        let count = ended.map_err(|error| {
            self.metrics.refused_ticks.fetch_add(1, Relaxed);
            match error {
                TickError::Events(most) if most < self.limits.events.session => busy(id),
                error => Fault::from(error),
            }
        })?;
        scene.ticks += 1;
        let taken = scene.world.bytes();
        self.bytes.set(self.bytes.own() + taken - scene.bytes);
        scene.bytes = taken;
        self.pairs.set(self.pairs.own() + scene.world.pairs() - before);
        self.events.set(count);
        let positions = scene.world.positions().len();
        self.metrics.ticked(count, positions);
        if always || count > 0 || positions > 0 {
            self.job = Some(Job::Tick { scene: id, tick: scene.ticks, positions: 0 });
        }
        Ok(())
    }

    /// Ends the ticks that are due. Ticks that were due before, while nothing could be done, are
    /// skipped: the events of a tick are net.
    pub fn tick_due(&mut self, now: Instant) {
        while let Some((due, id)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            if self.outbox.is_full() {
                break;
            }
            self.due.pop_first();
            let ended = self.tick(id, false);
            let Some(scene) = self.scenes.get_mut(&id) else { continue };
            let was_refused = std::mem::replace(&mut scene.is_refused, ended.is_err());
            let every = scene.every.unwrap_or(Duration::MAX);
            let late = now.saturating_duration_since(due).as_nanos() / every.as_nanos().max(1);
            let late = u32::try_from(late).unwrap_or(u32::MAX);
            self.metrics.late_ticks.fetch_add(late.into(), Relaxed);
            scene.due = match ended {
                Ok(()) => due + every.saturating_mul(late.saturating_add(1)),
                Err(_) => now + every.max(REFUSED),
            };
            self.due.insert((scene.due, id));
            if let Err(fault) = ended
                && !was_refused
            {
                self.refuse(ChangeSource { change: None, scene: id }, (None, None), fault);
            }
            if !self.tell() {
                return;
            }
        }
        self.draft.finish(self.applied, &mut self.outbox);
    }
}

fn busy(scene: u64) -> Fault {
    let text = format!(
        "scene {scene}: other ticks have as many events under way as there may be: tick again \
         (--events)"
    );
    Fault::new(Reason::Busy, text)
}
