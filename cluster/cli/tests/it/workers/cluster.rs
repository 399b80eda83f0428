//! Several nodes: a worker that is connected to one process has regions of all.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use purview::scene::Plane;
use purview::wire::ErrorCode;
use purview_server::config::Config;
use purview_server::interest::client::Address;
use purview_server::node::{Roles, Status};
use purview_server::process::ClusterProcess;
use purview_server::storage::leases::embedded::Embedded;

use super::admission::{close_plane, doorkeeper, join_by, jump, open_plane};
use super::support::{CONFIG, HP, Happened, MONSTER, Worker, act, place, set};
use crate::common::{GATEWAY, REGIONS, joined, stop, tries, with_store};

/// Starts a process, on a runtime that the test keeps, with further lines of `[cluster]` and `[logic]`.
pub async fn start(
    name: &str,
    store: &Embedded,
    roles: Roles,
    (cluster, logic): (&str, &str),
) -> ClusterProcess {
    let text = format!(
        "[cluster]\nnode = {name:?}\nlease = \"2s\"\n{cluster}\
         [logic]\nlisten = \"127.0.0.1:0\"\n{logic}[server]\narbiters = 1\n{CONFIG}"
    );
    let mut config = Config::parse(&text).expect("a configuration");
    config.gateway.lame_duck = Duration::ZERO;
    joined(&config, roles, Arc::new(store.another())).await
}

/// Waits until every region runs once.
pub async fn whole(processes: &[&ClusterProcess]) {
    tries("every region runs once", async || {
        let status = |process: &&ClusterProcess| process.status().borrow().clone();
        let all: Vec<Status> = processes.iter().map(status).collect();
        let running: usize = all.iter().map(|status| status.here).sum();
        if running == 4 && all.iter().all(Status::is_whole) { Ok(()) } else { Err(all) }
    })
    .await;
}

/// Where workers connect.
pub fn at(process: &ClusterProcess) -> Address {
    Address::new(&format!("http://{}", process.logic_addr().expect("workers can connect")))
}

/// Two nodes and a gateway, and what a test does with them.
fn cluster<F: Future<Output = ()>>(
    test: impl FnOnce(ClusterProcess, ClusterProcess, ClusterProcess) -> F,
) {
    cluster_with("", test);
}

/// The same with further lines of `[logic]`.
fn cluster_with<F: Future<Output = ()>>(
    more: &str,
    test: impl FnOnce(ClusterProcess, ClusterProcess, ClusterProcess) -> F,
) {
    with_store(async |store, _| {
        let takeover = if more.contains("takeover") { "" } else { "takeover = \"400ms\"\n" };
        let logic = format!("{takeover}{more}");
        let more = ("listen = \"127.0.0.1:0\"\n", &logic[..]);
        let a = start("a", store, REGIONS, more).await;
        let b = start("b", store, REGIONS, more).await;
        let gateway = start("g", store, GATEWAY, more).await;
        whole(&[&a, &b, &gateway]).await;
        test(a, b, gateway).await;
    });
}

#[test]
fn a_worker_commands_regions_of_two_nodes_and_an_entity_that_walks_between_them() {
    cluster(async |a, b, gateway| {
        assert_eq!(gateway.logic_addr(), None, "a gateway lets no workers in");
        let mut worker = Worker::begin_at(&at(&a), "one").await;
        worker.until(|w| w.leases.len() == 4).await;
        let monster = worker.monster(0, 25_000, 5_000).await;
        // Through all four regions, of which each node has two.
        let way = [(0, 1, 27_000, 5_000), (1, 3, 27_000, 27_000), (3, 2, 25_000, 27_000)];
        for (turn, (from, to, x, z)) in way.into_iter().enumerate() {
            worker.happened.clear();
            worker.give(from, monster, place(x, z));
            worker.until(|w| w.homes.get(&monster) == Some(&to)).await;
            let way = [Happened::Left(monster, from), Happened::Entered(monster, to)];
            assert_eq!(worker.happened, way);
            // By a region that it has left.
            let hp = turn as u8 + 1;
            worker.give(from, monster, set(HP, hp));
            worker.until(|w| w.property(monster, HP) == Some(hp)).await;
        }
        assert!(worker.results.is_empty(), "{:?}", worker.results);
        stop([a, b, gateway]).await;
    });
}

