//! Rules that are independent by entity, on several threads. *Absent on purpose:* anything that depends on how
//! entities are shared out: the parts' commands are put together in the order of the entities.

use super::super::Region;
use super::{Commands, GameLogic};
use crate::scene::workers::{LEAST_PLAYERS, parts, share};

impl Region {
    /// Calls the logic for each entity of the kinds that it has named, and adds its commands.
    pub(super) fn call_each(&self, logic: &dyn GameLogic, commands: &mut Commands) {
        let kinds = logic.kinds_of_each();
        if kinds.is_empty() {
            return;
        }
        let mut slots: Vec<u32> = self
            .resident_slots()
            .filter(|s| kinds.contains(&self.entities.body(*s).kind))
            .collect();
        let parts = parts(&*self.workers, slots.len(), LEAST_PLAYERS);
        let mut given: Vec<Commands> = (0..parts).map(|_| commands.part()).collect();
        share(&*self.workers, &mut slots, &mut given, |given, _, slots| {
            slots.iter().for_each(|slot| logic.each(self, self.known_at(*slot), given));
        });
        given.into_iter().for_each(|part| commands.append(part));
    }
}
