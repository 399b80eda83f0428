//! The actions that clients are shown: each in its order, and none left out, whatever fails.
//!
//! Of a player that stays in view a client is shown every action. It may miss only one that a region had applied which
//! died before others had it: of these the player that did it is told (`Unconfirmed`).

use std::ops::RangeInclusive;
use std::time::Duration;

use purview::scene::{EntityId, Tick};

use super::client::ShownAct;
use super::rules::act_order;
use super::{EXCUSE, Inner, Invariant, Judge, LATE, TICK};

#[derive(Debug, Clone)]
pub(super) struct Missed {
    at: Duration,
    to: EntityId,
    of: EntityId,
    numbers: RangeInclusive<u64>,
    /// When the client did the first of them. A client that takes the player over later is not told of it.
    said_at: Duration,
}

impl Judge {
    pub fn acts(&self, of: EntityId, number: u64) {
        let now = self.journal.now();
        self.inner().acts_said.insert((of, number), now);
    }

    /// The number of a player's last action, whichever client has done it.
    pub fn last_act(&self, of: EntityId) -> u64 {
        let inner = self.inner();
        inner
            .acts_said
            .keys()
            .filter(|(id, _)| *id == of)
            .map(|(_, number)| *number)
            .max()
            .unwrap_or(0)
    }

    /// A player's client is told that not all may have been shown these of its actions.
    pub fn unconfirmed(&self, of: EntityId, numbers: impl IntoIterator<Item = u64>) {
        self.inner().unconfirmed.extend(numbers.into_iter().map(|number| (of, number)));
    }

    pub(super) fn act_shown(&self, to: EntityId, of: EntityId, number: u64, tick: Tick) {
        let now = self.journal.now();
        let result = {
            let mut inner = self.inner();
            let recovered = inner.recovered.get(&of).copied().unwrap_or_default();
            let recovers_soon = inner.is_to_recover(of);
            // A region granted twice, or one that goes on from a checkpoint older than it was promised, keeps no promise.
            let is_sound = inner.stores_keep_promises();
            let excused = inner.excused;
            let Inner { clients, acts_said, missed, .. } = &mut *inner;
            // What the actor's last client did may have come too late, and an actor that teleports leaves all views.
            let begun = clients.get(&of).map(|client| client.joined_at.max(client.teleported_at));
            let Some(client) = clients.get_mut(&to) else { return };
            let shown = ShownAct { number, at: now, of: TICK * tick.0 as u32 };
            let told = client.told.entry(of).or_default();
            let before = told.act.replace(shown);
            let since = told.since.max(client.teleported_at).max(begun.unwrap_or_default());
            let in_view = |number: u64| acts_said.get(&(of, number)).is_some_and(|at| *at > since);
            let between = |before: ShownAct| before.number + 1..number;
            let first = before.and_then(|before| between(before).find(|number| in_view(*number)));
            if let Some(first) = first {
                if before.is_some_and(|before| before.at > excused) {
                    drop(inner);
                    let text = format!("{to} is shown action {number} of {of}, and not {first}");
                    return self.violated(Invariant::ActReceived, vec![to, of], text);
                }
                if is_sound {
                    let (numbers, said_at) = (first..=number - 1, acts_said[&(of, first)]);
                    missed.push_back(Missed { at: now, to, of, numbers, said_at });
                }
            }
            // The next owner repeats what a crashed owner had shown but not acknowledged, perhaps after another
            // handoff.
            let before = before.filter(|before| !recovers_soon && before.of > recovered + LATE);
            act_order(before.map(|before| before.number), number)
        };
        let result = result.map_err(|text| format!("{to} sees {of}: {text}"));
        self.check(Invariant::ActOrder, &[to, of], result);
    }

    /// The player that did an action which a client was not shown has been told by now.
    pub(super) fn judge_missed_actions(&self) {
        let now = self.journal.now();
        let due = |missed: &Missed| now.saturating_sub(missed.at) > EXCUSE;
        loop {
            let mut inner = self.inner();
            if !inner.missed.front().is_some_and(due) {
                return;
            }
            let Some(missed) = inner.missed.pop_front() else { return };
            let Inner { clients, unconfirmed, .. } = &*inner;
            // A client that is away is told when it is back.
            let is_away = clients
                .get(&missed.of)
                .is_none_or(|client| client.is_disconnected || client.joined_at > missed.said_at);
            let is_told = |number: u64| unconfirmed.contains(&(missed.of, number));
            let silent = missed.numbers.clone().find(|number| !is_told(*number));
            drop(inner);
            if let Some(number) = silent.filter(|_| !is_away) {
                let Missed { to, of, at, .. } = missed;
                let text = format!(
                    "{to} was not shown action {number} of {of} by {at:?}, and {of} was not told so"
                );
                self.violated(Invariant::ActReceived, vec![to, of], text);
            }
        }
    }
}
