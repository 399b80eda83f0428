//! Several nodes over one lease store, each with its own links and regions: how they share regions and take over those
//! of others.

mod balancing;
mod late_news;
mod pools;

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use purview::actor::address::RegionAddress;
use purview::actor::directory::Directory;
use purview::actor::messages::ToRegion;
use purview::scene::messages::Input;
use purview::scene::{EntityId, Epoch, Plane, Pos, RegionId, SceneId};
use purview::wire::ErrorCode;
use purview_client::{Client, ClientError, join_at};
use purview_server::config::Config;
use purview_server::node::layout_change::MapOrder;
use purview_server::node::orders::OrderError;
use purview_server::node::{NodeError, Roles, Status};
use purview_server::process::ClusterProcess;
use purview_server::storage::leases::embedded::Embedded;
use purview_server::storage::leases::names::GATEWAY_NUMBERS;
use purview_server::storage::{Event, Leases, Membership, NodeInfo, RegionKey, View};
use tokio::runtime::Runtime;

use crate::common::{
    GATEWAY, HOUR, PATIENCE, REGIONS, dev_token, joined, stop, tries, waits, with_store,
};

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
    joined(&config(name), roles, Arc::new(store.another())).await
}

fn now(node: &ClusterProcess) -> Status {
    node.status().borrow().clone()
}

async fn come(what: &str, nodes: &[&ClusterProcess], holds: impl Fn(&[Status]) -> bool) {
    tries(what, async || {
        let all: Vec<Status> = nodes.iter().map(|node| now(node)).collect();
        if holds(&all) { Ok(()) } else { Err(all) }
    })
    .await;
}

/// Every node knows where every region is, and each region runs once.
fn is_whole(all: &[Status]) -> bool {
    let running: usize = all.iter().map(|status| status.here).sum();
    all.iter().all(Status::is_whole) && running == 9
}

#[test]
fn nodes_share_the_regions_and_take_over_those_of_a_node_that_leaves() {
    with_store(async |store, _| {
        let a = node("a", store, REGIONS).await;
        let b = node("b", store, REGIONS).await;
        let c = node("c", store, REGIONS).await;
        let gateway = node("g", store, GATEWAY).await;
        let all = [&a, &b, &c, &gateway];
        come("all regions", &all, is_whole).await;
        let counts: Vec<usize> = all.iter().map(|node| now(node).here).collect();
        assert_eq!(counts, [3, 3, 3, 0]);
        assert_eq!(all.iter().filter(|node| now(node).leads).count(), 1);
        assert!(gateway.ws_addr().is_some() && a.ws_addr().is_none());
        // The leader leaves; another process leads.
        let mut stay = vec![a, b, c];
        // A gateway may lead as well.
        let leader = stay.iter().position(|node| now(node).leads).unwrap_or(0);
        stay.remove(leader).stop().await;
        let all = [&stay[0], &stay[1], &gateway];
        let without = |all: &[Status]| is_whole(all) && all.iter().all(|s| s.peers == 2);
        come("the regions of who left", &all, without).await;
        stop(stay).await;
        gateway.stop().await;
    });
}

#[test]
fn a_process_with_a_wrong_time_of_day_uses_the_leaders_time() {
    with_store(async |store, _| {
        let a = node("a", store, REGIONS).await;
        come("all regions", &[&a], is_whole).await;
        // As if the clock of the next process's machine were five seconds ahead.
        let began = store.get("clock").await.unwrap().unwrap();
        let ms: u64 = std::str::from_utf8(&began.data).unwrap().parse().unwrap();
        let ahead = (ms - 5_000).to_string().into();
        store.put_if("clock", Some(began.revision), ahead).await.unwrap();
        let b = node("b", store, REGIONS).await;
        come("a share for each", &[&a, &b], |all| is_whole(all) && all[1].here > 0).await;
        let (at_a, at_b) = (a.directory().uptime(), b.directory().uptime());
        let apart = at_b.abs_diff(at_a);
        assert!(apart < Duration::from_millis(500), "{at_a:?} and {at_b:?}");
        stop([a, b]).await;
    });
}

#[test]
fn stopped_nodes_leave_nothing_behind() {
    with_store(async |store, _| {
        let a = node("a", store, REGIONS).await;
        let gateway = node("g", store, GATEWAY).await;
        come("all regions", &[&a, &gateway], is_whole).await;
        let left = [&a, &gateway].map(|node| Arc::downgrade(node.directory()));
        stop([a, gateway]).await;
        // Their last tasks end by themselves.
        let is_kept = |directory: &Weak<Directory>| directory.strong_count() > 0;
        waits("directories are dropped", || !left.iter().any(is_kept)).await;
    });
}

#[test]
fn a_node_without_its_store_stops_before_others_take_over() {
    with_store(async |store, _| {
        let way = Arc::new(store.another());
        let cut_off = joined(&config("a"), REGIONS, way.clone()).await;
        let b = node("b", store, REGIONS).await;
        come("all regions", &[&cut_off, &b], is_whole).await;
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
        come("its regions", &[&b], |all| all[0].here == 9 && all[0].is_whole()).await;
        assert!(!cut_off.directory().may_act());
        way.mend();
        let told =
            tokio::time::timeout(PATIENCE, cut_off.lost()).await.expect("the process is told");
        assert!(matches!(told, NodeError::Lost(_)), "{told}");
        assert!(!cut_off.directory().may_act());
        stop([cut_off, b]).await;
    });
}

