//! Messages about logic workers.

use bytes::Bytes;
use purview::scene::messages::Command;
use purview::scene::{EntityId, Plane, Pos, RegionId, SceneId};
use purview::wire::peer::{
    LeaseNews, PeerMsg, PlaneNews, PlaneVersion, RegionNews, WorkerBatch, WorkerCommand, WorkerMsg,
    WorkerNotice, WorkerQuestion,
};

use super::{EPOCH, TICK, numbered};

const WORKER: u64 = 3 << 32 | 7;

fn notice() -> WorkerNotice {
    WorkerNotice {
        worker: WORKER,
        scene: SceneId(1),
        name: "rules".into(),
        answers: true,
        followed: 1,
        here: true,
        late: false,
        generation: 2,
    }
}

fn batch() -> WorkerBatch {
    let Command::Numbered(numbered) = numbered() else { panic!("it is one") };
    let commands = vec![
        WorkerCommand::Entity(*numbered),
        WorkerCommand::Scene { number: 3, command: Command::ResetDoors(Plane(1)) },
        WorkerCommand::Plane { number: 4, plane: Plane(1_000), subjects: None },
    ];
    let (region, epoch, lease, handled) = (RegionId(2), EPOCH, 4, TICK);
    WorkerBatch { worker: WORKER, region, epoch, lease, handled, commands }
}

fn asked() -> WorkerQuestion {
    WorkerQuestion {
        worker: WORKER,
        question: 3 << 32 | 9,
        subject: "ada".into(),
        entity: EntityId(5),
        plane: Plane(1_000),
        pos: Pos::ground(10, 20),
        jumps: true,
    }
}

fn plane() -> PlaneNews {
    let (scene, plane, subjects) = (SceneId(1), Plane(1_000), Some(vec!["ada".into()]));
    PlaneNews { scene, plane, version: PlaneVersion { count: 5, process: 3 }, subjects }
}

/// The name of a kind. The match is exhaustive: a new kind needs a sample, too.
pub fn kind(msg: &WorkerMsg) -> &'static str {
    match msg {
        WorkerMsg::Here { .. } => "Here",
        WorkerMsg::Planes(_) => "Planes",
        WorkerMsg::Response { .. } => "Response",
        WorkerMsg::Batch(_) => "Batch",
        WorkerMsg::Late(_) => "Late",
        WorkerMsg::AskTold { .. } => "AskTold",
        WorkerMsg::Told { .. } => "Told",
        WorkerMsg::Ask(_) => "Ask",
        WorkerMsg::Answer { .. } => "Answer",
    }
}

/// A message of every kind, by its name.
pub fn workers() -> Vec<(String, PeerMsg)> {
    let (region, tick) = (RegionId(2), TICK);
    let of = Some(RegionNews { region, epoch: EPOCH, lease: LeaseNews::Begins(4, TICK) });
    let told = Bytes::from_static(b"told");
    let (question, reason) = (3 << 32 | 9, "not yours".to_owned());
    let all = [
        ("here", WorkerMsg::Here { workers: vec![notice()], planes: 77 }),
        ("planes", WorkerMsg::Planes(vec![plane()])),
        ("response", WorkerMsg::Response { worker: WORKER, of, response: told }),
        ("batch", WorkerMsg::Batch(Box::new(batch()))),
        ("late", WorkerMsg::Late(WORKER)),
        ("asktold", WorkerMsg::AskTold { worker: WORKER, region, tick }),
        ("told", WorkerMsg::Told { worker: WORKER, region, tick }),
        ("ask", WorkerMsg::Ask(Box::new(asked()))),
        ("answer", WorkerMsg::Answer { question, worker: WORKER, allow: false, reason }),
    ];
    let message = |(name, msg): (&str, _)| (name.to_owned(), PeerMsg::Worker(Box::new(msg)));
    all.map(message).into()
}
