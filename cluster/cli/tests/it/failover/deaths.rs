//! A node of a real cluster (etcd, PostgreSQL, three nodes and two gateways, each a process) crashes or falls silent
//! while clients walk across its borders. Clients stay connected and receive no contradicting frames. At rest every
//! client sees exactly the entities near it, at their positions.

use purview_server::launch::EtcdServer;

use super::trial::Trial;
use crate::ctl::survey;

#[test]
fn a_killed_node_costs_no_session_and_no_input() {
    let mut trial = Trial::start();
    trial.walk(2);
    trial.cluster.nodes()[0].kill();
    trial.walk(7);
    trial.pause_and_check("after the first is killed");
    assert!(trial.has_taken_over());
    // A new node replaces it, and the next node dies.
    trial.cluster.add_node("node-4".into()).unwrap();
    trial.walk(2);
    trial.cluster.nodes()[1].kill();
    trial.walk(7);
    trial.pause_and_check("after the second is killed");
}

#[test]
fn a_node_suspended_for_longer_than_its_lease_is_not_believed_afterwards() {
    let trial = Trial::start();
    trial.walk(2);
    trial.cluster.nodes()[2].pause();
    trial.walk(7);
    trial.pause_and_check("while the node is suspended");
    assert!(trial.has_taken_over());
    trial.cluster.nodes()[2].resume();
    trial.walk(3);
    trial.pause_and_check("after the node goes on");
    assert!(trial.cluster.nodes()[2].said().contains("lease is gone"), "the node has noticed");
}

#[test]
fn clients_do_not_notice_the_death_of_the_leader_of_three_etcds() {
    let mut trial = Trial::with_etcds(3);
    for _ in 0..2 {
        trial.walk(1);
        let leads = trial.cluster.etcds().iter().position(EtcdServer::leads).expect("a leader");
        trial.cluster.etcds()[leads].kill();
        trial.walk(5);
        trial.pause_and_check("without the leader");
        trial.cluster.etcds()[leads].restart().unwrap();
    }
    // Regions can still migrate, which requires etcd.
    let region = survey(&trial.cluster.gateways()[0]).regions.remove(0);
    trial.migrate(region.region, &trial.next_of(&region.node));
    trial.pause_and_check("in the end");
    trial.assert_undisturbed();
}

#[test]
fn an_etcd_and_a_postgresql_that_restart_cost_no_client_anything() {
    let mut trial = Trial::start();
    trial.walk(1);
    // Longer than nodes trust their leases: the regions stop for a while, and go on.
    trial.cluster.etcd().kill();
    trial.walk(4);
    trial.cluster.etcd().restart().unwrap();
    trial.walk(4);
    trial.pause_and_check("after etcd is back");
    assert!(!trial.has_taken_over(), "no node lost its lease");
    // Checkpoints are stored again.
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
