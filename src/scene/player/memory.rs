//! What a session knows of its player, to present it to a region that knows less.
//!
//! | source | what the session learns |
//! |---|---|
//! | a route | place, and the movement as it is judged, up to the last input applied |
//! | an acknowledged move that was not refused | the place that it named |
//! | an acknowledged teleport that was not refused | the place; in another scene: that the player is on its way there |
//! | bonds | all of the player's bonds |
//! | a frame | the movement as it is judged, and the properties of the player's own that have changed |

use crate::scene::messages::{Destination, FrameBatch, KeptBonds, Order, Presented, SessionFrame};
use crate::scene::movement::{Own, ServerMs};
use crate::scene::properties::{Level, Properties};
use crate::scene::{
    Account, EntityId, Epoch, Facing, Plane, Pos, RegionId, SceneId, Seq, SessionId, SubjectHash,
    Tick, TickStamp, ViewLimits,
};

/// What is to be told to the region, beside inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Due {
    #[default]
    Nothing,
    /// The player is to be presented.
    Present,
    /// The player was presented at this time of the session's clock, and no route has come since.
    Presented(u64),
}

/// The player as its session knows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    scene: SceneId,
    plane: Plane,
    pos: Pos,
    placed_by: Seq,
    // A route has come.
    is_placed: bool,
    acked: Seq,
    // The last inputs that were refused; told of no later than they are acknowledged.
    refused: Vec<Seq>,
    own: Option<(Tick, Box<Own>)>,
    teleport: Option<(Seq, Destination)>,
    // An acknowledged teleport of whose end the client was not told, and the scene to which it
    // goes.
    teleported: Option<(Seq, SceneId)>,
    facing: Facing,
    properties: Properties,
    bonds: KeptBonds,
    due: Due,
    // The last region that went on from a checkpoint, and its epoch.
    outlived: Option<(RegionId, Epoch)>,
}

impl Memory {
    /// The player begins with these properties, or these are all that it has.
    pub(super) fn begin_with(&mut self, properties: &Properties) {
        self.properties = properties.clone();
    }

    /// The player's properties as they were told last.
    pub(super) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The player's bonds as they were told last.
    pub(super) fn bonds(&self) -> &KeptBonds {
        &self.bonds
    }

    /// The player has these bonds.
    pub(super) fn take_bonds(&mut self, bonds: KeptBonds) {
        self.bonds = bonds;
    }

    /// A frame tells of changed properties of the player's own, and of its facing.
    pub(super) fn told(&mut self, id: EntityId, batch: &FrameBatch, part: &SessionFrame) {
        let [_, _, _, turns, _, told, kept] = batch.refs_of(part);
        let updates = told.iter().chain(kept).map(|at| &batch.properties[*at as usize]);
        for update in updates.filter(|update| update.entity == id) {
            let (id, version, value) = (update.id, update.version, update.value.clone());
            let changed = TickStamp::of(batch.tick);
            self.properties.put(Level { id, version, value, changed });
        }
        let mut turns = turns.iter().map(|at| batch.turning[*at as usize]);
        if let Some((_, facing)) = turns.rfind(|(turned, _)| *turned == id) {
            self.facing = facing;
        }
    }

    /// The last input that was acknowledged.
    pub(super) fn acked(&self) -> Seq {
        self.acked
    }

    /// The player lives here, or has moved to where it is.
    pub(super) fn route(
        &mut self,
        (scene, plane, pos, facing): (SceneId, Plane, Pos, Facing),
        last_applied: Seq,
        (tick, own): (Tick, Option<&Own>),
    ) {
        if last_applied < self.placed_by {
            // The route is of a region that knows less than this session.
            return;
        }
        (self.scene, self.plane, self.pos, self.placed_by) = (scene, plane, pos, last_applied);
        (self.is_placed, self.facing) = (true, facing);
        self.own = own.map(|own| (tick, Box::new(*own)));
        self.teleport.take_if(|(seq, _)| *seq <= last_applied);
    }

    /// Whether a player that has this place, with this input applied, has arrived from a teleport
    /// of whose end its client was not told.
    pub(super) fn has_landed(&self, scene: SceneId, last_applied: Seq) -> bool {
        self.teleported.is_some_and(|(seq, to)| seq <= last_applied && to == scene)
    }

    /// The client is told where the teleport has ended.
    pub(super) fn landed(&mut self) {
        self.teleported = None;
    }

