//! A process whose migrator is busy: messages about migrations wait up to a bound, and beyond it a region does not move.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

use actix::{Addr, Arbiter, System};
use parking_lot::RwLock;
use purview::actor::directory::{Directory, Process};
use purview::actor::messages::InspectEntity;
use purview::actor::region::RegionActor;
use purview::scene::messages::{Input, Spawn};
use purview::scene::mutants::is_noticed_by;
use purview::scene::{EntityId, Kind, Pos, Scene, SceneId, SceneSpec};
use tokio::runtime::{Builder, Handle, Runtime};

use super::*;
use crate::node::hosted::Hosted;
use crate::node::local_regions::{LocalRegions, Threads};
use crate::node::maps::Maps;
use crate::node::store_watch::{StoreNews, StoreWatch};
use crate::peer::{Identity, Kind as Channel, Links};
use crate::storage::leases::embedded::Embedded;
use crate::storage::{Leases, NodeInfo, View};

const REGION: RegionId = RegionId(0);

const BEYOND: usize = 7;

/// How long the test waits for a state that must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// One process, as far as migrations are concerned.
struct Node {
    handles: Handles,
    address: SocketAddr,
    migrator: Migrator,
}

fn scene() -> Arc<Scene> {
    let side = 25_600;
    let (land_cm, spawn_x_cm, spawn_z_cm) = (side, 0, 0);
    let (region_lands_x, region_lands_z) = (1, 1);
    let spec = SceneSpec {
        width_cm: side,
        depth_cm: side,
        land_cm,
        region_lands_x,
        region_lands_z,
        spawn_x_cm,
        spawn_z_cm,
        ..SceneSpec::default()
    };
    Arc::new(Scene::new(SceneId(0), spec, 100, REGION).unwrap())
}

impl Node {
    /// Starts a process on `outer`; the tasks of its migrator run on `migrators`.
    async fn start(number: u64, store: &Embedded, outer: &Runtime, migrators: &Handle) -> Node {
        let scene = scene();
        let clock = Duration::from_secs(60);
        let process = Process { number, clock, fence: None, checkpoint_writer: None };
        let directory = Arc::new(Directory::of_process(vec![scene.clone()], process));
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (known, handle) = (directory.clone(), outer.handle().clone());
        let identity = Identity::new("c", number);
        let links = outer.spawn(Links::start(identity, any, known, handle, None)).await;
        let (links, address) = links.unwrap().unwrap();
        let address_of = address.to_string();
        let node = NodeInfo::for_test(&format!("node {number}"));
        let node = NodeInfo { process: number, address: address_of, ..node };
        let of = store.another();
        let joins = async move { of.join(node, Duration::from_secs(60)).await };
        let me = outer.spawn(joins).await.unwrap().unwrap();
        let threads = Threads::Arbiters(vec![Arbiter::new().handle()]);
        let local_regions = LocalRegions::new(directory.clone(), threads, Hosted::default());
        let handles = Handles {
            executor: migrators.clone().into(),
            store: Arc::new(store.another()),
            checkpoints: None,
            me,
            links,
            directory,
            maps: Maps::new(&[scene]),
            local_regions: Arc::new(Mutex::new(local_regions)),
            view: follow(store, outer),
        };
        let migrator = Migrator::start(handles.clone());
        Node { handles, address, migrator }
    }

    /// The region begins to run here. Returns its epoch.
    async fn claim(&self, store: &Embedded, outer: &Runtime) -> Epoch {
        let (of, me, key) = (store.another(), self.handles.me.clone(), self.key());
        let claimed = outer.spawn(async move { of.claim(&me, &key).await });
        let Ok(Ok(Claim::Granted(grant))) = claimed.await else { panic!("the region is free") };
        let scene = scene();
        let region = Region::new(scene.clone(), REGION).unwrap().with_epoch(grant.epoch);
        let no_effects = (Vec::new(), &self.handles.links);
        assert!(self.handles.local_regions.lock().start(&scene, region, grant.epoch, no_effects));
        grant.epoch
    }

    fn key(&self) -> RegionKey {
        self.handles.maps.key(REGION).unwrap()
    }

    fn epoch(&self) -> Option<Epoch> {
        self.handles.local_regions.lock().epoch(REGION)
    }

    fn region(&self) -> Option<Addr<RegionActor>> {
        self.handles.local_regions.lock().all().map(|(_, address)| address).next()
    }

