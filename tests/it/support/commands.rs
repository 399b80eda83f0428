//! What the shell does with commands of the game's logic: messages for groups, doors, and answers.

use bytes::Bytes;
use purview::scene::messages::{
    Asker, Command, CommandError, CommandId, CommandResult, GroupMessage, Input, MessageId, Motion,
    NamedBond, Order, Recipients, SceneChange, SceneOrder, Sought,
};
use purview::scene::region::GameLogic;
use purview::scene::{EntityId, RegionId};

use super::world::World;

/// What a caller of process 0 has the game's logic order.
pub fn order_of(id: EntityId, order: Order) -> Input {
    Input::command(CALL, Command::Order(id, order))
}

/// The same for a movement.
pub fn motion_of(id: EntityId, motion: Motion) -> Input {
    Input::command(CALL, Command::Motion(id, motion))
}

/// The same for its end.
pub fn despawn_of(id: EntityId) -> Input {
    Input::command(CALL, Command::Despawn(id))
}

/// The same for the time for which a player stays.
pub fn hold_of(id: EntityId, ms: u32) -> Input {
    Input::command(CALL, Command::Hold(id, ms))
}

const CALL: CommandId = CommandId { from: Asker::Process(0), number: 0 };

impl World {
    /// Every region has logic of its own, which numbers what it creates in its region's millions.
    pub fn set_logic(&mut self, logic: impl Fn(RegionId) -> Box<dyn GameLogic>) {
        for (n, region) in self.regions.iter_mut().enumerate() {
            let mut ids = ((n as u64 + 1) * 1_000_000 + 1..).map(EntityId);
            region.set_logic(logic(region.id()), Box::new(move || ids.next()));
        }
    }

    /// Puts an input for every region on its way.
    fn tell_all(&mut self, from: RegionId, input: &Input) {
        let regions: Vec<RegionId> = self.regions.iter().map(|region| region.id()).collect();
        for to in regions {
            self.queues.entry((from, to)).or_default().push_back(input.clone());
        }
    }

    /// Whoever has given a command is told that it has ended.
    fn end(&mut self, from: RegionId, id: CommandId) {
        self.end_so(from, CommandResult { id, result: Ok(()) });
    }

    fn end_so(&mut self, from: RegionId, ended: CommandResult) {
        let id = ended.id;
        match id.from {
            Asker::Process(_) => self.answers.push(ended),
            Asker::Logic(region, _) => {
                let queue = self.queues.entry((from, region)).or_default();
                queue.push_back(Input::CommandResult(ended));
            }
        }
    }

    pub fn tell_group(&mut self, from: RegionId, id: CommandId, to: Recipients, payload: Bytes) {
        self.orders += 1;
        let message = MessageId { sender: 7, number: self.orders };
        let sent_ms = self.tick.0 * 100;
        let input = Input::Group(Box::new(GroupMessage { id: message, to, payload, sent_ms }));
        self.tell_all(from, &input);
        self.end(from, id);
    }

    /// Sets the bonds of a player that does not play, if there is a record of it.
    pub fn keep_bonds(&mut self, from: RegionId, id: CommandId, of: &str, bonds: Vec<NamedBond>) {
        let record = self.records.get_mut(of);
        let result = record.map(|record| *record = bonds).ok_or(CommandError::NoSubject);
        self.end_so(from, CommandResult { id, result });
    }

    pub fn search_elsewhere(&mut self, from: RegionId, sought: &Sought) {
        let here = self.regions[from.0 as usize].scene_id();
        let others = self.regions.iter().filter(|region| region.scene_id() != here);
        let others: Vec<RegionId> = others.map(|region| region.id()).collect();
        self.regions[from.0 as usize].search_elsewhere(sought, others, &mut self.fx);
        self.carry_effects(from);
    }

    pub fn change_scene(&mut self, from: RegionId, id: CommandId, change: SceneChange) {
        self.orders += 1;
        let order = SceneOrder::new(change, self.tick.next(), self.orders);
        self.tell_all(from, &Input::Scene(order));
        self.end(from, id);
    }
}
