//! Several nodes over one lease store, each with its own links and regions: who takes what, and who
//! takes over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::System;
use purview::scene::{Epoch, RegionId};
use purview_cluster::config::Config;
use purview_cluster::engine::embedded::Embedded;
use purview_cluster::gateway::Tokens;
use purview_cluster::node::planner::OrderError;
use purview_cluster::node::{Node, NodeError, Roles, Status};
use tokio::runtime::{Builder, Runtime};

/// Nothing here takes this long, unless it never comes.
const PATIENCE: Duration = Duration::from_secs(40);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// Nine regions; a lease of two seconds; any ports.
fn config(name: &str) -> Config {
    let text = format!(
        "[server]\narbiters = 1\n[console]\nlisten = \"off\"\n[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\n\
         [cluster]\nnode = {name:?}\nlisten = \"127.0.0.1:0\"\nlease = \"2s\"\n\
         [[scene]]\nname = \"city\"\nwidth = \"1536m\"\ndepth = \"1536m\"\nregion = [1, 1]\n"
    );
    Config::parse(&text).unwrap()
}

async fn node(name: &str, store: &Embedded, roles: Roles) -> Node {
    let store = Arc::new(store.another());
    Node::join(&config(name), roles, Tokens::dev(), store, None, runtime()).await.unwrap()
}

const REGIONS: Roles = Roles { regions: true, gateway: false };
const GATEWAY: Roles = Roles { regions: false, gateway: true };

fn now(node: &Node) -> Status {
    node.status().borrow().clone()
}

async fn wait_for(what: &str, nodes: &[&Node], holds: impl Fn(&[Status]) -> bool) {
    let begin = Instant::now();
    loop {
        let all: Vec<Status> = nodes.iter().map(|node| now(node)).collect();
        if holds(&all) {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "in vain: {what}: {all:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Everybody knows where every region is, and each runs once.
fn is_whole(all: &[Status]) -> bool {
    let running: usize = all.iter().map(|status| status.here).sum();
    all.iter().all(Status::is_whole) && running == 9
}

#[test]
fn nodes_share_the_regions_and_those_of_one_that_leaves_go_to_the_others() {
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
        // The one that leads leaves; somebody else plans.
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
fn a_node_that_the_store_does_not_hear_stops_before_others_take_over_and_is_none_any_more() {
    System::new().block_on(async {
        let outer = runtime();
        let store = outer.spawn(async { Embedded::new(Epoch(0)) }).await.unwrap();
        let way = Arc::new(store.another());
        let config = config("a");
        let joined = Node::join(&config, REGIONS, Tokens::dev(), way.clone(), None, runtime());
        let cut_off = joined.await.unwrap();
        let b = node("b", &store, REGIONS).await;
        wait_for("all regions", &[&cut_off, &b], is_whole).await;
        assert!(now(&cut_off).here > 0);
        assert!(cut_off.directory().may_act());
        way.cut();
        // It stops by its own clock, while the others still think that it is there.
        let begin = Instant::now();
        while cut_off.directory().may_act() {
            assert!(begin.elapsed() < PATIENCE, "it acts for ever");
            assert!(now(&b).here < 9, "another acts for its regions already");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        wait_for("its regions", &[&b], |all| all[0].here == 9 && all[0].is_whole()).await;
        assert!(!cut_off.directory().may_act());
        way.mend();
        let told = tokio::time::timeout(PATIENCE, cut_off.lost()).await.expect("it is told");
        assert!(matches!(told, NodeError::Lost(_)), "{told}");
        assert!(!cut_off.directory().may_act());
        cut_off.stop().await;
        b.stop().await;
        outer.shutdown_background();
    });
}

#[test]
fn a_region_moves_where_it_is_told_to_and_a_new_node_gets_its_share() {
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
