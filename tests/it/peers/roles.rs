//! Every kind of message in every role: a process sends only what its role may send, and speaks only
//! for itself.

use std::collections::{BTreeMap, BTreeSet};

use purview::scene::messages::Input;
use purview::scene::{Epoch, RegionId, SessionId};
use purview::wire::peer::roles::{Forbidden, MAX_WORKERS, Role, Sender};
use purview::wire::peer::{PeerMsg, WorkerMsg};

use super::samples::{self, PROCESS};

/// For whom a role may send a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum May {
    /// For any process.
    Any,
    /// For itself: its own sessions, workers, players, questions.
    Own,
    Never,
}

use May::{Any, Never, Own};

/// What a node and a gateway may send; of every other kind a node may send any, and a gateway none.
const RIGHTS: [(&str, May, May); 25] = [
    ("Answered", Own, Own),
    ("Ask Balance", Any, Any),
    ("Ask Claims", Own, Own),
    ("Ask Clock", Any, Any),
    ("Ask Entity", Any, Any),
    ("Ask Lines", Any, Any),
    ("Ask Players", Any, Any),
    ("Gone", Own, Own),
    ("Move Marked", Any, Own),
    ("Region Client", Any, Own),
    ("Region Disconnected", Any, Own),
    ("Region Elsewhere", Any, Own),
    ("Region Enter", Any, Own),
    ("Region Hold", Any, Own),
    ("Region Kicked", Any, Own),
    ("Region Present", Any, Own),
    ("Region Release", Any, Own),
    ("Region Resume", Any, Own),
    ("Region Resync", Any, Own),
    ("Suspect", Any, Any),
    ("Worker Answer", Own, Never),
    ("Worker Ask", Own, Own),
    ("Worker Got", Own, Never),
    ("Worker Here", Own, Never),
    ("Worker Verdict", Own, Never),
];

fn outcome(role: Role, message: &PeerMsg) -> May {
    let check = |process| Sender { process, role }.check(message);
    match (check(PROCESS), check(PROCESS + 1)) {
        (Ok(()), Ok(())) => Any,
        (Ok(()), Err(Forbidden::Foreign { of: PROCESS, .. })) => Own,
        (Err(Forbidden::NodesOnly { .. }), Err(Forbidden::NodesOnly { .. })) => Never,
        other => panic!("{role:?}: {message:?}: {other:?}"),
    }
}

#[test]
fn every_message_in_every_role_is_sent_or_refused_as_the_list_says() {
    let rows = RIGHTS.into_iter();
    let rights: BTreeMap<_, _> =
        rows.map(|(kind, node, gateway)| (kind, (node, gateway))).collect();
    let mut seen = BTreeSet::new();
    for (name, message) in samples::all() {
        let kind = samples::kinds::kind_of(&message);
        let (node, gateway) = rights.get(&kind[..]).copied().unwrap_or((Any, Never));
        assert_eq!(outcome(Role::Node, &message), node, "a node: {name}");
        assert_eq!(outcome(Role::Gateway, &message), gateway, "a gateway: {name}");
        seen.insert(kind);
    }
    assert!(rights.keys().all(|kind| seen.contains(*kind)), "every row has a sample: {seen:?}");
}

#[test]
fn a_gateway_brings_only_players_of_its_sessions_with_ids_of_its_own() {
    let gateway = Sender { process: PROCESS, role: Role::Gateway };
    let enters = samples::all().into_iter().find_map(|(_, message)| match message {
        PeerMsg::Region { input: Input::Enter(spawn), .. } => Some(spawn),
        _ => None,
    });
    let spawn = enters.expect("there is a sample");
    let enter = |spawn| {
        let input = Input::Enter(Box::new(spawn));
        gateway.check(&PeerMsg::Region { to: RegionId(2), epoch: Epoch(0), input })
    };
    assert_eq!(enter((*spawn).clone()), Ok(()));
    let mut npc = (*spawn).clone();
    npc.session = None;
    assert_eq!(enter(npc), Err(Forbidden::NoSession));
    let mut taken = (*spawn).clone();
    taken.id.0 = 9 << 32 | 1;
    assert_eq!(enter(taken), Err(Forbidden::Foreign { kind: "Enter", of: 9 }));
    let mut of_another = *spawn;
    of_another.session = Some(SessionId(8 << 32 | 1));
    assert_eq!(enter(of_another), Err(Forbidden::Foreign { kind: "Enter", of: 8 }));
}

#[test]
fn a_gateway_has_no_logic_workers_and_a_node_not_any_number_of_them() {
    let here = samples::all().into_iter().find_map(|(_, message)| match message {
        PeerMsg::Worker(msg) => match *msg {
            WorkerMsg::Here { workers, planes } => Some((workers, planes)),
            _ => None,
        },
        _ => None,
    });
    let (workers, planes) = here.expect("there is a sample");
    let say = |role, workers| {
        let msg = WorkerMsg::Here { workers, planes };
        Sender { process: PROCESS, role }.check(&PeerMsg::Worker(Box::new(msg)))
    };
    assert_eq!(say(Role::Gateway, Vec::new()), Ok(()), "it says which planes it knows");
    let many = vec![workers[0].clone(); MAX_WORKERS + 1];
    assert_eq!(say(Role::Node, many[1..].to_vec()), Ok(()));
    assert_eq!(say(Role::Node, many), Err(Forbidden::TooManyWorkers(MAX_WORKERS + 1)));
}
