//! Questions about a region: where entities are, and which players see each other. Nothing is
//! changed here.

use super::Region;
use super::entities::{Body, NO_SLOT, Role};
use crate::scene::geo::dist_cm;
use crate::scene::index::Patch;
use crate::scene::inspect::{
    ActingPlayer, EntityDetails, InspectedEntity, PlayerDetails, RegionDetails, ViewEntry,
};
use crate::scene::messages::Spawn;
use crate::scene::properties::Properties;
use crate::scene::views::{GroupRelation, Peer, PeerState, Registers, Ties, ViewMsg};
use crate::scene::{
    EntityId, Epoch, Facing, Footprint, Kind, Plane, Pos, SessionId, Tile, ViewLimits,
};

impl Region {
    /// The entity with this id, real or ghost.
    pub fn find(&self, id: EntityId) -> Option<EntityDetails> {
        let slot = self.entities.slot(id).filter(|slot| self.asleep_until(*slot).is_none());
        slot.map(|slot| self.entity(slot))
    }

    /// Entities of a kind in the patch of `at`, in no particular order.
    pub fn in_patch(&self, plane: Plane, kind: Kind, at: Pos) -> Vec<EntityDetails> {
        self.search(plane, kind, at, 0, |_| true)
    }

    /// Entities of a kind within `radius_cm` of `at` on the ground, in no particular order. Beyond
    /// the region's ground only those that are mirrored here.
    pub fn within(&self, plane: Plane, kind: Kind, at: Pos, radius_cm: i32) -> Vec<EntityDetails> {
        let r2 = (i64::from(radius_cm) * i64::from(radius_cm)) as u64;
        self.search(plane, kind, at, radius_cm, |pos| pos.dist2(at) <= r2)
    }

    fn search(
        &self,
        plane: Plane,
        kind: Kind,
        at: Pos,
        radius_cm: i32,
        accept: impl Fn(Pos) -> bool,
    ) -> Vec<EntityDetails> {
        let index = self.entities.plane(plane);
        let Some(Some(grid)) = index.and_then(|p| p.grids.get(usize::from(kind.0))) else {
            return Vec::new();
        };
        let center: Patch = grid.patch_of(at);
        let mut found = Vec::new();
        grid.rings(center, grid.rings_of_radius(radius_cm), |_, entries| {
            let near = entries.iter().filter(|e| accept(Pos::ground(e.x, e.z)));
            found.extend(near.map(|e| self.entity(e.slot)));
        });
        found
    }

    /// All entities, or those of a plane.
    pub fn inspect(&self, plane: Option<Plane>) -> RegionDetails {
        let entities = self
            .entities
            .slots()
            .filter(|s| plane.is_none_or(|p| self.entities.record(*s).plane == p))
            .map(|slot| self.entity(slot))
            .collect();
        RegionDetails {
            scene: self.identity.scene().id,
            region: self.identity.id(),
            epoch: self.identity.epoch(),
            rect: self.identity.rect(),
            tick: self.clock.tick(),
            entities,
            doors: self.doors.ground().as_ref().map_or_else(Vec::new, |g| g.doors_set(plane)),
            sighted: self.all_sighted(plane),
        }
    }

    /// What lives here under this id, or has just come and is not installed yet.
    pub fn inspect_entity(&self, id: EntityId) -> Option<InspectedEntity> {
        if let Some(player) = self.inspect_player(id) {
            return Some(InspectedEntity::Player(Box::new(player)));
        }
        if let Some(h) = self.custody.incoming_of(id) {
            let Spawn { kind, plane, pos, facing, .. } = h.state;
            let (owner, ghost, views) = (self.identity.id(), false, 0);
            let properties = h.state.properties.clone();
            return Some(InspectedEntity::Other(EntityDetails {
                id,
                kind,
                plane,
                pos,
                owner,
                ghost,
                views,
                facing,
                properties,
            }));
        }
        self.entities.real_slot(id).map(|slot| InspectedEntity::Other(self.entity(slot)))
    }

