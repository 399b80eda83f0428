//! The keys of a scene that say which nodes of a cluster run it, and how many regions it may have.

use purview::scene::SceneSpec;
use purview::scene::spec::PoolSpec;

use super::keys::{Keys, keys};
use super::settings::{LABELS, ZONE, label, label_text};

pub(super) fn keys(k: &mut Keys<'_, '_, SceneSpec>) {
    keys! { k;
        "nodes" section(nodes) pool: "The nodes of a cluster that run the scene.";
        "regions" section(regions) pool: "How many regions balancing may make of the scene.";
    }
}

fn nodes(k: &mut Keys<'_, '_, PoolSpec>) {
    keys! { k;
        "labels" list(LABELS, label, label_text) labels:
            "Labels (cluster.labels) of the nodes that run the scene; others do only while none of these is there.";
        "zone" text(ZONE) zone: "The same for the zone (cluster.zone); empty = any.";
        "min" count(0, 1_000) min_nodes:
            "How many nodes should be there for the scene: the least figure of purview_balance_nodes_wanted.";
        "max" count(0, 1_000) max_nodes: "Most nodes that run its regions; 0 = any number.";
    }
}

fn regions(k: &mut Keys<'_, '_, PoolSpec>) {
    keys! { k;
        "min" count(0, 4_096) min_regions:
            "Fewest regions that merging leaves; 0 = as many as `region` makes.";
        "max" count(0, 4_096) max_regions: "Most regions that splitting makes; 0 = any number.";
    }
}
