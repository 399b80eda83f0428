//! Versioned values: a writer must know the present version.

use std::sync::Arc;

use bytes::Bytes;
use purview_server::storage::{LeaseError, Leases, Put, Revision};

use super::bench::Bench;
use super::over_each;

over_each!(Bench: embedded, simulated, etcd: {
    a_value_changes_only_for_a_writer_that_knows_its_version,
    all_concurrent_creators_get_the_same_value,
    of_many_concurrent_increments_none_is_lost,
    values_stay_when_their_writer_leaves,
    illegal_values_are_refused,
});

fn done(put: Put) -> Revision {
    match put {
        Put::Done(revision) => revision,
        Put::Refused(_) => panic!("{put:?}"),
    }
}

async fn a_value_changes_only_for_a_writer_that_knows_its_version(bench: &Bench) {
    let a = bench.way().await;
    assert_eq!(a.get("plan").await.unwrap(), None);
    let absent = a.put_if("plan", Some(Revision(7)), "no".into()).await.unwrap();
    assert_eq!(absent, Put::Refused(None));
    let first = done(a.put_if("plan", None, "one".into()).await.unwrap());
    // A longer key with the same prefix is another key.
    done(a.put_if("plan b", None, "other".into()).await.unwrap());
    let value = a.get("plan").await.unwrap().unwrap();
    assert_eq!((value.revision, &*value.data), (first, &b"one"[..]));
    for stale in [None, Some(Revision(0)), Some(Revision(first.0 + 1))] {
        let refused = a.put_if("plan", stale, "no".into()).await.unwrap();
        assert_eq!(refused, Put::Refused(Some(value.clone())));
    }
    let second = done(a.put_if("plan", Some(first), "two".into()).await.unwrap());
    assert!(second > first);
    assert_eq!(&*a.get("plan").await.unwrap().unwrap().data, b"two");
}

async fn all_concurrent_creators_get_the_same_value(bench: &Bench) {
    let mut tasks = tokio::task::JoinSet::new();
    for i in 0..8 {
        let way = bench.way().await;
        tasks
            .spawn(async move { way.get_or_create("clock", format!("{i}").into()).await.unwrap() });
    }
    let values = tasks.join_all().await;
    assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
}

async fn of_many_concurrent_increments_none_is_lost(bench: &Bench) {
    async fn count(leases: Arc<dyn Leases>) {
        for _ in 0..10 {
            loop {
                let now = leases.get_or_create("count", "0".into()).await.unwrap();
                let count: u32 = std::str::from_utf8(&now.data).unwrap().parse().unwrap();
                let next = Bytes::from((count + 1).to_string());
                let put = leases.put_if("count", Some(now.revision), next).await.unwrap();
                if matches!(put, Put::Done(_)) {
                    break;
                }
            }
        }
    }
    let ways = [bench.way().await, bench.way().await, bench.way().await];
    futures::future::join_all(ways.iter().map(|way| count(way.leases()))).await;
    assert_eq!(&*ways[0].get("count").await.unwrap().unwrap().data, b"30");
}

async fn values_stay_when_their_writer_leaves(bench: &Bench) {
    let (a, at_a) = bench.node("a").await;
    done(a.put_if("plan", None, "one".into()).await.unwrap());
    at_a.leave().await.unwrap();
    let b = bench.way().await;
    assert_eq!(&*b.get("plan").await.unwrap().unwrap().data, b"one");
}

async fn illegal_values_are_refused(bench: &Bench) {
    let a = bench.way().await;
    let illegal = |e: LeaseError| assert!(matches!(e, LeaseError::Illegal { .. }), "{e}");
    illegal(a.get("").await.unwrap_err());
    illegal(a.put_if(&"k".repeat(256), None, "x".into()).await.unwrap_err());
    let large = vec![7; 512 << 10];
    illegal(a.put_if("large", None, [&large[..], b"x"].concat().into()).await.unwrap_err());
    done(a.put_if("large", None, large.clone().into()).await.unwrap());
    assert_eq!(a.get("large").await.unwrap().unwrap().data, large);
}
