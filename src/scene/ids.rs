//! Newtypes for everything that is counted or named, so that a tick is never mistaken for an epoch.

use serde::{Deserialize, Serialize};

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
    /// Names an entity for the whole of its life; never used twice by one server.
    EntityId(u64)
}
id! {
    /// Names a region across all scenes of one server.
    RegionId(u32)
}
id! {
    /// Names a scene by its place in the configuration, from 0.
    SceneId(u16)
}
id! {
    /// Names a client's session; never used twice by one server.
    SessionId(u64)
}
id! {
    /// The plane of an entity: entities of one scene see and touch each other only within a plane.
    Plane(i32)
}
id! {
    /// An entity kind: its place in the scene's list of kinds, from 0 (which is always the player).
    Kind(u8)
}
id! {
    /// Time inside a scene, in ticks since the server's start.
    Tick(u64)
}
id! {
    /// Grows with every change of owner, of an entity or a region; what carries a lower one is late.
    Epoch(u64)
}
id! {
    /// Number of a client's input within its session, from 1, without gaps.
    Seq(u32)
}

impl Plane {
    /// A plane that nobody sees: where an entity is while it is between two scenes.
    pub const LIMBO: Plane = Plane(i32::MIN);
}

impl Kind {
    /// The kind of every player.
    pub const PLAYER: Kind = Kind(0);
}

impl Tick {
    /// The next tick; the last one has none after it.
    pub fn next(self) -> Tick {
        Tick(self.0.saturating_add(1))
    }
}

/// Epochs of an entity between two of its lives: more than there are handoffs in one.
const LIFE: u64 = 1 << 20;

impl Epoch {
    /// The first epoch of an entity that begins to live in a region of this lineage: above all that an
    /// owner before it may have given to the same entity.
    pub fn of_birth(self) -> Epoch {
        Epoch(self.0.saturating_sub(1).saturating_mul(LIFE).saturating_add(1))
    }

    /// The epoch of an entity that goes on in a region of that lineage from what was known of it before a
    /// death: above everything that may have become of it since. Region epochs are drawn from one counter,
    /// so no two regions give the same.
    pub fn next_life(self, lineage: Epoch) -> Epoch {
        Epoch(self.0.saturating_add(LIFE)).max(lineage.of_birth())
    }

    /// Grows with every life.
    pub fn lives(self) -> u64 {
        self.0 / LIFE
    }

    /// Grows with every handoff, within a life.
    pub fn in_life(self) -> u64 {
        self.0 % LIFE
    }

    /// Whether what carries this epoch is of a life before that of `newer`.
    pub fn is_of_a_life_before(self, newer: Epoch) -> bool {
        newer.0.saturating_sub(self.0) > LIFE / 2
    }

    /// The next epoch; the last one has none after it.
    pub fn next(self) -> Epoch {
        Epoch(self.0.saturating_add(1))
    }
}

impl Seq {
    /// The next sequence number; the last one has none after it.
    pub fn next(self) -> Seq {
        Seq(self.0.saturating_add(1))
    }
}
