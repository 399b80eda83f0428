//! What the clients of a recording would do in the example game: a recording has positions, and no actions.
//!
//! What [`with_hands`] makes stands before the rules of each region. In a part of the ticks it lets each player take
//! the nearest drop in reach, or hit the nearest monster. Which ticks these are follows from a seed, the player and the
//! tick, so that the same walk plays the same game.

use std::sync::Arc;

use purview::actor::logic::LogicFactory;
use purview::scene::messages::{LogicEvent, Speaker};
use purview::scene::region::{Commands, GameLogic, Known};
use purview::scene::{Kind, Region};

use super::each_region;
use super::rules::{DROP, MONSTER, PLAYER, REACH_CM};
use crate::rng::Rng;

/// A player acts in one of so many ticks, on average.
const ONE_IN: u64 = 3;

/// Gives players hands, and the rules what they do. The times of actions are drawn from the seed.
pub fn with_hands(rules: Arc<dyn LogicFactory>, seed: u64) -> Arc<dyn LogicFactory> {
    each_region(move |scene, region| {
        Some(Box::new(Hands { rules: rules.make(scene, region)?, seed }))
    })
}

struct Hands {
    rules: Box<dyn GameLogic>,
    seed: u64,
}

impl GameLogic for Hands {
    fn closed(&mut self, region: &Region) {
        self.rules.closed(region);
    }

    fn save(&self) -> Vec<u8> {
        self.rules.save()
    }

    fn restore(&mut self, saved: &[u8], has_moved: bool) {
        self.rules.restore(saved, has_moved);
    }

    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        let tick = region.current_tick().0;
        let acts = |player: &Known<'_>| {
            let mut rng = Rng::new(self.seed ^ player.id.0.rotate_left(32) ^ tick);
            rng.next().is_multiple_of(ONE_IN)
        };
        let players = region.lives_here(PLAYER).filter(acts);
        let acted = players.filter_map(|player| {
            let payload = wants(region, player)?.into();
            Some(LogicEvent::Acted { id: player.id, by: Speaker::Client, payload, aim: None })
        });
        let all: Vec<LogicEvent> = events.iter().cloned().chain(acted).collect();
        self.rules.tick(region, &all, commands);
    }
}

/// What a player asks for: what is nearest within reach.
fn wants(region: &Region, me: Known<'_>) -> Option<String> {
    let nearest = |kind: Kind| {
        let near = region.within(me.plane, kind, me.pos, REACH_CM);
        near.into_iter().map(|e| (me.pos.dist2(e.pos), e.id)).min().map(|(_, id)| id)
    };
    let take = nearest(DROP).map(|id| format!("take {id}"));
    take.or_else(|| nearest(MONSTER).map(|id| format!("hit {id}")))
}
