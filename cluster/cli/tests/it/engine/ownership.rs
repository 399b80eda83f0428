//! The ownership of regions: one owner at a time, with growing epochs.

use std::collections::{BTreeMap, BTreeSet};

use purview::scene::Epoch;
use purview_server::storage::{Claim, LeaseError, Loss, Released};

use super::bench::{Bench, TTL, granted, node, refused, region};
use super::over_each;

over_each!(Bench: embedded, simulated, etcd: {
    a_claim_excludes_other_claims,
    an_owner_that_claims_again_gets_the_same_grant,
    epochs_grow_with_every_grant_of_any_region,
    of_many_concurrent_claims_one_succeeds,
    a_take_over_names_the_epoch_that_it_ends,
    only_the_owner_can_release_and_only_under_its_epoch,
    leaving_frees_everything,
    joining_again_is_another_incarnation,
    an_evicted_node_learns_it_and_its_regions_are_free,
    a_lease_without_a_holder_expires,
    illegal_data_is_refused,
});

async fn a_claim_excludes_other_claims(bench: &Bench) {
    let [(a, at_a), (b, at_b)] = bench.two().await;
    let grant = granted(a.claim(&at_a, &region(1)).await.unwrap());
    let owner = refused(b.claim(&at_b, &region(1)).await.unwrap()).unwrap();
    assert_eq!(owner.node, "a");
    assert_eq!((owner.incarnation, owner.epoch), (at_a.incarnation(), grant.epoch));
    granted(b.claim(&at_b, &region(2)).await.unwrap());
}

async fn an_owner_that_claims_again_gets_the_same_grant(bench: &Bench) {
    let (a, at_a) = bench.node("a").await;
    let first = granted(a.claim(&at_a, &region(1)).await.unwrap());
    let again = granted(a.claim(&at_a, &region(1)).await.unwrap());
    assert_eq!(first, again);
}

async fn epochs_grow_with_every_grant_of_any_region(bench: &Bench) {
    let [(a, at_a), (b, at_b)] = bench.two().await;
    let mut last = Epoch(0);
    for round in 0..3 {
        let grant = granted(a.claim(&at_a, &region(1)).await.unwrap());
        assert!(grant.epoch > last, "round {round}: {grant:?} after {last}");
        let other = granted(b.claim(&at_b, &region(10 + round)).await.unwrap());
        assert!(other.epoch > grant.epoch, "round {round}: {other:?} after {grant:?}");
        let taken = granted(b.take_over(&at_b, &region(1), grant.epoch).await.unwrap());
        assert!(taken.epoch > other.epoch, "round {round}: {taken:?} after {other:?}");
        let free = b.release(&at_b, &region(1), taken.epoch).await.unwrap();
        assert_eq!(free, Released::Free);
        last = taken.epoch;
    }
}

async fn of_many_concurrent_claims_one_succeeds(bench: &Bench) {
    const NODES: usize = 6;
    const REGIONS: u32 = 20;
    let mut tasks = tokio::task::JoinSet::new();
    for i in 0..NODES {
        let (way, member) = bench.node(&format!("n{i}")).await;
        tasks.spawn(async move {
            let mut epochs = BTreeMap::new();
            let mut refusals = Vec::new();
            for n in 0..REGIONS {
                match way.claim(&member, &region(n)).await.unwrap() {
                    Claim::Granted(grant) => {
                        epochs.insert(n, grant.epoch);
                    }
                    Claim::Refused(owner) => refusals.push((n, owner.unwrap().epoch)),
                }
            }
            (epochs, refusals, way, member)
        });
    }
    let done = tasks.join_all().await;
    let grants: Vec<(u32, Epoch)> = done.iter().flat_map(|(g, ..)| g.clone()).collect();
    let owners: BTreeMap<u32, Epoch> = grants.iter().copied().collect();
    assert_eq!((grants.len(), owners.len()), (REGIONS as usize, REGIONS as usize), "{grants:?}");
    let epochs: BTreeSet<Epoch> = owners.values().copied().collect();
    assert_eq!(epochs.len(), REGIONS as usize, "an epoch was granted twice: {grants:?}");
    for (n, told) in done.iter().flat_map(|(_, refusals, ..)| refusals) {
        assert_eq!(owners[n], *told, "who was refused region {n} was told of another grant");
    }
}

