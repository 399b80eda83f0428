//! Messages about logic workers.

use bytes::Bytes;
use purview::scene::messages::Command;
use purview::scene::{Plane, RegionId, SceneId};
use purview::wire::peer::{
    LeaseNews, PeerMsg, WorkerBatch, WorkerCommand, WorkerMsg, WorkerNotice,
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
        planes: vec![(Plane(1_000), vec!["ada".into()])],
    }
}

fn batch() -> WorkerBatch {
    let Command::Numbered(numbered) = numbered() else { panic!("it is one") };
    let commands = vec![
        WorkerCommand::Entity(*numbered),
        WorkerCommand::Scene { number: 3, command: Command::ResetDoors(Plane(1)) },
    ];
    let (region, epoch, lease, handled) = (RegionId(2), EPOCH, 4, TICK);
    WorkerBatch { worker: WORKER, region, epoch, lease, handled, commands }
}

/// A message of every kind, by its name.
pub fn workers() -> Vec<(String, PeerMsg)> {
    let lease = Some(LeaseNews::Begins(RegionId(2)));
    let told = Bytes::from_static(b"told");
    let (question, reason) = (2 << 32 | 9, "not yours".to_owned());
    let all = [
        ("here", WorkerMsg::Here(vec![notice()])),
        ("response", WorkerMsg::Response { worker: WORKER, lease, response: told }),
        ("batch", WorkerMsg::Batch(Box::new(batch()))),
        ("late", WorkerMsg::Late(WORKER)),
        ("answer", WorkerMsg::Answer { question, worker: WORKER, allow: false, reason }),
    ];
    let message = |(name, msg): (&str, _)| (name.to_owned(), PeerMsg::Worker(Box::new(msg)));
    all.map(message).into()
}
