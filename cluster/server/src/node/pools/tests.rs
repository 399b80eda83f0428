//! Which nodes a region may run on.

use purview::scene::layout::PlaneGroup;
use purview::scene::{RegionId, SceneId, SceneSpec};

use super::*;
use crate::storage::NodeInfo;

fn node(name: &str, labels: &[(&str, &str)], zone: &str) -> NodeInfo {
    let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let about = About { zone: zone.into(), labels, ..About::default() };
    NodeInfo { about, ..NodeInfo::for_test(name) }
}

/// Nodes 1 to 4: two of the city, one of them in another zone, and two without a label.
fn view() -> View {
    let city = [("map", "city")];
    let nodes = [
        (Incarnation(1), node("a", &city, "east")),
        (Incarnation(2), node("b", &city, "west")),
        (Incarnation(3), node("c", &[], "east")),
        (Incarnation(4), node("d", &[], "east")),
    ];
    View { nodes: nodes.into(), ..View::default() }
}

fn scene(name: &str, pool: PoolSpec) -> Arc<Scene> {
    let spec = SceneSpec { name: name.into(), pool, ..SceneSpec::default() };
    Arc::new(Scene::new(SceneId(0), spec, 50, RegionId(0)).unwrap())
}

fn city(zone: &str, max_nodes: u32) -> PoolSpec {
    let labels = vec![("map".into(), "city".into())];
    PoolSpec { labels, zone: zone.into(), max_nodes, ..PoolSpec::default() }
}

fn sites(nodes: &[u64]) -> Vec<Site<u64>> {
    nodes.iter().map(|node| Site { node: *node, capacity: 100 }).collect()
}

fn reservation(scene: &str, nodes: &[&str]) -> Reservation {
    let nodes = nodes.iter().map(|name| (*name).to_owned()).collect();
    Reservation { scene: scene.into(), lands: [0, 0, 2, 2], nodes, until_ms: 1 }
}

fn plot(x0: i32) -> Plot {
    Plot { id: RegionId(0), group: PlaneGroup(0), x0, z0: 0, x1: x0 + 2, z1: 2 }
}

/// The nodes of a pool; empty: every node.
fn nodes(pools: &Pools, scene: &str, ground: &Plot) -> Vec<u64> {
    let pool = pools.all.get(pools.of(scene, Some(ground)));
    pool.map(|pool| pool.nodes.iter().copied().collect()).unwrap_or_default()
}

#[test]
fn a_scene_runs_on_nodes_with_its_labels_and_in_its_zone() {
    let (view, all) = (view(), sites(&[1, 2, 3, 4]));
    let scenes = [
        scene("wood", PoolSpec::default()),
        scene("city", city("", 1)),
        scene("port", city("west", 0)),
    ];
    let pools = Pools::new((&view, &all), &scenes, &[]);
    assert!(nodes(&pools, "wood", &plot(0)).is_empty());
    assert_eq!(nodes(&pools, "city", &plot(0)), [1, 2]);
    assert_eq!(nodes(&pools, "port", &plot(0)), [2]);
    assert_eq!((pools.all[0].most, pools.all[1].most), (1, 0));
    assert!(pools.without.is_empty());
    // Without a node of its own a scene runs on the others.
    let pools = Pools::new((&view, &sites(&[1, 3, 4])), &scenes, &[]);
    assert!(nodes(&pools, "port", &plot(0)).is_empty());
    assert_eq!(pools.without, ["port"]);
}

#[test]
fn reserved_nodes_run_nothing_but_their_ground() {
    let (view, all) = (view(), sites(&[1, 2, 3, 4]));
    let scenes = [scene("wood", PoolSpec::default()), scene("city", city("", 0))];
    let reserved = [reservation("city", &["a"])];
    let pools = Pools::new((&view, &all), &scenes, &reserved);
    assert_eq!(nodes(&pools, "city", &plot(0)), [1]);
    assert_eq!(nodes(&pools, "city", &plot(2)), [2]);
    assert_eq!(nodes(&pools, "wood", &plot(0)), [2, 3, 4]);
    assert_eq!(pools.reserved, BTreeSet::from([1]));
    // The scene's other nodes are reserved, too: the rest of it runs elsewhere.
    let reserved = [reservation("city", &["a", "b"])];
    let pools = Pools::new((&view, &all), &scenes, &reserved);
    assert_eq!(nodes(&pools, "city", &plot(2)), [3, 4]);
    // None of the reserved nodes is there.
    let reserved = [reservation("city", &["gone"])];
    let pools = Pools::new((&view, &all), &scenes, &reserved);
    assert_eq!(nodes(&pools, "city", &plot(0)), [1, 2]);
    assert!(pools.reserved.is_empty());
}
