//! Whole lists of actions, of one node `a` among others: what is done, in which order, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use purview::scene::{Epoch, RegionId, Scene, SceneId, SceneSpec};
use serde::Serialize;

use super::*;
use crate::node::down::RegionOrder;
use crate::node::layout_change::{self, Record};
use crate::node::plan::{DRAINS, MOVES, Move, PLAN, Plan};
use crate::storage::{Incarnation, Leader, NodeInfo, Owner, RegionKey, Revision, Value};

const A: Incarnation = Incarnation(1);
const B: Incarnation = Incarnation(2);
const C: Incarnation = Incarnation(3);

fn process(node: Incarnation) -> u64 {
    100 + node.0
}

fn name(node: Incarnation) -> &'static str {
    ["a", "b", "c"][node.0 as usize - 1]
}

fn key(region: u32) -> RegionKey {
    RegionKey { scene: "city".into(), region, planes: 0 }
}

fn store(nodes: &[Incarnation], plan: &[(u32, Incarnation)]) -> View {
    let node = |i: &Incarnation| NodeInfo {
        process: process(*i),
        address: format!("10.0.0.{}:7790", i.0),
        ..NodeInfo::for_test(name(*i))
    };
    let mut view = View { revision: Revision(50), ..View::default() };
    view.nodes = nodes.iter().map(|i| (*i, node(i))).collect();
    let of = plan.iter().map(|(region, node)| (*region, node.0)).collect();
    set(&mut view, PLAN, &Plan { of, ..Plan::default() });
    view
}

fn set(view: &mut View, key: &str, value: &impl Serialize) {
    let data = serde_json::to_vec(value).unwrap().into();
    view.values.insert(key.into(), Value { revision: view.revision, data });
}

fn own(view: &mut View, region: u32, node: Incarnation, epoch: u64) {
    let (node, incarnation) = (name(node).into(), node);
    let owner = Owner { node, incarnation, epoch: Epoch(epoch), lineage: Epoch(epoch) };
    view.owners.insert(key(region), owner);
}

/// Node `a`, which calls these peers and knows so many regions of the present layout. Nothing runs here.
fn here(peers: &[Incarnation], regions: u32) -> Local {
    let region = |id| (RegionId(id), LocalRegion::new(key(id), true));
    Local {
        me: A,
        name: name(A).into(),
        shuts_down: false,
        leads: false,
        clock_is_set: true,
        follows_layouts: true,
        has_claimed: false,
        peers: peers.iter().map(|i| (*i, process(*i))).collect(),
        suspects: Vec::new(),
        regions: (0..regions).map(region).collect(),
        down: BTreeSet::new(),
        overdue: None,
        recovered_late: 0,
    }
}

impl Local {
    fn region(&mut self, id: u32) -> &mut LocalRegion {
        self.regions.get_mut(&RegionId(id)).unwrap()
    }

    /// The region runs here, as everybody knows.
    fn run(&mut self, id: u32, epoch: u64) {
        let epoch = Epoch(epoch);
        let region = self.region(id);
        region.runs = Some(Running { epoch, is_confirmed: true, is_over: false });
        (region.route, region.known_epoch, region.told) = (Route::Here(epoch), epoch, Some(epoch));
    }

    /// The region is found at a peer.
    fn find(&mut self, id: u32, at: Incarnation, epoch: u64) {
        let epoch = Epoch(epoch);
        let region = self.region(id);
        (region.route, region.known_epoch) = (Route::At(process(at), epoch), epoch);
        region.told = Some(epoch);
    }

    /// As the process is before it has followed the layouts of the view.
    fn before_layouts(mut self) -> Local {
        self.follows_layouts = false;
        self
    }
}

fn ids(ids: &[u32]) -> Vec<RegionId> {
    ids.iter().copied().map(RegionId).collect()
}

#[test]
fn a_store_that_was_not_heard_yet_leads_to_nothing() {
    assert_eq!(reconcile(&View::default(), &here(&[], 4)), []);
}