async fn a_take_over_names_the_epoch_that_it_ends(bench: &Bench) {
    let [(a, at_a), (b, at_b)] = bench.two().await;
    let nobody = refused(b.take_over(&at_b, &region(1), Epoch(1)).await.unwrap());
    assert_eq!(nobody, None);
    let first = granted(a.claim(&at_a, &region(1)).await.unwrap());
    for wrong in [0, 1, first.epoch.0 - 1, first.epoch.0 + 1, u64::MAX] {
        let owner = refused(b.take_over(&at_b, &region(1), Epoch(wrong)).await.unwrap());
        assert_eq!(owner.unwrap().epoch, first.epoch, "expected {wrong}");
    }
    let second = granted(b.take_over(&at_b, &region(1), first.epoch).await.unwrap());
    assert!(second.epoch > first.epoch);
    // A repeated request, because the answer was lost: the same grant.
    let again = granted(b.take_over(&at_b, &region(1), first.epoch).await.unwrap());
    assert_eq!(second, again);
    // The old owner is too late.
    let late = refused(a.take_over(&at_a, &region(1), first.epoch).await.unwrap());
    assert_eq!(late.unwrap().epoch, second.epoch);
    // The region ends with the lease of the new owner, not with that of the old one.
    at_a.leave().await.unwrap();
    let kept =
        refused(b.take_over(&at_b, &region(1), Epoch(0)).await.unwrap_or_else(|e| panic!("{e}")))
            .map(|owner| owner.epoch);
    assert_eq!(kept, Some(second.epoch));
    // A move to itself, which gives a higher epoch.
    let third = granted(b.take_over(&at_b, &region(1), second.epoch).await.unwrap());
    assert!(third.epoch > second.epoch);
    // All grants carry the mark of the first owner; its own claim does, too. A later claim does not.
    let own = granted(b.claim(&at_b, &region(1)).await.unwrap());
    let lineages = [&first, &second, &third, &own].map(|grant| grant.lineage);
    assert_eq!(lineages, [first.epoch; 4]);
    assert_eq!(b.release(&at_b, &region(1), third.epoch).await, Ok(Released::Free));
    let anew = granted(b.claim(&at_b, &region(1)).await.unwrap());
    assert_eq!(anew.lineage, anew.epoch);
}

async fn only_the_owner_can_release_and_only_under_its_epoch(bench: &Bench) {
    let [(a, at_a), (b, at_b)] = bench.two().await;
    let grant = granted(a.claim(&at_a, &region(1)).await.unwrap());
    let Released::Not(owner) = b.release(&at_b, &region(1), grant.epoch).await.unwrap() else {
        panic!("another released it");
    };
    assert_eq!(owner.unwrap().incarnation, at_a.incarnation());
    let wrong = Epoch(grant.epoch.0 + 1);
    let Released::Not(owner) = a.release(&at_a, &region(1), wrong).await.unwrap() else {
        panic!("released under a wrong epoch");
    };
    assert_eq!(owner.unwrap().epoch, grant.epoch);
    let release = async || a.release(&at_a, &region(1), grant.epoch).await.unwrap();
    assert_eq!(release().await, Released::Free);
    assert_eq!(release().await, Released::Not(None), "released twice");
    granted(b.claim(&at_b, &region(1)).await.unwrap());
}

