//! What logic is told must add up to what is there: who lives in the region, what is in watch radii, and what has become
//! of commands.

use std::collections::BTreeSet;

use purview::scene::messages::{CommandError, LogicEvent, Speaker};
use purview::scene::{EntityId, Region};

use super::super::{Inner, Invariant, Judge, STARTS};
use super::UPSET;
use crate::game::rules::{DROP, LAIR, MONSTER, PLAYER};

/// How far an entity may be from where it was when it was sighted: it and the one that watches have walked on, centimetres.
const SLACK_CM: i32 = 350;

/// What is farther away than this, centimetres, has teleported.
const JUMP_CM: i32 = 2_400;

/// What lives in a region.
fn residents(region: &Region) -> BTreeSet<EntityId> {
    let kinds = [PLAYER, MONSTER, DROP, LAIR].into_iter();
    kinds.flat_map(|kind| region.lives_here(kind).map(|e| e.id)).collect()
}

/// The region of the judge's own command, by the text of its action.
fn probe_of(payload: &[u8]) -> Option<u64> {
    std::str::from_utf8(payload).ok()?.strip_prefix("probe ")?.parse().ok()
}

impl Judge {
    /// The logic of a region is told these events, and the region is as it is.
    pub(super) fn logic_is_told(&self, region: &Region, events: &[LogicEvent]) {
        let is_new = matches!(events.first(), Some(LogicEvent::Started { .. }));
        let overlooked = self.overlooked(region);
        let wrong = {
            let (now, mut inner) = (self.journal.now(), self.inner());
            if is_new {
                inner.game.upset = now;
            }
            // Positions are told late while links are cut.
            let quiet = now >= inner.excused.max(STARTS);
            let calm = quiet && now.saturating_sub(inner.game.upset) > UPSET;
            let near = |watcher, id| self.is_near(region, watcher, id);
            let far = events.iter().find_map(|event| match event {
                LogicEvent::Sighted { watcher, id } if calm && !near(*watcher, *id) => {
                    let text = format!("{watcher} has sighted {id}, which is too far away");
                    Some((Invariant::Sighted, vec![*watcher, *id], text))
                }
                _ => None,
            });
            let wrong = far.or(overlooked.filter(|_| calm));
            wrong.map_or_else(|| inner.follow(region, events, (is_new, calm)), Err)
        };
        if let Err((invariant, who, text)) = wrong {
            let text = format!("region {} in tick {}: {text}", region.id(), region.current_tick());
            self.violated(invariant, who, text);
        }
    }

    /// A ghost within the radius of a monster that is not in its sight. Ghosts are where they were when the region
    /// looked, while players that live here may have walked on.
    fn overlooked(&self, region: &Region) -> Option<super::Wrong> {
        let radius_cm = self.watch_cm?;
        region.lives_here(MONSTER).find_map(|monster| {
            let seen = region.sighted_by(monster.id);
            let near = region.within(monster.plane, PLAYER, monster.pos, radius_cm);
            let missed = near.iter().find(|player| player.ghost && !seen.contains(&player.id))?;
            let text = format!("{} overlooks {} in its radius", monster.id, missed.id);
            Some((Invariant::Sighted, vec![monster.id, missed.id], text))
        })
    }

    /// Whether an entity that was just sighted is near enough. It may have teleported since.
    fn is_near(&self, region: &Region, watcher: EntityId, id: EntityId) -> bool {
        let known = region.known(watcher).zip(region.known(id));
        let Some((me, other)) = known else { return true };
        let most = i64::from(self.watch_cm.unwrap_or_default() + SLACK_CM);
        let (d2, jump) = (me.pos.dist2(other.pos), i64::from(JUMP_CM));
        me.plane != other.plane || d2 <= (most * most) as u64 || d2 > (jump * jump) as u64
    }
}

