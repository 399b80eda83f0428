//! The lease store does not answer one node, or any: which node may still act, and when may another one begin.

use std::time::Duration;

use purview_server::storage::{Claim, LeaseError, Loss};

use super::bench::{Bench, TTL, granted, refused, region};
use super::over_each;

over_each!(Bench: embedded, simulated, etcd: {
    a_node_that_is_cut_off_stops_before_another_begins,
    while_the_store_is_stopped_authority_ends_before_regions_are_granted_to_others,
    a_short_silence_changes_nothing,
    a_crash_of_the_store_evicts_no_node,
});

/// The error of a request without an answer.
fn unreachable(error: &LeaseError) {
    assert!(matches!(error, LeaseError::Unreachable { .. }), "{error}");
}

async fn a_node_that_is_cut_off_stops_before_another_begins(bench: &Bench) {
    let [(a, at_a), (b, at_b)] = bench.two().await;
    let first = granted(a.claim(&at_a, &region(1)).await.unwrap());
    a.cut();
    let mut stopped_first = false;
    let second = bench.until_some("another takes the region", async || {
        // Read before the claim, whose answer takes time.
        let held = bench.holds(at_a.authority());
        match b.claim(&at_b, &region(1)).await.unwrap() {
            Claim::Granted(grant) => {
                assert!(!held, "two nodes may act at once");
                Some(grant)
            }
            Claim::Refused(_) => {
                stopped_first |= !held;
                None
            }
        }
    });
    let second = second.await;
    assert!(stopped_first, "it stopped only when the region was given away");
    assert!(second.epoch > first.epoch);
    assert_eq!(at_a.loss(), None, "it cannot know yet");
    a.mend();
    bench.until("the node is told", async || at_a.loss() == Some(Loss::Gone)).await;
    assert!(!bench.holds(at_a.authority()));
    // Other nodes reject its messages.
    bench.until("the way is mended", async || a.get("x").await.is_ok()).await;
    let late = a.claim(&at_a, &region(2)).await.unwrap_err();
    assert!(matches!(late, LeaseError::LostLease { .. }), "{late}");
    let late = a.take_over(&at_a, &region(1), second.epoch).await.unwrap_err();
    assert!(matches!(late, LeaseError::LostLease { .. }), "{late}");
    let kept = granted(b.claim(&at_b, &region(1)).await.unwrap());
    assert_eq!(kept.epoch, second.epoch);
    assert!(bench.holds(at_b.authority()));
}

async fn while_the_store_is_stopped_authority_ends_before_regions_are_granted_to_others(
    bench: &Bench,
) {
    let (a, at_a) = bench.node("a").await;
    let b = bench.way().await;
    let first = granted(a.claim(&at_a, &region(1)).await.unwrap());
    bench.stop(&[&a, &b]);
    bench.until("authority ends", async || !bench.holds(at_a.authority())).await;
    unreachable(&a.claim(&at_a, &region(2)).await.unwrap_err());
    bench.pass(TTL).await;
    bench.go_on(&[&a, &b]);
    // The store decides whether its lease survived; it must not be both.
    let mut over = false;
    bench
        .until("the store has decided", async || {
            over = at_a.loss() == Some(Loss::Gone);
            over || bench.holds(at_a.authority())
        })
        .await;
    let at_b =
        bench.until_some("another joins", async || b.join(super::bench::node("b"), TTL).await.ok());
    let at_b = at_b.await;
    let claim = b.claim(&at_b, &region(1)).await.unwrap();
    if over {
        assert!(!bench.holds(at_a.authority()));
        assert!(granted(claim).epoch > first.epoch);
    } else {
        assert_eq!(refused(claim).unwrap().epoch, first.epoch);
    }
}

async fn a_short_silence_changes_nothing(bench: &Bench) {
    let (a, at_a) = bench.node("a").await;
    let grant = granted(a.claim(&at_a, &region(1)).await.unwrap());
    for _ in 0..3 {
        a.cut();
        bench.pass(TTL / 4).await;
        a.mend();
        bench.pass(TTL / 2).await;
        assert_eq!(at_a.loss(), None);
    }
    bench.until("it holds", async || bench.holds(at_a.authority())).await;
    let again = granted(a.claim(&at_a, &region(1)).await.unwrap());
    assert_eq!(grant.epoch, again.epoch);
}

async fn a_crash_of_the_store_evicts_no_node(bench: &mut Bench) {
    let [(a, at_a), (b, at_b)] = bench.two().await;
    let grant = granted(a.claim(&at_a, &region(1)).await.unwrap());
    bench.crash(&[&a, &b], Duration::from_millis(500)).await;
    bench
        .until("both hold", async || bench.holds(at_a.authority()) && bench.holds(at_b.authority()))
        .await;
    bench.pass(TTL * 2).await;
    assert_eq!((at_a.loss(), at_b.loss()), (None, None));
    assert!(bench.holds(at_a.authority()) && bench.holds(at_b.authority()));
    let refusal = refused(b.claim(&at_b, &region(1)).await.unwrap());
    assert_eq!(refusal.unwrap().epoch, grant.epoch);
}
