//! The byte budget of a client: two token buckets. One is for moves alone, and gets half of the budget; all
//! else draws on the other one, and moves on what is left of it. So nothing that is told starves moves.
//!
//! The frame builder charges every frame in full. Enters, leaves and the client's own movement always go and may
//! leave a debt. Actions and properties go while the debt is small: then actions are not told, and properties
//! wait. Sizes are those of the client protocol.

use bytes::Bytes;

use crate::scene::messages::{
    Crowd, Entering, FrameBatch, Moving, PropertyUpdate, SessionFrame, Speaker, TrajectoryUpdate,
};
use crate::scene::movement::{Move, Trajectory};
use crate::scene::properties::{PropertyId, Value};
use crate::scene::{EntityId, Facing, Pos, TickStamp};

/// The budget of a scene's clients, bytes per tick.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    bytes_per_tick: u32,
}

/// What a client may still be sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allowance {
    /// Bytes for all but moves; negative: a debt.
    left: i64,
    /// Bytes for moves, never negative.
    moves: i64,
    filled: Option<TickStamp>,
}

/// Longest debt, in ticks of the budget: a client that enters a crowd must see it move some day.
const DEBT_TICKS: i64 = 100;

/// The part of the budget that is kept for moves: one in so many.
const MOVES_PART: u32 = 2;

/// Debt up to which actions and properties are told, in ticks of the budget that is not kept for moves.
const SPOKEN_TICKS: i64 = 10;

impl Budget {
    /// Bytes per tick that are kept for moves.
    fn of_moves(&self) -> i64 {
        i64::from(self.bytes_per_tick / MOVES_PART)
    }

    /// Bytes per tick of all else.
    fn of_others(&self) -> i64 {
        i64::from(self.bytes_per_tick) - self.of_moves()
    }

    /// Bytes of actions and properties that a client may be told now.
    pub fn room(&self, allowance: &Allowance) -> usize {
        usize::try_from(allowance.left + SPOKEN_TICKS * self.of_others()).unwrap_or(0)
    }

    /// A budget of so many bits per second; `None`: no limit.
    pub fn of(bits_s: u32, tick_ms: u32) -> Option<Budget> {
        let bytes = u64::from(bits_s) * u64::from(tick_ms) / 8_000;
        (bits_s > 0).then_some(Budget { bytes_per_tick: bytes.clamp(1, 1 << 30) as u32 })
    }

    /// Fills a client's allowance up to `tick`. What a client does not use in a tick is lost after the next
    /// one.
    pub fn fill(&self, allowance: &mut Allowance, tick: TickStamp) {
        let ticks = allowance.filled.map_or(1, |filled| tick.ticks_since(filled).min(1 << 16));
        let (ticks, per_tick) = (i64::from(ticks), self.of_others());
        let left = allowance.left.max(-DEBT_TICKS * per_tick) + per_tick * ticks;
        allowance.left = left.min(2 * per_tick);
        // While all else is in debt there is room for a long move, however small the share.
        let most = 2 * i64::from(self.bytes_per_tick) - allowance.left.max(0);
        allowance.moves = (allowance.moves + self.of_moves() * ticks).min(most);
        allowance.filled = Some(tick);
    }
}

impl Allowance {
    /// Charges bytes that go anyway.
    pub fn charge(&mut self, bytes: usize) {
        self.left -= bytes as i64;
    }

    /// Whether there is something left.
    pub fn is_open(&self) -> bool {
        self.left > 0
    }

    /// Charges bytes of a move, if they are left.
    pub fn take(&mut self, bytes: usize) -> bool {
        let bytes = bytes as i64;
        let fits = self.moves + self.left.max(0) >= bytes;
        if fits {
            let kept = self.moves.min(bytes);
            self.moves -= kept;
            self.left -= bytes - kept;
        }
        fits
    }
}

/// Bytes of a number of at least 0.
pub fn uint_len(n: u64) -> usize {
    match n {
        0..=0x7f => 1,
        0x80..=0xff => 2,
        0x100..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 9,
    }
}

/// Bytes of a number.
pub fn sint_len(n: i64) -> usize {
    match n {
        0.. => uint_len(n.unsigned_abs()),
        -0x20..0 => 1,
        -0x80..-0x20 => 2,
        -0x8000..-0x80 => 3,
        -0x8000_0000..-0x8000 => 5,
        _ => 9,
    }
}

