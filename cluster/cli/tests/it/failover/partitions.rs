//! A node in a network of its own is cut off: from everybody, from etcd and PostgreSQL alone, from its peers alone.

use purview_lab::testbed::network_namespace::{Cut, Island};

use super::trial::Trial;

/// A cluster on which everybody walks, with one more node in a network of its own, that owns some of the
/// regions; `None` where there is no right to make one.
fn trial() -> Option<(Island, Trial)> {
    let island = match Island::make() {
        Ok(island) => island,
        Err(error) => {
            eprintln!("skipped: no network namespaces here: {error}");
            return None;
        }
    };
    let mut trial = Trial::listening(island.peers().into(), 2);
    let etcd = trial.cluster.etcd().url();
    let set = island.settings(&etcd, &trial.cluster.postgres().address()).unwrap();
    trial.cluster.add_node_within("island".into(), &island.within(), &set).unwrap();
    trial.wait_until_owns("island", 2);
    trial.pause_and_check("before anything is cut");
    Some((island, trial))
}

#[test]
fn a_node_that_is_cut_off_from_everybody_is_replaced_and_not_believed_when_it_is_back() {
    let Some((island, trial)) = trial() else { return };
    island.cut(Cut::Everybody).unwrap();
    trial.walk(7);
    trial.wait_until_owns("island", 0);
    trial.pause_and_check("without it");
    assert!(trial.has_taken_over());
    island.mend(Cut::Everybody).unwrap();
    trial.walk(4);
    trial.pause_and_check("after it is back");
    let node = trial.cluster.nodes().last().unwrap();
    assert!(node.said().contains("lease is gone"), "it knows: {}", node.said());
}

#[test]
fn a_node_that_is_cut_off_from_its_stores_alone_stops_and_others_take_over() {
    let Some((island, trial)) = trial() else { return };
    island.cut(Cut::Stores).unwrap();
    trial.walk(7);
    trial.wait_until_owns("island", 0);
    trial.pause_and_check("without it, and it still reaches its peers");
    assert!(trial.has_taken_over());
    island.mend(Cut::Stores).unwrap();
    trial.walk(3);
    trial.pause_and_check("after it is back");
}

#[test]
fn a_node_that_is_cut_off_from_its_peers_alone_goes_on_where_it_was() {
    let Some((island, trial)) = trial() else { return };
    island.cut(Cut::Peers).unwrap();
    // Its players are held; all others play on.
    trial.walk(4);
    island.mend(Cut::Peers).unwrap();
    trial.walk(4);
    trial.pause_and_check("after the links are back");
    trial.wait_until_owns("island", 2);
    assert!(!trial.has_taken_over(), "it kept its lease");
}