#[test]
fn in_a_fresh_cluster_peers_are_greeted_and_the_own_share_is_claimed() {
    let view = store(&[A, B, C], &[(0, A), (1, B), (2, A), (3, C)]);
    let first = reconcile(&view, &here(&[], 4).before_layouts());
    assert_eq!(first, [Action::Greet(B), Action::Greet(C), Action::FollowLayouts]);
    let mut local = here(&[B, C], 4);
    let claims = Action::Claim(ids(&[0, 2]));
    assert_eq!(reconcile(&view, &local), [Action::TellRegions, claims.clone()]);
    local.leads = true;
    assert_eq!(reconcile(&view, &local), [Action::TellRegions, claims, Action::Lead]);
    local.has_claimed = true;
    assert_eq!(reconcile(&view, &local), [Action::TellRegions, Action::Lead]);
    (local.leads, local.has_claimed, local.clock_is_set) = (false, false, false);
    assert_eq!(
        reconcile(&view, &local),
        [Action::TellRegions],
        "no region begins by a wrong clock"
    );
}

#[test]
fn what_others_own_is_routed_to_them_and_sessions_hear_of_a_new_owner() {
    let mut view = store(&[A, B], &[(0, B), (1, B)]);
    own(&mut view, 0, B, 40);
    own(&mut view, 1, B, 41);
    let mut local = here(&[B], 2);
    local.region(1).told = Some(Epoch(30));
    let remote = |region: u32, epoch: u64, is_new| Action::RouteRemote {
        region: RegionId(region),
        to: Route::At(process(B), Epoch(epoch)),
        lineage: Epoch(epoch),
        here: None,
        was_told: false,
        is_new,
    };
    let learn_epoch = |region: u32, epoch: u64| Action::LearnEpoch(RegionId(region), Epoch(epoch));
    let first = [learn_epoch(0, 40), remote(0, 40, false), learn_epoch(1, 41), remote(1, 41, true)];
    assert_eq!(reconcile(&view, &local), [&first[..], &[Action::TellRegions]].concat());
    local.find(0, B, 40);
    local.find(1, B, 41);
    assert_eq!(reconcile(&view, &local), [Action::TellRegions], "nothing is told twice");
}

#[test]
fn a_node_that_dies_is_given_up_and_what_it_had_is_claimed_once_it_is_planned() {
    let mut view = store(&[A, B, C], &[(0, A), (1, B)]);
    own(&mut view, 0, A, 40);
    own(&mut view, 1, B, 41);
    let mut local = here(&[B, C], 2).before_layouts();
    local.run(0, 40);
    local.find(1, B, 41);
    // Its machine says that nobody listens, and so does another process: the leader need not wait for the lease.
    local.suspects = vec![Suspect { process: process(B), reporters: 1 }];
    let suspects = Action::TellSuspicion(process(B));
    assert_eq!(reconcile(&view, &local), [suspects.clone(), Action::FollowLayouts]);
    local.leads = true;
    let evicts = Action::Evict(B, process(B));
    assert_eq!(reconcile(&view, &local), [suspects.clone(), evicts.clone(), Action::FollowLayouts]);
    local.suspects[0].reporters = 0;
    assert_eq!(reconcile(&view, &local), [suspects.clone(), Action::FollowLayouts]);
    // Where the leader is the one who is dead, everybody may.
    local.leads = false;
    local.suspects[0].reporters = 1;
    let leader = Leader { node: "b".into(), incarnation: B, revision: Revision(1) };
    view.leader = Some(leader);
    assert_eq!(reconcile(&view, &local), [suspects, evicts, Action::FollowLayouts]);

    // Its lease is gone, and all it had with it.
    view.leader = None;
    view.nodes.remove(&B);
    view.owners.remove(&key(1));
    local.suspects.clear();
    let forget = Action::ForgetProcess(B, process(B));
    assert_eq!(reconcile(&view, &local), [forget, Action::FollowLayouts]);
    let mut local = here(&[C], 2);
    local.run(0, 40);
    local.region(1).known_epoch = Epoch(41);
    assert_eq!(reconcile(&view, &local), [Action::TellRegions]);
    let plan = BTreeMap::from([(0, A.0), (1, A.0)]);
    set(&mut view, PLAN, &Plan { of: plan, ..Plan::default() });
    assert_eq!(reconcile(&view, &local), [Action::TellRegions, Action::Claim(ids(&[1]))]);
}

