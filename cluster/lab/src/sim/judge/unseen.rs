//! Players that stay near each other are shown to each other soon, while no process has died and no link is cut: also
//! where a region migrates, is split or is drained. Scenes with caps that bind, judged moves or height limits are left
//! to `quiescence`.

use std::time::Duration;

use purview::scene::EntityId;

use super::{EXCUSE, Inner, Invariant, Judge, SLACK_CM, STARTS, TICK};

/// How long a client may not be shown a near player: three ticks for the agreement across a border, and what frames
/// take.
const SOON: Duration = TICK.saturating_mul(4);

impl Judge {
    /// A client has received a frame: every player that has been near it for so long is in its view.
    pub(super) fn near_are_shown(&self, me: EntityId) {
        let now = self.journal.now();
        let mut inner = self.inner();
        let is_plain = !self.scope.crowded && !self.scope.judged && self.scope.height_cm.is_none();
        if !is_plain || now < inner.excused.max(STARTS) {
            return;
        }
        let near = self.near_and_unseen(&inner, me, now);
        let Some(client) = inner.clients.get_mut(&me) else { return };
        let before = std::mem::take(&mut client.unseen);
        let known = |id| before.iter().find(|(of, _)| *of == id);
        let since = |id| known(id).map_or(now, |(_, since)| *since);
        client.unseen = near.into_iter().map(|id| (id, since(id))).collect();
        let late = client.unseen.iter().find(|(_, since)| now.saturating_sub(*since) > SOON);
        if let Some((other, since)) = late.copied() {
            drop(inner);
            let text = format!("{me} is not shown {other}, which is near it since {since:?}");
            self.violated(Invariant::ViewComplete, vec![me, other], text);
        }
    }

    fn near_and_unseen(&self, inner: &Inner, me: EntityId, now: Duration) -> Vec<EntityId> {
        let settled = |id: &EntityId| {
            let client = inner.clients.get(id)?;
            let recovered = inner.recovered.get(id).copied().unwrap_or_default();
            let disturbed = client.teleported_at.max(client.joined_at).max(recovered);
            let is_settled = !client.is_disconnected && now.saturating_sub(disturbed) > EXCUSE;
            is_settled.then_some(client)
        };
        let (Some(mine), Some(here)) = (settled(&me), inner.acting.get(&me)) else {
            return Vec::new();
        };
        let near2 = u64::from((self.scope.near_cm - SLACK_CM).unsigned_abs()).pow(2);
        let is_near = |id: &EntityId| {
            let (Some(theirs), Some(there)) = (settled(id), inner.acting.get(id)) else {
                return false;
            };
            let places = [(here.place(), there.place()), (mine.place, theirs.place)];
            places.iter().all(|(a, b)| a.0 == b.0 && a.1.dist2(b.1) < near2)
        };
        let others = inner.clients.keys().filter(|id| **id != me && is_near(id));
        others.filter(|id| !mine.shown.contains_key(id)).copied().collect()
    }
}
