//! What a scene contains from the start: chests, trees, doorkeepers, spawn points.
//!
//! The configuration and the map list contents. Every plane has the same ones. The id of each follows
//! from its place in the list and from the plane ([`EntityId::of_content`]), so that all regions name
//! it alike without a word, and none can come to be twice.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::properties::{Properties, PropertyId, Value};
use super::terrain::DoorOrder;
use super::{EntityId, Facing, Kind, Plane, Pos, Rect, Tick};

/// Longest time after which a content comes back, milliseconds: a week.
pub const MAX_RESPAWN_MS: u32 = 7 * 24 * 3_600_000;

/// Something that a scene contains in each of its planes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentSpec {
    /// Its name, unique in its scene, 1 to 64 bytes of printable text.
    pub name: String,
    /// Its kind, which is not the player's.
    pub kind: Kind,
    /// Where it stands.
    pub pos: Pos,
    /// The way it faces.
    pub facing: Facing,
    /// The properties that it begins with; each at most once.
    pub properties: Vec<(PropertyId, Value)>,
    /// How long after it was removed it stands there again, as it was at the start, milliseconds, 1 to
    /// [`MAX_RESPAWN_MS`]; `None`: it stays away as long as its plane is open.
    pub respawn_ms: Option<u32>,
    /// Whether checkpoints keep its state where it stands on its own region's ground. Otherwise it is
    /// as the list has it when its region goes on from a checkpoint.
    pub save: bool,
}

impl ContentSpec {
    /// A content of a kind that stands somewhere and stays away when it is removed.
    pub fn new(name: impl Into<String>, kind: Kind, pos: Pos) -> ContentSpec {
        let (facing, properties) = (Facing::EAST, Vec::new());
        ContentSpec {
            name: name.into(),
            kind,
            pos,
            facing,
            properties,
            respawn_ms: None,
            save: false,
        }
    }

    /// The properties that it begins with.
    pub fn begins_with(&self) -> Properties {
        let mut properties = Properties::default();
        for (id, value) in &self.properties {
            properties.begin_with(*id, value.clone());
        }
        properties
    }
}

/// The contents of a scene, which are legal there.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    /// The number of the first one among those of all scenes.
    first: u32,
    list: Arc<[ContentSpec]>,
    by_name: Arc<FxHashMap<String, u32>>,
    /// Differs where the list differs in what ids mean.
    print: u64,
}

impl Contents {
    pub(super) fn new(first: u32, list: &[ContentSpec]) -> Contents {
        let by_name = list.iter().map(|content| content.name.clone()).zip(0..).collect();
        let print = print(first, list);
        Contents { first, list: list.into(), by_name: Arc::new(by_name), print }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// All of them with their ids in a plane.
    pub fn of(&self, plane: Plane) -> impl Iterator<Item = (EntityId, &ContentSpec)> {
        let id = move |number| EntityId::of_content(number, plane);
        (self.first..).map(id).zip(self.list.iter())
    }

    /// The id of the content of this name in a plane, whether or not it lives now.
    pub fn named(&self, plane: Plane, name: &str) -> Option<EntityId> {
        let at = self.by_name.get(name)?;
        Some(EntityId::of_content(self.first + at, plane))
    }

    /// The content with this id, and its plane; `None`: it is none of this scene's.
    pub fn get(&self, id: EntityId) -> Option<(&ContentSpec, Plane)> {
        let (number, plane) = id.content()?;
        let at = number.checked_sub(self.first)?;
        Some((self.list.get(at as usize)?, plane))
    }

    /// Tells lists apart by which content has which number.
    pub fn print(&self) -> u64 {
        self.print
    }
}

/// What a region knows of the contents of a plane.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OpenPlane {
    /// The grounds on which the plane's contents have come to be. Those that lived there go on wherever
    /// they are now.
    pub grounds: Vec<Rect>,
    /// How often the plane was reset.
    pub resets: u32,
    /// The version and the tick of the last reset.
    pub reset: (u64, Tick),
}

/// What a region knows of contents, for a snapshot or for a region that gets ground.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SavedContents {
    /// Of which list: see [`Contents::print`].
    pub print: u64,
    /// The region's ground.
    pub ground: Option<Rect>,
    /// By planes, in their order.
    pub planes: Vec<(Plane, OpenPlane)>,
    /// Contents of the region's ground that live elsewhere or are gone, in the order of their ids.
    pub away: Vec<EntityId>,
    /// Resets of planes that wait for their ticks.
    pub orders: Vec<DoorOrder>,
}

/// FNV-1a of numbers, names and kinds.
fn print(first: u32, list: &[ContentSpec]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    add(&first.to_le_bytes());
    for content in list {
        add(content.name.as_bytes());
        add(&[0, content.kind.0]);
    }
    hash
}
