//! Rules of a game that are watched: what the rules of a region are told, and what they command, tick by tick.
//!
//! The judges of the simulator and of servers in this process stand behind a [`Watcher`].

use purview::scene::messages::LogicEvent;
use purview::scene::region::{Commands, GameLogic, Known};
use purview::scene::{Kind, Region};

pub trait Watcher: Send + Sync {
    /// The rules are about to be told these events.
    fn told(&mut self, region: &Region, events: &[LogicEvent]);

    /// The rules have given these commands. The watcher may add commands of its own.
    fn commanded(&mut self, region: &Region, commands: &mut Commands);
}

pub struct Watched<W> {
    pub rules: Box<dyn GameLogic>,
    pub watcher: W,
}

impl<W: Watcher> GameLogic for Watched<W> {
    fn kinds_of_each(&self) -> &[Kind] {
        self.rules.kinds_of_each()
    }

    fn each(&self, region: &Region, entity: Known<'_>, commands: &mut Commands) {
        self.rules.each(region, entity, commands);
    }

    fn closed(&mut self, region: &Region) {
        self.rules.closed(region);
    }

    fn is_at_rest(&self) -> bool {
        self.rules.is_at_rest()
    }

    fn save(&self) -> Vec<u8> {
        self.rules.save()
    }

    fn restore(&mut self, saved: &[u8], has_moved: bool) {
        self.rules.restore(saved, has_moved);
    }

    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        self.watcher.told(region, events);
        self.rules.tick(region, events, commands);
        self.watcher.commanded(region, commands);
    }
}
