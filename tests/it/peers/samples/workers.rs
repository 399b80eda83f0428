//! Messages about logic workers.

use bytes::Bytes;
use purview::scene::messages::Command;
use purview::scene::{EntityId, Epoch, Plane, Pos, RegionId, SceneId};
use purview::wire::peer::{
    LeaseName, PeerMsg, PlaneNews, PlaneVersion, WorkerAnswer, WorkerCommand, WorkerGot, WorkerMsg,
    WorkerNotice, WorkerQuestion, WorkerTold, WorkerWish,
};

use super::{EPOCH, account};

const WORKER: u64 = 3 << 32 | 7;

fn notice() -> WorkerNotice {
    WorkerNotice {
        worker: WORKER,
        scene: SceneId(1),
        name: "rules".into(),
        answers: true,
        followed: 1,
    }
}

fn lease() -> LeaseName {
    LeaseName { region: RegionId(2), epoch: EPOCH, number: 4 }
}

fn answer() -> WorkerAnswer {
    let command = |entity, held: bool, wish| {
        let (epoch, together) = (held.then_some(Epoch(12)), held);
        WorkerCommand { entity: EntityId(entity), held, wish, epoch, together }
    };
    let (plane, subjects) = (Plane(1_000), None);
    let commands = vec![
        command(5, true, WorkerWish::Command(Command::Kick(EntityId(5)))),
        command(0, false, WorkerWish::Command(Command::ResetPlane(Plane(1)))),
        command(0, false, WorkerWish::Plane { plane, subjects }),
        command(6, false, WorkerWish::Illegal(6, "the value is not one".to_owned())),
    ];
    WorkerAnswer { worker: WORKER, lease: lease(), seq: 9, commands }
}

fn asked() -> WorkerQuestion {
    WorkerQuestion {
        worker: WORKER,
        question: 3 << 32 | 9,
        account: account(),
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

/// A message of every kind, by its name.
pub fn workers() -> Vec<(String, PeerMsg)> {
    let (worker, lease, region) = (WORKER, lease(), RegionId(2));
    let response = Bytes::from_static(b"told");
    let told = WorkerTold { worker, lease, seq: 9, response: response.clone() };
    let got = WorkerGot { worker, region, epoch: EPOCH, last: 3 };
    let (question, reason) = (3 << 32 | 9, "not yours".to_owned());
    let all = [
        ("here", WorkerMsg::Here { workers: vec![notice()], planes: 77 }),
        ("planes", WorkerMsg::Planes(vec![plane()])),
        ("told", WorkerMsg::Told(Box::new(told))),
        ("answer", WorkerMsg::Answer(Box::new(answer()))),
        ("ended", WorkerMsg::Ended { worker, lease }),
        ("refused", WorkerMsg::Refused { worker, region, response }),
        ("got", WorkerMsg::Got(got)),
        ("ask", WorkerMsg::Ask(Box::new(asked()))),
        ("verdict", WorkerMsg::Verdict { question, worker, allow: false, plane: None, reason }),
    ];
    let message = |(name, msg): (&str, _)| (name.to_owned(), PeerMsg::Worker(Box::new(msg)));
    all.map(message).into()
}