#[test]
fn workers_at_different_processes_share_the_regions_and_take_over_from_each_other() {
    cluster(async |a, b, gateway| {
        let mut one = Worker::begin_at(&at(&a), "one").await;
        one.until(|w| w.leases.len() == 4).await;
        let monster = one.monster(0, 5_000, 5_000).await;
        let mut others = Vec::new();
        while others.iter().all(|other: &Worker| other.leases.is_empty()) {
            let process = if others.len() % 2 == 0 { &a } else { &b };
            others.push(Worker::begin_at(&at(process), "another").await);
            let end = one.ticks + 40;
            while one.ticks < end && !one.leases.is_empty() {
                let steps = others.iter_mut().chain([&mut one]).map(|w| Box::pin(w.step()));
                let (step, ..) = futures::future::select_all(steps).await;
                assert!(step.expect("a response"));
            }
        }
        let regions = |worker: &Worker| worker.leases.keys().copied().collect::<BTreeSet<u32>>();
        let all: usize = others.iter().map(|other| regions(other).len()).sum();
        assert_eq!(all + regions(&one).len(), 4, "each region has one worker");
        drop(others);
        one.until(|w| w.leases.len() == 4).await;
        let number = one.give(0, monster, set(HP, 5));
        one.until(|w| w.counted.contains(&number) && w.property(monster, HP) == Some(5)).await;
        stop([a, b, gateway]).await;
    });
}

#[test]
fn a_region_that_migrates_goes_on_with_its_worker_and_what_was_not_handled() {
    // The worker is silent for a while, and the only one.
    cluster_with("takeover = \"6s\"\n", async |a, b, gateway| {
        let mut worker = Worker::begin_at(&at(&a), "one").await;
        worker.until(|w| w.leases.len() == 4).await;
        let monsters: Vec<u64> = (0..4)
            .map(|region: u32| {
                let (x, z) = (5_000 + 30_000 * (region % 2), 5_000 + 30_000 * (region / 2));
                worker.spawn(region, MONSTER, x as i32, z as i32)
            })
            .collect();
        worker.until(|w| monsters.iter().all(|monster| w.has(*monster))).await;
        let before = worker.leases.clone();
        // It is told of the actions, and does not answer.
        for (region, monster) in (0..).zip(&monsters) {
            worker.give(region, *monster, act(b"go"));
            worker.deaf.insert(region);
        }
        let acted = |monster: &u64| Happened::Acted(*monster, b"go".to_vec());
        worker.until(|w| monsters.iter().all(|monster| w.happened.contains(&acted(monster)))).await;
        worker.deaf.clear();
        worker.silent.clear();
        let leaves = b.stop();
        let serves = async {
            let moved = |w: &Worker| {
                let new = w.leases.iter().filter(|(region, l)| before[region].epoch < l.epoch);
                w.leases.len() == 4 && new.count() == 2
            };
            worker.until(moved).await;
            // The regions that stay tell again when they have waited for long enough.
            let told = |w: &Worker, monster| {
                w.happened.iter().filter(|happened| **happened == acted(monster)).count()
            };
            worker.until(|w| monsters.iter().all(|monster| told(w, monster) >= 2)).await;
            worker.ticks(20).await;
            for monster in &monsters {
                assert_eq!(told(&worker, monster), 2, "it is told once more, and is handled then");
            }
            for (region, monster) in monsters.iter().enumerate() {
                worker.give(region as u32, *monster, set(HP, 9));
            }
            worker.until(|w| monsters.iter().all(|m| w.property(*m, HP) == Some(9))).await;
        };
        tokio::join!(leaves, serves);
        assert!(worker.results.is_empty(), "{:?}", worker.results);
        stop([a, gateway]).await;
    });
}

