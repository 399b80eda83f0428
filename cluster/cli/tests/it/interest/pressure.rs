//! A client that does not read stops its own scenes, and no others.

use std::time::Duration;

use purview::interest::{Mode, Reach, Rules};
use purview_server::interest::client::Stream;
use purview_server::interest::encode::{self, change};
use purview_server::interest::proto::{Batch, Change, Delete, Request, change, request};

use super::support::{GROUND, Service, ask, both, circle, create, outcome, scene, tick, walk};

const CROWD: u64 = 300;

/// Lets a crowd, all of whom see each other, come or go.
fn toggle(round: u64) -> Change {
    if round % 2 == 1 {
        let places: Vec<_> = (0..CROWD).map(|id| (id, 0, 0)).collect();
        return create(1, &places);
    }
    change(1, change::Change::Delete(Delete { ids: (0..CROWD).collect() }))
}

/// Sends batches until the service does not take them any more; returns how many it was given.
async fn flood(stream: &Stream) -> u64 {
    let sender = stream.sender();
    for sequence in 2.. {
        let batch = Batch { sequence, changes: vec![toggle(sequence - 1), tick(1)], received: 0 };
        let request = Request { message: Some(request::Message::Batch(batch)) };
        let sent = tokio::time::timeout(Duration::from_secs(2), sender.send(request)).await;
        if sent.is_err() {
            return sequence - 1;
        }
        assert!(sequence < 100_000, "nothing stops the client");
    }
    unreachable!("the range has no end")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_stops_its_own_scenes_and_no_others() {
    let service = Service::start(&[]);
    let mut busy = service.address().begin().await.unwrap();
    let rules = Rules::new(GROUND, Mode::All, Reach::All);
    let own = encode::scene(&circle(), Some(Duration::from_millis(10)));
    let own = change(2, change::Change::CreateScene(own));
    busy.send(vec![scene(1, &rules), own]).await.unwrap();
    let given = flood(&busy).await;
    let blocked = "purview_interest_blocked_sessions";
    service.metric_when(blocked, |n| n == 1.0).await;
    let ticks = service.metric("purview_interest_ticks_total").await;

    let mut other = service.address().begin().await.unwrap();
    ask(&mut other, vec![scene(1, &circle()), create(1, &[(1, 0, 0), (2, 900, 0)]), tick(1)]).await;
    for round in 0..200 {
        let (x, appears) = if round % 2 == 0 { (50, true) } else { (900, false) };
        let outcome = ask(&mut other, vec![walk(1, 2, x, 0), tick(1)]).await;
        assert_eq!(outcome.events(1), both(1, 2, appears));
    }
    // Only the other's scene has ticked, and the client still does not read.
    assert_eq!(service.metric("purview_interest_ticks_total").await, ticks + 201.0);
    assert_eq!(service.metric(blocked).await, 1.0);

    // It reads again: everything comes, in order.
    let (mut events, mut sequence, mut last) = (0, 0, 0);
    while last < given {
        let outcome = outcome(&mut busy).await.unwrap();
        assert!(outcome.sequence > sequence && outcome.refused.is_empty());
        (sequence, last) = (outcome.sequence, outcome.applied);
        events += outcome.events(1).len();
    }
    assert_eq!(events as u64, (given - 1) * CROWD * (CROWD - 1));
    service.metric_when(blocked, |n| n == 0.0).await;
    service.metric_when("purview_interest_late_ticks_total", |n| n > 0.0).await;
    service.metric_when("purview_interest_blocked_seconds_total", |n| n > 0.0).await;
}
