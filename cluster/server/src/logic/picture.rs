//! What a worker knows of a region, and what it must be told so that it knows what the region is now: the difference, in
//! pieces that may be put together to messages as large as the worker takes.

use std::collections::VecDeque;

use bytes::Bytes;
use prost::Message;
use purview::scene::region::{Changed, Followed, Known};
use purview::scene::{EntityId, Epoch, Region, Scene, Tick};
use rustc_hash::{FxHashMap, FxHashSet};

use super::proto::Told;
use super::told::{changed, entity};

/// What a worker knows. Positions and properties are those of a tick.
#[derive(Debug, Default)]
pub struct Picture {
    /// The entities: under which epoch each lives in the region; `None`: it is sighted, and lives elsewhere.
    known: FxHashMap<EntityId, Option<Epoch>>,
    /// Entities that have changed in more than position and properties.
    changed: FxHashSet<EntityId>,
    ended: FxHashSet<EntityId>,
    /// The tick up to which the worker knows the region.
    told: Option<Tick>,
}

/// A difference: encoded parts of a [`Told`]. Those that follow each other may be put together to one.
#[derive(Debug)]
pub struct Pieces {
    pieces: VecDeque<Bytes>,
    open: Told,
    bytes: usize,
    most: usize,
}

impl Pieces {
    /// None, of about so many bytes each.
    pub fn new(most: usize) -> Pieces {
        Pieces { pieces: VecDeque::new(), open: Told::default(), bytes: 0, most }
    }

    /// Adds something of about so many bytes.
    fn add(&mut self, bytes: usize, add: impl FnOnce(&mut Told)) {
        if self.bytes + bytes > self.most && self.bytes > 0 {
            self.close();
        }
        add(&mut self.open);
        self.bytes += bytes;
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.bytes) > 0 {
            let open = std::mem::take(&mut self.open);
            self.pieces.push_back(open.encode_to_vec().into());
        }
    }

    fn finish(mut self) -> VecDeque<Bytes> {
        self.close();
        self.pieces
    }
}

impl Picture {
    /// An entity has changed in more than position and properties.
    pub fn changes(&mut self, id: EntityId) {
        self.changed.insert(id);
    }

    pub fn ends(&mut self, id: EntityId) {
        self.ended.insert(id);
    }

    /// What the worker must be told so that it knows the region as it is now. It counts as told from now on.
    pub fn difference(
        &mut self,
        (region, scene): (&Region, &Scene),
        followed: Followed,
        mut pieces: Pieces,
    ) -> VecDeque<Bytes> {
        let mut now: FxHashMap<EntityId, Option<Epoch>> = FxHashMap::default();
        now.reserve(self.known.len());
        let mut ghosts = Vec::new();
        let mut whole: FxHashSet<EntityId> = FxHashSet::default();
        for known in region.residents() {
            now.insert(known.id, Some(known.epoch));
            let kind = scene.spec.kinds.get(usize::from(known.kind.0));
            if kind.is_some_and(|kind| !kind.watch.is_empty()) {
                ghosts.extend(region.sighted_by(known.id));
            }
            let is_bound_anew = self.told.is_some_and(|told| known.bonds.since > told);
            if self.known.get(&known.id) != Some(&Some(known.epoch))
                || is_bound_anew
                || self.changed.contains(&known.id)
            {
                whole.insert(known.id);
                add_entity(&mut pieces, region, &known);
            }
        }
        ghosts.sort_unstable();
        ghosts.dedup();
        for known in ghosts.into_iter().filter_map(|id| region.known(id)) {
            if known.is_real {
                continue;
            }
            now.insert(known.id, None);
            if self.known.get(&known.id) != Some(&None) {
                whole.insert(known.id);
                add_entity(&mut pieces, region, &known);
            }
        }
        self.add_gone(&now, &mut pieces);
        if let Some(told) = self.told {
            region.changes(told.next(), followed, |change| {
                let (Changed::Place(id, _) | Changed::Property(id, _)) = change;
                if !whole.contains(&id) {
                    let bytes = match change {
                        Changed::Place(..) => 24,
                        Changed::Property(_, level) => 24 + level.value.bytes().len(),
                    };
                    pieces.add(bytes, |told| changed(told, change));
                }
            });
        }
        self.known = now;
        self.changed.clear();
        self.ended.clear();
        self.told = Some(region.current_tick());
        pieces.finish()
    }

    fn add_gone(&self, now: &FxHashMap<EntityId, Option<Epoch>>, pieces: &mut Pieces) {
        let mut gone: Vec<EntityId> =
            self.known.keys().filter(|id| !now.contains_key(id)).copied().collect();
        gone.sort_unstable();
        for id in gone {
            let ended = self.ended.contains(&id);
            pieces.add(18, |told| {
                told.gone.push(id.0);
                told.ended.extend(ended.then_some(id.0));
            });
        }
    }
}

fn add_entity(pieces: &mut Pieces, region: &Region, known: &Known<'_>) {
    let entity = entity(region, known);
    pieces.add(entity.encoded_len() + 6, |told| told.entities.push(entity));
}
