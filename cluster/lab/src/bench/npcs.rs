//! The NPCs of a benchmark: some stand, the others walk, moved by the game's logic.

use purview::scene::messages::Spawn;
use purview::scene::{EntityId, Kind, Pos, Tick};

use super::regions::spawn;
use super::straight_walkers::StraightWalkers;

/// The kind `npc` of a scene that names no kinds.
pub const NPC: Kind = Kind(1);

/// The kind `monster` of the same.
pub const MONSTER: Kind = Kind(2);

/// NPCs on the square of the players. The first ones stand.
#[derive(Debug)]
pub struct Npcs {
    walkers: StraightWalkers,
    standing: Vec<Pos>,
    all: usize,
    monsters: usize,
}

impl Npcs {
    /// `n` NPCs, of which the first ones are monsters, and a share from 0 to 1 stands; the square's side and the length
    /// of a step, centimetres.
    pub fn new(
        (n, monsters): (usize, usize),
        standing: f64,
        (side_cm, step_cm): (f64, f64),
        seed: u64,
    ) -> Npcs {
        let walkers = StraightWalkers::new(n, side_cm, step_cm, seed ^ 0x6e70_6373);
        let stand = ((n as f64 * standing).round() as usize).min(n);
        let standing = (0..stand).map(|i| walkers.pos(i)).collect();
        Npcs { walkers, standing, all: n, monsters }
    }

    fn pos(&self, i: usize) -> Pos {
        self.standing.get(i).copied().unwrap_or_else(|| self.walkers.pos(i))
    }

    /// The entities as they begin; their ids follow those of so many players.
    pub fn spawns(&self, players: usize) -> impl Iterator<Item = Spawn> {
        (0..self.all).map(move |i| {
            let kind = if i < self.monsters { MONSTER } else { NPC };
            spawn(id(i, players).0, kind, self.pos(i))
        })
    }

    pub fn step(&mut self) {
        if self.standing.len() < self.all {
            self.walkers.step();
        }
    }

    pub fn moves(&self, players: usize) -> impl Iterator<Item = (EntityId, Pos)> {
        (self.standing.len()..self.all).map(move |i| (id(i, players), self.walkers.pos(i)))
    }

    /// The position of an NPC, and the tick since when viewers must know it.
    pub fn truth(&self, i: usize, now: Tick) -> (Pos, Tick) {
        (self.pos(i), if i < self.standing.len() { Tick(1) } else { now })
    }
}

fn id(i: usize, players: usize) -> EntityId {
    EntityId((players + i) as u64 + 1)
}
