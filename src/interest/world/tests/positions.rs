//! A client that knows positions only by what it is told.

use super::*;

/// What a client was told, and which entities were seen when it was told last.
#[derive(Default)]
pub struct Client {
    known: BTreeMap<u64, Pos>,
    /// Id and number.
    seen: BTreeSet<(u64, u64)>,
}

impl Client {
    /// Takes in the positions of a tick. The client must know where every subject is, and must hear
    /// nothing else and nothing twice.
    pub fn hear(&mut self, told: &[Position], model: &Model) {
        let pairs = model.pairs.union(&model.listed);
        let seen: BTreeSet<(u64, u64)> = pairs.map(|(_, subject)| *subject).collect();
        assert!(told.is_sorted_by(|a, b| a.id < b.id), "{told:?}");
        for Position { id, pos } in told {
            let (born, entity) = &model.entities[id];
            assert_eq!(*pos, entity.pos);
            assert!(seen.contains(&(*id, *born)), "{id} is not seen");
            let before = self.known.insert(*id, *pos);
            let was_seen = self.seen.contains(&(*id, *born));
            assert!(!was_seen || before != Some(*pos), "{id} has not moved");
        }
        for (id, _) in &seen {
            assert_eq!(self.known.get(id), Some(&model.entities[id].1.pos), "{id}");
        }
        self.seen = seen;
    }
}

#[test]
fn a_world_tells_positions_only_if_its_rules_say_so() {
    let rules = Rules::new(GROUND, Mode::All, Reach::All);
    let told = [false, true].map(|positions| {
        let mut world = World::new(Rules { positions, ..rules.clone() }).unwrap();
        [5, 3].into_iter().for_each(|id| world.create(entity(id, id as i32)).unwrap());
        world.tick();
        world.positions().iter().map(|one| one.id).collect::<Vec<_>>()
    });
    assert_eq!(told, [vec![], vec![3, 5]]);
}
