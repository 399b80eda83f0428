//! A watch delivers a full snapshot, then every change in order, through any outage of the store.

use std::time::Duration;

use bytes::Bytes;
use purview_server::storage::{Event, LeaseError, Put, View, What};

use super::bench::{Bench, TTL, granted, node, region, watch_until};
use super::over_each;

over_each!(Bench: embedded, simulated, etcd: {
    a_watch_begins_with_a_full_snapshot,
    changes_come_in_order_through_a_crash,
    a_lease_that_ends_is_one_change,
    compacted_changes_come_as_a_full_snapshot,
    an_outage_is_reported_once_and_no_change_is_missed,
    several_watches_receive_the_same,
});

async fn a_watch_begins_with_a_full_snapshot(bench: &Bench) {
    let (a, at_a) = bench.node("a").await;
    let grant = granted(a.claim(&at_a, &region(1)).await.unwrap());
    a.put_if("plan", None, "p".into()).await.unwrap();
    let mut watch = a.watch();
    let Some(Ok(Event::Snapshot(view))) = watch.next().await else { panic!("no snapshot") };
    assert_eq!(view.nodes[&at_a.incarnation()], node("a"));
    assert_eq!(view.owners[&region(1)].epoch, grant.epoch);
    assert_eq!(view.owners[&region(1)].incarnation, at_a.incarnation());
    assert_eq!(&*view.values["plan"].data, b"p");
    assert_eq!(view.leader, None);
    assert_eq!((view.nodes.len(), view.owners.len(), view.values.len()), (1, 1, 1));
}

async fn changes_come_in_order_through_a_crash(bench: &mut Bench) {
    const COUNTS: u64 = 30;
    let (a, at_a) = bench.node("a").await;
    let b = bench.way().await;
    let (mut watch, mut view) = (b.watch(), View::default());
    let mut events = watch_until(&mut watch, &mut view, |view| view.nodes.len() == 1).await;
    let mut revision = None;
    for i in 0..COUNTS {
        if i == COUNTS / 3 {
            bench.crash(&[&a, &b], Duration::from_millis(300)).await;
        }
        let data = Bytes::from(i.to_string());
        let put = bench.until_some("the store answers", async || {
            a.put_if("count", revision, data.clone()).await.ok()
        });
        let Put::Done(now) = put.await else { panic!("it was refused") };
        revision = Some(now);
    }
    let last = (COUNTS - 1).to_string();
    let done = |view: &View| view.values.get("count").is_some_and(|value| value.data == last);
    events.extend(watch_until(&mut watch, &mut view, done).await);
    let snapshots = events.iter().filter(|event| matches!(event, Event::Snapshot(_))).count();
    assert_eq!(snapshots, 1, "the steps were known");
    let want: Vec<String> = (0..COUNTS).map(|i| i.to_string()).collect();
    assert_eq!(counts(&events), want);
    assert_eq!(at_a.loss(), None);
}

/// The counts of the events, in order.
fn counts(events: &[Event]) -> Vec<String> {
    let changes = events.iter().flat_map(|event| match event {
        Event::Snapshot(_) => &[],
        Event::Change(change) => &change.what[..],
    });
    let counts = changes.filter_map(|what| match what {
        What::Set(key, value) if key == "count" => Some(&value.data),
        _ => None,
    });
    counts.map(|data| String::from_utf8(data.to_vec()).unwrap()).collect()
}

async fn a_lease_that_ends_is_one_change(bench: &Bench) {
    let [(a, at_a), (b, _at_b)] = bench.two().await;
    let (mut watch, mut view) = (b.watch(), View::default());
    for n in 0..5 {
        granted(a.claim(&at_a, &region(n)).await.unwrap());
    }
    a.campaign(&at_a).await.unwrap();
    watch_until(&mut watch, &mut view, |view| view.owners.len() == 5 && view.leader.is_some())
        .await;
    at_a.leave().await.unwrap();
    let incarnation = at_a.incarnation();
    let events =
        watch_until(&mut watch, &mut view, |view| !view.nodes.contains_key(&incarnation)).await;
    assert_eq!((view.owners.len(), &view.leader), (0, &None));
    let [Event::Change(change)] = &events[..] else { panic!("{events:#?}") };
    assert_eq!(change.what.len(), 7, "{change:#?}");
}

async fn compacted_changes_come_as_a_full_snapshot(bench: &Bench) {
    let (a, at_a) = bench.node("a").await;
    let b = bench.way().await;
    let (mut watch, mut view) = (b.watch(), View::default());
    granted(a.claim(&at_a, &region(0)).await.unwrap());
    watch_until(&mut watch, &mut view, |view| view.owners.len() == 1).await;
    b.cut();
    // Until the watch at that connection has noticed; otherwise it still reports the change after the reconnect.
    bench.pass(Duration::from_millis(200)).await;
    let mut last = 0;
    for n in 1..10 {
        last = granted(a.claim(&at_a, &region(n)).await.unwrap()).epoch.0;
    }
    at_a.leave().await.unwrap();
    let other = a.join(node("later"), TTL).await.unwrap();
    last = last.max(other.incarnation().0);
    bench.compact(last).await;
    if let Bench::Etcd { .. } = bench {
        // The stream that etcd still feeds must have ended, as its silence shows.
        bench.pass(Duration::from_secs(8)).await;
    }
    b.mend();
    let events =
        watch_until(&mut watch, &mut view, |view| view.nodes.contains_key(&other.incarnation()))
            .await;
    assert!(view.owners.is_empty(), "{view:#?}");
    let begins = events.first();
    assert!(matches!(begins, Some(Event::Snapshot(_))), "{events:#?}");
}

async fn an_outage_is_reported_once_and_no_change_is_missed(bench: &Bench) {
    let (a, at_a) = bench.node("a").await;
    let b = bench.way().await;
    let mut watch = b.watch();
    let Some(Ok(Event::Snapshot(mut view))) = watch.next().await else { panic!("no snapshot") };
    b.cut();
    let told = bench.until_some("the outage is reported", async || {
        tokio::time::timeout(Duration::from_millis(5), watch.next()).await.ok()
    });
    let error = told.await.expect("the stream goes on").unwrap_err();
    assert!(matches!(error, LeaseError::Unreachable { .. }), "{error}");
    let quiet = tokio::time::timeout(Duration::from_secs(3), watch.next()).await;
    assert!(quiet.is_err(), "told again: {quiet:?}");
    for n in 0..3 {
        granted(a.claim(&at_a, &region(n)).await.unwrap());
    }
    b.mend();
    let events = watch_until(&mut watch, &mut view, |view| view.owners.len() == 3).await;
    assert_eq!(events.len(), 3, "{events:#?}");
}

async fn several_watches_receive_the_same(bench: &Bench) {
    let [(a, at_a), (b, at_b)] = bench.two().await;
    let mut first = (a.watch(), View::default());
    granted(a.claim(&at_a, &region(0)).await.unwrap());
    let mut second = (b.watch(), View::default());
    granted(b.claim(&at_b, &region(1)).await.unwrap());
    let c = bench.way().await;
    let mut late = (c.watch(), View::default());
    for (watch, view) in [&mut first, &mut second, &mut late] {
        watch_until(watch, view, |view| view.owners.len() == 2).await;
    }
    assert_eq!(first.1, second.1);
    assert_eq!(first.1, late.1);
}
