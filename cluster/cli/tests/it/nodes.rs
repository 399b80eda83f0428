//! Several nodes over one lease store, each with its own links and regions: how they share regions and take over those
//! of others.

mod balancing;
mod late_news;
mod pools;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use actix::System;
use bytes::Bytes;
use purview::actor::address::RegionAddress;
use purview::actor::messages::ToRegion;
use purview::scene::messages::Input;
use purview::scene::{EntityId, Epoch, Plane, Pos, RegionId, SceneId};
use purview::wire::ErrorCode;
use purview_client::{Client, ClientError, join_at};
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::node::layout_change::MapOrder;
use purview_server::node::orders::OrderError;
use purview_server::node::{NodeError, Roles, Status};
use purview_server::process::ClusterProcess;
use purview_server::storage::leases::embedded::Embedded;
use purview_server::storage::leases::names::GATEWAY_NUMBERS;
use purview_server::storage::{Event, Leases, Membership, NodeInfo, RegionKey, View};
use tokio::runtime::{Builder, Runtime};

/// How long a test waits for a state that must come.
const PATIENCE: Duration = Duration::from_secs(40);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// Nine regions, two lines for three players each, a lease of two seconds, any ports.
fn config(name: &str) -> Config {
    let text = format!(
        "[server]\narbiters = 1\n[console]\nlisten = \"off\"\n[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\n\
         lame_duck = \"0ms\"\n\
         [cluster]\nnode = {name:?}\nlisten = \"127.0.0.1:0\"\nlease = \"2s\"\n\
         [[scene]]\nteleports = \"clients\"\n\
         name = \"city\"\nwidth = \"1536m\"\ndepth = \"1536m\"\nregion = [1, 1]\n\
         lines = 2\nline_capacity = 3\n"
    );
    Config::parse(&text).unwrap()
}

async fn node(name: &str, store: &Embedded, roles: Roles) -> ClusterProcess {
    let store = Arc::new(store.another());
    ClusterProcess::join(&config(name), roles, Tokens::dev(), store, None, runtime()).await.unwrap()
}

const REGIONS: Roles = Roles { regions: true, gateway: false };
const GATEWAY: Roles = Roles { regions: false, gateway: true };

fn now(node: &ClusterProcess) -> Status {
    node.status().borrow().clone()
}

