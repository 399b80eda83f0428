//! A cluster whose parts start in any order, its stores last: processes wait, say for what, and come up by themselves.
//! `deploy/rehearse/late-stores` has the same of the compose file, with the stores half a minute late.

use std::path::Path;
use std::time::Duration;

use purview::scene::Pos;
use purview_client::{Client, join_at};
use purview_lab::testbed::local_cluster::{LocalCluster, Member, Parts};

use crate::common::{PROGRAM, block_on, members, try_for};
use crate::walkers::{field, token};

const SEED: u64 = 49;

/// How much later the stores are. Processes have begun to pause longer between two attempts by then.
const LATE: Duration = Duration::from_secs(5);

/// Waits until a process has said that a store does not answer, and which.
fn says_for_what_it_waits(member: &Member, store: &str) {
    let waits = |line: &str| line.contains("is not there yet") && line.contains(store);
    try_for(&format!("{} says that {store} is missing", member.name), || {
        let said = member.said();
        if said.lines().any(waits) { Ok(()) } else { Err(said) }
    });
}

#[test]
fn a_cluster_comes_up_in_any_order_with_the_stores_last() {
    let parts = Parts { nodes: 3, gateways: 2 };
    let config = field("[cluster]\nlease = \"3s\"\n");
    let mut stores = Vec::new();
    let mut meanwhile = |cluster: &LocalCluster, store: &str| {
        if stores.is_empty() {
            std::thread::sleep(LATE);
        }
        let address = cluster.store_address(store);
        for member in members(cluster) {
            says_for_what_it_waits(member, &address);
            assert!(member.ready().is_none() && member.ended().is_none(), "{}", member.name);
        }
        stores.push(store.to_owned());
    };
    let cluster =
        LocalCluster::start_before_stores(Path::new(PROGRAM), &config, parts, SEED, &mut meanwhile);
    let cluster = cluster.unwrap();
    assert_eq!(stores, ["PostgreSQL", "etcd"]);
    for gateway in 0..2 {
        block_on(async {
            let token = token(&cluster, &format!("player-{gateway}"));
            let mut client = Client::connect(&cluster.url(gateway).unwrap(), &token).await.unwrap();
            client.join(join_at("field", Pos::ground(1_000, 1_000))).await.unwrap();
        });
    }
}
