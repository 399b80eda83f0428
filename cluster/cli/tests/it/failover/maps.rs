//! Layouts change while clients walk: no client is disconnected, no input is lost, and entities in view never flicker
//! out.

use std::collections::BTreeSet;

use super::trial::Trial;
use crate::ctl::{ctl, order, refused, survey};

#[test]
fn regions_are_split_merged_and_scaled_under_walking_clients() {
    let trial = Trial::start();
    let before = trial.leaves();
    let gateway = &trial.cluster.gateways()[0];
    // A region that is about to migrate completes that first.
    let moves = survey(gateway).regions.remove(0);
    let at = trial.cluster.nodes().iter().position(|node| node.name == moves.node).unwrap();
    let next = &trial.cluster.nodes()[(at + 1) % 3].name;
    order(gateway, &["move", &format!("R{}", moves.region), next, "--within", "0s"]);
    let split = ctl(gateway, &["split", "R1"]);
    assert_eq!(split["done"], true);
    let map = survey(gateway).maps.remove(0);
    assert_eq!((map.version, map.regions, map.next), (2, 7, None));
    trial.pause_and_check("after a split");
    assert_eq!(ctl(gateway, &["merge", "R1", "R1000000"])["done"], true);
    trial.pause_and_check("after a merge");
    assert_eq!(ctl(gateway, &["layout", "field", "--regions", "6x4"])["done"], true);
    trial.pause_and_check("with 24 regions");
    assert_eq!(survey(gateway).maps[0].regions, 24);
    assert_eq!(ctl(gateway, &["layout", "field", "--regions", "1x1"])["done"], true);
    trial.pause_and_check("with one region");
    assert_eq!(ctl(gateway, &["layout", "field", "--regions", "3x2"])["done"], true);
    trial.pause_and_check("with six again");
    assert_eq!(trial.leaves(), before, "no entity left a view");
    assert!(!trial.has_taken_over(), "no region was recovered from a checkpoint");
    // Regions that ended are removed once no process can need them any more.
    let begin = std::time::Instant::now();
    while survey(gateway).regions.len() != 6 {
        assert!(begin.elapsed().as_secs() < 60, "{:?}", survey(gateway).regions);
        trial.walk(1);
    }
    trial.pause_and_check("in the end");
    assert_eq!(trial.leaves(), before, "no entity left a view");
}

#[test]
fn new_regions_migrate_to_other_nodes_and_survive_them() {
    let mut trial = Trial::start();
    let before = trial.leaves();
    let gateway = &trial.cluster.gateways()[0];
    assert_eq!(ctl(gateway, &["layout", "field", "--regions", "4x2"])["done"], true);
    let regions = survey(gateway).regions;
    let new = regions.iter().find(|r| r.region >= 1_000_000).expect("a new one").clone();
    let at = trial.cluster.nodes().iter().position(|node| node.name == new.node).unwrap();
    let next = trial.cluster.nodes()[(at + 1) % 3].name.clone();
    let done = ctl(gateway, &["move", &format!("R{}", new.region), &next]);
    assert_eq!(done["done"], true, "{new:?} to {next}");
    trial.pause_and_check("after the new one has moved");
    assert_eq!(trial.leaves(), before, "no entity left a view");
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
    assert_eq!(ctl(gateway, &["layout", "field", "--regions", "3x2"])["done"], true);
    trial.pause_and_check("with six again");
}

#[test]
fn an_impossible_layout_is_an_error_that_names_the_legal_ones() {
    let trial = Trial::start();
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
    let before = trial.leaves();
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
        let done = ctl(gateway, &["move", &format!("R{}", region.region), to]);
        assert_eq!(done["done"], true, "{region:?} to {to}");
    }
    trial.pause_and_check("with each line on its own nodes");
    let regions = survey(gateway).regions;
    assert!(regions.iter().all(|r| (r.planes == 1) == (r.node == *node)), "{regions:?}");
    assert_eq!(ctl(gateway, &["layout", "field", "--regions", "2x2"])["done"], true);
    trial.pause_and_check("with four regions for each line");
    assert_eq!(survey(gateway).maps[0].regions, 8);
    assert_eq!(trial.leaves(), before, "no entity left a view");
    assert!(!trial.has_taken_over(), "no region was recovered from a checkpoint");
    // The node of the second line dies while regions of that line that have ended still run there.
    assert_eq!(ctl(gateway, &["layout", "field", "--regions", "1x1"])["done"], true);
    let retiring = survey(gateway).regions.into_iter().filter(|r| r.planes == 1 && r.node == *node);
    assert!(retiring.count() > 1, "some of the regions are ending");
    trial.cluster.nodes()[2].kill();
    trial.walk(5);
    trial.pause_and_check("after the node of one line has died with regions that were given up");
    assert!(trial.has_taken_over());
    let begin = std::time::Instant::now();
    while survey(gateway).regions.len() != 2 {
        assert!(begin.elapsed().as_secs() < 60, "{:?}", survey(gateway).regions);
        trial.walk(1);
    }
    trial.pause_and_check("once they are given up");
}