    /// A player that lives here, or has just come and is not installed yet, with all that it sees.
    pub fn inspect_player(&self, id: EntityId) -> Option<PlayerDetails> {
        if let Some(h) = self.custody.incoming_of(id) {
            let Spawn { kind, plane, pos, sight, .. } = h.state;
            let peers =
                Registers::restored(id, &h.peers, 0, NO_SLOT, self.clock.tick()).capped(sight.cap);
            let seen = h.seen.iter().map(|s| s.id).collect();
            let state = (h.state.facing, h.state.properties.clone());
            let bare = self.bare_player(id, h.epoch, (plane, pos, sight), &h.ties, seen, state);
            return (kind == Kind::PLAYER).then(|| self.with_views(bare, peers));
        }
        let slot = self.entities.slot(id)?;
        let (body, record) = (self.entities.body(slot), self.entities.record(slot));
        let viewer = self.views.get(body.viewer)?;
        let seen = viewer.seen.iter().map(|s| s.id).collect();
        let sight = self.entities.place(slot).sight();
        let place = (record.plane, body.pos, sight);
        let state = (body.facing, record.properties.clone());
        let bare = self.bare_player(id, record.epoch, place, &record.ties, seen, state);
        Some(self.with_views(bare, viewer.registers.clone()))
    }

    /// A player of this region before its view list is filled in.
    fn bare_player(
        &self,
        id: EntityId,
        epoch: Epoch,
        (plane, pos, sight): (Plane, Pos, ViewLimits),
        ties: &Ties,
        seen: Vec<EntityId>,
        (facing, properties): (Facing, Properties),
    ) -> PlayerDetails {
        PlayerDetails {
            id,
            epoch,
            scene: self.identity.scene().id,
            region: self.identity.id(),
            tick: self.clock.tick(),
            plane,
            pos,
            sight: sight.rings,
            ties: ties.clone(),
            relations: self.entities.relations().of_bonds(&ties.bonds),
            rules: self.views.rules().capped(sight.cap),
            view: Vec::new(),
            asked: Vec::new(),
            worst: None,
            seen,
            facing,
            properties,
        }
    }

    /// The player with its view list, the players that it has asked, and the one that it would give
    /// up first. Distances and classes are those of this moment, which in an open tick are newer
    /// than the registers'.
    fn with_views(&self, mut player: PlayerDetails, mut registers: Registers) -> PlayerDetails {
        // Links as they are now are those that the next tick begins with.
        registers.keep_links();
        registers.retain(Peer::said);
        for ix in 0..registers.peers().len() {
            let slot = self.entities.slot(registers.yes_ids()[ix].id);
            let peer = &mut registers.peers_mut()[ix];
            peer.dist_cm = u32::MAX;
            if let Some(slot) = slot {
                let (body, record) = (self.entities.body(slot), self.entities.record(slot));
                peer.dist_cm = dist_cm(player.pos.dist2(body.pos));
                let (me, other) = ((player.id, &player.ties), (body.id, &record.ties));
                let (relations, now) = (self.entities.relations(), self.entities.now());
                peer.class = self.views.rules().class(me, other, relations, peer.dist_cm, now);
            }
        }
        let threshold = registers.threshold(self.views.rules());
        let mut standing: Vec<usize> = (0..registers.peers().len()).collect();
        standing.sort_unstable_by_key(|ix| registers.key(self.views.rules(), *ix));
        let entry = |ix: usize| {
            let (p, id) = (&registers.peers()[ix], registers.yes_ids()[ix].id);
            let dist_cm = self.entities.slot(id).map(|_| p.dist_cm);
            ViewEntry { id, class: p.class, dist_cm, linked: p.linked() }
        };
        let worst = standing.iter().find(|ix| registers.key(self.views.rules(), **ix) == threshold);
        player.worst = worst.map(|ix| entry(*ix));
        let (view, asked) = standing.into_iter().map(entry).partition(|e| e.linked);
        PlayerDetails { view, asked, ..player }
    }

