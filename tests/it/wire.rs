//! Properties of the wire: encoded values decode again, and assembled frames are the bytes that a
//! plain MessagePack library writes.

use proptest::prelude::*;
use purview::scene::messages::{
    self, Crowd, Entering, Following, FrameBatch, LogicMessage, MessageKind, Moving,
    PropertyUpdate, Refusal, SessionFrame, Speaker,
};
use purview::scene::movement::{
    Flags, GrantId, Granted, Own, ServerMs, Step, Steps, Trajectory, Vector,
};
use purview::scene::properties::Value;
use purview::scene::properties::{Level, MAX_VALUE_BYTES};
use purview::scene::properties::{Properties, PropertyId};
use purview::scene::{
    EntityHandle, EntityId, Epoch, Facing, Kind, Plane, Pos, RangeSet, RegionId, Seq, SessionId,
    Tick,
};
use purview::wire::client::frame::{self, Acted, FRAME_TYPE, RefusedInput};
use purview::wire::client::{Act, Join, Teleport};
use purview::wire::peer::{PeerMsg, decode, encode_frames};
use purview::wire::{
    ChangedProperty, ClientMsg, DecodeError, EncodedBatch, Entered, EnteredProperty, ErrorCode,
    Form, Frame, Going, MAX_ACT, Message, Moved, OwnMove, ServerMsg, TrajectoryUpdate, Turned,
};
use serde_bytes::ByteBuf;

use crate::stage::join;

/// Integers of all magnitudes: MessagePack has a form for each width.
fn any_u64() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(n, shift)| n >> shift)
}

/// As [`any_u64`].
fn any_i32() -> impl Strategy<Value = i32> {
    (any::<i32>(), 0u32..32).prop_map(|(n, shift)| n >> shift)
}

fn any_pos() -> impl Strategy<Value = Pos> {
    (any_i32(), any_i32(), any_i32()).prop_map(|(x, y, z)| Pos { x, y, z })
}

fn any_blob(max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..=8),
        1 => (any::<u8>(), 0..=max).prop_map(|(b, len)| vec![b; len]),
    ]
}

fn any_form() -> impl Strategy<Value = Form> {
    let step = (0u8..8).prop_filter_map("a number", Step::from_number);
    let steps = prop::collection::vec(step, 0..=Steps::MAX);
    let path = (any_pos(), steps, any_u64()).prop_map(|(start, steps, speed)| Form::Path {
        start,
        steps: steps.into_iter().collect(),
        speed_cm_s: speed as u32,
    });
    let vector = (any_pos(), any_i32(), any_i32(), prop::option::of(any::<u32>())).prop_map(
        |(start, vx_mm_s, vz_mm_s, lasts_ms)| {
            Form::Vector(Vector { start, vx_mm_s, vz_mm_s, lasts_ms })
        },
    );
    prop_oneof![path, vector]
}

/// One session's part of a random batch.
#[derive(Debug, Clone)]
struct Part {
    ack: u32,
    epoch: u64,
    resync: bool,
    enters: Vec<prop::sample::Index>,
    moves: Vec<prop::sample::Index>,
    trajectories: Vec<prop::sample::Index>,
    own: Option<Own>,
    crowd: Option<Crowd>,
    acts: Vec<prop::sample::Index>,
    leaves: Vec<u64>,
    refused: Vec<(u32, bool)>,
}

fn any_trajectory() -> impl Strategy<Value = Trajectory> {
    let lasts = prop_oneof![Just(u32::MAX), any_u64().prop_map(|n| n as u32)];
    (any_form(), any_u64(), lasts).prop_map(|(form, start, lasts_ms)| Trajectory {
        motion: form.on_tiles(250),
        start: ServerMs(start),
        lasts_ms,
    })
}