fn pos_len(pos: Pos) -> usize {
    [pos.x, pos.y, pos.z].into_iter().map(|v| sint_len(v.into())).sum()
}

fn blob_len(len: usize) -> usize {
    len + match len {
        0..=0xff => 2,
        0x100..=0xffff => 3,
        _ => 5,
    }
}

fn list_len(entries: u32) -> usize {
    match entries {
        0..=15 => 1,
        16..=0xffff => 3,
        _ => 5,
    }
}

/// Bytes of a move.
pub fn moving_len(m: &Moving) -> usize {
    let velocity = sint_len(m.vx_cm_s.into()) + sint_len(m.vz_cm_s.into());
    1 + uint_len(m.id.0) + pos_len(m.pos) + velocity + facing_len(m.facing)
}

/// Bytes of a turn.
pub fn turning_len((id, facing): &(EntityId, Facing)) -> usize {
    1 + uint_len(id.0) + facing_len(*facing)
}

/// Bytes of an entity's trajectory.
pub fn trajectory_update_len(update: &TrajectoryUpdate) -> usize {
    let TrajectoryUpdate { id, trajectory, facing, following } = update;
    let trajectory = match (following, &trajectory.motion) {
        (Some(following), Move::Vector(v)) => {
            let offset = following.offset_cm.map(|v| sint_len(v.into())).iter().sum::<usize>();
            let velocity = sint_len(v.vx_mm_s.into()) + sint_len(v.vz_mm_s.into());
            uint_len(following.ago_ms.into()) + offset + velocity + maybe_len(trajectory.lasts_ms)
        }
        _ => trajectory_len(trajectory),
    };
    1 + uint_len(id.0) + trajectory + facing_len(*facing)
}

/// Bytes of a duration, `u32::MAX` if it has no end.
fn maybe_len(lasts_ms: u32) -> usize {
    if lasts_ms == u32::MAX { 1 } else { uint_len(lasts_ms.into()) }
}

fn facing_len(facing: Facing) -> usize {
    uint_len(facing.0.into())
}

/// Bytes of a trajectory without the entity's id.
fn trajectory_len(t: &Trajectory) -> usize {
    let maybe = |n: Option<u32>| n.map_or(1, |n| uint_len(n.into()));
    let form = match &t.motion {
        Move::Path(p) => {
            let steps = p.steps().len();
            let text = steps + if steps < 32 { 1 } else { 2 };
            3 + pos_len(p.start()) + text + uint_len(p.speed_cm_s().into())
        }
        Move::Vector(v) => {
            let velocity = sint_len(v.vx_mm_s.into()) + sint_len(v.vz_mm_s.into());
            3 + pos_len(v.start) + velocity + maybe(v.lasts_ms)
        }
    };
    1 + uint_len(t.start.0) + maybe((t.lasts_ms != u32::MAX).then_some(t.lasts_ms)) + form
}

fn property_len(id: PropertyId, version: u32, value: &Value) -> usize {
    uint_len(id.0.into()) + uint_len(version.into()) + blob_len(value.bytes().len())
}

fn update_len(u: &PropertyUpdate) -> usize {
    1 + uint_len(u.entity.0) + property_len(u.id, u.version, &u.value)
}

fn acting_len((id, payload, _): &(EntityId, Bytes, Speaker)) -> usize {
    1 + uint_len(id.0) + blob_len(payload.len()) + 1
}

fn entering_len(e: &Entering) -> usize {
    let heading = 1 + uint_len(e.id.0) + uint_len(e.kind.0.into()) + pos_len(e.pos);
    let levels = e.properties.levels();
    let properties = levels.iter().map(|l| 1 + property_len(l.id, l.version, &l.value));
    let properties = list_len(levels.len() as u32) + properties.sum::<usize>();
    heading + facing_len(e.facing) + properties + e.trajectory.as_ref().map_or(1, trajectory_len)
}

/// Most bytes of a client's own movement: a path of 64 steps and eight grants.
const OWN_BYTES: usize = 250;