impl Inner {
    fn follow(
        &mut self,
        region: &Region,
        events: &[LogicEvent],
        (is_new, calm): (bool, bool),
    ) -> Result<(), super::Wrong> {
        for event in events {
            self.follow_one(region, event, calm)?;
        }
        let key = (region.id(), region.epoch());
        let there = residents(region);
        let believed = self.game.residents.entry(key).or_default();
        if is_new {
            believed.clone_from(&there);
        }
        if let Some(id) = believed.symmetric_difference(&there).next() {
            let text = format!("{id} lives there: {}", there.contains(id));
            return Err((Invariant::LogicTold, vec![*id], text));
        }
        for watcher in region.lives_here(MONSTER).map(|e| e.id) {
            let now: BTreeSet<EntityId> = region.sighted_by(watcher).iter().copied().collect();
            let told = self.game.sighted.entry(watcher).or_default();
            if is_new || !calm {
                told.clone_from(&now);
            }
            if *told != now {
                let text = format!("{watcher} has {now:?} in sight, and was told {told:?}");
                return Err((Invariant::Sighted, vec![watcher], text));
            }
        }
        Ok(())
    }

    fn follow_one(
        &mut self,
        region: &Region,
        event: &LogicEvent,
        calm: bool,
    ) -> Result<(), super::Wrong> {
        let key = (region.id(), region.epoch());
        match event {
            LogicEvent::Entered { id, .. } => {
                self.game.residents.entry(key).or_default().insert(*id);
            }
            LogicEvent::Left { id, .. } => {
                self.game.residents.entry(key).or_default().remove(id);
            }
            LogicEvent::Sighted { watcher, id } => {
                let is_first = self.game.sighted.entry(*watcher).or_default().insert(*id);
                if calm && !is_first {
                    let text = format!("{watcher} has sighted {id} twice");
                    return Err((Invariant::Sighted, vec![*watcher, *id], text));
                }
            }
            LogicEvent::Lost { watcher, id } => {
                let was_seen = self.game.sighted.entry(*watcher).or_default().remove(id);
                if calm && !was_seen {
                    let text = format!("{watcher} has lost {id} without having sighted it");
                    return Err((Invariant::Sighted, vec![*watcher, *id], text));
                }
            }
            LogicEvent::Acted { by: Speaker::Logic, payload, id, .. } => {
                if let Some(name) = probe_of(payload) {
                    return self.probe_applied(region, *id, name, calm);
                }
            }
            LogicEvent::Done { command } => return self.probe_ended(key, *command, None, calm),
            LogicEvent::Refused { command, why } => {
                return self.probe_ended(key, *command, Some(*why), calm);
            }
            LogicEvent::Started { .. }
            | LogicEvent::Arrived { .. }
            | LogicEvent::Acted { .. }
            | LogicEvent::Disconnected { .. }
            | LogicEvent::Numbered(_)
            | LogicEvent::Resumed { .. } => {}
        }
        Ok(())
    }

    /// The judge's own command was applied.
    fn probe_applied(
        &mut self,
        region: &Region,
        id: EntityId,
        name: u64,
        calm: bool,
    ) -> Result<(), super::Wrong> {
        let Some(probe) = self.game.probes.get_mut(&name) else { return Ok(()) };
        let here = (region.id(), region.epoch());
        let before = probe.applied.replace(here);
        // A region that goes on from a checkpoint does again what was undone.
        let again = before.filter(|_| calm);
        let text =
            |before| format!("command {name} for {id} was applied in {before:?} and {here:?}");
        again.map_or(Ok(()), |before| Err((Invariant::CommandOnce, vec![id], text(before))))
    }

    /// The judge's own command has ended.
    fn probe_ended(
        &mut self,
        (region, epoch): (purview::scene::RegionId, purview::scene::Epoch),
        command: u64,
        refused: Option<CommandError>,
        calm: bool,
    ) -> Result<(), super::Wrong> {
        let Some(name) = self.game.given.remove(&(region, epoch, command)) else { return Ok(()) };
        let Some(probe) = self.game.probes.get(&name) else { return Ok(()) };
        let is_old = probe.given < self.game.upset;
        if !calm || is_old {
            return Ok(());
        }
        let wrong = match refused {
            None => probe.applied.is_none(),
            Some(CommandError::Unknown(id)) => {
                probe.applied.is_some() || self.lived_since(id, probe.given)
            }
            Some(_) => true,
        };
        let text = format!("command {name} has ended with {refused:?}: {probe:?}");
        if wrong { Err((Invariant::CommandOnce, Vec::new(), text)) } else { Ok(()) }
    }

    /// Whether an entity lives, and has lived for all the time since.
    fn lived_since(&self, id: EntityId, since: std::time::Duration) -> bool {
        let lives = |at: std::time::Duration| at > since + super::super::TICK * 8;
        self.game.entities.get(&id).is_some_and(|seen| lives(seen.at))
    }
}