    /// Every player that lives here, as [`ActingPlayer`] says. A player that has come and is not installed yet does
    /// not act here so far.
    pub fn acting_players(&self) -> impl Iterator<Item = ActingPlayer> + '_ {
        self.views.viewers().iter().map(|viewer| {
            let (body, record) =
                (self.entities.body(viewer.slot), self.entities.record(viewer.slot));
            ActingPlayer {
                id: body.id,
                epoch: record.epoch,
                plane: record.plane,
                pos: body.pos,
                last_applied: viewer.last_applied,
                session: viewer.session,
            }
        })
    }

    /// Everything that lives here and that no client steers: which, under which epoch, and where. Nothing of it acts
    /// before the first tick after a death.
    pub fn acting_others(&self) -> impl Iterator<Item = (EntityId, Epoch, (Plane, Pos))> + '_ {
        let recovers = self.is_recovering();
        let slots = self.entities.all();
        let acts = move |body: &Body| !recovers && body.is_real() && body.kind != Kind::PLAYER;
        slots
            .filter(move |(body, _)| acts(body))
            .map(|(body, record)| (body.id, record.epoch, (record.plane, body.pos)))
    }

    /// The tiles that bodies occupy, as far as is known here, each with the entity that does.
    pub fn occupied(&self) -> impl Iterator<Item = (Plane, Tile, EntityId)> + '_ {
        let scene = self.identity.scene();
        let footprint = |slot| Some((slot, scene.footprint(self.entities.body(slot).kind)?));
        let all = self.entities.slots().filter_map(footprint);
        let tiles = move |(slot, footprint): (u32, Footprint)| {
            let (body, plane) = (self.entities.body(slot), self.entities.record(slot).plane);
            footprint.at(body.pos).tiles().map(move |tile| (plane, tile, body.id))
        };
        all.flat_map(tiles).filter(|(plane, ..)| *plane != Plane::LIMBO)
    }

    /// How groups stand to each other as the region knows it, also by orders that are not due, the oldest order first.
    pub fn relations(&self) -> Vec<GroupRelation> {
        self.entities.relations().all()
    }

    /// Entities that were handed to another region in this tick: their epochs and positions.
    pub fn handed_over(&self) -> impl Iterator<Item = (EntityId, Epoch, Pos)> + '_ {
        let now =
            self.custody.escrow().lent().rev().take_while(|(at, ..)| *at == self.clock.tick());
        now.map(|(.., handoff)| (handoff.state.id, handoff.epoch, handoff.state.pos))
    }

    /// Players whose clients are connected, as far as is known, with their sessions.
    pub fn attended(&self) -> impl Iterator<Item = (SessionId, EntityId)> + '_ {
        let here = self.views.viewers().iter().filter(|viewer| viewer.disconnected_until.is_none());
        here.filter_map(|v| Some((v.session?, self.entities.body(v.slot).id)))
    }

    /// The registers of every player that lives here, or has just come and is not installed yet, as
    /// they would travel in a handoff.
    pub fn inspect_registers(&self) -> Vec<(EntityId, Vec<PeerState>)> {
        let here = self.views.viewers().iter().map(|v| {
            let peers = 0..v.registers.peers().len();
            (v.registers.me, peers.map(|ix| v.registers.state(ix, self.clock.tick())).collect())
        });
        let incoming = self.custody.incoming().map(|h| (h.state.id, h.peers.clone()));
        here.chain(incoming).collect()
    }

    /// Messages of the view negotiation that wait here to be handled, or to be sent to another
    /// region.
    pub fn inspect_view_queue(&self) -> Vec<ViewMsg> {
        let id = |slot: u32| self.entities.get(slot).map(|body| body.id);
        self.views.waiting((self.identity.id(), self.identity.epoch()), id)
    }

    /// The bond class of a pair of entities, as this region has them; 255 when they share no bond that
    /// counts, `None` when one of them is not known here.
    pub fn bond_class(&self, a: EntityId, b: EntityId) -> Option<u8> {
        let (a, b) = (self.entities.slot(a)?, self.entities.slot(b)?);
        let dist_cm = dist_cm(self.entities.body(a).pos.dist2(self.entities.body(b).pos));
        Some(self.entities.bond_class(self.views.rules(), a, b, dist_cm))
    }

    fn entity(&self, slot: u32) -> EntityDetails {
        let (body, record) = (self.entities.body(slot), self.entities.record(slot));
        let (owner, ghost) = match &record.role {
            Role::Ghost(ghost) => (ghost.owner, true),
            Role::Real(_) | Role::Free => (self.identity.id(), false),
        };
        let views = self.views.get(body.viewer).map_or(0, |v| v.registers.links());
        EntityDetails {
            id: body.id,
            kind: body.kind,
            plane: record.plane,
            pos: body.pos,
            owner,
            ghost,
            views: views as u32,
            facing: body.facing,
            properties: record.properties.clone(),
        }
    }
}