fn any_own() -> impl Strategy<Value = Own> {
    let grant = (any::<u32>(), any_u64(), prop::option::of(any::<u32>())).prop_map(
        |(id, speed, left_ms)| Granted { id: GrantId(id), speed_cm_s: speed as u32, left_ms },
    );
    let grants = prop::array::uniform4(prop::option::of(grant));
    (any::<u32>(), any_trajectory(), any_u64(), any::<u8>(), grants).prop_map(
        |(correction, trajectory, speed, flags, grants)| Own {
            correction,
            trajectory,
            speed_cm_s: speed as u32,
            flags: Flags(flags),
            grants,
        },
    )
}

fn any_part() -> impl Strategy<Value = Part> {
    use prop::collection::vec;
    let index = any::<prop::sample::Index>;
    let moves = (vec(index(), 0..70), vec(index(), 0..20));
    let lists = (vec(index(), 0..20), moves, vec(index(), 0..4), prop::option::of(any_own()));
    let heads = (any::<u32>(), any_u64(), any::<bool>());
    let crowd = (any::<(i32, i32)>(), vec(any::<u8>(), 0..300)).prop_map(|((x, z), dots)| Crowd {
        x,
        z,
        dots: dots.into(),
    });
    let tail = (vec(any::<(u32, bool)>(), 0..4), prop::option::of(crowd));
    (heads, lists, vec(any_u64(), 0..20), tail).prop_map(
        |((ack, epoch, resync), lists, leaves, (refused, crowd))| {
            let (enters, (moves, trajectories), acts, own) = lists;
            Part {
                ack,
                epoch,
                resync,
                enters,
                moves,
                trajectories,
                own,
                crowd,
                acts,
                leaves,
                refused,
            }
        },
    )
}

fn any_batch() -> impl Strategy<Value = FrameBatch> {
    use prop::collection::vec;
    let entering = (
        any_u64(),
        any::<u8>(),
        any_pos(),
        any_blob(MAX_VALUE_BYTES - 3),
        prop::option::of(any_trajectory()),
    );
    let facing = || any::<u16>().prop_map(Facing);
    let offset = prop_oneof![any::<[i32; 3]>(), prop::array::uniform3(-200..200)];
    let following = prop::option::of((offset, any_u64()));
    let trajectories = (any_u64().prop_map(EntityId), any_trajectory(), facing(), following)
        .prop_map(|(id, trajectory, facing, following)| {
            let following =
                following.map(|(offset_cm, ago)| Following { offset_cm, ago_ms: ago as u32 });
            messages::TrajectoryUpdate { id, trajectory, facing, following }
        });
    let moving = (any_u64().prop_map(EntityId), any_pos(), any::<(i32, i32)>(), facing()).prop_map(
        |(id, pos, (vx, vz), facing)| Moving { id, pos, vx_cm_s: vx, vz_cm_s: vz, facing },
    );
    let turning = (any_u64().prop_map(EntityId), facing());
    let acting = (any_u64(), any_blob(MAX_ACT), any::<bool>());
    let properties = (any_u64(), 0u8..64, any::<u32>(), any_blob(300));
    (
        any_u64(),
        vec(entering, 1..20),
        (vec(moving, 1..90), vec(trajectories, 1..20)),
        (vec(acting, 1..4), vec(turning, 1..9), vec(properties, 1..9)),
        vec(any_part(), 0..6),
    )
        .prop_map(
            |(tick, entering, (moving, trajectories), (acting, turning, changed), parts)| {
                let mut batch = FrameBatch { tick: Tick(tick), ..FrameBatch::default() };
                for (id, kind, pos, appearance, trajectory) in entering {
                    let (id, kind, facing) = (EntityId(id), Kind(kind), Facing(id as u16));
                    let properties = Properties::with_appearance(&appearance).unwrap();
                    batch.entering.push(Entering { id, kind, pos, facing, trajectory, properties });
                }
                (batch.moving, batch.trajectories, batch.turning) = (moving, trajectories, turning);
                let by = |logic| if logic { Speaker::Logic } else { Speaker::Client };
                let act = |(id, b, logic): (_, Vec<u8>, _)| (EntityId(id), b.into(), by(logic));
                batch.acting = acting.into_iter().map(act).collect();
                let update = |(id, property, version, content): (_, _, _, Vec<u8>)| {
                    let value = Value::binary(&content).unwrap();
                    PropertyUpdate {
                        entity: EntityId(id),
                        id: PropertyId(property),
                        version,
                        value,
                    }
                };
                batch.properties = changed.into_iter().map(update).collect();
                for (n, part) in parts.iter().enumerate() {
                    add(&mut batch, n, part);
                }
                batch
            },
        )
}