async fn leaving_frees_everything(bench: &Bench) {
    let [(a, at_a), (b, at_b)] = bench.two().await;
    for n in 0..3 {
        granted(a.claim(&at_a, &region(n)).await.unwrap());
    }
    assert!(bench.holds(at_a.authority()));
    at_a.leave().await.unwrap();
    assert!(!bench.holds(at_a.authority()));
    assert_eq!(at_a.lost().await, Loss::Left);
    at_a.leave().await.unwrap();
    for n in 0..3 {
        granted(b.claim(&at_b, &region(n)).await.unwrap());
    }
    let late = a.claim(&at_a, &region(9)).await.unwrap_err();
    let want = LeaseError::LostLease { node: "a".into(), incarnation: at_a.incarnation() };
    assert_eq!(late, want);
}

async fn joining_again_is_another_incarnation(bench: &Bench) {
    let (a, first) = bench.node("a").await;
    granted(a.claim(&first, &region(1)).await.unwrap());
    // One living member has a name.
    let taken = a.join(node("a"), TTL).await.err();
    let address = node("a").address;
    assert_eq!(taken, Some(LeaseError::NameTaken { name: "a".into(), address }));
    assert!(bench.holds(first.authority()));
    // Once the first one has ended, the name is free.
    first.leave().await.unwrap();
    let second = a.join(node("a"), TTL).await.unwrap();
    assert!(second.incarnation() > first.incarnation());
    granted(a.claim(&second, &region(1)).await.unwrap());
    assert!(matches!(a.claim(&first, &region(2)).await.unwrap_err(), LeaseError::LostLease { .. }));
}

async fn an_evicted_node_learns_it_and_its_regions_are_free(bench: &Bench) {
    let [(a, at_a), (b, at_b)] = bench.two().await;
    let grant = granted(a.claim(&at_a, &region(1)).await.unwrap());
    assert!(b.evict(at_a.incarnation()).await.unwrap());
    assert!(!b.evict(at_a.incarnation()).await.unwrap());
    let next = granted(b.claim(&at_b, &region(1)).await.unwrap());
    assert!(next.epoch > grant.epoch);
    bench.until("the evicted node is told", async || at_a.loss() == Some(Loss::Gone)).await;
    assert!(!bench.holds(at_a.authority()));
    let late = a.take_over(&at_a, &region(1), next.epoch).await.unwrap_err();
    assert!(matches!(late, LeaseError::LostLease { .. }), "{late}");
    assert!(bench.holds(at_b.authority()));
    assert_eq!(at_b.loss(), None);
}

async fn a_lease_without_a_holder_expires(bench: &Bench) {
    let [(a, at_a), (b, at_b)] = bench.two().await;
    let first = granted(a.claim(&at_a, &region(1)).await.unwrap());
    let authority = at_a.authority().clone();
    let clone = at_a.clone();
    drop(at_a);
    // A clone holds the lease.
    bench.pass(TTL * 2).await;
    refused(b.claim(&at_b, &region(1)).await.unwrap());
    assert!(bench.holds(&authority));
    drop(clone);
    let next = bench.until_some("the lease runs out", async || {
        let held = bench.holds(&authority);
        match b.claim(&at_b, &region(1)).await.unwrap() {
            Claim::Granted(grant) => {
                assert!(!held, "taken from one who still held it");
                Some(grant.epoch)
            }
            Claim::Refused(_) => None,
        }
    });
    assert!(next.await > first.epoch);
}

async fn illegal_data_is_refused(bench: &Bench) {
    let (a, at_a) = bench.node("a").await;
    let illegal = |e: LeaseError| assert!(matches!(e, LeaseError::Illegal { .. }), "{e}");
    illegal(a.join(node(""), TTL).await.unwrap_err());
    illegal(a.join(node(&"x".repeat(256)), TTL).await.unwrap_err());
    illegal(a.join(node("b"), TTL / 10).await.unwrap_err());
    illegal(a.join(node("b"), TTL * 1_000).await.unwrap_err());
    let mut key = region(1);
    key.scene = String::new();
    illegal(a.claim(&at_a, &key).await.unwrap_err());
}
