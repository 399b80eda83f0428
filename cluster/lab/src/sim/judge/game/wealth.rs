//! What must hold at rest: no gold is lost and none is there twice, and clients know the properties as they are.

use std::time::Duration;

use purview::scene::EntityId;
use purview::scene::properties::Properties;

use super::super::{Invariant, Judge};
use super::{Game, Seen};
use crate::game::accounts::{Survey, balance};
use crate::game::is_secret;
use crate::game::rules::{PLAYER, PRIZE, TAKER};
use crate::sim::Logic;

/// The longest time between two sights of an entity that lives.
pub(in super::super) const FRESH: Duration = Duration::from_millis(450);

/// How long a client may take to be told a property.
pub(in super::super) const SETTLED: Duration = Duration::from_secs(2);

/// For how many ticks a player that has left may have lost again what it had taken, with the region that died.
const UNSURE_TICKS: u64 = 150;

impl Judge {
    /// What is broken if the game does not come to rest.
    pub fn rest_of_game(&self) -> Invariant {
        match self.logic {
            Some(Logic::Workers) => Invariant::WorkerTold,
            _ => Invariant::Wealth,
        }
    }

    pub fn game_not_at_rest(&self) -> Option<(Vec<EntityId>, String)> {
        let (now, inner) = (self.journal.now(), self.inner());
        if !inner.stores_keep_promises() {
            return None;
        }
        let game = &inner.game;
        let rules = match self.logic {
            Some(Logic::Workers) => {
                drop(inner);
                return self.workers_not_at_rest();
            }
            _ => game.wealth(now),
        };
        rules.or_else(|| {
            let clients = game.views.iter().filter(|(id, _)| inner.clients.contains_key(id));
            clients
                .flat_map(|(id, view)| view.iter().map(move |(of, known)| (*id, *of, known)))
                .find_map(|(id, of, known)| game.knows_other(now, (id, of), known))
        })
    }
}

impl Game {
    fn all_that_live(&self, now: Duration) -> impl Iterator<Item = (&EntityId, &Seen)> {
        self.entities.iter().filter(move |(_, seen)| now.saturating_sub(seen.at) <= FRESH)
    }

    /// Whether all gold adds up to what lairs have given out.
    fn wealth(&self, now: Duration) -> Option<(Vec<EntityId>, String)> {
        let players = || self.entities.values().filter(|seen| seen.what.kind == PLAYER);
        let left: Vec<_> = players().filter(|seen| now.saturating_sub(seen.at) > FRESH).collect();
        let live: Survey =
            self.all_that_live(now).map(|(id, seen)| (id.0, seen.what.clone())).collect();
        let gone: i64 = left.iter().map(|seen| seen.what.gold).sum();
        let (there, minted) = balance(&live);
        let gold = there + gone;
        // A player that leaves when its region dies may have taken what is undone.
        let late = left.iter().flat_map(|seen| {
            seen.what.taken.iter().filter(|(_, at)| at + UNSURE_TICKS > seen.when.tick.0)
        });
        let unsure = late.count() as i64 * PRIZE;
        if (gold - minted).abs() <= unsure {
            return None;
        }
        let of = live.into_keys().map(EntityId).collect();
        let taker =
            self.all_that_live(now).filter(|(_, e)| e.properties.read::<i64>(TAKER) != 0).count();
        Some((
            of,
            format!(
                "there is gold of {gold} (players that have left {gone}, unsure {unsure}), and lairs have given {minted}; \\
             {taker} drops are claimed"
            ),
        ))
    }

    /// What a client knows otherwise of an entity than it is.
    fn knows_other(
        &self,
        now: Duration,
        (id, of): (EntityId, EntityId),
        known: &Properties,
    ) -> Option<(Vec<EntityId>, String)> {
        let seen = self.entities.get(&of).filter(|seen| now.saturating_sub(seen.at) <= FRESH)?;
        // What has just changed may be on its way.
        let still = |id| seen.since.get(&id).is_none_or(|at| now.saturating_sub(*at) > SETTLED);
        let levels = seen.properties.levels().iter();
        let levels = levels.filter(|level| !is_secret(level.id) && still(level.id));
        let other = levels
            .filter(|level| known.get(level.id).is_none_or(|known| known.value != level.value));
        let which: Vec<_> = other.map(|level| level.id).collect();
        let first = which.first()?;
        Some((vec![id, of], format!("{id} knows another property {first} of {of} than it has")))
    }
}
