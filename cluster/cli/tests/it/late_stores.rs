//! A cluster whose parts start in any order, its stores last: processes wait, say for what, and come up by themselves.
//! `deploy/rehearse/late-stores` has the same of the compose file, with the stores half a minute late.

use std::path::Path;
use std::time::{Duration, Instant};

use purview::scene::Pos;
use purview_client::{Client, join_at};
use purview_lab::testbed::local_cluster::{LocalCluster, Member, Parts};
use purview_server::config::Config;
use tokio::runtime::Builder;

const SEED: u64 = 49;

/// How much later the stores are. Processes have begun to pause longer between two attempts by then.
const LATE: Duration = Duration::from_secs(5);

/// How long each process may take to say for what it waits.
const SAID: Duration = Duration::from_secs(10);

const CONFIG: &str = "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\n[console]\nlisten = \"127.0.0.1:0\"\n\
    [cluster]\nlease = \"3s\"\n\
    [[scene]]\nteleports = \"clients\"\nname = \"field\"\nwidth = \"384m\"\ndepth = \"256m\"\nland = \"64m\"\n\
    region = [2, 2]\npatch = \"16m\"\nmoves = \"trusted\"\ntop_speed = \"20m/s\"\n";

/// Waits until a process has said that a store does not answer, and which.
fn says_for_what_it_waits(member: &Member, store: &str) {
    let begin = Instant::now();
    let waits = |line: &str| line.contains("a store does not answer yet") && line.contains(store);
    while !member.said().lines().any(waits) {
        let late = begin.elapsed() > SAID;
        assert!(!late, "{} does not say that {store} is missing:\n{}", member.name, member.said());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_cluster_comes_up_in_any_order_with_the_stores_last() {
    let (program, parts) =
        (Path::new(env!("CARGO_BIN_EXE_purview")), Parts { nodes: 3, gateways: 2 });
    let config = Config::parse(CONFIG).unwrap();
    let mut stores = Vec::new();
    let mut meanwhile = |cluster: &LocalCluster, store: &str| {
        if stores.is_empty() {
            std::thread::sleep(LATE);
        }
        let address = cluster.store_address(store);
        for member in cluster.nodes().iter().chain(cluster.gateways()) {
            says_for_what_it_waits(member, &address);
            assert!(member.ready().is_none() && member.ended().is_none(), "{}", member.name);
        }
        stores.push(store.to_owned());
    };
    let cluster = LocalCluster::start_before_stores(program, &config, parts, SEED, &mut meanwhile);
    let cluster = cluster.unwrap();
    assert_eq!(stores, ["PostgreSQL", "etcd"]);
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    for gateway in 0..2 {
        runtime.block_on(async {
            let lasts = Some(Duration::from_secs(600));
            let token = cluster.tokens().mint(&format!("player-{gateway}"), lasts).unwrap();
            let mut client = Client::connect(&cluster.url(gateway).unwrap(), &token).await.unwrap();
            client.join(join_at("field", Pos::ground(1_000, 1_000))).await.unwrap();
        });
    }
}
