//! Scenes that ask for nodes with labels, and ground that operators reserve.

use std::collections::BTreeMap;

use purview_server::node::orders::{Orders, Reserve};

use super::*;

/// A node with labels. The city wants one node with its label; the wood runs anywhere.
async fn labelled(name: &str, store: &Embedded, labels: &str) -> ClusterProcess {
    let text = format!(
        "[server]\narbiters = 1\n[console]\nlisten = \"off\"\n[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\n\
         [cluster]\nnode = {name:?}\nlisten = \"127.0.0.1:0\"\nlease = \"2s\"\nlabels = [{labels}]\n\
         [[scene]]\nname = \"city\"\nwidth = \"2048m\"\ndepth = \"1024m\"\nregion = [1, 1]\n\
         nodes = {{ labels = [\"map=city\"], max = 1 }}\n\
         [[scene]]\nname = \"wood\"\nwidth = \"2048m\"\ndepth = \"1024m\"\nregion = [1, 1]\n"
    );
    let config = Config::parse(&text).unwrap();
    joined(&config, REGIONS, Arc::new(store.another())).await
}

/// How many regions of each scene each node has.
type Counts = BTreeMap<(String, String), usize>;

/// By what the process knows that gives the orders: others may know more.
fn counts(orders: &Orders) -> Counts {
    let mut counts = Counts::new();
    for node in ["plain", "first", "second"] {
        for (key, _) in orders.owned_by(node) {
            *counts.entry((key.scene, node.into())).or_default() += 1;
        }
    }
    counts
}

/// Waits until the nodes have so many regions of the scenes: scene, node, regions.
async fn come_to(orders: &Orders, what: &str, want: &[(&str, &str, usize)]) {
    let name = |(scene, node, n): &(&str, &str, usize)| (((*scene).into(), (*node).into()), *n);
    let want: Counts = want.iter().map(name).collect();
    tries(what, async || {
        let now = counts(orders);
        if now == want { Ok(()) } else { Err(now) }
    })
    .await;
}

fn west(nodes: usize, time: Duration) -> Reserve {
    Reserve { scene: "wood".into(), area_m: [0, 0, 600, 1_024], nodes, time }
}

#[test]
fn scenes_run_on_nodes_with_their_labels_and_reserved_ground_on_its_own() {
    with_store(async |store, _| {
        // The only node has no label: the city runs there all the same.
        let plain = labelled("plain", store, "").await;
        let orders = plain.orders();
        come_to(orders, "one node", &[("city", "plain", 8), ("wood", "plain", 8)]).await;
        // Its node comes: all of the city moves there, and nothing else has to.
        let first = labelled("first", store, "\"map=city\"").await;
        let shared = [("city", "first", 8), ("wood", "plain", 8)];
        come_to(orders, "the city's node", &shared).await;
        // Another of its nodes is one too many for the city, and takes a share of the wood.
        let second = labelled("second", store, "\"map=city\", \"fast=yes\"").await;
        let even = [("city", "first", 8), ("wood", "plain", 4), ("wood", "second", 4)];
        come_to(orders, "a share", &even).await;
        let of_city = orders.owned_by("first")[0].0.region;
        let refused = orders.move_region(RegionId(of_city), "plain").await.unwrap_err();
        assert!(matches!(refused, OrderError::NotInPool { .. }), "{refused}");
        assert!(refused.to_string().ends_with("the scene wants label map=city"), "{refused}");
        // Four of the wood's eight regions meet the ground: the node with fewest regions gets them, and nothing else.
        let nodes = orders.reserve(&west(1, HOUR)).await.unwrap();
        assert_eq!(nodes, ["plain"]);
        let of_plain =
            || -> Vec<u32> { orders.owned_by("plain").iter().map(|(key, _)| key.region).collect() };
        waits("the ground's regions", || of_plain() == [8, 9, 12, 13]).await;
        come_to(orders, "the reserved ground", &even).await;
        let refused = orders.move_region(RegionId(8), "second").await.unwrap_err();
        assert!(refused.to_string().contains("reservations kept"), "{refused}");
        for (wish, part) in [
            (west(1, Duration::from_secs(9)), "reserved already"),
            (Reserve { area_m: [1_100, 0, 1_200, 9], ..west(2, PATIENCE) }, "want 1 to 1"),
            (Reserve { area_m: [9_000, 0, 9_999, 9], ..west(1, PATIENCE) }, "2048 x 1024 m"),
            (Reserve { scene: "moon".into(), ..west(1, PATIENCE) }, "no scene \"moon\""),
        ] {
            let refused = orders.reserve(&wish).await.unwrap_err().to_string();
            assert!(refused.contains(part), "{refused}");
        }
        // It ends, and what is shared out is even. Another one has nodes, although all else has only one then.
        assert_eq!(orders.reserve(&west(1, Duration::ZERO)).await.unwrap(), nodes);
        assert_eq!(orders.reserve(&west(1, Duration::ZERO)).await.unwrap(), [""; 0]);
        come_to(orders, "an even share", &even).await;
        assert_eq!(orders.reserve(&west(1, HOUR)).await.unwrap(), nodes);
        second.stop().await;
        let left = [("city", "first", 8), ("wood", "first", 4), ("wood", "plain", 4)];
        come_to(orders, "two nodes", &left).await;
        stop([first, plain]).await;
    });
}
