//! Players' records: what is kept of a player, under the name that its tokens give, while it does not
//! play: its last position, its persistent properties and its bonds.
//!
//! While an entity plays the player the entity's region has the newest state, and the entity *holds*
//! the record. A session claims the record when it joins, in the same step in which it reads it, and
//! only after the entity that held it has left and its last state is kept. So no two entities begin
//! from one reading.
//!
//! | caller | what it does |
//! |---|---|
//! | a session that joins | reads the record ([`PlayerStore::read`]) to see whether it may, then claims it |
//! | a session that resumes | claims the record for the entity that holds it already |
//! | a session in the world | reports now and then, in case that a region's checkpoint is lost |
//! | a region | reports the last state of a player that leaves; the record is free from then on |
//!
//! Of two reports of one player that of the later claim counts, whatever the machines' clocks say; of
//! two reports under one claim, that of the later tick.

use std::fmt::Debug;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::scene::properties::{PropertyId, Value};
use crate::scene::views::NamedBond;
use crate::scene::{EntityId, Plane, Pos};

/// Where a player was last, and what it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastPosition {
    /// The scene's name.
    pub scene: String,
    /// The plane.
    pub plane: Plane,
    /// The place.
    pub pos: Pos,
    /// Its persistent properties.
    #[serde(default)]
    pub properties: Vec<KeptProperty>,
    /// Its bonds.
    #[serde(default)]
    pub bonds: Vec<NamedBond>,
}

/// A persistent property of a player, as it was last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptProperty {
    /// The property.
    pub id: PropertyId,
    /// Its value.
    pub value: Value,
}

/// What is kept of a player.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPlayer {
    /// Where it was, and what it had.
    pub place: LastPosition,
    /// The cluster's clock when it was so, milliseconds.
    pub clock_ms: u64,
}

/// Which entity's claim ends with a newer claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimOver {
    /// None: the record is free, or held by the claiming entity.
    Nobody,
    /// That of this entity, which no region has any more.
    Gone(EntityId),
    /// Any: sessions of one subject do not exclude each other.
    Anybody,
    /// None, and the claiming entity holds the record: the record is not free.
    Itself,
}

/// A claim that was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claimed {
    /// What is kept of the player; `None`: nothing is.
    pub kept: Option<StoredPlayer>,
    /// The claim's number, above that of every claim before.
    pub number: u64,
}

/// Why a claim was not made. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotClaimed {
    /// An entity holds the record; `None`: the record is free, but was to be held.
    #[error("another entity plays the player")]
    Held(Option<EntityId>),
    /// The store does not answer.
    #[error(transparent)]
    Away(#[from] StoreAway),
}

/// When a report was true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// The number of the session's claim, as [`Claimed`] has it.
    pub number: u64,
    /// The cluster's clock then, milliseconds: the tick that a region told of.
    pub clock_ms: u64,
}

/// The last state of a player that has left for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastState {
    /// The cluster's clock when the state was true, milliseconds.
    pub clock_ms: u64,
    /// Scene, plane and place; `None`: on the way between two scenes, so that the former ones stay.
    pub at: Option<(String, Plane, Pos)>,
    /// Its persistent properties.
    pub properties: Vec<KeptProperty>,
    /// Its bonds.
    pub bonds: Vec<NamedBond>,
    /// The properties that its scene declares. What is kept of others stays.
    pub declared: Vec<PropertyId>,
}

impl LastState {
    /// What is to be kept, where `before` was.
    pub fn after(self, before: Option<LastPosition>) -> Option<LastPosition> {
        let place = before.as_ref().map(|b| (b.scene.clone(), b.plane, b.pos));
        let others = before.into_iter().flat_map(|before| before.properties);
        let others = others.filter(|kept| !self.declared.contains(&kept.id));
        let (scene, plane, pos) = self.at.or(place)?;
        Some(LastPosition {
            scene,
            plane,
            pos,
            properties: others.chain(self.properties).collect(),
            bonds: self.bonds,
        })
    }
}

/// The store does not answer. Nothing has changed; the question may be repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the player's record cannot be read now ({why}): join again")]
pub struct StoreAway {
    /// What the store says.
    pub why: String,
}

/// Keeps players' records, by the players' names.
pub trait PlayerStore: Debug + Send + Sync {
    /// The time between two reports of a session.
    fn every(&self) -> Duration;

    /// What is kept of a player. It may change until it is claimed.
    fn read(&self, name: &str) -> BoxFuture<'static, Result<Option<StoredPlayer>, StoreAway>>;

    /// Claims a player's record for an entity, and reads it in the same step. While the store is away
    /// the claim waits for as long as is configured.
    fn claim(
        &self,
        name: &str,
        entity: EntityId,
        over: ClaimOver,
    ) -> BoxFuture<'static, Result<Claimed, NotClaimed>>;

    /// Takes a report of a session, at once: a session waits for it.
    fn keep(&self, name: &str, entity: EntityId, place: LastPosition, stamp: Stamp);

    /// An entity has left for good, with this state, or (`None`) has never been in the world: keeps the
    /// state and frees the record. Done when that is safe; it is tried until then.
    fn ended(&self, entity: EntityId, last: Option<LastState>) -> BoxFuture<'static, ()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_that_the_scene_does_not_declare_stay_as_they_were() {
        let kept = |id, n: i32| KeptProperty { id: PropertyId(id), value: Value::of(&n).unwrap() };
        let (pos, there) = (Pos::ground(1, 2), ("city".to_owned(), Plane(3), Pos::ground(9, 9)));
        let before = LastPosition {
            scene: "moor".into(),
            plane: Plane(0),
            pos,
            properties: vec![kept(1, 10), kept(2, 20), kept(3, 30)],
            bonds: vec![NamedBond::new("party", 1)],
        };
        let last = LastState {
            clock_ms: 5,
            at: None,
            properties: vec![kept(1, 11)],
            bonds: vec![NamedBond::new("guild", 2)],
            declared: vec![PropertyId(1), PropertyId(2)],
        };
        // The scene declares property 2, and the player has it no more.
        let properties = vec![kept(3, 30), kept(1, 11)];
        let after = LastPosition { properties, bonds: last.bonds.clone(), ..before.clone() };
        assert_eq!(last.clone().after(Some(before.clone())), Some(after.clone()));
        let moved = LastState { at: Some(there.clone()), ..last.clone() };
        let (scene, plane, pos) = there;
        assert_eq!(moved.after(Some(before)), Some(LastPosition { scene, plane, pos, ..after }));
        assert_eq!(last.after(None), None, "nothing says where it was");
    }
}
