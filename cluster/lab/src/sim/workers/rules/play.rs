//! What a worker commands of its own accord: monsters come, walk across borders, change and go.

use purview_server::simulation::workers::proto::{self, Property, command};

use super::{BatchName, DEED, Known, Worker};
use crate::game::rules::{HP, MONSTER};

const MONSTERS: usize = 4;

/// How far a monster steps, centimetres.
const STEP_CM: i32 = 600;

impl Worker {
    pub(super) fn play(&mut self, batch: BatchName) {
        let region = batch.0;
        let Some(picture) = self.regions.get(&region) else { return };
        let rect = picture.rect;
        let is_monster = |known: &Known| !known.ghost && known.kind == u32::from(MONSTER.0);
        let monsters = picture.entities.iter().filter(|(_, known)| is_monster(known));
        let monsters: Vec<(u64, (i32, i32))> = monsters.map(|(id, k)| (*id, k.at)).collect();
        if monsters.len() < MONSTERS && self.rng.one_in(10) {
            self.spawn(rect);
        }
        for (id, at) in monsters {
            if !self.is_in(id, region) {
                continue;
            }
            if self.rng.one_in(200) {
                self.give(id, false, command::Command::Despawn(proto::Despawn {}));
            } else if self.rng.one_in(8) {
                let value = vec![0xcd, self.rng.below(256) as u8, self.rng.below(256) as u8].into();
                let property = Property { id: HP.0.into(), value, version: 0 };
                self.give(id, false, command::Command::SetProperty(property));
            } else if self.rng.one_in(6) {
                let position = self.step(at);
                self.give(id, false, command::Command::Place(proto::Place { position }));
            }
        }
        self.command_far(batch);
    }

    /// Sometimes a monster of another region does something.
    fn command_far(&mut self, batch: BatchName) {
        let others = self.regions.iter().filter(|(of, _)| **of != batch.0);
        let is_monster = |known: &Known| !known.ghost && known.kind == u32::from(MONSTER.0);
        let all = others.flat_map(|(_, picture)| &picture.entities);
        let all: Vec<u64> = all.filter(|(_, k)| is_monster(k)).map(|(id, _)| *id).collect();
        if !all.is_empty() && self.rng.one_in(4) {
            let (id, number) = (all[self.rng.below(all.len())], self.rng.seed());
            self.act(id, batch, (DEED, &number.to_be_bytes()));
        }
    }

    fn step(&mut self, (x, z): (i32, i32)) -> Option<proto::Position> {
        let mut along =
            |from: i32, size: i32| (from + self.rng.range(-STEP_CM, STEP_CM)).clamp(0, size - 1);
        let (x, z) = (along(x, self.size.0), along(z, self.size.1));
        Some(proto::Position { x, y: 0, z })
    }

    fn spawn(&mut self, (x0, z0, x1, z1): (i32, i32, i32, i32)) {
        // A region that a change of the layout gives up has no ground.
        if x0 >= x1 || z0 >= z1 {
            return;
        }
        let Some(id) = self.new_id() else { return };
        let position =
            proto::Position { x: self.rng.range(x0, x1), y: 0, z: self.rng.range(z0, z1) };
        let kind = MONSTER.0.into();
        let spawn = proto::Spawn { kind, position: Some(position), ..Default::default() };
        self.give(id, false, command::Command::Spawn(spawn));
    }
}
