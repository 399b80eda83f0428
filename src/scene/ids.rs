//! Newtypes for ids and counters, so that a tick is never mistaken for an epoch.

use serde::{Deserialize, Serialize};

/// The id of an entity or session is the number of the process that gave it, then a count of so many
/// bits.
pub(crate) const COUNT_BITS: u32 = 32;

/// In the place of a process number, the ids of what scenes contain have this and the number of the
/// content: no process has so high a number, and every id stays below 2^53.
const CONTENTS: u64 = 3 << 19;

/// Most contents of all scenes of a server.
pub const MAX_CONTENTS: u32 = 1 << 19;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// Identifies an entity for its whole life; never used twice by one server.
    EntityId(u64)
}
id! {
    /// Identifies a region across all scenes of one server.
    RegionId(u32)
}
id! {
    /// Identifies a scene: its index in the configuration, from 0.
    SceneId(u16)
}
id! {
    /// Identifies a client's session; never used twice by one server.
    SessionId(u64)
}
id! {
    /// The plane of an entity. Entities of one scene interact only within a plane.
    Plane(i32)
}
id! {
    /// An entity kind: its index in the scene's list of kinds, from 0 (always the player).
    Kind(u8)
}
id! {
    /// Time inside a scene, in ticks since the server's start.
    Tick(u64)
}
id! {
    /// Grows with every change of owner of an entity or region. A message with a lower epoch is
    /// stale.
    Epoch(u64)
}
id! {
    /// Where a region keeps a player that lives in it, so that the player's inputs need no lookup by id.
    /// Counts only together with the player's id: under a handle of another region, or of a time past,
    /// the region finds another id or none, and looks the player up. 0: none.
    EntityHandle(u32)
}
id! {
    /// Number of a client's input within its session, from 1, without gaps.
    Seq(u32)
}

/// Whose a player is: a hash of the subject that its client's token names. All processes of a cluster
/// compute the same hash of a subject, and no other cluster does. Regions compare hashes and know no
/// subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SubjectHash([u64; 2]);

impl SubjectHash {
    /// Nobody's: of an entity without a client.
    pub const NONE: SubjectHash = SubjectHash([0; 2]);

    /// The hash with these bytes.
    pub const fn new(bytes: [u8; 16]) -> SubjectHash {
        let all = u128::from_be_bytes(bytes);
        SubjectHash([(all >> 64) as u64, all as u64])
    }
}

impl Plane {
    /// The plane of an entity between two scenes; nothing is visible there.
    pub const LIMBO: Plane = Plane(i32::MIN);
}

impl Kind {
    /// The kind of every player.
    pub const PLAYER: Kind = Kind(0);
}

impl Tick {
    /// The next tick; saturates at the last one.
    pub fn next(self) -> Tick {
        Tick(self.0.saturating_add(1))
    }
}

/// Epochs reserved for one life of an entity: more than it has handoffs in a life.
const LIFE: u64 = 1 << 20;

impl Epoch {
    /// The first epoch of an entity born in a region of this lineage: above all epochs that an
    /// earlier owner can have given to the entity.
    pub fn of_birth(self) -> Epoch {
        Epoch(self.0.saturating_sub(1).saturating_mul(LIFE).saturating_add(1))
    }

    /// The epoch of an entity that a region of that lineage restores after a death from the state
    /// with this epoch: above all epochs that the entity can have received since. Region epochs
    /// come from one counter, so no two regions compute the same.
    pub fn next_life(self, lineage: Epoch) -> Epoch {
        Epoch(self.0.saturating_add(LIFE)).max(lineage.of_birth())
    }

    /// The number of the life: grows with every restored life.
    pub fn lives(self) -> u64 {
        self.0 / LIFE
    }

    /// The number of handoffs within the life.
    pub fn in_life(self) -> u64 {
        self.0 % LIFE
    }

    /// Whether a message with this epoch belongs to an earlier life than `newer`.
    pub fn is_of_a_life_before(self, newer: Epoch) -> bool {
        newer.0.saturating_sub(self.0) > LIFE / 2
    }

    /// The next epoch; saturates at the last one.
    pub fn next(self) -> Epoch {
        Epoch(self.0.saturating_add(1))
    }
}

impl Seq {
    /// The next sequence number; saturates at the last one.
    pub fn next(self) -> Seq {
        Seq(self.0.saturating_add(1))
    }
}

impl EntityId {
    /// The id that no entity has.
    pub const NONE: EntityId = EntityId(0);

    /// The process that has given the id.
    pub const fn process(self) -> u64 {
        self.0 >> COUNT_BITS
    }

    /// The id of what scenes contain: by its number among the contents of all scenes, below
    /// [`MAX_CONTENTS`], and its plane.
    pub const fn of_content(number: u32, plane: Plane) -> EntityId {
        EntityId((CONTENTS + number as u64) << COUNT_BITS | plane.0 as u32 as u64)
    }

    /// The number and the plane of what a scene contains; `None`: the id is another entity's.
    pub const fn content(self) -> Option<(u32, Plane)> {
        match self.process().checked_sub(CONTENTS) {
            Some(number) if number < MAX_CONTENTS as u64 => {
                Some((number as u32, Plane(self.0 as u32 as i32)))
            }
            _ => None,
        }
    }
}

impl SessionId {
    /// The process of the session.
    pub const fn process(self) -> u64 {
        self.0 >> COUNT_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_contents_name_number_and_plane_and_fit_a_double() {
        for number in [0, 1, MAX_CONTENTS - 1] {
            for plane in [0, 1, -1, i32::MAX, i32::MIN + 1] {
                let id = EntityId::of_content(number, Plane(plane));
                assert_eq!(id.content(), Some((number, Plane(plane))));
                assert!(id.0 < 1 << 53);
            }
        }
        for process in [0, 1, 1 << 20, CONTENTS - 1] {
            assert_eq!(EntityId(process << COUNT_BITS | 7).content(), None);
        }
    }
}