    /// Where the player is at that time, as far as is known; `None` before the first route and between
    /// two scenes.
    pub(super) fn last_position(&self, at: ServerMs) -> Option<(SceneId, Plane, Pos)> {
        if !self.is_placed || self.teleport.is_some() || self.plane == Plane::LIMBO {
            return None;
        }
        let trajectory = self.own.as_ref().map(|(_, own)| own.trajectory);
        let pos = trajectory.map_or(self.pos, |trajectory| trajectory.position(at));
        Some((self.scene, self.plane, pos))
    }

    /// The movement as it was told.
    pub(super) fn own(&mut self, tick: Tick, own: Option<&Own>) {
        if let Some(own) = own {
            match &mut self.own {
                Some((told, known)) => (*told, **known) = (tick, *own),
                None => self.own = Some((tick, Box::new(*own))),
            }
        }
    }

    /// An input will be acknowledged and was refused.
    pub(super) fn refused(&mut self, seq: Seq) {
        self.refused.push(seq);
    }

    /// An input is acknowledged.
    pub(super) fn applied(&mut self, seq: Seq, order: &Order) {
        if self.refused.contains(&seq) {
            return;
        }
        if let Order::Teleport(to) = order {
            self.teleported = Some((seq, to.scene));
        }
        match order {
            Order::Move(pos) => (self.pos, self.placed_by) = (*pos, seq),
            Order::Teleport(to) if to.scene == self.scene => {
                (self.plane, self.pos, self.placed_by) = (to.plane, to.pos, seq);
            }
            Order::Teleport(to) => self.teleport = Some((seq, *to)),
            Order::Face(facing) => self.facing = *facing,
            // A frame tells what comes of these.
            Order::Walk(_) | Order::Travel(_) | Order::Act(_) | Order::Set(_) => {}
        }
    }

    /// All inputs up to this one are acknowledged.
    pub(super) fn acknowledged(&mut self, upto: Seq) {
        self.acked = self.acked.max(upto);
        self.refused.retain(|seq| *seq > upto);
    }

    /// The player is to be presented.
    pub(super) fn present(&mut self) {
        self.due = Due::Present;
    }

    /// The region has died, and continues under this epoch: messages of its older owners are late. False if
    /// that was known.
    pub(super) fn outlives(&mut self, region: RegionId, owner: Epoch) -> bool {
        let known = self.outlived.filter(|(known, _)| *known == region);
        if known.is_some_and(|(_, known)| owner <= known) {
            return false;
        }
        self.outlived = Some((region, owner));
        true
    }

    /// Whether a former owner gave the player this epoch. Once a newer route has come only that
    /// route counts: the player may have gone on in a region of an older lineage, and come back
    /// with an epoch of that region.
    pub(super) fn has_outlived(&self, region: RegionId, epoch: Epoch) -> bool {
        let late = |(known, owner): (_, Epoch)| known == region && epoch < owner.of_birth();
        self.is_presented() && self.outlived.is_some_and(late)
    }

    /// A newer route has come: the region knows the player.
    pub(super) fn note_answer(&mut self) {
        self.due = Due::Nothing;
    }

    /// Presents again when the last presentation was not answered for so long.
    pub(super) fn present_again(&mut self, now_ms: u64, after_ms: u64) {
        if matches!(self.due, Due::Presented(at) if now_ms.saturating_sub(at) >= after_ms) {
            self.due = Due::Present;
        }
    }

    /// Whether the player is to be presented; it counts as presented from now on.
    pub(super) fn is_to_present(&mut self, now_ms: u64) -> bool {
        let due = self.due == Due::Present;
        if due {
            self.due = Due::Presented(now_ms);
        }
        due
    }

    /// Whether no route has come since the player was presented or was to be.
    pub(super) fn is_presented(&self) -> bool {
        self.due != Due::Nothing
    }

    /// All that is known.
    pub(super) fn presented(
        &self,
        (id, session, subject, since_ms): (EntityId, SessionId, SubjectHash, u64),
        (to, epoch): (RegionId, Epoch),
        sight: ViewLimits,
        tick: Tick,
        account: Account,
    ) -> Presented {
        Presented {
            id,
            session,
            subject,
            account,
            to,
            epoch,
            acked: self.acked,
            plane: self.plane,
            pos: self.pos,
            placed_by: self.placed_by,
            own: self.own.clone(),
            tick,
            sight,
            facing: self.facing,
            properties: self.properties.clone(),
            bonds: self.bonds.clone(),
            teleport: self.teleport.map(|(_, to)| to),
            since_ms,
        }
    }
}
