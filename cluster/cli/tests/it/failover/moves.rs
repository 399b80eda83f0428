//! Regions migrate between nodes while clients walk: no client is disconnected, no input is lost, and entities in
//! view never flicker out.

use purview_lab::testbed::local_cluster::Member;
use purview_server::admin::orders::DrainOrder;
use purview_server::http;

use super::trial::Trial;
use crate::common::{block_on, console, try_for, wait_for};
use crate::ctl::{ctl, survey};

/// Waits until a process has ended by itself with exit code 0.
fn ends_well(member: &Member) {
    let status = try_for(&format!("the end of {}", member.name), || {
        member.ended().ok_or_else(|| member.said())
    });
    assert!(status.success(), "{} ends with {status}", member.name);
}

#[test]
fn clients_do_not_notice_repeated_migrations_and_a_node_that_gives_its_regions_to_others() {
    let trial = Trial::start();
    for _ in 0..3 {
        for region in survey(&trial.cluster.gateways()[0]).regions {
            trial.migrate(region.region, &trial.next_of(&region.node));
        }
    }
    trial.pause_and_check("after eighteen moves");
    trial.assert_undisturbed();
    let leaves = &trial.cluster.nodes()[1];
    is_refused_without_a_token(leaves);
    let moved = || leaves.said().matches("a region has moved").count();
    let before = moved();
    leaves.terminate();
    ends_well(leaves);
    assert!(moved() > before, "{}", leaves.said());
    trial.walk(1);
    trial.pause_and_check("after one has ended");
    trial.assert_undisturbed();
}

/// The right to read a console on loopback does not include the right to give orders.
fn is_refused_without_a_token(node: &Member) {
    let order = DrainOrder { node: node.name.clone() };
    let body = serde_json::to_vec(&order).unwrap().into();
    let base = format!("http://{}", console(node));
    let refused = block_on(http::post_as(&base, "/api/cluster/drain", body, None)).unwrap();
    assert_eq!(refused.status, 401, "{}", String::from_utf8_lossy(&refused.body));
}

#[test]
fn every_node_is_replaced_while_clients_play() {
    let mut trial = Trial::start();
    for i in 0..3 {
        trial.cluster.add_node(format!("new-{i}")).unwrap();
        let old = &trial.cluster.nodes()[i];
        let done = ctl(&trial.cluster.gateways()[1], &["drain", &old.name]);
        assert_eq!(done["done"], true, "{} is drained", old.name);
        ends_well(old);
        trial.pause_and_check("after one was replaced");
    }
    // New nodes get their share, too.
    wait_for("regions are shared out", || {
        let nodes = survey(&trial.cluster.gateways()[0]).nodes;
        nodes.iter().all(|node| !node.takes_regions || node.owns == 2)
    });
    trial.pause_and_check("in the end");
    trial.assert_undisturbed();
}
