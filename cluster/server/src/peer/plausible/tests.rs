use purview::scene::messages::{
    GroupMessage, KeptBonds, MessageId, Recipients, Resume, SceneOrder, Spawn,
};
use purview::scene::terrain::{DoorChange, DoorOrder};
use purview::scene::{EntityId, Plane, SceneId, Seq, SessionId};
use purview::wire::peer::query::{Answer, Stamp};
use purview::wire::peer::{
    LeaseName, PlaneNews, PlaneVersion, WorkerAnswer, WorkerGot, WorkerTold,
};

use super::*;

const REGION: RegionId = RegionId(2);
const SESSION: SessionId = SessionId(3 << 32 | 9);

fn known() -> Known {
    Known { newest: 1_000, now: Duration::from_secs(500), tick_ms: 50 }
}

fn to_region(input: Input) -> PeerMsg {
    PeerMsg::Region { to: REGION, epoch: Epoch(0), input }
}

fn worker(msg: WorkerMsg) -> PeerMsg {
    PeerMsg::Worker(Box::new(msg))
}

fn bonds(at: Tick) -> Notice {
    Notice::Bonds { epoch: Epoch(1), bonds: KeptBonds { at, named: Vec::new() } }
}

fn with_bonds(at: Tick) -> Spawn {
    let bonds = KeptBonds { at, named: Vec::new() };
    Spawn { id: EntityId(7), session: Some(SESSION), bonds, ..Spawn::default() }
}

/// A message with a number in each place where a number comes in, by the name of the place.
fn messages(number: u64) -> Vec<(&'static str, PeerMsg)> {
    let (epoch, tick, at_ms) = (Epoch(number), Tick(number), number);
    let session = (SESSION, EntityId(7));
    let resume = Resume {
        id: session.1,
        session: session.0,
        subject: Default::default(),
        acked: Seq(0),
        asked: REGION,
        since_ms: number,
        purpose: Default::default(),
    };
    let group = GroupMessage {
        id: MessageId { sender: 1, number: 0 },
        to: Recipients::Scene(SceneId(0)),
        payload: Default::default(),
        sent_ms: number,
    };
    let door = |at, version| {
        to_region(Input::Scene(SceneOrder::Doors(DoorOrder {
            plane: Plane(0),
            change: DoorChange::Reset,
            at,
            version,
        })))
    };
    let stamp = Stamp { at_ms, session: SESSION };
    let claims = vec![SubjectClaim { subject: "ada".into(), stamp, entity: session.1 }];
    let lease = LeaseName { region: REGION, epoch, number: 1 };
    let told = WorkerTold { worker: 1, lease, seq: 1, response: Default::default() };
    let answer = WorkerAnswer { worker: 1, lease, seq: 1, commands: Vec::new() };
    let got = WorkerGot { worker: 1, region: REGION, epoch, last: 1 };
    let version = PlaneVersion { count: number, process: 3 };
    let plane = PlaneNews { scene: SceneId(0), plane: Plane(9), version, subjects: None };
    let (ended, owner) = (Change::Ended, Epoch(1));
    let map = Input::Map(Box::new(MapNews { from: REGION, version: 1, change: ended }));
    let present = |owner, epoch| {
        let notice = Notice::Present { region: REGION, owner, epoch };
        PeerMsg::Notice { session: SESSION, notice }
    };
    let frames = purview::scene::messages::FrameBatch { tick, ..Default::default() };
    let moved = MoveMsg::Moved { region: REGION, epoch, to: 2 };
    let prepare = MoveMsg::Prepare { region: REGION, epoch };
    vec![
        ("a layout step", PeerMsg::Region { to: REGION, epoch, input: map }),
        ("a resumption", to_region(Input::Resume(resume))),
        ("a group message", to_region(Input::Group(Box::new(group)))),
        ("a door's tick", door(tick, 1)),
        ("a door's version", door(Tick(1), number)),
        ("frames", PeerMsg::Frames { from: REGION, batch: Box::new(frames) }),
        ("a notice's owner", present(epoch, Epoch(1))),
        ("a notice's entity", present(owner, epoch)),
        ("bonds", PeerMsg::Notice { session: SESSION, notice: bonds(tick) }),
        ("a player's bonds", to_region(Input::Enter(Box::new(with_bonds(tick))))),
        ("a claim", PeerMsg::Ask { ticket: 1, question: Question::Claims(claims.clone()) }),
        (
            "an answered claim",
            PeerMsg::Answered { ticket: 1, answer: Answer { claims, ..Answer::default() } },
        ),
        ("a move", PeerMsg::Move(Box::new(moved))),
        ("a preparation", PeerMsg::Move(Box::new(prepare))),
        ("a plane", worker(WorkerMsg::Planes(vec![plane]))),
        ("told", worker(WorkerMsg::Told(Box::new(told)))),
        ("an answer", worker(WorkerMsg::Answer(Box::new(answer)))),
        ("the end of a lease", worker(WorkerMsg::Ended { worker: 1, lease })),
        ("a refusal that is known", worker(WorkerMsg::Got(got))),
    ]
}

#[test]
fn a_number_far_beyond_what_is_known_is_refused_wherever_it_comes_in() {
    for (place, message) in messages(1_000) {
        assert_eq!(known().check(&message), Ok(()), "{place}");
    }
    for far in [u64::MAX, u64::MAX - 1, 1 << 62] {
        for (place, message) in messages(far) {
            let refused = known().check(&message);
            assert!(refused.is_err_and(|why| why.found == far && why.most < 1 << 61), "{place}");
        }
    }
}

#[test]
fn a_region_that_ends_a_session_may_name_any_epoch() {
    let properties = Default::default();
    let notice = Notice::Left { tick: Tick(9), epoch: Epoch(u64::MAX), properties };
    assert_eq!(known().check(&PeerMsg::Notice { session: SESSION, notice }), Ok(()));
}
