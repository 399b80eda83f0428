//! What a client is told, as bytes: replies of the session's machine, and frames of regions.

use std::cell::RefCell;

use bytes::Bytes;

use super::Session;
use crate::scene::player::{End, Problem, Reply, SceneLines};
use crate::scene::spec::KindSpec;
use crate::scene::{Kind, Scene, ViewLimits};
use crate::wire::client::{
    Joined, Left, Line, Lines, Pong, Refused, Unconfirmed, UpdateRules, Welcome,
};
use crate::wire::{
    Blocker, CloseCode, EncodedBatch, ErrorCode, JoinRules, MAX_CLIENT_FRAME, MoveRules, OwnMove,
    PROTOCOL_VERSION, ServerMsg,
};

impl Session {
    /// The bytes of a reply; `None` if it names a scene that does not exist.
    pub(super) fn encode(&mut self, reply: Reply) -> Option<Bytes> {
        let server_ms = self.directory.uptime().as_millis() as u64;
        let msg: ServerMsg = match reply {
            Reply::Welcome => Welcome {
                version: PROTOCOL_VERSION,
                session: self.connection,
                tick_ms: self.directory.scenes().next().map_or(100, |s| s.tick_ms),
                server_ms,
                rate_limit: self.config.rate_limit,
                max_frame: MAX_CLIENT_FRAME as u32,
                heartbeat_ms: u32::try_from(self.config.heartbeat_ms).unwrap_or(u32::MAX),
            }
            .into(),
            Reply::Joined { scene, plane, pos, facing, tick, sight, own, ack } => {
                let Some(scene) = self.directory.scene(scene) else {
                    crate::log_limited!(error, %scene, "a region named a scene that does not exist");
                    return None;
                };
                let (rules, name) = (join_rules(&scene, sight), scene.spec.name.clone());
                let own = own.as_deref().map(OwnMove::from);
                let id = self.player.id();
                let ticket = self.credentials.ticket(id, &name);
                Joined { id, scene: name, plane, pos, facing, tick, rules, own, ack, ticket }.into()
            }
            Reply::Lines(SceneLines { scene, open }) => {
                let spec = &self.directory.scene(scene)?.spec;
                let capacity = spec.line_capacity;
                let line = |(plane, players)| Line { plane, players, open: players < capacity };
                let lines = open.into_iter().map(line).collect();
                Lines { scene: spec.name.clone(), total: spec.lines, capacity, lines }.into()
            }
            Reply::Pong { nonce, tick } => Pong { nonce, server_ms, tick }.into(),
            Reply::Refused { problem, seq } => {
                Refused { code: error_code(&problem), seq, detail: problem.to_string() }.into()
            }
            Reply::Unconfirmed { first, last } => Unconfirmed { first, last }.into(),
            Reply::Left { tick } => Left { tick }.into(),
        };
        Some(Bytes::from(msg.encode()))
    }
}

/// What a client is told of a scene's rules.
fn join_rules(scene: &Scene, sight: ViewLimits) -> JoinRules {
    let spec = &scene.spec;
    let movement = scene.judged.map(|rules| MoveRules {
        tick_ms: scene.tick_ms,
        tile_cm: scene.tile_cm(),
        top_speed: spec.top_speed_cm_s.unsigned_abs(),
        command_ms: rules.command_ms,
        grace_ms: rules.grace_ms,
        leash_ms: rules.leash_ms,
        climb: rules.climb.map(|c| [c.up_cm, c.down_cm]),
        blocks: blockers(scene),
    });
    let patches = spec.layers.first().map(|layer| spec.patch_rule(layer));
    JoinRules {
        visibility: spec.visibility,
        range: spec.range,
        sight: sight.rings,
        patch_cm: patches.map_or([0; 2], |patches| patches.side_cm),
        patch_margin_cm: patches.map_or(0, |patches| patches.margin_cm),
        height_cm: spec.height_cm,
        view_cap: sight.cap.within(spec.view_cap) as u32,
        view_margin_cm: spec.view_margin_cm,
        rates: [spec.rates.near, spec.rates.middle, spec.rates.far],
        size_cm: [spec.width_cm, spec.depth_cm],
        movement,
        updates: UpdateRules::of(scene),
    }
}

fn blockers(scene: &Scene) -> Vec<Blocker> {
    let tile_cm = scene.tile_cm();
    let kinds = (0..=u8::MAX).zip(&scene.spec.kinds).filter(|(_, kind)| kind.blocks);
    let size = |kind: &KindSpec| kind.size_cm.unwrap_or_default().map(|side| side.max(tile_cm));
    kinds.map(|(number, kind)| Blocker { kind: Kind(number), size_cm: size(kind) }).collect()
}

/// The frame's bytes in one allocation of the right size.
pub(super) fn frame_bytes(batch: &EncodedBatch, index: usize, wants_crowd: bool) -> Bytes {
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.clear();
        batch.write_frame(index, wants_crowd, scratch);
        Bytes::copy_from_slice(scratch)
    })
}

fn error_code(problem: &Problem) -> ErrorCode {
    match problem {
        Problem::Malformed(_) => ErrorCode::Malformed,
        Problem::UnknownType(_) => ErrorCode::UnknownType,
        Problem::BadField(_) => ErrorCode::BadField,
        Problem::ActTooLong(_) => ErrorCode::ActTooLong,
        Problem::Premature { .. } => ErrorCode::Premature,
        Problem::OutOfOrder { .. } => ErrorCode::OutOfOrder,
        Problem::OutOfBounds { .. } => ErrorCode::OutOfBounds,
        Problem::UnknownScene(_) => ErrorCode::UnknownScene,
        Problem::NoRoom { .. } => ErrorCode::NoRoom,
        Problem::Sight { .. } => ErrorCode::NoSuchSight,
        Problem::MayNotTeleport(_) => ErrorCode::MayNotTeleport,
        Problem::Teleporting => ErrorCode::Busy,
        Problem::Region(why) => ErrorCode::from(*why),
        Problem::Property(why) => ErrorCode::from(*why),
        Problem::Gone => ErrorCode::Gone,
        Problem::NotFound | Problem::StoreAway(_) | Problem::NotFree | Problem::NoNames => {
            ErrorCode::Busy
        }
        Problem::Ticket(_) | Problem::OtherSubject => ErrorCode::BadTicket,
        Problem::PrivatePlane { .. } => ErrorCode::PrivatePlane,
        Problem::NotAdmitted(_) => ErrorCode::NotAdmitted,
        Problem::SubjectTaken => ErrorCode::Taken,
        Problem::JoinsTooOften { .. } => ErrorCode::TooOften,
    }
}

pub(super) fn close_code(end: End) -> CloseCode {
    match end {
        End::Normal => CloseCode::Normal,
        End::GoingAway => CloseCode::GoingAway,
        End::Elsewhere => CloseCode::Elsewhere,
        End::Replaced => CloseCode::Replaced,
        End::Kicked => CloseCode::Kicked,
        End::Unsupported => CloseCode::Unsupported,
        End::TooBig => CloseCode::TooBig,
        End::Protocol => CloseCode::Protocol,
        End::Version => CloseCode::Version,
        End::Token => CloseCode::Token,
        End::Handshake => CloseCode::Handshake,
        End::Heartbeat => CloseCode::Heartbeat,
        End::Rate => CloseCode::Rate,
        End::Slow => CloseCode::Slow,
        End::Overload => CloseCode::Overload,
    }
}
