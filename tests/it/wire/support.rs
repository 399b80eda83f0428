//! Random messages of every type, for tests of the wire.

use proptest::prelude::*;
use purview::scene::movement::{ClientMs, Flags, GrantId, Step, Steps, Vector};
use purview::scene::properties::{PropertyId, Value};
use purview::scene::{
    EntityId, Epoch, Facing, Kind, Plane, Pos, RangeSet, Seq, SessionId, Tick, Visibility,
};
use purview::wire::client::frame::{Acted, Crowd, RefusedInput};
use purview::wire::client::movement::{EntityTrajectory, Form, Going, Grant, MoveRules, OwnMove};
use purview::wire::client::{
    Act, AskLines, Closing, Face, Hello, Join, Joined, Leave, Left, Line, Lines, Move, Ping, Pong,
    Refused, Resume, Set, Teleport, Ticket, UpdateRules, Walk, Welcome,
};
use purview::wire::{
    ChangedProperty, ClientMsg, CloseCode, Entered, EnteredProperty, ErrorCode, FirstProperty,
    Frame, JoinRules, Message, Moved, NextTrajectory, PROTOCOL_VERSION, ServerMsg,
    TrajectoryUpdate, Turned,
};
use serde_bytes::ByteBuf;

/// Integers of all magnitudes: MessagePack has a form for each width.
pub fn any_u64() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(n, shift)| n >> shift)
}

/// As [`any_u64`].
pub fn any_i32() -> impl Strategy<Value = i32> {
    (any::<i32>(), 0u32..32).prop_map(|(n, shift)| n >> shift)
}

pub fn any_pos() -> impl Strategy<Value = Pos> {
    (any_i32(), any_i32(), any_i32()).prop_map(|(x, y, z)| Pos { x, y, z })
}

pub fn any_blob(max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..=8),
        1 => (any::<u8>(), 0..=max).prop_map(|(b, len)| vec![b; len]),
    ]
}

fn seq() -> impl Strategy<Value = Seq> {
    any_u64().prop_map(|n| Seq(n as u32))
}

fn plane() -> impl Strategy<Value = Plane> {
    any_i32().prop_filter("reserved", |n| *n != Plane::LIMBO.0).prop_map(Plane)
}

fn range() -> impl Strategy<Value = RangeSet> {
    (0u8..8).prop_filter_map("bits", RangeSet::from_bits)
}

fn bytes(max: usize) -> impl Strategy<Value = ByteBuf> {
    any_blob(max).prop_map(ByteBuf::from)
}

fn error_code() -> impl Strategy<Value = ErrorCode> {
    prop::sample::select(ErrorCode::ALL)
}

/// Arbitrary steps.
pub fn any_steps() -> impl Strategy<Value = Steps> {
    let step = (0u8..8).prop_filter_map("a number", Step::from_number);
    prop::collection::vec(step, 0..=Steps::MAX).prop_map(|steps| steps.into_iter().collect())
}

/// An arbitrary move.
pub fn any_form() -> impl Strategy<Value = Form> {
    let path = (any_pos(), any_steps(), any_u64()).prop_map(|(start, steps, speed)| Form::Path {
        start,
        steps,
        speed_cm_s: speed as u32,
    });
    let vector = (any_pos(), any_i32(), any_i32(), prop::option::of(any::<u32>())).prop_map(
        |(start, vx_mm_s, vz_mm_s, lasts_ms)| {
            Form::Vector(Vector { start, vx_mm_s, vz_mm_s, lasts_ms })
        },
    );
    prop_oneof![path, vector]
}

fn going() -> impl Strategy<Value = Going> {
    (any_u64(), prop::option::of(any::<u32>()), any_form())
        .prop_map(|(start_ms, lasts_ms, form)| Going { start_ms, lasts_ms, form })
}

fn own() -> impl Strategy<Value = OwnMove> {
    let grant = (any::<u32>(), any_u64(), prop::option::of(any::<u32>()))
        .prop_map(|(id, speed, left_ms)| Grant { id: GrantId(id), speed: speed as u32, left_ms });
    let grants = prop::collection::vec(grant, 0..=4);
    (any_u64(), going(), any_u64(), any::<u8>(), grants).prop_map(
        |(correction, trajectory, speed, flags, grants)| OwnMove {
            correction: correction as u32,
            trajectory,
            speed: speed as u32,
            flags: Flags(flags),
            grants,
        },
    )
}

fn move_rules() -> impl Strategy<Value = MoveRules> {
    let climb = prop::option::of(any::<[i32; 2]>());
    let blocks = prop::collection::vec(any::<u8>().prop_map(Kind), 0..4);
    (any::<[u32; 5]>(), any_i32(), climb, blocks).prop_map(|(n, tile_cm, climb, blocks)| {
        let [tick_ms, top_speed, command_ms, grace_ms, leash_ms] = n;
        MoveRules { tick_ms, tile_cm, top_speed, command_ms, grace_ms, leash_ms, climb, blocks }
    })
}

