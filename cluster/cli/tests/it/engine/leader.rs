//! The leader election: one leader at a time, and another one when its lease ends.

use purview_server::storage::{LeaseError, View};

use super::bench::{Bench, TTL, watch_until};
use super::over_each;

over_each!(Bench: embedded, simulated, etcd: {
    another_process_leads_when_the_leader_leaves,
    another_process_leads_when_the_leaders_lease_ends,
    a_waiting_process_learns_of_its_eviction,
    waiting_for_leadership_survives_an_outage,
});

async fn another_process_leads_when_the_leader_leaves(bench: &Bench) {
    let [(a, at_a), (b, at_b)] = bench.two().await;
    let first = a.campaign(&at_a).await.unwrap();
    let again = a.campaign(&at_a).await.unwrap();
    assert_eq!(first, again);
    let mut waiting = Box::pin(b.campaign(&at_b));
    let early = tokio::time::timeout(std::time::Duration::from_millis(300), &mut waiting).await;
    assert!(early.is_err(), "there are two leaders: {early:?}");
    at_a.leave().await.unwrap();
    let second = waiting.await.unwrap();
    assert!(second > first);
    let (mut watch, mut view) = (b.watch(), View::default());
    watch_until(&mut watch, &mut view, |view| view.leader.is_some()).await;
    let leader = view.leader.unwrap();
    assert_eq!((leader.node.as_str(), leader.incarnation), ("b", at_b.incarnation()));
    assert_eq!(leader.revision, second);
}

async fn another_process_leads_when_the_leaders_lease_ends(bench: &Bench) {
    let [(a, at_a), (b, at_b)] = bench.two().await;
    let first = a.campaign(&at_a).await.unwrap();
    a.cut();
    let mut waiting = Box::pin(b.campaign(&at_b));
    let second = bench.until_some("another leads", async || {
        let held = bench.holds(at_a.authority());
        let soon = std::time::Duration::from_millis(5);
        let second = tokio::time::timeout(soon, &mut waiting).await.ok();
        assert!(second.is_none() || !held, "there are two leaders");
        second
    });
    assert!(second.await.unwrap() > first);
}

async fn a_waiting_process_learns_of_its_eviction(bench: &Bench) {
    let [(a, at_a), (b, at_b)] = bench.two().await;
    let _leads = a.campaign(&at_a).await.unwrap();
    let mut waiting = Box::pin(b.campaign(&at_b));
    a.evict(at_b.incarnation()).await.unwrap();
    let told = bench.until_some("the process is told", async || {
        tokio::time::timeout(TTL / 20, &mut waiting).await.ok()
    });
    let error = told.await.unwrap_err();
    assert!(matches!(error, LeaseError::LostLease { .. }), "{error}");
}

async fn waiting_for_leadership_survives_an_outage(bench: &mut Bench) {
    let [(a, at_a), (b, at_b)] = bench.two().await;
    let first = a.campaign(&at_a).await.unwrap();
    let task = tokio::spawn({
        let (b, at_b) = (b.leases(), at_b.clone());
        async move { b.campaign(&at_b).await }
    });
    bench.pass(TTL / 4).await;
    bench.crash(&[&a, &b], TTL / 4).await;
    bench.until("the store is back", async || a.get("x").await.is_ok()).await;
    assert!(!task.is_finished());
    at_a.leave().await.unwrap();
    let second = task.await.unwrap().unwrap();
    assert!(second > first);
}
