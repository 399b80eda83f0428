//! Regions that are frozen, encoded, and restored under a higher epoch.

use purview::scene::region::RegionSnapshot;
use purview::scene::{Region, RegionId};

use super::world::World;

impl World {
    /// Freezes a region, encodes it, and restores it under a higher epoch, at the same place in its
    /// queues. False in an open tick.
    pub fn relocate(&mut self, id: RegionId) -> bool {
        let at = id.0 as usize;
        if !self.regions[at].is_closed() || self.down.contains_key(&id) {
            return false;
        }
        let scene = self.scenes.iter().find(|s| s.map.get(id).is_some()).unwrap().clone();
        let empty = Region::new(scene.clone(), id).unwrap();
        let old = std::mem::replace(&mut self.regions[at], empty);
        let snapshot = travel(old.freeze().expect("a closed tick"));
        // Twice: what the next owner would pass on is what this one received.
        let (epoch, before) = (self.next_epoch(), without_epochs(&snapshot));
        let way = Region::restore(scene.clone(), id, epoch, snapshot, &mut Vec::new());
        let snapshot = travel(way.expect("it fits").freeze().expect("a closed tick"));
        assert_eq!(without_epochs(&snapshot), before, "the snapshot changed in a restore");
        let epoch = self.next_epoch();
        let mut fx = std::mem::take(&mut self.fx);
        let new = Region::restore(scene, id, epoch, snapshot, &mut fx).expect("it fits");
        (self.regions[at], self.fx) = (new, fx);
        self.relocations += 1;
        self.depth += 1;
        self.carry_effects(id);
        self.depth -= 1;
        if let Some(mut safety) = self.safety.take_if(|_| self.depth == 0) {
            safety.check(self, id);
            self.safety = Some(safety);
        }
        true
    }
}

fn travel(snapshot: RegionSnapshot) -> RegionSnapshot {
    let bytes = snapshot.encode().expect("not too big");
    let read = RegionSnapshot::decode(&bytes).expect("the same bytes");
    assert_eq!(read.encode().unwrap(), bytes);
    read
}

/// The snapshot as text without epochs, which grow.
pub fn without_epochs(snapshot: &RegionSnapshot) -> String {
    let text = format!("{snapshot:?}");
    let mut parts = text.split("Epoch(");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, rest)| rest))
}
