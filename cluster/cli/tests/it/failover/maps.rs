//! Layouts change while clients walk: no client is disconnected, no input is lost, and entities in view never flicker
//! out.

use std::collections::BTreeSet;

use super::trial::Trial;
use crate::ctl::{order, refused, survey};

#[test]
fn regions_are_split_merged_and_scaled_under_walking_clients() {
    let trial = Trial::start();
    impossible_layouts_are_errors_that_name_the_legal_ones(&trial);
    let gateway = &trial.cluster.gateways()[0];
    // A region that is about to migrate completes that first.
    let moves = survey(gateway).regions.remove(0);
    let next = trial.next_of(&moves.node);
    order(gateway, &["move", &format!("R{}", moves.region), &next, "--within", "0s"]);
    trial.order(&["split", "R1"]);
    let map = survey(gateway).maps.remove(0);
    assert_eq!((map.version, map.regions, map.next), (2, 7, None));
    trial.pause_and_check("after a split");
    trial.order(&["merge", "R1", "R1000000"]);
    trial.pause_and_check("after a merge");
    trial.scale("6x4");
    assert_eq!(survey(gateway).maps[0].regions, 24);
    trial.scale("1x1");
    trial.scale("3x2");
    trial.assert_undisturbed();
    trial.wait_until_left(6);
    trial.pause_and_check("in the end");
    trial.assert_unseen();
}

#[test]
fn new_regions_migrate_to_other_nodes_and_survive_them() {
    let mut trial = Trial::start();
    trial.order(&["layout", "field", "--regions", "4x2"]);
    let regions = survey(&trial.cluster.gateways()[0]).regions;
    let new = regions.iter().find(|r| r.region >= 1_000_000).expect("a new one").clone();
    let next = trial.next_of(&new.node);
    trial.migrate(new.region, &next);
    trial.pause_and_check("after the new one has moved");
    trial.assert_unseen();
    // A node that starts later knows the layout, and replaces a node that dies.
    trial.cluster.add_node("late".to_owned()).unwrap();
    trial.walk(2);
    let dies = trial.cluster.nodes().iter().position(|node| node.name == next).unwrap();
    trial.cluster.nodes()[dies].kill();
    trial.walk(2);
    trial.pause_and_check("after the death of a node with a new region");
    let gateway = &trial.cluster.gateways()[1];
    let owners: BTreeSet<String> = survey(gateway).regions.into_iter().map(|r| r.node).collect();
    assert!(owners.contains("late") && !owners.contains(&next), "{owners:?}");
    trial.scale("3x2");
}

fn impossible_layouts_are_errors_that_name_the_legal_ones(trial: &Trial) {
    let gateway = &trial.cluster.gateways()[0];
    let said = refused(gateway, &["split", "R77"]);
    assert!(said.contains("no scene has a region 77"), "{said}");
    let said = refused(gateway, &["merge", "R0", "R5"]);
    assert!(said.contains("do not share a whole side"), "{said}");
    let said = refused(gateway, &["layout", "nowhere", "--regions", "2x2"]);
    assert!(said.contains("no scene \"nowhere\"") && said.contains("field"), "{said}");
    let said = refused(gateway, &["layout", "field", "--regions", "7x1"]);
    assert!(said.contains("7 x 1 regions cannot be made of 6 x 4 lands"), "{said}");
    trial.pause_and_check("nothing has changed");
    assert_eq!(survey(gateway).maps[0].version, 1);
}

/// Two lines of a city, each with its own regions: they run on different nodes, migrate by themselves, and share one
/// layout.
#[test]
fn planes_in_groups_run_on_different_nodes() {
    let trial = Trial::on_planes(2);
    let gateway = &trial.cluster.gateways()[0];
    let regions = survey(gateway).regions;
    let groups = |planes: u16| regions.iter().filter(move |r| r.planes == planes);
    assert_eq!((groups(0).count(), groups(1).count()), (6, 6));
    // All regions of the second line move to one node, and those of the first line leave it.
    let node = &trial.cluster.nodes()[2].name;
    let other = &trial.cluster.nodes()[1].name;
    for region in &regions {
        let to = match region.planes {
            1 => node,
            _ if region.node == *node => other,
            _ => continue,
        };
        trial.migrate(region.region, to);
    }
    trial.pause_and_check("with each line on its own nodes");
    let regions = survey(gateway).regions;
    assert!(regions.iter().all(|r| (r.planes == 1) == (r.node == *node)), "{regions:?}");
    trial.scale("2x2");
    assert_eq!(survey(gateway).maps[0].regions, 8, "four for each line");
    trial.assert_undisturbed();
    // The node of the second line dies while regions of that line that have ended still run there.
    trial.order(&["layout", "field", "--regions", "1x1"]);
    let retiring = survey(gateway).regions.into_iter().filter(|r| r.planes == 1 && r.node == *node);
    assert!(retiring.count() > 1, "some of the regions are ending");
    trial.cluster.nodes()[2].kill();
    trial.walk(5);
    trial.pause_and_check("after the node of one line has died with regions that were given up");
    assert!(trial.has_taken_over());
    trial.wait_until_left(2);
    trial.pause_and_check("once they are given up");
}
