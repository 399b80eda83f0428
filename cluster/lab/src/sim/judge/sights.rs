//! The frames that clients receive, and whether they are legal.

use std::collections::BTreeMap;
use std::time::Duration;

use purview::scene::{EntityId, Pos};
use purview::wire::Frame;

use super::trails::{Mark, OffTrail};
use super::{Acting, Client, EXCUSE, Inner, Invariant, Judge, SLACK_CM};

/// How many players a client is shown, and how many at most.
type ViewSize = (usize, usize);

impl Judge {
    /// A client has received a frame with these enters and moves.
    pub fn shown(
        &self,
        id: EntityId,
        frame: &Frame,
        changed: impl IntoIterator<Item = (EntityId, Pos)>,
    ) {
        let ((size, cap), off_trail) = self.picture_of(id, frame, changed);
        if size > cap {
            let text = format!("{id} is shown {size} players, but at most {cap} are legal");
            self.violated(Invariant::ViewCap, vec![id], text);
        }
        let continuity = match frame.resync {
            true => Ok(()),
            false => frame.leaves.iter().try_for_each(|other| self.may_leave(id, *other)),
        };
        if let Err((other, text)) = continuity {
            self.violated(Invariant::ViewContinuity, vec![id, other], text);
        }
        if let Some((of, pos, how)) = off_trail {
            let how = match how {
                OffTrail::Never => "where it never was",
                OffTrail::Older => "where it was before",
            };
            let text = format!("{id} is shown {of} at {pos:?}, {how}");
            self.violated(Invariant::PlaceOrder, vec![id, of], text);
        }
        self.near_are_shown(id);
        self.messages_told(id, frame);
        self.judge_missed_actions();
        for act in frame.acts.iter().filter(|act| !act.logic) {
            let Ok(number) = <[u8; 8]>::try_from(&act.payload[..]) else { continue };
            self.act_shown(id, act.id, u64::from_be_bytes(number), frame.tick);
        }
    }

    /// Notes the view of a client after a frame: its size and its cap, and which of the changed entities are shown at an illegal
    /// position.
    fn picture_of(
        &self,
        to: EntityId,
        frame: &Frame,
        changed: impl IntoIterator<Item = (EntityId, Pos)>,
    ) -> (ViewSize, Option<(EntityId, Pos, OffTrail)>) {
        let now = self.journal.now();
        let mut inner = self.inner();
        inner.frames += 1;
        let Inner { clients, trails, moved, excused, acting, double_granted, .. } = &mut *inner;
        let Some(client) = clients.get_mut(&to) else { return ((0, 0), None) };
        // Its process no longer receives what others would tell it: its regions were granted twice.
        let superseded = acting.get(&to).is_some_and(|acts| acts.player.epoch > frame.epoch);
        let superseded = superseded && !double_granted.is_empty();
        if !superseded {
            client.acked = client.acked.max(frame.ack);
        }
        // While links are cut, news may reach the viewer's present region later than its former one.
        let came = || moved.get(&to).is_some_and(|at| now.saturating_sub(*at) < EXCUSE);
        let anew = superseded || (now < *excused && came());
        let is_continued = client.continues_at(frame.epoch) && frame.resync;
        let before = if frame.resync { std::mem::take(&mut client.shown) } else { BTreeMap::new() };
        for gone in &frame.leaves {
            client.shown.remove(gone);
        }
        for entered in &frame.enters {
            let stayed = is_continued && before.contains_key(&entered.id);
            let told = client.told.entry(entered.id).or_default();
            told.since = if stayed { told.since } else { now };
        }
        let mut off_trail = None;
        for (of, pos) in changed {
            let known = client.shown.insert(of, pos).or_else(|| before.get(&of).copied());
            // A trajectory may begin anywhere between two ticks.
            let differs = known != Some(pos) && !self.scope.judged;
            let Some(trail) = trails.get(&of).filter(|_| differs) else { continue };
            let mark = &mut client.told.entry(of).or_default().mark;
            match trail.find(pos, if anew { Mark::default() } else { *mark }) {
                Ok(found) => *mark = found,
                Err(how) => off_trail = Some((of, pos, how)),
            }
        }
        ((client.shown.len(), client.cap), off_trail)
    }

    /// The present positions of the entities in a client's view.
    pub fn sees(&self, id: EntityId, who: impl IntoIterator<Item = (EntityId, Pos)>) {
        if let Some(client) = self.inner().clients.get_mut(&id) {
            client.shown = who.into_iter().collect();
        }
    }

    fn may_leave(&self, me: EntityId, other: EntityId) -> Result<(), (EntityId, String)> {
        let (inner, now) = (self.inner(), self.journal.now());
        let (Some(client), Some(them)) = (inner.clients.get(&me), inner.clients.get(&other)) else {
            return Ok(());
        };
        let recent = |at: Duration| now.saturating_sub(at) < EXCUSE;
        let crowded = self.scope.crowded;
        if crowded
            || now < inner.excused
            || recent(client.teleported_at)
            || recent(them.teleported_at)
        {
            return Ok(());
        }
        // Repeated inputs after a crash take a player in one tick from its checkpoint to its present position.
        let recovered = |id| inner.recovered.get(&id).is_some_and(|at| recent(*at));
        if recovered(me) || recovered(other) {
            return Ok(());
        }
        let (Some(a), Some(b)) = (inner.acting.get(&me), inner.acting.get(&other)) else {
            return Ok(());
        };
        let slack = u64::from(SLACK_CM.unsigned_abs()).pow(2);
        let is_put = |acting: &Acting, client: &Client| {
            let ((floor, pos), (told, at)) = (acting.place(), client.place);
            floor != told || pos.dist2(at) > slack
        };
        // A portal has just taken one of them, and its client is not told yet.
        if !self.portals.is_empty() && (is_put(a, client) || is_put(b, them)) {
            return Ok(());
        }
        let near = u64::from((self.scope.near_cm - SLACK_CM).unsigned_abs()).pow(2);
        let dist2 = a.player.pos.dist2(b.player.pos).max(client.place.1.dist2(them.place.1));
        let apart = a.place().0 != b.place().0 || client.place.0 != them.place.0;
        let level = |a: Pos, b: Pos| {
            self.scope.height_cm.is_none_or(|(near, _)| (a.y - b.y).abs() <= near - SLACK_CM)
        };
        let climbs = !level(a.player.pos, b.player.pos) || !level(client.place.1, them.place.1);
        if apart || climbs || dist2 > near {
            return Ok(());
        }
        let text = format!(
            "{me} at {:?} is told that {other} at {:?} has left",
            a.player.pos, b.player.pos
        );
        Err((other, text))
    }
}