fn add(batch: &mut FrameBatch, n: usize, part: &Part) {
    batch.sessions.push(SessionFrame {
        session: SessionId(n as u64),
        ack: Seq(part.ack),
        epoch: Epoch(part.epoch),
        resync: part.resync,
        refs_at: batch.refs.len() as u32,
        enters: part.enters.len() as u32,
        moves: part.moves.len() as u32,
        trajectories: part.trajectories.len() as u32,
        own_at: batch.owns.len() as u32,
        crowd_at: batch.crowds.len() as u32,
        crowd: part.crowd.is_some().into(),
        own: part.own.is_some().into(),
        turns: part.moves.len() as u32,
        acts: part.acts.len() as u32,
        properties: part.acts.len() as u32,
        kept: part.enters.len() as u32,
        leaves_at: batch.leaves.len() as u32,
        leaves: part.leaves.len() as u32,
        refused_at: batch.refused.len() as u32,
        refused: part.refused.len() as u32,
        told_at: batch.told.len() as u32,
        told: part.acts.len() as u32,
        handle: EntityHandle(n as u32),
        after: if part.resync { Tick(5) } else { Tick(0) },
    });
    let lists = [
        (&part.enters, batch.entering.len()),
        (&part.moves, batch.moving.len()),
        (&part.trajectories, batch.trajectories.len()),
        (&part.moves, batch.turning.len()),
        (&part.acts, batch.acting.len()),
        (&part.acts, batch.properties.len()),
        // The client is not told these.
        (&part.enters, batch.properties.len()),
    ];
    for (picks, len) in lists {
        batch.refs.extend(picks.iter().map(|i| i.index(len) as u32));
    }
    batch.owns.extend(part.own);
    batch.crowds.extend(part.crowd.clone());
    let kinds = [MessageKind::Tell, MessageKind::Bond, MessageKind::Announcement];
    let told =
        |(i, kind): (usize, &MessageKind)| LogicMessage { kind: *kind, payload: vec![7; i].into() };
    batch.told.extend(kinds.iter().cycle().take(part.acts.len()).enumerate().map(told));
    batch.leaves.extend(part.leaves.iter().map(|&id| EntityId(id)));
    batch.refused.extend(part.refused.iter().map(|&(seq, busy)| {
        purview::scene::messages::InputRefused {
            seq: Seq(seq),
            why: if busy { Refusal::Busy } else { Refusal::OutOfBounds },
        }
    }));
}