fn url(process: &ClusterProcess) -> String {
    format!("ws://{}/", process.ws_addr().expect("clients can connect"))
}

#[test]
fn a_worker_of_another_process_is_asked_about_joins_and_jumps_and_without_it_the_policy_counts() {
    let more =
        "takeover = \"400ms\"\nask = \"both\"\nanswer_within = \"3s\"\nno_answer = \"refuse\"\n";
    cluster_with(more, async |a, b, gateway| {
        let url = url(&gateway);
        let keeper = tokio::spawn(doorkeeper(at(&a)));
        let mut ann = tries("the gateway hears of the worker", async || {
            let joined = join_by(&url, "ann", None).await;
            joined.inspect_err(|(code, _)| assert_eq!(*code, ErrorCode::NotAdmitted))
        })
        .await;
        let (code, why) = join_by(&url, "bob", None).await.expect_err("bob is refused");
        assert_eq!(code, ErrorCode::NotAdmitted);
        assert!(why.ends_with("closed"), "the worker has said so: {why}");
        let mut planes = Worker::begin_at(&at(&b), "planes").await;
        planes.until(|w| !w.leases.is_empty()).await;
        let region = *planes.leases.keys().next().unwrap();
        for plane in [1_000, 1_001] {
            planes.give(region, 0, open_plane(plane, &["ann"]));
        }
        planes.until(|w| w.planes.len() == 2).await;
        let (code, why) = tries("the gateway hears of the plane", async || {
            let refused = jump(&mut ann, 1_001).await.expect_err("it is odd");
            if refused.0 == ErrorCode::PrivatePlane { Err(refused) } else { Ok(refused) }
        })
        .await;
        assert_eq!(code, ErrorCode::NotAdmitted);
        assert!(why.ends_with("closed"), "{why}");
        assert_eq!(jump(&mut ann, 1_000).await, Ok(Plane(1_000)), "it is even");
        // Nobody answers any more: the policy counts.
        keeper.abort();
        let late = loop {
            match join_by(&url, "ada", None).await {
                Ok(client) => drop(client),
                Err(refused) => break refused,
            }
        };
        assert_eq!(late.0, ErrorCode::NotAdmitted);
        assert!(late.1.contains("does not answer"), "{}", late.1);
        stop([a, b, gateway]).await;
    });
}

#[test]
fn a_plane_outlives_the_process_of_the_worker_that_opened_it_and_another_worker_closes_it() {
    cluster(async |a, b, gateway| {
        let url = url(&gateway);
        let mut one = Worker::begin_at(&at(&b), "one").await;
        one.until(|w| w.leases.len() == 4).await;
        for region in 0..4 {
            // By regions of both nodes.
            one.give(region, 0, open_plane(1_000 + region as i32, &["ann"]));
        }
        let two = Worker::begin_at(&at(&a), "two").await;
        one.until(|w| w.planes.len() == 4).await;
        drop(one);
        b.stop().await;
        let mut two = two;
        two.until(|w| w.leases.len() == 4 && w.planes.len() == 4).await;
        for plane in 1_000..1_004 {
            let join = join_by(&url, "ann", Some(plane));
            drop(two.serve_while(join).await.expect("it is open"));
        }
        // Another worker may change a plane, and close it.
        let region = *two.leases.keys().next().unwrap();
        two.give(region, 0, open_plane(1_003, &["bob"]));
        let number = two.give(region, 0, close_plane(1_002));
        two.until(|w| w.counted.contains(&number) && w.planes.len() == 3).await;
        tries("the gateway hears of it", async || {
            let joined = join_by(&url, "ann", Some(1_002)).await;
            joined.map_or(Ok(()), |_| Err("it is still open"))
        })
        .await;
        drop(join_by(&url, "ann", Some(1_001)).await.expect("it is still open"));
        drop(join_by(&url, "bob", Some(1_003)).await.expect("it is his now"));
        assert!(two.results.is_empty(), "{:?}", two.results);
        stop([a, gateway]).await;
    });
}
