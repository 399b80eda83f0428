//! Regions migrate between nodes while clients walk: no client is disconnected, no input is lost, and entities in
//! view never flicker out.

use std::time::{Duration, Instant};

use purview_lab::testbed::local_cluster::Member;
use purview_server::admin::orders::DrainOrder;
use purview_server::http;

use super::trial::Trial;
use crate::ctl::{ctl, survey};

/// How long a test waits for a state that must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a process has ended by itself with exit code 0.
fn ends_well(member: &Member) {
    let begin = Instant::now();
    loop {
        match member.ended() {
            Some(status) => return assert!(status.success(), "{} ends with {status}", member.name),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
        assert!(begin.elapsed() < PATIENCE, "{} does not end: {}", member.name, member.said());
    }
}

#[test]
fn clients_do_not_notice_repeated_migrations() {
    let trial = Trial::start();
    let before = trial.leaves();
    let gateway = &trial.cluster.gateways()[0];
    for round in 0..3 {
        for region in survey(gateway).regions {
            let at = trial.cluster.nodes().iter().position(|node| node.name == region.node);
            let next = &trial.cluster.nodes()[(at.unwrap() + 1) % 3].name;
            let done = ctl(gateway, &["move", &format!("R{}", region.region), next]);
            assert_eq!(done["done"], true, "round {round}: {region:?} to {next}");
        }
    }
    trial.pause_and_check("after eighteen moves");
    assert_eq!(trial.leaves(), before, "no entity left a view");
    assert!(!trial.has_taken_over(), "no region was recovered from a checkpoint");
}

/// The right to read a console on loopback does not include the right to give orders.
fn is_refused_without_a_token(node: &Member) {
    let console = node.ready().and_then(|ready| ready.console).expect("the node has a console");
    let order = DrainOrder { node: node.name.clone() };
    let body = serde_json::to_vec(&order).unwrap().into();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let base = format!("http://{console}");
    let refused = runtime.block_on(http::post_as(&base, "/api/cluster/drain", body, None)).unwrap();
    assert_eq!(refused.status, 401, "{}", String::from_utf8_lossy(&refused.body));
}

#[test]
fn a_node_that_shuts_down_first_gives_its_regions_to_others() {
    let trial = Trial::start();
    trial.walk(1);
    let before = trial.leaves();
    let leaves = &trial.cluster.nodes()[1];
    is_refused_without_a_token(leaves);
    leaves.terminate();
    ends_well(leaves);
    assert!(leaves.said().contains("a region has moved"), "{}", leaves.said());
    trial.walk(1);
    trial.pause_and_check("after one has ended");
    assert_eq!(trial.leaves(), before, "no entity left a view");
    assert!(!trial.has_taken_over(), "no region was recovered from a checkpoint");
}

#[test]
fn every_node_is_replaced_while_clients_play() {
    let mut trial = Trial::start();
    let before = trial.leaves();
    for i in 0..3 {
        trial.cluster.add_node(format!("new-{i}")).unwrap();
        let old = &trial.cluster.nodes()[i];
        let done = ctl(&trial.cluster.gateways()[1], &["drain", &old.name]);
        assert_eq!(done["done"], true, "{} is drained", old.name);
        ends_well(old);
        trial.pause_and_check("after one was replaced");
    }
    // New nodes get their share, too.
    let begin = Instant::now();
    while survey(&trial.cluster.gateways()[0]).nodes.iter().any(|n| n.takes_regions && n.owns != 2)
    {
        assert!(begin.elapsed() < PATIENCE, "regions are not shared out");
        trial.walk(1);
    }
    trial.pause_and_check("in the end");
    assert_eq!(trial.leaves(), before, "no entity left a view");
    assert!(!trial.has_taken_over(), "no region was recovered from a checkpoint");
}