/// The frame of a session, assembled without [`EncodedBatch`].
fn plain(batch: &FrameBatch, s: &SessionFrame) -> Frame {
    let [enters, moves, trajectories, turns, acts, properties, _] = batch.refs_of(s);
    let entered = |&r: &u32| {
        let e = &batch.entering[r as usize];
        let level =
            |l: &Level| EnteredProperty { id: l.id, version: l.version, value: l.value.clone() };
        Entered {
            id: e.id,
            kind: e.kind,
            x: e.pos.x,
            y: e.pos.y,
            z: e.pos.z,
            facing: e.facing,
            properties: e.properties.levels().iter().map(level).collect(),
            trajectory: e.trajectory.as_ref().map(Going::from),
        }
    };
    let trajectory_update = |&r: &u32| TrajectoryUpdate::from(&batch.trajectories[r as usize]);
    let moved = |&r: &u32| {
        let m = batch.moving[r as usize];
        let Pos { x, y, z } = m.pos;
        Moved { id: m.id, x, y, z, vx: m.vx_cm_s, vz: m.vz_cm_s, facing: m.facing }
    };
    let acted = |&r: &u32| {
        let (id, payload, by) = &batch.acting[r as usize];
        let logic = *by == Speaker::Logic;
        Acted { id: *id, payload: ByteBuf::from(payload.to_vec()), logic }
    };
    let turned = |&r: &u32| {
        let (id, facing) = batch.turning[r as usize];
        Turned { id, facing }
    };
    let changed = |&r: &u32| {
        let PropertyUpdate { entity, id, version, value } = batch.properties[r as usize].clone();
        ChangedProperty { entity, id, version, value }
    };
    Frame {
        tick: batch.tick,
        ack: s.ack,
        epoch: s.epoch,
        resync: s.resync,
        enters: enters.iter().map(entered).collect(),
        leaves: batch.leaves_of(s).to_vec(),
        moves: moves.iter().map(moved).collect(),
        trajectories: trajectories.iter().map(trajectory_update).collect(),
        own: batch.own_of(s).map(OwnMove::from),
        crowd: batch.crowd_of(s).map(|c| frame::Crowd {
            x: c.x,
            z: c.z,
            dots: ByteBuf::from(c.dots.to_vec()),
        }),
        turns: turns.iter().map(turned).collect(),
        acts: acts.iter().map(acted).collect(),
        properties: properties.iter().map(changed).collect(),
        messages: batch.told_of(s).iter().map(Message::from).collect(),
        refused: batch
            .refused_of(s)
            .iter()
            .map(|r| RefusedInput { seq: r.seq, code: r.why.into() })
            .collect(),
    }
}