#[test]
fn a_drained_node_hands_over_what_the_leader_says_one_region_at_a_time() {
    let mut view = store(&[A, B], &[(0, B), (1, B)]);
    own(&mut view, 0, A, 40);
    own(&mut view, 1, A, 41);
    set(&mut view, DRAINS, &[A.0]);
    let mut local = here(&[B], 2);
    local.run(0, 40);
    local.run(1, 41);
    assert_eq!(reconcile(&view, &local), [Action::TellRegions], "the leader has named none yet");
    let order = Move { region: 1, epoch: 41, from: A.0, to: B.0 };
    let others = Move { region: 0, from: B.0, ..order };
    set(&mut view, MOVES, &[others, order]);
    let to = (B, process(B));
    let send = Action::SendOff { region: RegionId(1), key: key(1), epoch: Epoch(41), to };
    assert_eq!(reconcile(&view, &local), [Action::TellRegions, send]);
    local.region(1).moves = true;
    assert_eq!(reconcile(&view, &local), [Action::TellRegions], "it is on its way");

    // The new owner has taken it over: all that the old one knew of the move is the store's word now.
    own(&mut view, 1, B, 45);
    let region = local.region(1);
    (region.moves, region.moved, region.told) = (false, Some(Epoch(41)), Some(Epoch(41)));
    let id = RegionId(1);
    let remote = Action::RouteRemote {
        region: id,
        to: Route::At(process(B), Epoch(45)),
        lineage: Epoch(45),
        here: Some(Epoch(41)),
        was_told: true,
        is_new: true,
    };
    let told = [Action::ForgetMove(id, Epoch(41)), Action::LearnEpoch(id, Epoch(45)), remote];
    assert_eq!(reconcile(&view, &local), [&told[..], &[Action::TellRegions]].concat());

    // All are given away.
    own(&mut view, 0, B, 46);
    let mut local = here(&[B], 2);
    local.find(0, B, 46);
    local.find(1, B, 45);
    let done = status(&view, &local);
    assert!(done.draining && done.drained && done.is_whole() && done.here == 0, "{done:?}");
}

#[test]
fn a_changed_plan_moves_nothing_that_runs_and_gives_up_what_does_not() {
    let mut view = store(&[A, B], &[(0, B), (1, B), (2, A)]);
    for region in 0..3 {
        own(&mut view, region, A, 40 + u64::from(region));
    }
    let mut local = here(&[B], 3);
    local.run(0, 40);
    local.run(2, 42);
    local.region(1).known_epoch = Epoch(41);
    let give_up =
        Action::GiveUp { region: RegionId(1), key: key(1), epoch: Epoch(41), unless_due: false };
    assert_eq!(reconcile(&view, &local), [give_up, Action::TellRegions]);
    // Somebody else has it by now, which the store does not tell yet.
    local.region(1).known_epoch = Epoch(60);
    assert_eq!(reconcile(&view, &local), [Action::TellRegions]);
}

#[test]
fn what_this_process_was_granted_and_does_not_run_is_claimed_again() {
    let mut view = store(&[A], &[(0, A)]);
    own(&mut view, 0, A, 40);
    let local = here(&[], 1);
    let learn_epoch = Action::LearnEpoch(RegionId(0), Epoch(40));
    let claim = Action::Claim(ids(&[0]));
    assert_eq!(reconcile(&view, &local), [learn_epoch, Action::TellRegions, claim]);
}

