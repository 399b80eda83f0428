//! One player that looks at its peers, again and again in every tick.
//!
//! Refreshing registers calls [`Eye::refresh`] for each peer. It gives what [`range_query::refresh`] gives; what is
//! the same for all peers is looked up once, and a peer costs two loads. *Must never happen here:* a rule that
//! [`range_query`] does not have. The short way is for players in range by their patches; all others go the long way.

use super::range_query;
use crate::scene::geo::dist_cm;
use crate::scene::region::entities::{EntityStore, Location, TAG_BONDED};
use crate::scene::views::{NO_BOND, Registers, ViewRules};
use crate::scene::{RangeSet, Visibility};

/// A player at its place.
#[derive(Debug, Clone, Copy)]
pub struct Eye<'a> {
    entities: &'a EntityStore,
    vis: &'a Visibility,
    rules: &'a ViewRules,
    slot: u32,
    me: Location,
    by_patches: bool,
    /// The rings in which players see each other.
    range: RangeSet,
}

impl<'a> Eye<'a> {
    /// The player at `slot`.
    pub fn new(
        entities: &'a EntityStore,
        vis: &'a Visibility,
        rules: &'a ViewRules,
        slot: u32,
    ) -> Eye<'a> {
        let me = *entities.place(slot);
        let sees = range_query::same_plane(entities, &me, &me);
        let by_patches = matches!(vis, Visibility::Patches) && sees;
        Eye { entities, vis, rules, slot, me, by_patches, range: entities.range() }
    }

    /// Brings slot, distance, class and ring of the peer at `ix` up to date. False when it is out of range or gone.
    #[inline]
    pub fn refresh(&self, registers: &mut Registers, ix: usize) -> bool {
        let peer = &mut registers.peers_mut()[ix];
        if let Some(other) = self.entities.find_place(peer.slot) {
            let (ring, shared) = (self.me.patch.ring(other.patch), self.me.tag & other.tag);
            let here = self.by_patches && other.plane_ix == self.me.plane_ix;
            let level = self.entities.are_level(&self.me, other, true);
            if here && level && self.range.has_ring(ring) && shared & TAG_BONDED == 0 {
                peer.dist_cm = dist_cm(self.me.dist2(other));
                (peer.class, peer.ring) = (NO_BOND, range_query::small_ring(ring));
                return true;
            }
        }
        let Eye { entities, vis, rules, slot, .. } = *self;
        range_query::refresh(entities, vis, rules, slot, &self.me, registers, ix)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scene::properties::Properties;
    use crate::scene::region::entities::{NewEntity, Real, Role};
    use crate::scene::views::{Bond, Ties};
    use crate::scene::{
        EntityId, Epoch, Facing, Kind, Plane, Pos, RegionId, Scene, SceneId, SceneSpec, ViewLimits,
    };

    /// Position, plane, sight, group and whether it goes again.
    type Figure = ((i32, i32, i32), i32, u8, u64, bool);

    fn figure() -> impl Strategy<Value = Figure> {
        let along = || prop_oneof![9 => 0..40_000, 1 => Just(i32::MIN), 1 => Just(i32::MAX)];
        let plane = prop_oneof![6 => Just(0), 1 => Just(1), 1 => Just(Plane::LIMBO.0)];
        ((along(), 0..2_000, along()), plane, 0..=7_u8, 0..8_u64, prop::bool::weighted(0.1))
    }

    fn visibility() -> impl Strategy<Value = Visibility> {
        prop_oneof![
            4 => Just(Visibility::Patches),
            1 => Just(Visibility::Circle { enter_cm: 8_000, leave_cm: 8_500 }),
            1 => Just(Visibility::All),
        ]
    }

    fn entity(id: u64, figure: Figure) -> NewEntity {
        let ((x, y, z), plane, sight, group, _) = figure;
        // Most have none.
        let bonds = if group < 3 { vec![Bond { class: 1, group }] } else { Vec::new() };
        NewEntity {
            id: EntityId(id),
            kind: Kind::PLAYER,
            plane: Plane(plane),
            pos: Pos { x, y, z },
            facing: Facing::EAST,
            sight: ViewLimits { rings: RangeSet::from_bits(sight).unwrap(), ..ViewLimits::FULL },
            properties: Properties::default(),
            ties: Ties::of(bonds),
            epoch: Epoch(1),
        }
    }

    proptest! {
        #[test]
        fn an_eye_sees_what_the_rules_say(
            figures in prop::collection::vec(figure(), 2..20),
            vis in visibility(),
            range in 0..=7_u8,
            height_cm in prop::option::of(1..1_500),
        ) {
            let range = RangeSet::from_bits(range).unwrap();
            let spec = SceneSpec { range, height_cm, ..SceneSpec::default() };
            let scene = Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap();
            let mut entities = EntityStore::new(&scene, scene.map.regions[0].rect);
            for (id, figure) in (1..).zip(&figures) {
                entities.add(entity(id, *figure), Role::Real(Real::default()));
            }
            for (slot, _) in (0..).zip(&figures).filter(|(slot, figure)| figure.4 && *slot > 0) {
                entities.remove(slot);
            }
            let (rules, me) = (ViewRules::of(&scene), *entities.place(0));
            let mut short = Registers::new(EntityId(1));
            // A slot that does not exist stands for one that is not known.
            for (slot, _) in (0..).zip(&figures).skip(1) {
                short.push(EntityId(u64::from(slot) + 1), if slot % 5 == 4 { u32::MAX } else { slot });
            }
            let mut long = short.clone();
            let eye = Eye::new(&entities, &vis, &rules, 0);
            for ix in 0..short.peers().len() {
                let seen = eye.refresh(&mut short, ix);
                let by_rules = range_query::refresh(&entities, &vis, &rules, 0, &me, &mut long, ix);
                prop_assert_eq!(seen, by_rules);
                prop_assert_eq!(short.peers()[ix], long.peers()[ix]);
            }
        }
    }
}