#[test]
fn a_region_migrates_on_order_and_a_new_node_gets_its_share() {
    with_store(async |store, _| {
        let a = node("a", store, REGIONS).await;
        come("all regions", &[&a], is_whole).await;
        let b = node("b", store, REGIONS).await;
        come("half of them", &[&a, &b], |all| is_whole(all) && all[1].here == 4).await;
        for (name, regions, left) in [("b", 0..9, 0), ("a", 2..5, 3)] {
            for region in regions {
                a.orders().move_region(RegionId(region), name).await.unwrap();
            }
            let moved = |all: &[Status]| is_whole(all) && all[0].here == left;
            come("what was ordered", &[&a, &b], moved).await;
        }
        let nobody = a.orders().move_region(RegionId(0), "c").await;
        assert!(matches!(nobody, Err(OrderError::NoNode(..))), "{nobody:?}");
        let nowhere = a.orders().move_region(RegionId(77), "b").await;
        assert!(matches!(nowhere, Err(OrderError::NoRegion(_))), "{nowhere:?}");
        b.orders().drain("a").await.unwrap();
        tokio::time::timeout(PATIENCE, a.drained()).await.expect("a is drained");
        come("all at b", &[&a, &b], |all| is_whole(all) && all[1].here == 9).await;
        let only = b.orders().drain("b").await;
        assert!(matches!(only, Err(OrderError::OnlyNode(_))), "{only:?}");
        stop([a, b]).await;
    });
}

#[test]
fn a_late_agreement_of_a_node_does_not_call_a_layout_change_off() {
    with_store(async |store, _| {
        let way = Arc::new(store.another());
        let a = node("a", store, REGIONS).await;
        come("all regions", &[&a], is_whole).await;
        assert!(now(&a).leads);
        let mut config = config("b");
        config.cluster.lease = Duration::from_secs(20);
        let b = joined(&config, REGIONS, way.clone()).await;
        come("half of them", &[&a, &b], |all| is_whole(all) && all[1].here == 4).await;
        // Longer than the second that it has, and than the further second after which it is too late.
        way.cut();
        let order = MapOrder::Scale { scene: "city".into(), columns: 3, rows: 1 };
        a.orders().change_map(&order).await.unwrap();
        tokio::time::sleep(Duration::from_millis(3_500)).await;
        assert_eq!(now(&a).regions, 9, "not without the other's regions");
        way.mend();
        come("three", &[&a, &b], |all| is_whole(all) && all[0].regions == 3).await;
        stop([a, b]).await;
    });
}

async fn view_of(store: &Embedded) -> View {
    match store.another().watch().next().await {
        Some(Ok(Event::Snapshot(view))) => view,
        other => panic!("{other:?}"),
    }
}

fn key(region: u32) -> RegionKey {
    RegionKey { scene: "city".into(), region, planes: 0 }
}

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
    let (regions, gateway, capacity) = (false, false, 100);
    let about = Default::default();
    let info = NodeInfo { name, process, address, regions, gateway, capacity, about };
    let store = store.another();
    let joins = async move { store.join(info, Duration::from_secs(60)).await };
    outer.spawn(joins).await.unwrap().unwrap()
}

#[test]
fn a_member_that_does_not_read_delays_a_migration_by_three_seconds_at_most() {
    with_store(async |store, outer| {
        let a = node("a", store, REGIONS).await;
        come("all regions", &[&a], is_whole).await;
        let b = node("b", store, REGIONS).await;
        come("half of them", &[&a, &b], |all| is_whole(all) && all[1].here == 4).await;
        let silent = silent();
        let member = join_silently(outer, store, &silent).await;
        come("the third", &[&a, &b], |all| all.iter().all(|s| s.peers == 2)).await;
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
        let before = epoch_of(store, region).await.unwrap();
        a.orders().move_region(RegionId(region), "b").await.unwrap();
        tries("a node takes the region", async || {
            epoch_of(store, region).await.filter(|epoch| *epoch > before).ok_or(())
        })
        .await;
        come("all regions", &[&a, &b], |all| all[0].here + all[1].here == 9).await;
        member.leave().await.unwrap();
        stop([a, b]).await;
    });
}

/// A place in a line at a gateway: the client, and which line.
async fn joins(gateway: &ClusterProcess) -> Result<(Client, Plane), ClientError> {
    // Everybody is somebody else.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("player {}", COUNT.fetch_add(1, Ordering::Relaxed));
    let token = dev_token(&name);
    let url = format!("ws://{}/", gateway.ws_addr().unwrap());
    let mut client = Client::connect(&url, &token).await?;
    let joined = client.join(join_at("city", Pos::ground(1_000, 1_000))).await?;
    Ok((client, joined.plane))
}

async fn knows(gateway: &ClusterProcess, players: [u32; 2]) {
    let now = || [0, 1].map(|plane| gateway.directory().players(SceneId(0), Plane(plane)));
    tries("players in lines", async || if now() == players { Ok(()) } else { Err(now()) }).await;
}

#[test]
fn lines_are_filled_one_after_another_through_any_gateway() {
    with_store(async |store, _| {
        let a = node("a", store, REGIONS).await;
        let (g, h) = (node("g", store, GATEWAY).await, node("h", store, GATEWAY).await);
        come("all regions", &[&a, &g, &h], is_whole).await;
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
            let Err(ClientError::Refused(why)) = refused else { panic!("{refused:?}") };
            assert_eq!(why.code, ErrorCode::NoRoom, "{why:?}");
        }
        // The place of a client that leaves is free again, and so are those of a gateway that ends.
        all.remove(0).0.leave().await.unwrap();
        knows(&h, [2, 3]).await;
        all.push(joins(&h).await.unwrap());
        assert_eq!(all.last().unwrap().1, Plane(0));
        g.stop().await;
        knows(&h, [2, 1]).await;
        stop([h, a]).await;
    });
}
