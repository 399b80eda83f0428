//! A node in a network namespace is cut off: from all other processes, from etcd and PostgreSQL alone, from its peers
//! alone.

use purview_lab::testbed::network_namespace::{Cut, NetworkNamespace};

use super::trial::Trial;

/// A cluster on which all clients walk, with one more node in a network namespace, which owns some of the regions;
/// `None` without the right to create one.
fn trial() -> Option<(NetworkNamespace, Trial)> {
    let namespace = match NetworkNamespace::create() {
        Ok(namespace) => namespace,
        Err(error) => {
            eprintln!("skipped: no network namespace can be created: {error}");
            return None;
        }
    };
    let mut trial = Trial::listening(namespace.peers().into(), 2);
    let etcd = trial.cluster.etcd().url();
    let set = namespace.settings(&etcd, &trial.cluster.postgres().address()).unwrap();
    trial.cluster.add_node_within("namespace".into(), &namespace.within(), &set).unwrap();
    trial.wait_until_owns("namespace", 2);
    trial.pause_and_check("before anything is cut");
    Some((namespace, trial))
}

#[test]
fn a_node_cut_off_from_all_is_replaced_and_not_believed_afterwards() {
    let Some((namespace, trial)) = trial() else { return };
    namespace.cut(Cut::AllProcesses).unwrap();
    trial.walk(7);
    trial.wait_until_owns("namespace", 0);
    trial.pause_and_check("without the node");
    assert!(trial.has_taken_over());
    namespace.mend(Cut::AllProcesses).unwrap();
    trial.walk(4);
    trial.pause_and_check("after the node is back");
    let node = trial.cluster.nodes().last().unwrap();
    assert!(node.said().contains("lease is gone"), "the node has noticed: {}", node.said());
}

#[test]
fn a_node_cut_off_from_its_stores_stops_and_others_take_over() {
    let Some((namespace, trial)) = trial() else { return };
    namespace.cut(Cut::Stores).unwrap();
    trial.walk(7);
    trial.wait_until_owns("namespace", 0);
    trial.pause_and_check("without the node, which still reaches its peers");
    assert!(trial.has_taken_over());
    namespace.mend(Cut::Stores).unwrap();
    trial.walk(3);
    trial.pause_and_check("after the node is back");
}

#[test]
fn a_node_cut_off_from_its_peers_alone_goes_on() {
    let Some((namespace, trial)) = trial() else { return };
    namespace.cut(Cut::Peers).unwrap();
    // The clients of its regions wait; all others play on.
    trial.walk(4);
    namespace.mend(Cut::Peers).unwrap();
    trial.walk(4);
    trial.pause_and_check("after the links are back");
    trial.wait_until_owns("namespace", 2);
    assert!(!trial.has_taken_over(), "the node kept its lease");
}