/// An arbitrary value of a property.
fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::NIL),
        any::<i64>().prop_map(|n| Value::of(&n).unwrap()),
        ".{0,60}".prop_map(|text| Value::of(&text).unwrap()),
        any::<(bool, u8, Option<f32>)>().prop_map(|list| Value::of(&list).unwrap()),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(|b| Value::binary(&b).unwrap()),
    ]
}

/// An arbitrary message of a client.
pub fn any_client_msg() -> impl Strategy<Value = ClientMsg> {
    use prop::option::of;
    let hello = ("[a-zA-Z0-9._-]{0,300}", any::<u16>())
        .prop_map(|(token, version)| Hello { version, token, crowd: version % 2 == 0 }.into());
    let first =
        (0u8..64, value()).prop_map(|(id, value)| FirstProperty { id: PropertyId(id), value });
    let first = prop::collection::vec(first, 0..4);
    let join = (".{0,40}", of(plane()), of(any_pos()), of(range()), first).prop_map(
        |(scene, plane, pos, sight, properties)| {
            Join { scene, plane, pos, sight, properties, view_cap: 0 }.into()
        },
    );
    let face = (seq(), any::<u16>()).prop_map(|(seq, to)| Face { seq, facing: Facing(to) }.into());
    let set = (seq(), any::<u8>(), value())
        .prop_map(|(seq, id, value)| Set { seq, property: PropertyId(id), value }.into());
    let step = (seq(), any_pos()).prop_map(|(seq, pos)| Move { seq, pos }.into());
    let walk =
        (seq(), any_u64(), any_u64(), of(any_form())).prop_map(|(seq, correction, at, form)| {
            Walk { seq, correction: correction as u32, at_ms: ClientMs(at), form }.into()
        });
    let teleport = (seq(), of(".{0,40}"), of(plane()), any_pos())
        .prop_map(|(seq, scene, plane, pos)| Teleport { seq, scene, plane, pos }.into());
    let aim = prop::option::of(any::<u64>().prop_map(EntityId));
    let act =
        (seq(), bytes(1_024), aim).prop_map(|(seq, payload, aim)| Act { seq, payload, aim }.into());
    let ask_lines = ".{0,20}".prop_map(|scene| AskLines { scene }.into());
    let ping = any_u64().prop_map(|nonce| Ping { nonce }.into());
    let resume =
        ("[a-zA-Z0-9._-]{0,300}", seq()).prop_map(|(token, ack)| Resume { token, ack }.into());
    let leave = Just(ClientMsg::Leave(Leave {}));
    prop_oneof![hello, join, resume, step, walk, teleport, act, face, set, ask_lines, ping, leave]
}

fn rules() -> impl Strategy<Value = JoinRules> {
    let visibility = prop_oneof![
        Just(Visibility::Patches),
        (any_i32(), any_i32())
            .prop_map(|(enter_cm, leave_cm)| Visibility::Circle { enter_cm, leave_cm }),
        Just(Visibility::All),
    ];
    let counts = (any::<u32>(), any::<[u32; 3]>());
    let updates =
        (any::<u32>(), any_i32(), any::<u32>()).prop_map(|(tick_ms, error_min_cm, error_share)| {
            UpdateRules { tick_ms, error_min_cm, error_share }
        });
    let rules = (prop::option::of(move_rules()), prop::option::of(updates));
    let ranges = (range(), range());
    let patches = (any::<[i32; 2]>(), any_i32(), prop::option::of(any_i32()));
    (visibility, ranges, counts, patches, any_i32(), any::<[i32; 2]>(), rules).prop_map(
        |(
            visibility,
            (range, sight),
            (view_cap, rates),
            patches,
            view_margin_cm,
            size_cm,
            rules,
        )| {
            let (patch_cm, patch_margin_cm, height_cm) = patches;
            let (movement, updates) = rules;
            JoinRules {
                visibility,
                range,
                sight,
                patch_cm,
                patch_margin_cm,
                height_cm,
                view_cap,
                view_margin_cm,
                rates,
                size_cm,
                movement,
                updates,
            }
        },
    )
}

