//! A batch of ghosts and a batch of frames.

use purview::scene::messages::{
    Crowd, Entering, Following, GhostChange, GhostLeave, GhostLevels, GhostLinks, GhostState,
    Moving, PastAction, PropertyUpdate, SessionFrame, Speaker, TrajectoryUpdate,
};
use purview::scene::properties::{PropertyId, Value};
use purview::scene::{EntityHandle, Facing, Kind, Tick, ViewCap};

use super::*;

pub fn border() -> BorderBatch {
    let ghost = GhostState {
        cap: ViewCap::SCENE,
        id: ID,
        epoch: EPOCH,
        kind: Kind(2),
        plane: Plane(3),
        pos: PLACE,
        trajectory: Some(trajectory()),
        facing: Facing::SOUTH,
        properties: Properties::with_appearance(b"ghost").unwrap(),
        ties: ties(),
        threshold: u64::MAX,
    };
    let change = GhostChange {
        id: OTHER,
        epoch: EPOCH,
        pos: PLACE,
        facing: Facing::WEST,
        trajectory: None,
        threshold: 9,
    };
    let properties = Properties::with_appearance(b"new").unwrap();
    let levels = GhostLevels { id: OTHER, epoch: EPOCH, properties };
    let links = GhostLinks { id: ID, all: true, linked: vec![OTHER], ended: vec![EntityId(44)] };
    BorderBatch {
        from: RegionId(1),
        epoch: EPOCH,
        lineage: Epoch(3),
        tick: TICK,
        prev: Tick(69_999),
        full: false,
        enters: vec![ghost],
        changes: vec![change],
        levels: vec![levels],
        links: vec![links],
        leaves: vec![GhostLeave { id: OTHER, epoch: EPOCH, next: Some(RegionId(2)) }],
        acts: vec![(ID, action())],
        earlier: vec![PastAction {
            tick: Tick(69_998),
            id: OTHER,
            content: action(),
            to: Vec::new(),
        }],
        relations: vec![super::at_war()],
    }
}

pub fn frames() -> FrameBatch {
    let properties = Properties::with_appearance(b"look").unwrap();
    let (kind, facing) = (Kind::PLAYER, Facing::NORTH);
    let entering = Entering { id: ID, kind, pos: PLACE, facing, trajectory: None, properties };
    let update = PropertyUpdate { entity: OTHER, id: PropertyId(3), version: 7, value: Value::NIL };
    FrameBatch {
        tick: TICK,
        entering: vec![entering],
        moving: vec![Moving::standing(OTHER, PLACE, facing)],
        trajectories: vec![TrajectoryUpdate {
            id: OTHER,
            trajectory: trajectory(),
            facing,
            following: Some(Following { offset_cm: [3, 0, -200], ago_ms: 40 }),
        }],
        turning: vec![(OTHER, facing)],
        acting: vec![(OTHER, Bytes::from_static(b"hit"), Speaker::Client)],
        properties: vec![update],
        refs: vec![0; 7],
        leaves: vec![EntityId(43)],
        refused: vec![refused()],
        told: vec![told()],
        owns: vec![*own()],
        crowds: vec![Crowd { x: 1_600, z: -40, dots: Bytes::from_static(&[128, 7]) }],
        sessions: vec![SessionFrame {
            session: SESSION,
            ack: Seq(9),
            epoch: EPOCH,
            resync: true,
            refs_at: 0,
            enters: 1,
            moves: 1,
            trajectories: 1,
            turns: 1,
            acts: 1,
            properties: 1,
            kept: 1,
            leaves_at: 0,
            leaves: 1,
            refused_at: 0,
            refused: 1,
            told_at: 0,
            told: 1,
            own_at: 0,
            own: 1,
            crowd_at: 0,
            crowd: 1,
            handle: EntityHandle(3),
            after: Tick(6),
        }],
    }
}
