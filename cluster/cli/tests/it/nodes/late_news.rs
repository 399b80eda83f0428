//! A node hears late from the store that a region has a new owner. What the new owner itself said must win.

use std::sync::Arc;
use std::time::Duration;

use purview::actor::address::RegionAddress;
use purview::actor::directory::Lookup;
use purview::scene::RegionId;
use purview_lab::sim::store::LeaseWay;
use purview_server::node::{NodeError, Status};
use purview_server::storage::Loss;
use purview_server::storage::leases::embedded::Embedded;
use tokio::runtime::Runtime;

use super::*;

/// The process at which a node believes a region to run.
fn believed(node: &ClusterProcess, region: u32) -> Option<u64> {
    match node.directory().look_up(RegionId(region)) {
        Lookup::At(RegionAddress::Remote(at)) => at.process(),
        _ => None,
    }
}

/// The region in the centre, which borders on all others.
const MIDDLE: u32 = 4;

/// Three nodes: `a` owns the region in the centre, the leader `b` one region, and `late` all others.
struct Three {
    store: Embedded,
    way_of_a: Arc<Embedded>,
    a: ClusterProcess,
    way_of_b: Arc<LeaseWay>,
    b: ClusterProcess,
    way_of_late: Arc<LeaseWay>,
    late: ClusterProcess,
}

/// Runs a test with three nodes. Node `a` keeps its leases for so long when its connection to the
/// store is cut. In the end all late news is delivered.
fn three(lease: Duration, test: impl AsyncFnOnce(&Three, &Runtime)) {
    with_store(async |store, outer| {
        let three = Three::start(store, lease).await;
        test(&three, outer).await;
        three.end().await;
    });
}

impl Three {
    async fn start(store: &Embedded, lease: Duration) -> Three {
        let way_of_b = Arc::new(LeaseWay::to(store, 1));
        let b = joined(&config("b"), REGIONS, way_of_b.clone()).await;
        come("all regions", &[&b], is_whole).await;
        let (way_of_a, mut of_a) = (Arc::new(store.another()), config("a"));
        of_a.cluster.lease = lease;
        let a = joined(&of_a, REGIONS, way_of_a.clone()).await;
        let way_of_late = Arc::new(LeaseWay::to(store, 2));
        let late = joined(&config("late"), REGIONS, way_of_late.clone()).await;
        let three = Three { store: store.another(), way_of_a, a, way_of_b, b, way_of_late, late };
        let all = [&three.a, &three.b, &three.late];
        come("a third each", &all, |all| is_whole(all) && all.iter().all(|s| s.here == 3)).await;
        for region in 0..9 {
            let to = match region {
                MIDDLE => "a",
                0 => "b",
                _ => "late",
            };
            three.b.orders().move_region(RegionId(region), to).await.unwrap();
        }
        let are_moved = |all: &[Status]| is_whole(all) && all[0].here == 1 && all[1].here == 1;
        come("the middle one at a, one at b", &all, are_moved).await;
        assert_eq!(believed(&three.late, MIDDLE), Some(three.a.links().process()));
        three
    }

    /// Waits until `late` hears from `b` itself that the centre region runs there.
    async fn b_is_received(&self) {
        let at_b = Some(self.b.links().process());
        let is_received = |_: &[Status]| believed(&self.late, MIDDLE) == at_b;
        come("b itself", &[&self.late], is_received).await;
    }

    /// Delivers all late news, checks the cluster, and stops it.
    async fn end(self) {
        self.way_of_late.tell_up_to(u64::MAX);
        self.way_of_a.mend();
        come("what was late", &[&self.b, &self.late], is_whole).await;
        assert_eq!(believed(&self.late, MIDDLE), Some(self.b.links().process()));
        stop([self.a, self.late, self.b]).await;
    }
}

#[test]
fn late_news_about_a_former_owner_does_not_hide_an_owner_that_has_announced_itself() {
    three(Duration::from_secs(20), async |three, outer| {
        // The region migrates to `b`, which `a` does not hear.
        three.way_of_a.cut();
        three.b.orders().move_region(RegionId(MIDDLE), "b").await.unwrap();
        let is_received = |_: &[Status]| three.b.orders().outstanding() == [RegionId(MIDDLE)];
        come("the order", &[&three.b], is_received).await;
        let before = view_of(&three.store).await;
        for way in [&three.way_of_b, &three.way_of_late] {
            way.tell_up_to(before.revision.0);
        }
        // A store that breaks its promise, and then has a new member, which shows how far `late` has been told.
        three.store.take_away(&key(MIDDLE), before.owners[&key(MIDDLE)].epoch);
        let silent = silent();
        let member = join_silently(outer, &three.store, &silent).await;
        three.way_of_b.tell_up_to(u64::MAX);
        three.b_is_received().await;
        three.way_of_late.tell_up_to(member.incarnation().0);
        come("the new member", &[&three.late], |all| all[0].peers == 3).await;
        assert_eq!(believed(&three.late, MIDDLE), Some(three.b.links().process()));
        member.leave().await.unwrap();
    });
}

#[test]
fn late_news_about_a_former_owners_end_does_not_hide_an_owner_that_has_announced_itself() {
    three(Duration::from_secs(2), async |three, _| {
        let before = view_of(&three.store).await;
        three.way_of_late.tell_up_to(before.revision.0);
        three.way_of_a.cut();
        three.b_is_received().await;
        // Its next owner has a later revision than that with which `a` ended.
        let owner = view_of(&three.store).await.owners[&key(MIDDLE)].clone();
        three.way_of_late.tell_up_to(owner.epoch.0 - 1);
        come("that a is gone", &[&three.late], |all| all[0].peers == 1).await;
        assert_eq!(believed(&three.late, MIDDLE), Some(three.b.links().process()));
    });
}

/// Also if its lease would hold for longer than the test waits.
#[test]
fn a_process_that_all_others_have_dropped_ends_whatever_the_store_says() {
    three(Duration::from_secs(400), async |three, _| {
        three.way_of_a.revoke_silently();
        let lost =
            tokio::time::timeout(PATIENCE, three.a.lost()).await.expect("the process is told");
        assert!(matches!(lost, NodeError::Lost(Loss::Disowned)), "{lost}");
        three.b_is_received().await;
    });
}
