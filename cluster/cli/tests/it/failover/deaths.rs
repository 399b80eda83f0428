//! A node of a real cluster (etcd, PostgreSQL, three nodes and two gateways, each a process) is killed, asked to
//! end, or falls silent, while clients walk across its borders. They stay connected, are told nothing that
//! contradicts what they were told, and in the end every client is shown exactly who is near it, where its last
//! input has put it.

use purview_server::launch::EtcdServer;

use super::trial::Trial;
use crate::ctl::{ctl, survey};

#[test]
fn a_node_that_is_killed_costs_nobody_its_session_and_no_input() {
    let mut trial = Trial::start();
    trial.walk(2);
    trial.cluster.nodes()[0].kill();
    trial.walk(7);
    trial.pause_and_check("after the first is killed");
    assert!(trial.has_taken_over());
    // Another one takes the place, and the next one dies.
    trial.cluster.add_node("node-4".into()).unwrap();
    trial.walk(2);
    trial.cluster.nodes()[1].kill();
    trial.walk(7);
    trial.pause_and_check("after the second is killed");
}

#[test]
fn a_node_that_was_stopped_for_longer_than_its_lease_is_not_believed_when_it_goes_on() {
    let trial = Trial::start();
    trial.walk(2);
    trial.cluster.nodes()[2].pause();
    trial.walk(7);
    trial.pause_and_check("while it is silent");
    assert!(trial.has_taken_over());
    trial.cluster.nodes()[2].resume();
    trial.walk(3);
    trial.pause_and_check("after it has gone on");
    assert!(trial.cluster.nodes()[2].said().contains("lease is gone"), "it knows");
}

#[test]
fn an_etcd_that_dies_and_comes_back_costs_nobody_anything() {
    let mut trial = Trial::start();
    trial.walk(1);
    // Longer than nodes trust their leases: they stand still for a while, and go on.
    trial.cluster.etcd().kill();
    trial.walk(4);
    trial.cluster.etcd().restart().unwrap();
    trial.walk(4);
    trial.pause_and_check("after etcd is back");
    assert!(!trial.has_taken_over(), "nobody lost its lease");
}

#[test]
fn nobody_notices_that_the_leader_of_three_etcds_dies() {
    let mut trial = Trial::with_etcds(3);
    let before = trial.leaves();
    for _ in 0..2 {
        trial.walk(1);
        let leads = trial.cluster.etcds().iter().position(EtcdServer::leads).expect("a leader");
        trial.cluster.etcds()[leads].kill();
        trial.walk(5);
        trial.pause_and_check("without the leader");
        trial.cluster.etcds()[leads].restart().unwrap();
    }
    // The regions can be moved, as whatever is agreed through etcd.
    let gateway = &trial.cluster.gateways()[0];
    let region = survey(gateway).regions.remove(0);
    let at = trial.cluster.nodes().iter().position(|node| node.name == region.node).unwrap();
    let next = &trial.cluster.nodes()[(at + 1) % 3].name;
    assert_eq!(ctl(gateway, &["move", &format!("R{}", region.region), next])["done"], true);
    trial.pause_and_check("in the end");
    assert_eq!(trial.leaves(), before, "nobody was told to be gone");
    assert!(!trial.has_taken_over(), "nobody lost its lease");
}

#[test]
fn a_postgresql_that_dies_and_comes_back_is_not_noticed_and_keeps_checkpoints_again() {
    let mut trial = Trial::start();
    trial.walk(1);
    trial.cluster.postgres().kill();
    trial.walk(3);
    trial.pause_and_check("without PostgreSQL");
    trial.cluster.postgres().restart().unwrap();
    trial.walk(3);
    trial.cluster.nodes()[0].kill();
    trial.walk(7);
    trial.pause_and_check("after a node died that had no PostgreSQL for a while");
    assert!(trial.has_taken_over());
}