    fn enter(&self, id: EntityId) {
        let spawn = Spawn::new(id, Kind(1), Pos::ground(1_000, 1_000));
        let input = Input::Enter(Box::new(spawn));
        self.handles.directory.send(REGION, ToRegion { input, client: None }).unwrap();
    }

    /// Waits until an entity lives in the region, which runs here.
    async fn has(&self, id: EntityId) {
        let began = Instant::now();
        loop {
            let region = self.region().expect("the region runs here");
            if region.send(InspectEntity(id)).await.unwrap().is_some() {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "entity {id} does not live here");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn refused(&self) -> usize {
        self.handles.links.router().metrics().moves_refused.load(Relaxed) as usize
    }
}

fn follow(store: &Embedded, outer: &Runtime) -> Arc<RwLock<View>> {
    let view = Arc::new(RwLock::new(View::default()));
    let (of, shown) = (store.another(), view.clone());
    outer.spawn(async move {
        let mut store_watch = StoreWatch::new(of.watch());
        while store_watch.next().await != StoreNews::Over {
            *shown.write() = (*store_watch.view()).clone();
        }
    });
    view
}

async fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The migrator waits for these answers, one of each region of another number. It is told of each over the link.
async fn fill(from: &Node, to: &Node) -> Vec<oneshot::Receiver<()>> {
    let mut answers = Vec::new();
    for n in 0..WAITING + BEYOND {
        let region = RegionId(1_000 + n as u32);
        let (tell, answer) = oneshot::channel();
        to.migrator.0.1.lock().ready.insert(region, tell);
        answers.push(answer);
        let ready = MoveMsg::Ready { region, epoch: Epoch(1) };
        from.handles
            .links
            .say(2, Channel::Regions, ready, Instant::now() + PATIENCE)
            .await
            .unwrap();
    }
    answers
}

#[test]
fn a_full_queue_of_the_migrator_refuses_moves_and_the_region_stays_with_all_its_entities() {
    System::new().block_on(async {
        let outer = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        // The migrator of the second process does nothing before this runtime is driven.
        let busy = Builder::new_current_thread().enable_all().build().unwrap();
        let store = outer.spawn(async { Embedded::new(Epoch(0)) }).await.unwrap();
        let a = Node::start(1, &store, &outer, outer.handle()).await;
        let b = Node::start(2, &store, &outer, busy.handle()).await;
        a.handles.links.join(2, &b.address.to_string());
        b.handles.links.join(1, &a.address.to_string());
        let epoch = a.claim(&store, &outer).await;
        a.enter(EntityId(1));
        a.has(EntityId(1)).await;

        let mut answers = fill(&a, &b).await;
        wait_for("what finds no room", || b.refused() == BEYOND).await;
        let to = (b.handles.me.incarnation(), 2);
        a.migrator.depart(REGION, a.key(), epoch, to);
        assert!(a.migrator.is_moving(REGION));
        a.enter(EntityId(2));
        wait_for("the end of the attempt", || !a.migrator.is_moving(REGION)).await;
        assert_eq!((b.refused(), a.epoch(), b.epoch()), (BEYOND + 1, Some(epoch), None));
        a.has(EntityId(1)).await;
        a.has(EntityId(2)).await;

        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || busy.block_on(stopped));
        wait_for("room", || answers[WAITING - 1].try_recv() == Ok(Some(()))).await;
        let told = |answer: &mut oneshot::Receiver<()>| answer.try_recv() == Ok(Some(()));
        let told: Vec<bool> = answers[..WAITING - 1].iter_mut().map(told).collect();
        assert!(told.iter().all(|told| *told), "what found room is not lost");
        let refused = answers[WAITING..].iter_mut().all(|answer| answer.try_recv() == Ok(None));
        assert!(refused, "what found no room was not kept");
        wait_for("the move", || {
            let has_moved = b.epoch().is_some_and(|of| of > epoch);
            if !has_moved {
                // Without effect while an attempt is under way. An attempt may end late on a busy machine.
                a.migrator.depart(REGION, a.key(), epoch, to);
            }
            has_moved
        })
        .await;
        b.has(EntityId(1)).await;
        b.has(EntityId(2)).await;
        assert_eq!(b.refused(), BEYOND + 1);

        a.handles.links.stop();
        b.handles.links.stop();
        drop(stop);
        assert_eq!(thread.join().unwrap(), Err(oneshot::Canceled));
        outer.shutdown_background();
    });
}

/// The store may grant a region to a process to which the region is about to move: the process goes on with it from a
/// checkpoint, and then all of its state arrives, too.
#[test]
fn a_region_that_runs_here_already_does_not_arrive_as_well() {
    System::new().block_on(async {
        let outer = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let store = outer.spawn(async { Embedded::new(Epoch(0)) }).await.unwrap();
        let node = Node::start(1, &store, &outer, outer.handle()).await;
        let epoch = node.claim(&store, &outer).await;
        node.enter(EntityId(1));
        node.has(EntityId(1)).await;
        let frozen = Region::new(scene(), REGION).unwrap().with_epoch(epoch).freeze().unwrap();
        let snapshot = Bytes::from(frozen.encode().unwrap());
        let (waits, actor_state) = (Vec::new(), ActorState::default());
        let frozen = FrozenRegion { waits, moves: Vec::new(), snapshot, actor_state };
        let arrived = node.migrator.arrive(REGION, epoch, frozen).await;
        assert_eq!(arrived, Err("it already runs here".into()));
        assert_eq!(node.handles.local_regions.lock().all().count(), 1);
        node.has(EntityId(1)).await;
        node.handles.links.stop();
        outer.shutdown_background();
    });
}

/// The old owner of a region has sent its messages to where another region moves. They would be overtaken by messages of
/// a new owner that still sends to the old place.
#[test]
fn a_region_waits_until_moves_are_known_that_its_old_owner_knew() {
    System::new().block_on(async {
        let outer = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let store = outer.spawn(async { Embedded::new(Epoch(0)) }).await.unwrap();
        let node = Node::start(1, &store, &outer, outer.handle()).await;
        let (epoch, other) = (Epoch(7), RegionId(9));
        let frozen = Region::new(scene(), REGION).unwrap().with_epoch(epoch).freeze().unwrap();
        let snapshot = Bytes::from(frozen.encode().unwrap());
        let moves = vec![KnownMove { region: other, epoch, to: 3 }];
        let (waits, actor_state) = (Vec::new(), ActorState::default());
        let frozen = Some(FrozenRegion { waits, moves, snapshot, actor_state });
        let arrival = ArrivingRegion {
            from: 2,
            epoch,
            since: Instant::now(),
            marks: BTreeSet::new(),
            frozen,
        };
        let arriving = || node.migrator.0.1.lock().arriving.contains_key(&REGION);
        node.migrator.0.1.lock().arriving.insert(REGION, arrival);
        node.migrator.arrive_if_complete(REGION).await;
        assert!(arriving());
        let router = node.handles.links.router();
        router.note_move(other, Elsewhere { epoch: Epoch(6), to: 3 });
        node.migrator.arrive_if_complete(REGION).await;
        assert!(arriving(), "an earlier move of the same region");
        router.note_move(other, Elsewhere { epoch, to: 3 });
        node.migrator.arrive_if_complete(REGION).await;
        assert!(!arriving());
        node.handles.links.stop();
        outer.shutdown_background();
    });
}

#[test]
fn moves_that_are_known_are_told_and_a_newer_owner_counts_more() {
    let router = crate::peer::Router::default();
    let known = |region, epoch| KnownMove { region: RegionId(region), epoch: Epoch(epoch), to: 3 };
    for region in [4, 2, 1] {
        router.note_move(RegionId(region), Elsewhere { epoch: Epoch(7), to: 3 });
    }
    assert_eq!(router.moves_of_others(RegionId(2)), [known(1, 7), known(4, 7)]);
    let heard = |epoch| router.has_heard(&known(4, epoch));
    assert_eq!([heard(6), heard(7), heard(8)], [true, true, false]);
    router.forget_move(RegionId(4));
    assert!(!heard(7));
    router.set_epoch(RegionId(4), Epoch(8));
    assert_eq!([heard(7), heard(8)], [true, false]);
}

#[test]
fn these_tests_notice_bugs() {
    let waits = a_region_waits_until_moves_are_known_that_its_old_owner_knew;
    assert!(is_noticed_by(Mutant::MovesUnheard, waits));
    let arrives = a_region_that_runs_here_already_does_not_arrive_as_well;
    assert!(is_noticed_by(Mutant::RunsTwice, arrives));
}
