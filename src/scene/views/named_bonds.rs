//! Bonds by the names of their kinds: as game logic sets them, as they are kept of a player, and as a player takes
//! them from one scene to another, where the kinds may have another order.
//!
//! Inside of a region a bond's kind is its place in the scene's order ([`Bond`]). Bonds of kinds that the scene does
//! not have a player keeps, too: they count again where there is such a kind.

use serde::{Deserialize, Serialize};

use super::{Bond, MAX_BONDS};
use crate::scene::Tick;
use crate::scene::spec::BondSpec;

/// Most bonds that are kept of a player: those of its present scene come first.
pub const MAX_KEPT: usize = 16;

/// A bond by the name of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NamedBond {
    /// The kind, one of a scene's [`kinds`](BondSpec::kinds).
    pub kind: String,
    /// The group.
    pub group: u64,
}

impl NamedBond {
    /// A bond of this kind.
    pub fn new(kind: impl Into<String>, group: u64) -> NamedBond {
        NamedBond { kind: kind.into(), group }
    }
}

/// Bonds of a player, and since when it has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptBonds {
    /// The tick in which game logic has set bonds last; 0: not since the player joined.
    pub at: Tick,
    /// The bonds, at most [`MAX_KEPT`].
    pub named: Vec<NamedBond>,
}

impl BondSpec {
    /// The bond in this scene; `None`: it has no such kind.
    pub fn bond(&self, named: &NamedBond) -> Option<Bond> {
        self.class_of(&named.kind).map(|class| Bond { class, group: named.group })
    }

    /// The name of a bond's kind and its group; `None`: the scene has no such kind.
    pub fn name_of<'a>(&'a self, bond: &Bond) -> Option<(&'a str, u64)> {
        self.kinds.get(usize::from(bond.class)).map(|kind| (kind.as_str(), bond.group))
    }

    /// Bonds of this scene by names, and then others, at most [`MAX_KEPT`].
    pub(in crate::scene) fn named(&self, own: &[Bond], others: &[NamedBond]) -> Vec<NamedBond> {
        let own = own.iter().filter_map(|bond| self.name_of(bond));
        let own = own.map(|(kind, group)| NamedBond::new(kind, group));
        own.chain(others.iter().cloned()).take(MAX_KEPT).collect()
    }

    /// Takes the bonds of kinds that this scene has out of others, at most [`MAX_BONDS`].
    pub(in crate::scene) fn take_own(&self, named: &mut Vec<NamedBond>) -> Vec<Bond> {
        let own: Vec<Bond> = named.iter().filter_map(|bond| self.bond(bond)).collect();
        named.retain(|bond| self.class_of(&bond.kind).is_none());
        named.truncate(MAX_KEPT);
        own.into_iter().take(MAX_BONDS).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene(kinds: &[&str]) -> BondSpec {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        BondSpec { kinds, ..BondSpec::default() }
    }

    #[test]
    fn bonds_have_other_places_in_another_scene_and_wait_where_there_is_no_such_kind() {
        let (city, cave) = (scene(&["couple", "guild"]), scene(&["party", "guild"]));
        let all = vec![NamedBond::new("couple", 5), NamedBond::new("guild", 7)];
        let mut others = all.clone();
        let own = city.take_own(&mut others);
        assert_eq!(own, [Bond { class: 0, group: 5 }, Bond { class: 1, group: 7 }]);
        assert_eq!((others.len(), city.named(&own, &others)), (0, all.clone()));
        let mut others = all.clone();
        let own = cave.take_own(&mut others);
        assert_eq!(own, [Bond { class: 1, group: 7 }]);
        assert_eq!(others, [NamedBond::new("couple", 5)]);
        let mut back = cave.named(&own, &others);
        assert_eq!(city.take_own(&mut back).len(), 2);
    }

    #[test]
    fn so_many_bonds_are_kept_those_of_the_scene_first() {
        let (city, cave) = (scene(&["guild"]), scene(&["party"]));
        let of = |kind: &str, from| (from..from + 8).map(|n| NamedBond::new(kind, n)).collect();
        let (guilds, mut parties): (Vec<_>, Vec<_>) = (of("guild", 0), of("party", 100));
        parties.extend(guilds);
        let own = cave.take_own(&mut parties);
        assert_eq!((own.len(), parties.len()), (8, 8));
        let mut all = cave.named(&own, &parties);
        assert_eq!((all.len(), &all[0].kind[..]), (16, "party"));
        all.insert(0, NamedBond::new("couple", 1));
        // One more than are kept: of the kinds that the scene does not have the last goes.
        let own = city.take_own(&mut all);
        assert_eq!((own.len(), all.len()), (8, 9));
        let kept = city.named(&own, &all);
        assert_eq!((kept.len(), kept[8].clone()), (16, NamedBond::new("couple", 1)));
    }
}