#[test]
fn a_region_that_is_down_waits_for_an_operator() {
    let mut view = store(&[A, B], &[(0, A)]);
    own(&mut view, 0, A, 40);
    let mut local = here(&[B], 1);
    local.region(0).known_epoch = Epoch(40);
    local.down.insert(RegionId(0));
    let mut down =
        down::Down { node: "a".into(), why: "its checkpoint cannot be read".into(), order: None };
    set(&mut view, down::DOWN, &down::All::from([(0, down.clone())]));
    assert_eq!(reconcile(&view, &local), [Action::TellRegions]);
    let now = status(&view, &local);
    assert_eq!((now.down, now.located, now.is_whole()), (1, 0, false));

    down.order = Some(RegionOrder::Restore);
    set(&mut view, down::DOWN, &down::All::from([(0, down)]));
    assert_eq!(reconcile(&view, &local), [Action::TellRegions, Action::Claim(ids(&[0]))]);

    local.down.clear();
    local.run(0, 40);
    assert_eq!(reconcile(&view, &local), [Action::TellRegions, Action::ClearDown]);

    // It is another node's business now, which has not told so.
    let mut local = here(&[B], 1);
    local.down.insert(RegionId(0));
    set(&mut view, PLAN, &Plan { of: BTreeMap::from([(0, B.0)]), ..Plan::default() });
    own(&mut view, 0, B, 45);
    local.find(0, B, 45);
    assert_eq!(reconcile(&view, &local), [Action::TellRegions, Action::LeaveDown(RegionId(0))]);
}

#[test]
fn overdue_checkpoints_are_told_once_and_taken_back() {
    let mut view = store(&[A], &[]);
    let mut local = here(&[], 1);
    local.overdue = Some(ids(&[0]));
    let told = Action::TellOverdue(ids(&[0]));
    assert_eq!(reconcile(&view, &local), [Action::TellRegions, told]);
    set(&mut view, "overdue", &BTreeMap::from([(0, "a")]));
    assert_eq!(reconcile(&view, &local), [Action::TellRegions]);
    local.overdue = Some(Vec::new());
    assert_eq!(reconcile(&view, &local), [Action::TellRegions, Action::TellOverdue(Vec::new())]);
}

#[test]
fn while_a_layout_changes_new_regions_are_claimed_and_old_ones_retire() {
    let spec = SceneSpec { name: "city".into(), ..SceneSpec::default() };
    let scene = Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap();
    let layout = scene.map.layout().split(RegionId(0)).unwrap();
    let new = layout.plots.iter().find(|plot| scene.map.get(plot.id).is_none()).unwrap().id;
    let mut view = store(&[A], &[(0, A), (new.0, A)]);
    own(&mut view, 0, A, 40);
    let next = layout_change::Proposal { layout, after: None, promised: BTreeMap::new() };
    let record = Record { next: Some(next), ..Record::default() };
    set(&mut view, &layout_change::key(&scene), &record);
    let mut local = here(&[], 1);
    local.run(0, 40);
    local.regions.insert(new, LocalRegion::new(key(new.0), false));
    assert_eq!(reconcile(&view, &local), [Action::TellRegions, Action::Claim(vec![new])]);

    // Granted, and not started: whether it is due the store itself says.
    own(&mut view, new.0, A, 41);
    local.has_claimed = true;
    local.region(new.0).known_epoch = Epoch(41);
    let (region, epoch) = (new, Epoch(41));
    let give_up = Action::GiveUp { region, key: key(new.0), epoch, unless_due: true };
    assert_eq!(reconcile(&view, &local), [give_up, Action::TellRegions]);

    // It is called off: the region that was made for it is over, and then no more.
    set(&mut view, &layout_change::key(&scene), &Record::default());
    local.run(new.0, 41);
    local.region(new.0).runs.as_mut().unwrap().is_over = true;
    assert_eq!(reconcile(&view, &local), [Action::Retire(new), Action::TellRegions]);
    view.owners.remove(&key(new.0));
    local.region(new.0).runs = None;
    assert_eq!(reconcile(&view, &local), [Action::Forget(new), Action::TellRegions]);

    // One that was given up stays known until it has handed everybody on.
    let retiring = Record { retiring: [(new.0, Default::default())].into(), ..Record::default() };
    set(&mut view, &layout_change::key(&scene), &retiring);
    local.region(new.0).route = Route::Nowhere;
    assert_eq!(reconcile(&view, &local), [Action::TellRegions]);
}