async fn wait_for(what: &str, nodes: &[&ClusterProcess], holds: impl Fn(&[Status]) -> bool) {
    let begin = Instant::now();
    loop {
        let all: Vec<Status> = nodes.iter().map(|node| now(node)).collect();
        if holds(&all) {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "timed out: {what}: {all:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Every node knows where every region is, and each region runs once.
fn is_whole(all: &[Status]) -> bool {
    let running: usize = all.iter().map(|status| status.here).sum();
    all.iter().all(Status::is_whole) && running == 9
}

#[test]
fn nodes_share_the_regions_and_take_over_those_of_a_node_that_leaves() {
    System::new().block_on(async {
        let outer = runtime();
        let store = outer.spawn(async { Embedded::new(Epoch(0)) }).await.unwrap();
        let a = node("a", &store, REGIONS).await;
        let b = node("b", &store, REGIONS).await;
        let c = node("c", &store, REGIONS).await;
        let gateway = node("g", &store, GATEWAY).await;
        let all = [&a, &b, &c, &gateway];
        wait_for("all regions", &all, is_whole).await;
        let counts: Vec<usize> = all.iter().map(|node| now(node).here).collect();
        assert_eq!(counts, [3, 3, 3, 0]);
        assert_eq!(all.iter().filter(|node| now(node).leads).count(), 1);
        assert!(gateway.ws_addr().is_some() && a.ws_addr().is_none());
        // The leader leaves; another process leads.
        let (mut stay, mut go) = (Vec::new(), None);
        for node in [a, b, c] {
            if now(&node).leads { go = Some(node) } else { stay.push(node) }
        }
        let stay = match go {
            Some(leader) => {
                leader.stop().await;
                stay
            }
            // A gateway may lead as well.
            None => {
                stay.remove(0).stop().await;
                stay
            }
        };
        let all = [&stay[0], &stay[1], &gateway];
        let without = |all: &[Status]| is_whole(all) && all.iter().all(|s| s.peers == 2);
        wait_for("the regions of who left", &all, without).await;
        for node in stay {
            node.stop().await;
        }
        gateway.stop().await;
        outer.shutdown_background();
    });
}

#[test]
fn a_process_with_a_wrong_time_of_day_uses_the_leaders_time() {
    System::new().block_on(async {
        let outer = runtime();
        let store = outer.spawn(async { Embedded::new(Epoch(0)) }).await.unwrap();
        let a = node("a", &store, REGIONS).await;
        wait_for("all regions", &[&a], is_whole).await;
        // As if the clock of the next process's machine were five seconds ahead.
        let began = store.get("clock").await.unwrap().unwrap();
        let ms: u64 = std::str::from_utf8(&began.data).unwrap().parse().unwrap();
        let ahead = (ms - 5_000).to_string().into();
        store.put_if("clock", Some(began.revision), ahead).await.unwrap();
        let b = node("b", &store, REGIONS).await;
        wait_for("a share for each", &[&a, &b], |all| is_whole(all) && all[1].here > 0).await;
        let (at_a, at_b) = (a.directory().uptime(), b.directory().uptime());
        let apart = at_b.abs_diff(at_a);
        assert!(apart < Duration::from_millis(500), "{at_a:?} and {at_b:?}");
        for node in [a, b] {
            node.stop().await;
        }
        outer.shutdown_background();
    });
}

#[test]
fn stopped_nodes_leave_nothing_behind() {
    System::new().block_on(async {
        let outer = runtime();
        let store = outer.spawn(async { Embedded::new(Epoch(0)) }).await.unwrap();
        let a = node("a", &store, REGIONS).await;
        let gateway = node("g", &store, GATEWAY).await;
        wait_for("all regions", &[&a, &gateway], is_whole).await;
        let left = [&a, &gateway].map(|node| Arc::downgrade(node.directory()));
        a.stop().await;
        gateway.stop().await;
        let begin = Instant::now();
        // Their last tasks end by themselves.
        while left.iter().any(|directory| directory.strong_count() > 0) {
            assert!(begin.elapsed() < PATIENCE, "their directories are kept for good");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        outer.shutdown_background();
    });
}

#[test]
fn a_node_without_its_store_stops_before_others_take_over() {
    System::new().block_on(async {
        let outer = runtime();
        let store = outer.spawn(async { Embedded::new(Epoch(0)) }).await.unwrap();
        let way = Arc::new(store.another());
        let config = config("a");
        let joined =
            ClusterProcess::join(&config, REGIONS, Tokens::dev(), way.clone(), None, runtime());
        let cut_off = joined.await.unwrap();
        let b = node("b", &store, REGIONS).await;
        wait_for("all regions", &[&cut_off, &b], is_whole).await;
        assert!(now(&cut_off).here > 0);
        assert!(cut_off.directory().may_act());
        way.cut();
        // It stops by its own clock, while the others still count it as a member.
        let begin = Instant::now();
        while cut_off.directory().may_act() {
            assert!(begin.elapsed() < PATIENCE, "it acts for ever");
            assert!(now(&b).here < 9, "another acts for its regions already");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        wait_for("its regions", &[&b], |all| all[0].here == 9 && all[0].is_whole()).await;
        assert!(!cut_off.directory().may_act());
        way.mend();
        let told =
            tokio::time::timeout(PATIENCE, cut_off.lost()).await.expect("the process is told");
        assert!(matches!(told, NodeError::Lost(_)), "{told}");
        assert!(!cut_off.directory().may_act());
        cut_off.stop().await;
        b.stop().await;
        outer.shutdown_background();
    });
}

#[test]
fn a_region_migrates_on_order_and_a_new_node_gets_its_share() {
    System::new().block_on(async {
        let outer = runtime();
        let store = outer.spawn(async { Embedded::new(Epoch(0)) }).await.unwrap();
        let a = node("a", &store, REGIONS).await;
        wait_for("all regions", &[&a], is_whole).await;
        let b = node("b", &store, REGIONS).await;
        wait_for("half of them", &[&a, &b], |all| is_whole(all) && all[1].here == 4).await;
        for (name, regions, left) in [("b", 0..9, 0), ("a", 2..5, 3)] {
            for region in regions {
                a.orders().move_region(RegionId(region), name).await.unwrap();
            }
            let moved = |all: &[Status]| is_whole(all) && all[0].here == left;
            wait_for("what was ordered", &[&a, &b], moved).await;
        }
        let nobody = a.orders().move_region(RegionId(0), "c").await;
        assert!(matches!(nobody, Err(OrderError::NoNode(..))), "{nobody:?}");
        let nowhere = a.orders().move_region(RegionId(77), "b").await;
        assert!(matches!(nowhere, Err(OrderError::NoRegion(_))), "{nowhere:?}");
        b.orders().drain("a").await.unwrap();
        tokio::time::timeout(PATIENCE, a.drained()).await.expect("a is drained");
        wait_for("all at b", &[&a, &b], |all| is_whole(all) && all[1].here == 9).await;
        let only = b.orders().drain("b").await;
        assert!(matches!(only, Err(OrderError::OnlyNode(_))), "{only:?}");
        a.stop().await;
        b.stop().await;
        outer.shutdown_background();
    });
}

#[test]
fn a_late_agreement_of_a_node_does_not_call_a_layout_change_off() {
    System::new().block_on(async {
        let outer = runtime();
        let store = outer.spawn(async { Embedded::new(Epoch(0)) }).await.unwrap();
        let way = Arc::new(store.another());
        let a = node("a", &store, REGIONS).await;
        wait_for("all regions", &[&a], is_whole).await;
        assert!(now(&a).leads);
        let mut config = config("b");
        config.cluster.lease = Duration::from_secs(20);
        let joined =
            ClusterProcess::join(&config, REGIONS, Tokens::dev(), way.clone(), None, runtime());
        let b = joined.await.unwrap();
        wait_for("half of them", &[&a, &b], |all| is_whole(all) && all[1].here == 4).await;
        // Longer than the second that it has, and than the further second after which it is too late.
        way.cut();
        let order = MapOrder::Scale { scene: "city".into(), columns: 3, rows: 1 };
        a.orders().change_map(&order).await.unwrap();
        tokio::time::sleep(Duration::from_millis(3_500)).await;
        assert_eq!(now(&a).regions, 9, "not without the other's regions");
        way.mend();
        wait_for("three", &[&a, &b], |all| is_whole(all) && all[0].regions == 3).await;
        a.stop().await;
        b.stop().await;
        outer.shutdown_background();
    });
}

/// The content of the store.
async fn view_of(store: &Embedded) -> View {
    match store.another().watch().next().await {
        Some(Ok(Event::Snapshot(view))) => view,
        other => panic!("{other:?}"),
    }
}

fn key(region: u32) -> RegionKey {
    RegionKey { scene: "city".into(), region, planes: 0 }
}

/// The newest epoch of a region in the store.
async fn epoch_of(store: &Embedded, region: u32) -> Option<Epoch> {
    view_of(store).await.owners.get(&key(region)).map(|owner| owner.epoch)
}

/// Accepts connections and reads nothing.
fn silent() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// The number of the silent member, which has no regions.
const SILENT: u64 = GATEWAY_NUMBERS + 77;

/// A member of the cluster that never sends anything.
async fn join_silently(outer: &Runtime, store: &Embedded, silent: &TcpListener) -> Membership {
    let (name, address, process) =
        ("silent".into(), silent.local_addr().unwrap().to_string(), SILENT);
    let (regions, gateway, capacity, protocol) = (false, false, 100, 1);
    let about = Default::default();
    let info = NodeInfo { name, process, address, regions, gateway, capacity, protocol, about };
    let store = store.another();
    let joins = async move { store.join(info, Duration::from_secs(60)).await };
    outer.spawn(joins).await.unwrap().unwrap()
}

#[test]
fn a_member_that_does_not_read_delays_a_migration_by_three_seconds_at_most() {
    System::new().block_on(async {
        let outer = runtime();
        let store = outer.spawn(async { Embedded::new(Epoch(0)) }).await.unwrap();
        let a = node("a", &store, REGIONS).await;
        wait_for("all regions", &[&a], is_whole).await;
        let b = node("b", &store, REGIONS).await;
        wait_for("half of them", &[&a, &b], |all| is_whole(all) && all[1].here == 4).await;
        let silent = silent();
        let member = join_silently(&outer, &store, &silent).await;
        wait_for("the third", &[&a, &b], |all| all.iter().all(|s| s.peers == 2)).await;
        let channel = a.links().region(SILENT, RegionId(0)).unwrap();
        let word = || {
            let payload = Bytes::from(vec![0; 1 << 20]);
            ToRegion { input: Input::Tell { id: EntityId(1), payload }, client: None }
        };
        while channel.try_send(word()).is_ok() {}
        let here = (0..9).find(|id| {
            a.directory()
                .region(RegionId(*id))
                .is_some_and(|at| matches!(at, RegionAddress::Here(_)))
        });
        let region = here.expect("a region of a");
        let before = epoch_of(&store, region).await.unwrap();
        a.orders().move_region(RegionId(region), "b").await.unwrap();
        let begin = Instant::now();
        while epoch_of(&store, region).await.is_none_or(|epoch| epoch <= before) {
            assert!(begin.elapsed() < PATIENCE, "no node takes the region");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        wait_for("all regions", &[&a, &b], |all| all[0].here + all[1].here == 9).await;
        member.leave().await.unwrap();
        a.stop().await;
        b.stop().await;
        outer.shutdown_background();
    });
}

/// A place in a line at a gateway: the client, and which line.
async fn joins(gateway: &ClusterProcess) -> Result<(Client, Plane), ClientError> {
    // Everybody is somebody else.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("player {}", COUNT.fetch_add(1, Ordering::Relaxed));
    let token = Tokens::dev().mint(&name, Some(Duration::from_secs(3_600))).unwrap();
    let url = format!("ws://{}/", gateway.ws_addr().unwrap());
    let mut client = Client::connect(&url, &token).await?;
    let joined = client.join(join_at("city", Pos::ground(1_000, 1_000))).await?;
    Ok((client, joined.plane))
}

async fn knows(gateway: &ClusterProcess, players: [u32; 2]) {
    let begin = Instant::now();
    let now = || [0, 1].map(|plane| gateway.directory().players(SceneId(0), Plane(plane)));
    while now() != players {
        assert!(begin.elapsed() < PATIENCE, "{:?}, not {players:?}", now());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn lines_are_filled_one_after_another_through_any_gateway() {
    System::new().block_on(async {
        let outer = runtime();
        let store = outer.spawn(async { Embedded::new(Epoch(0)) }).await.unwrap();
        let a = node("a", &store, REGIONS).await;
        let (g, h) = (node("g", &store, GATEWAY).await, node("h", &store, GATEWAY).await);
        wait_for("all regions", &[&a, &g, &h], is_whole).await;
        let mut all = Vec::new();
        for _ in 0..2 {
            all.push(joins(&g).await.unwrap());
        }
        knows(&h, [2, 0]).await;
        for _ in 0..2 {
            all.push(joins(&h).await.unwrap());
        }
        knows(&g, [3, 1]).await;
        for _ in 0..2 {
            all.push(joins(&g).await.unwrap());
        }
        let planes: Vec<i32> = all.iter().map(|(_, plane)| plane.0).collect();
        assert_eq!(planes, [0, 0, 0, 1, 1, 1]);
        knows(&h, [3, 3]).await;
        for gateway in [&g, &h] {
            let refused = joins(gateway).await.map(|(_, plane)| plane);
            let is_full =
                |e: &ClientError| matches!(e, ClientError::Refused(r) if r.code == ErrorCode::NoRoom);
            assert!(refused.as_ref().is_err_and(is_full), "{refused:?}");
        }
        // The place of a client that leaves is free again, and so are those of a gateway that ends.
        all.remove(0).0.leave().await.unwrap();
        knows(&h, [2, 3]).await;
        all.push(joins(&h).await.unwrap());
        assert_eq!(all.last().unwrap().1, Plane(0));
        g.stop().await;
        knows(&h, [2, 1]).await;
        h.stop().await;
        a.stop().await;
        outer.shutdown_background();
    });
}