fn check_batch(encoded: &EncodedBatch) {
    let batch = encoded.batch();
    for (i, s) in batch.sessions.iter().enumerate() {
        let msg = ServerMsg::from(plain(batch, s));
        // Bytes already in the buffer stay.
        let mut out = vec![0xaa; 3];
        encoded.write_frame(i, true, &mut out);
        assert_eq!(out[..3], [0xaa; 3]);
        assert_eq!(out[3..], msg.encode());
        assert_eq!(ServerMsg::decode(&out[3..]), Ok(msg));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn assembled_frames_equal_a_plain_librarys(a in any_batch(), b in any_batch()) {
        let mut encoded = EncodedBatch::new(a);
        check_batch(&encoded);
        encoded.replace(b);
        check_batch(&encoded);
    }
}

/// The bytes that each session's client gets.
fn frames(batch: FrameBatch) -> Vec<(SessionId, Vec<u8>)> {
    let encoded = EncodedBatch::new(batch);
    let frame = |(i, s): (usize, &SessionFrame)| {
        let mut out = Vec::new();
        encoded.write_frame(i, true, &mut out);
        (s.session, out)
    };
    encoded.batch().sessions.iter().enumerate().map(frame).collect()
}

proptest! {
    #[test]
    fn a_gateway_gets_the_part_of_a_batch_for_its_sessions(batch in any_batch(), keep in any::<u8>()) {
        let count = batch.sessions.len() as u32;
        let which: Vec<u32> = (0..count).filter(|i| keep >> i & 1 == 1).collect();
        let mut bytes = Vec::new();
        encode_frames(RegionId(3), &batch.subset(&which), &mut bytes).unwrap();
        let Ok(PeerMsg::Frames { from, batch: there }) = decode(&bytes) else {
            panic!("the batch became another message")
        };
        prop_assert_eq!(from, RegionId(3));
        prop_assert!(there.entering.len() <= batch.entering.len());
        let all = frames(batch);
        let want: Vec<_> = which.iter().map(|i| all[*i as usize].clone()).collect();
        prop_assert_eq!(frames(*there), want);
    }
}

#[test]
fn lists_of_every_width_equal_a_plain_librarys() {
    for n in [0u64, 15, 16, 0xffff, 0x1_0000] {
        let mut batch = FrameBatch::default();
        let properties = Properties::with_appearance(&[7; 0x100]).unwrap();
        batch.entering.push(Entering {
            id: EntityId(n),
            kind: Kind(1),
            pos: Pos::default(),
            facing: Facing::WEST,
            trajectory: None,
            properties,
        });
        batch.acting.push((EntityId(1), vec![1; 0x1_0000].into(), Speaker::Client));
        let moving = |i: u64| Moving {
            id: EntityId(i << 20),
            pos: Pos::ground(-(i as i32), 128),
            vx_cm_s: (i % 300) as i32,
            vz_cm_s: -(i as i32),
            facing: Facing(i as u16),
        };
        batch.moving = (0..n).map(moving).collect();
        batch.refs = [vec![0], (0..n as u32).collect(), vec![0]].concat();
        batch.leaves = (0..n).map(EntityId).collect();
        let len = n as u32;
        let frame =
            SessionFrame { enters: 1, moves: len, acts: 1, leaves: len, ..Default::default() };
        batch.sessions.push(frame);
        let encoded = EncodedBatch::new(batch);
        let mut out = Vec::new();
        encoded.write_frame(0, true, &mut out);
        let plain = ServerMsg::from(plain(encoded.batch(), &encoded.batch().sessions[0]));
        assert!(out == plain.encode(), "{n} entries");
    }
    assert!(ServerMsg::TYPES.contains(&(FRAME_TYPE, "Frame")));
}

#[test]
fn values_and_payloads_are_limited() {
    // The head of a message of a value of so many bytes, and these.
    let set = |value: &[u8]| {
        let head = [0x92, 11, 0x93, 1, 2, 0xc5, (value.len() >> 8) as u8, value.len() as u8];
        ClientMsg::decode(&[&head[..], value].concat())
    };
    let binary = |len: usize| Value::binary(&vec![1; len - 3]).map(|value| value.bytes().to_vec());
    assert!(set(&binary(MAX_VALUE_BYTES).unwrap()).is_ok());
    let mut long = binary(MAX_VALUE_BYTES).unwrap();
    (long[2], long[1]) = ((MAX_VALUE_BYTES - 2) as u8, ((MAX_VALUE_BYTES - 2) >> 8) as u8);
    long.push(1);
    for bad in [&long[..], &[], &[1, 2], &[0xc1], &[0x91, 0x91, 0x91, 0x91, 0x91, 1]] {
        assert_eq!(set(bad).unwrap_err().code(), ErrorCode::BadField, "{bad:02x?}");
    }

    let act = |len| ClientMsg::from(Act { seq: Seq(1), payload: vec![1; len].into(), aim: None });
    let act = |len| ClientMsg::decode(&act(len).encode());
    assert!(act(MAX_ACT).is_ok());
    let error = act(MAX_ACT + 1).unwrap_err();
    assert_eq!(error, DecodeError::ActTooLong { len: MAX_ACT + 1 });
    assert_eq!(error.code(), ErrorCode::ActTooLong);
}

#[test]
fn the_reserved_plane_is_refused_by_the_message_that_names_it() {
    let plane = Some(Plane::LIMBO);
    let join = Join { plane, ..join("") };
    let teleport = Teleport { seq: Seq(1), scene: None, plane, pos: Pos::default() };
    for (kind, msg) in [(2, ClientMsg::from(join)), (4, teleport.into())] {
        let got = ClientMsg::decode(&msg.encode());
        let why = "plane -2147483648 is reserved".into();
        assert_eq!(got, Err(DecodeError::BadField { kind, why }));
    }
}

#[test]
fn a_range_has_three_rings_and_no_more() {
    let join = Join { sight: Some(RangeSet::FULL), properties: vec![], ..join("m") };
    let mut bytes = ClientMsg::from(join).encode();
    let at = bytes.len() - 3;
    assert_eq!(bytes[at], 7);
    for bits in [8u8, 0x7f, 0xff] {
        bytes[at] = bits;
        let error = ClientMsg::decode(&bytes).unwrap_err();
        assert_eq!(error.code(), ErrorCode::BadField, "{error}");
    }
}
