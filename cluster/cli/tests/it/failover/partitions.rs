//! A node in a network namespace is cut off: from all other processes, from etcd and PostgreSQL alone, from its peers
//! alone; or a firewall refuses its peers.

use std::time::Duration;

use purview::actor::player::Planes;
use purview_lab::testbed::network_namespace::{Cut, NetworkNamespace};

use super::trial::{self, Trial};
use crate::common::HOUR;
use crate::end_to_end::process::{assert_clean, run_lab};

/// A namespace; `None` without the right to create one.
fn namespace() -> Option<NetworkNamespace> {
    let created = NetworkNamespace::create();
    created.inspect_err(|e| eprintln!("skipped: no network namespace can be created: {e}")).ok()
}

/// A cluster on which all clients walk, with one more node in a network namespace, which owns some of the regions;
/// `None` without the right to create one.
fn trial() -> Option<(NetworkNamespace, Trial)> {
    let namespace = namespace()?;
    let mut trial = Trial::listening(namespace.peers().into(), 2);
    let etcd = trial.cluster.etcd().url();
    let set = namespace.settings(&etcd, &trial.cluster.postgres().address()).unwrap();
    trial.cluster.add_node_within("namespace".into(), &namespace.within(), &set).unwrap();
    trial.wait_until_owns("namespace", 2);
    trial.pause_and_check("before anything is cut");
    Some((namespace, trial))
}

#[test]
fn a_node_cut_off_from_its_peers_goes_on_and_one_cut_off_from_all_is_replaced_and_not_believed() {
    let Some((namespace, trial)) = trial() else { return };
    namespace.cut(Cut::Peers).unwrap();
    // The clients of its regions wait; all others play on.
    trial.walk(4);
    namespace.mend(Cut::Peers).unwrap();
    trial.walk(4);
    trial.pause_and_check("after the links are back");
    trial.wait_until_owns("namespace", 2);
    assert!(!trial.has_taken_over(), "the node kept its lease");
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
fn a_firewall_that_resets_what_two_living_nodes_say_costs_at_most_one_takeover() {
    let Some((namespace, trial)) = trial() else { return };
    if let Err(e) = namespace.refuse(true) {
        return eprintln!("skipped: nothing can refuse connections: {e}");
    }
    trial.walk(10);
    namespace.refuse(false).unwrap();
    trial.walk(8);
    trial.pause_and_check("after the firewall is gone");
    let recovers = "a region recovers from a checkpoint";
    let nodes = trial.cluster.nodes();
    let taken_over =
        || nodes.iter().map(|node| node.said().matches(recovers).count()).sum::<usize>();
    let taken = taken_over();
    println!("{taken} regions were taken over");
    assert!(taken <= 2, "the node's two regions, once: {taken}");
    trial.walk(6);
    trial.pause_and_check("later");
    assert_eq!(taken_over(), taken, "nothing changes owners any more");
}

/// How late an action may be: as long as the cut, and what a takeover needs, in ticks of 100 ms.
const LATE_TICKS: &str = "250";

#[test]
fn no_action_is_lost_in_a_cut_of_15_s_unless_its_player_is_told() {
    let Some(namespace) = namespace() else { return };
    let mut cluster = trial::cluster(namespace.peers().into(), 2, (1, 1));
    let etcd = cluster.etcd().url();
    let set = namespace.settings(&etcd, &cluster.postgres().address()).unwrap();
    cluster.add_node_within("namespace".into(), &namespace.within(), &set).unwrap();
    trial::wait_until_owns(&cluster, "namespace", 2);
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    let mint =
        |i| cluster.tokens().mint_for(&format!("bot-{i}"), Some(HOUR), &Planes::Any).unwrap();
    std::fs::write(&token, (0..60).map(mint).collect::<Vec<_>>().join("\n")).unwrap();
    let (url, token) = (cluster.url(0).unwrap(), token.display().to_string());
    let bots = std::thread::spawn(move || {
        let joins =
            ["--connect", &url, "--scene", "field", "--token-file", &token, "--count", "60"];
        let lasts = ["--for", "36s", "--late-ticks", LATE_TICKS, "--json"];
        run_lab(&[&["load", "walk"], &joins[..], &lasts].concat())
    });
    std::thread::sleep(Duration::from_secs(6));
    namespace.cut(Cut::AllProcesses).unwrap();
    std::thread::sleep(Duration::from_secs(15));
    assert!(trial::has_taken_over(&cluster), "other nodes own the regions by now");
    namespace.mend(Cut::AllProcesses).unwrap();
    let report = assert_clean(&bots.join().unwrap());
    assert_eq!(report["players"], 60, "{report}");
}