fn frame() -> impl Strategy<Value = Frame> {
    use prop::collection::vec;
    let id = || any_u64().prop_map(EntityId);
    let facing = || any::<u16>().prop_map(Facing);
    let entered = (any::<u8>(), any::<u32>(), value())
        .prop_map(|(id, version, value)| EnteredProperty { id: PropertyId(id), version, value });
    let look = (facing(), vec(entered, 0..3));
    let enters = (id(), any::<u8>(), any_pos(), look, prop::option::of(going())).prop_map(
        |(id, kind, p, (facing, properties), trajectory)| Entered {
            id,
            kind: Kind(kind),
            x: p.x,
            y: p.y,
            z: p.z,
            facing,
            properties,
            trajectory,
        },
    );
    let whole = (id(), going(), facing()).prop_map(|(id, trajectory, facing)| {
        TrajectoryUpdate::Whole(EntityTrajectory { id, trajectory, facing })
    });
    let next = (id(), (any::<u32>(), any_pos()), any::<(i32, i32)>(), any::<Option<u32>>());
    let next = (next, facing()).prop_map(|((id, (ago_ms, by), (vx, vz), lasts_ms), facing)| {
        let Pos { x: dx, y: dy, z: dz } = by;
        let next = NextTrajectory { id, ago_ms, dx, dy, dz, vx, vz, lasts_ms, facing };
        TrajectoryUpdate::Next(next)
    });
    let trajectories = prop_oneof![whole, next];
    let moves = (id(), any_pos(), facing()).prop_map(|(id, p, facing)| Moved {
        id,
        x: p.x,
        y: p.y,
        z: p.z,
        vx: p.z,
        vz: p.y,
        facing,
    });
    let acts = (id(), bytes(300), any::<bool>()).prop_map(|(id, payload, logic)| Acted {
        id,
        payload,
        logic,
    });
    let messages = (any::<u8>(), bytes(300)).prop_map(|(kind, payload)| Message { kind, payload });
    let turns = (id(), facing()).prop_map(|(id, facing)| Turned { id, facing });
    let properties =
        (id(), any::<u8>(), any::<u32>(), value()).prop_map(|(entity, id, version, value)| {
            ChangedProperty { entity, id: PropertyId(id), version, value }
        });
    let refused = (seq(), error_code()).prop_map(|(seq, code)| RefusedInput { seq, code });
    let crowd = (any_i32(), any_i32(), bytes(300)).prop_map(|(x, z, dots)| Crowd { x, z, dots });
    let head = (any_u64().prop_map(Tick), seq(), any_u64().prop_map(Epoch), any::<bool>());
    (
        head,
        vec(enters, 0..20),
        vec(id(), 0..20),
        (vec(moves, 0..70), vec(trajectories, 0..9)),
        (vec(acts, 0..5), vec(turns, 0..5), vec(properties, 0..5), vec(messages, 0..4)),
        (vec(refused, 0..4), prop::option::of(own()), prop::option::of(crowd)),
    )
        .prop_map(
            |(
                (tick, ack, epoch, resync),
                enters,
                leaves,
                (moves, trajectories),
                (acts, turns, properties, messages),
                (refused, own, crowd),
            )| Frame {
                crowd,
                tick,
                ack,
                epoch,
                resync,
                enters,
                leaves,
                moves,
                trajectories,
                turns,
                acts,
                properties,
                messages,
                refused,
                own,
            },
        )
}

/// An arbitrary message of a server.
pub fn any_server_msg() -> impl Strategy<Value = ServerMsg> {
    let welcome = (any_u64(), any::<[u32; 4]>(), any_u64()).prop_map(|(session, n, server_ms)| {
        let session = SessionId(session);
        let [tick_ms, rate_limit, max_frame, heartbeat_ms] = n;
        let version = PROTOCOL_VERSION;
        Welcome { version, session, tick_ms, server_ms, rate_limit, max_frame, heartbeat_ms }.into()
    });
    let ticket = (".{0,200}", any::<u32>())
        .prop_map(|(token, grace_period_ms)| Ticket { token, grace_period_ms });
    let way_back = (seq(), prop::option::of(ticket));
    let own = prop::option::of(own());
    let pose = (any_pos(), any::<u16>());
    let joined = (any_u64(), ".{0,40}", plane(), pose, any_u64(), rules(), own, way_back).prop_map(
        |(id, scene, plane, (pos, facing), tick, rules, own, (ack, ticket))| {
            let (id, tick, facing) = (EntityId(id), Tick(tick), Facing(facing));
            Joined { id, scene, plane, pos, facing, tick, rules, own, ack, ticket }.into()
        },
    );
    let line = (plane(), any::<u32>(), any::<bool>()).prop_map(|(plane, players, open)| Line {
        plane,
        players,
        open,
    });
    let lines = (".{0,20}", any_i32(), any::<u32>(), prop::collection::vec(line, 0..20))
        .prop_map(|(scene, total, capacity, lines)| Lines { scene, total, capacity, lines }.into());
    let pong = (any_u64(), any_u64(), any_u64())
        .prop_map(|(nonce, server_ms, tick)| Pong { nonce, server_ms, tick: Tick(tick) }.into());
    let refused = (error_code(), prop::option::of(seq()), ".{0,80}")
        .prop_map(|(code, seq, detail)| Refused { code, seq, detail }.into());
    let left = any_u64().prop_map(|tick| Left { tick: Tick(tick) }.into());
    let closing = (prop::sample::select(CloseCode::ALL), ".{0,80}")
        .prop_map(|(code, detail)| Closing { code, detail }.into());
    prop_oneof![
        welcome,
        joined,
        frame().prop_map(ServerMsg::from),
        lines,
        pong,
        refused,
        left,
        closing
    ]
}