#[test]
fn without_its_lease_a_process_does_nothing_but_end_what_runs_here() {
    let mut view = store(&[B], &[(0, A), (1, A), (2, A)]);
    own(&mut view, 0, B, 50);
    let mut local = here(&[B], 3);
    local.run(0, 40);
    local.run(2, 42);
    local.shuts_down = true;
    let all = vec![(RegionId(0), Epoch(40)), (RegionId(2), Epoch(42))];
    assert_eq!(reconcile(&view, &local), [Action::EndAll(all)]);
    assert_eq!(reconcile(&view, &here(&[B], 3)).last(), Some(&Action::Claim(ids(&[1, 2]))));
}

#[test]
fn a_node_that_drains_alone_keeps_its_regions() {
    let mut view = store(&[A], &[(0, A), (1, A)]);
    own(&mut view, 0, A, 40);
    set(&mut view, DRAINS, &[A.0]);
    let mut local = here(&[], 2);
    local.run(0, 40);
    // The leader plans as if it were not to be drained, since there is nobody else.
    assert_eq!(reconcile(&view, &local), [Action::TellRegions, Action::Claim(ids(&[1]))]);
    let now = status(&view, &local);
    assert!(now.draining && !now.drained && now.here == 1, "{now:?}");
}

#[test]
fn a_view_that_is_older_than_what_was_heard_ends_and_routes_nothing() {
    let mut view = store(&[A, B, C], &[]);
    own(&mut view, 0, B, 30);
    let mut local = here(&[B, C], 1);
    // A first word of its next owner.
    local.region(0).known_epoch = Epoch(51);
    assert_eq!(reconcile(&view, &local), [Action::TellRegions]);
    // Granted here since.
    local.run(0, 45);
    assert_eq!(reconcile(&view, &local), [Action::TellRegions]);
    // Granted here, which nobody has seen yet.
    view.owners.clear();
    local.region(0).runs.as_mut().unwrap().is_confirmed = false;
    assert_eq!(reconcile(&view, &local), [Action::TellRegions]);
    // It has told that it moves, and the store has not heard of it.
    own(&mut view, 0, B, 30);
    let mut local = here(&[B, C], 1);
    local.region(0).moved = Some(Epoch(30));
    assert_eq!(reconcile(&view, &local), [Action::TellRegions]);
}

#[test]
fn a_region_whose_next_owner_was_heard_ends_unless_it_is_moving_there() {
    let view = store(&[A, B], &[]);
    let mut local = here(&[B], 1).before_layouts();
    local.run(0, 40);
    local.region(0).known_epoch = Epoch(41);
    assert_eq!(reconcile(&view, &local), [Action::EndSuperseded, Action::FollowLayouts]);
    local.region(0).moves = true;
    assert_eq!(reconcile(&view, &local), [Action::FollowLayouts]);
}

#[test]
fn a_grant_that_everybody_sees_is_confirmed_and_the_region_is_found_here() {
    let mut view = store(&[A], &[(0, A)]);
    own(&mut view, 0, A, 40);
    let mut local = here(&[], 1);
    local.run(0, 40);
    local.region(0).runs.as_mut().unwrap().is_confirmed = false;
    local.region(0).route = Route::Nowhere;
    let (region, epoch) = (RegionId(0), Epoch(40));
    let here = Action::RouteHere { region, epoch, lineage: epoch };
    assert_eq!(reconcile(&view, &local), [Action::Confirm(region), here, Action::TellRegions]);
}