/// Bytes of a frame without its moves, trajectories, turns and crowd; its lists are counted as they are in `frame`. The
/// client's own movement counts as much as it may at most.
pub fn fixed_len(batch: &FrameBatch, frame: &SessionFrame) -> usize {
    let [enters, .., acts, properties, _] = batch.refs_of(frame);
    let [counts @ .., _] = frame.counts();
    let heads = counts.into_iter().chain([frame.leaves, frame.told, frame.refused]);
    let mut len = 4 + uint_len(batch.tick.0) + uint_len(frame.ack.0.into());
    len += uint_len(frame.epoch.0) + heads.map(list_len).sum::<usize>();
    len += enters.iter().map(|i| entering_len(&batch.entering[*i as usize])).sum::<usize>();
    len += batch.leaves_of(frame).iter().map(|id| uint_len(id.0)).sum::<usize>();
    len += acts.iter().map(|i| acting_len(&batch.acting[*i as usize])).sum::<usize>();
    len += properties.iter().map(|i| update_len(&batch.properties[*i as usize])).sum::<usize>();
    len += batch.told_of(frame).iter().map(|t| 2 + blob_len(t.payload.len())).sum::<usize>();
    len += batch.refused_of(frame).iter().map(|r| 1 + uint_len(r.seq.0.into()) + 3).sum::<usize>();
    // The crowd's place, empty.
    len + 1 + if frame.own == 0 { 1 } else { OWN_BYTES }
}

/// Bytes of a crowd.
pub fn crowd_len(crowd: &Crowd) -> usize {
    1 + sint_len(crowd.x.into()) + sint_len(crowd.z.into()) + blob_len(crowd.dots.len())
}

/// How urgent a move is under a budget: farther entities wait longer. A move twice as far away must be twice
/// as urgent.
pub fn weighted(urgency: u64, distance2: u64) -> u64 {
    // As if 8 m farther, so that the nearest do not starve each other.
    let distance_cm = distance2.isqrt() + 800;
    urgency * (1 << 24) / distance_cm
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Tick;
    use crate::scene::messages::Following;
    use crate::scene::movement::{ServerMs, Vector};

    #[test]
    fn what_is_not_used_is_lost_and_a_debt_is_paid_back() {
        let budget = Budget::of(8_000, 100).unwrap();
        let (mut client, tick) = (Allowance::default(), |t| TickStamp::of(Tick(t)));
        budget.fill(&mut client, tick(1));
        assert!(client.take(100) && !client.take(1) && !client.is_open());
        budget.fill(&mut client, tick(9));
        assert!(client.take(200) && !client.take(1));
        client.charge(250);
        budget.fill(&mut client, tick(11));
        assert!(!client.is_open() && budget.room(&client) == 350);
        assert!(client.take(100) && !client.take(1), "half is kept for moves");
        budget.fill(&mut client, tick(12));
        assert!(client.take(50) && !client.take(1));
        client.charge(1_000_000);
        assert_eq!(budget.room(&client), 0);
        budget.fill(&mut client, tick(200));
        assert!(client.is_open(), "a debt of ten seconds at most");
        assert!(Budget::of(0, 100).is_none());
    }

    #[test]
    fn trajectories_have_the_lengths_of_the_client_protocol() {
        // `wire::client::trajectories` writes the same.
        let start = Pos { x: 102_400, y: 900, z: 300_000 };
        let vector = Vector { vx_mm_s: 3_000, vz_mm_s: -4_000, ..Vector::stand(start) };
        let (motion, start) = (Move::Vector(vector), ServerMs(3_600_050));
        let len = |following| {
            trajectory_update_len(&TrajectoryUpdate {
                id: EntityId(300),
                trajectory: Trajectory { motion, start, lasts_ms: u32::MAX },
                facing: Facing(16_384),
                following,
            })
        };
        let straight = Following { offset_cm: [0; 3], ago_ms: 50 };
        let off = Following { offset_cm: [-30, 0, 90], ago_ms: 150 };
        assert_eq!([len(None), len(Some(straight)), len(Some(off))], [37, 18, 19]);
    }

    #[test]
    fn a_farther_move_goes_first_only_when_it_is_more_urgent() {
        let near = weighted(300, 0);
        assert!(near > weighted(500, 800 * 800));
        assert!(near < weighted(700, 800 * 800));
    }
}
