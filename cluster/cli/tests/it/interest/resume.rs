//! Broken streams: what is resumed, what is not, and what the client is told.

use std::time::Duration;

use purview::interest::{Mode, Reach, Rules};
use purview_server::interest::client::{Address, Stream};
use purview_server::interest::encode::{self, change};
use purview_server::interest::proto::{
    AllPairs, Batch, Change, Query, Request, Update, change, query, request,
};
use tonic::Code;

use super::support::{
    GROUND, Service, ask, both, circle, create, outcome, runtime, scene, status, tick, walk,
    with_stream,
};
use crate::proxy::Proxy;

/// The batches of a history: 40 entities that walk to and fro, and some that come and go.
fn batches() -> Vec<Vec<Change>> {
    let places: Vec<_> = (0..40).map(|id| (id, 100 * id as i32, 0)).collect();
    let mut all = vec![vec![scene(1, &circle()), create(1, &places), tick(1)]];
    for round in 1..60_u64 {
        let walks = (0..40_u64).map(|id| {
            let x = (id * 100 + round * (id % 7) * 40) % 4_000;
            (id, purview::scene::Pos::ground(x as i32, 0))
        });
        let walks = walks.collect::<Vec<_>>();
        let born = create(1, &[(1_000 + round, 50 * round as i32, 10)]);
        all.push(vec![change(1, encode::moves(&walks)), born, tick(1)]);
    }
    all
}

fn request(sequence: usize, changes: &[Change]) -> Request {
    let batch = Batch { sequence: sequence as u64, changes: changes.to_vec(), received: 0 };
    Request { message: Some(request::Message::Batch(batch)) }
}

/// Plays the history, and cuts the connection after each so many updates.
async fn play(service: &Service, cut_after: usize) -> (Vec<Update>, usize) {
    let (batches, mut updates, mut cuts) = (batches(), Vec::<Update>::new(), 0);
    let mut session = None;
    loop {
        let wire = Proxy::to(service.ready.listen.unwrap());
        let received = updates.last().map_or(0, |update| update.sequence);
        let address = Address::new(&wire.url());
        let mut stream = match &session {
            None => address.begin().await.unwrap(),
            Some(session) => address.resume(Clone::clone(session), received).await.unwrap(),
        };
        assert_eq!(stream.opened.resumed, session.is_some(), "{:?}", stream.opened);
        session = Some(stream.opened.session.clone());
        let (from, sender) = (stream.opened.applied as usize, stream.sender());
        let rest: Vec<_> =
            batches.iter().enumerate().skip(from).map(|(i, b)| request(i + 1, b)).collect();
        // A task that sends everything: much is on its way when the connection is cut.
        let sending = tokio::spawn(async move {
            for request in rest {
                if sender.send(request).await.is_err() {
                    return;
                }
            }
        });
        for _ in 0..cut_after {
            updates.push(stream.update().await.unwrap().unwrap());
            if updates.len() == batches.len() {
                return (updates, cuts);
            }
        }
        drop(wire);
        sending.abort();
        // The client loses what had come and it has not looked at.
        drop(stream);
        cuts += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_connection_loses_and_repeats_nothing() {
    let service = Service::start(&[]);
    let (whole, none) = play(&service, usize::MAX).await;
    let (cut, cuts) = play(&service, 7).await;
    assert_eq!(none, 0);
    assert_eq!(cuts, 8);
    let events = whole.iter().flat_map(|update| &update.scenes).map(|s| s.observers.len());
    assert!(events.sum::<usize>() > 1_000);
    assert_eq!(whole, cut);
    let resumed = service.metric("purview_interest_resumes_total{outcome=\"resumed\"}").await;
    assert_eq!(resumed as usize, cuts);
}

#[test]
fn a_session_that_is_resumed_too_late_begins_anew() {
    with_stream(&["--resume-within", "200ms"], async |service, mut stream| {
        let session = stream.opened.session.clone();
        assert_eq!(stream.opened.resume_within_ms, 200);
        let begin = vec![scene(1, &circle()), create(1, &[(1, 0, 0), (2, 50, 0)]), tick(1)];
        assert_eq!(ask(&mut stream, begin.clone()).await.events(1), both(1, 2, true));
        drop(stream);
        for name in ["sessions{state=\"connected\"}", "sessions{state=\"waiting\"}", "entities"] {
            service.metric_when(&format!("purview_interest_{name}"), |n| n == 0.0).await;
        }
        let mut stream = service.address().resume(session.clone(), 1).await.unwrap();
        let opened = &stream.opened;
        assert_eq!((opened.resumed, opened.applied), (false, 0));
        assert_eq!(opened.reason, "no session has this name, or its time is over");
        assert_ne!(opened.session, session);
        // The client sends its state again, and the same ids are free.
        assert_eq!(ask(&mut stream, begin).await.events(1), both(1, 2, true));
        let restarted = "purview_interest_resumes_total{outcome=\"restarted\"}";
        assert_eq!(service.metric(restarted).await, 1.0);
    });
}

#[test]
fn a_client_that_lacks_updates_which_are_no_longer_kept_begins_anew() {
    with_stream(&["--keep", "1"], async |service, mut stream| {
        let session = stream.opened.session.clone();
        let rules = Rules::new(GROUND, Mode::All, Reach::All);
        let places: Vec<_> = (0..500).map(|id| (id, 0, 0)).collect();
        let outcome = ask(&mut stream, vec![scene(1, &rules), create(1, &places), tick(1)]).await;
        assert_eq!(outcome.events(1).len(), 500 * 499);
        assert!(outcome.sequence > 3);
        let last = outcome.sequence;
        drop(stream);
        let fresh = service.address().resume(session.clone(), 1).await.unwrap();
        assert!(!fresh.opened.resumed);
        let reason = &fresh.opened.reason;
        assert!(
            reason.starts_with("updates from 2 on are needed, but only those from"),
            "{reason}"
        );
        assert_eq!(fresh.opened.applied, 0);
        // The session is another one since: what it sent before counts no longer.
        let error = service.address().resume(session, last).await.unwrap_err();
        let text = format!("received {last}, but the last update that was sent is 0");
        assert_eq!(status(Some(error)), (Code::InvalidArgument, text));
    });
}

/// The changes that make a scene with a large outcome: some 30 MB.
fn crowd() -> Vec<Change> {
    let rules = Rules::new(GROUND, Mode::All, Reach::All);
    let places: Vec<_> = (0..1_300).map(|id| (id, 0, 0)).collect();
    vec![scene(1, &rules), create(1, &places), tick(1)]
}

/// Reads the updates of a crowd; the connection is cut whenever so many have come.
async fn read_crowd(service: &Service, cut_after: usize) -> (Vec<u64>, usize, usize) {
    let wire = Proxy::to(service.ready.listen.unwrap());
    let mut stream = Address::new(&wire.url()).begin().await.unwrap();
    let session = stream.opened.session.clone();
    stream.send(crowd()).await.unwrap();
    let (mut wire, mut numbers, mut events, mut cuts) = (wire, Vec::new(), 0, 0);
    loop {
        for _ in 0..cut_after {
            let update = stream.update().await.unwrap().unwrap();
            numbers.push(update.sequence);
            events += update.scenes.iter().map(|scene| scene.observers.len()).sum::<usize>();
            if !update.more {
                return (numbers, events, cuts);
            }
        }
        // Much is on its way that the client never gets.
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(wire);
        drop(stream);
        cuts += 1;
        wire = Proxy::to(service.ready.listen.unwrap());
        let received = numbers.last().copied().unwrap_or_default();
        stream = Address::new(&wire.url()).resume(session.clone(), received).await.unwrap();
        assert!(stream.opened.resumed, "cut {cuts}: {}", stream.opened.reason);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_breaks_within_a_large_outcome_is_resumed_wherever_it_breaks() {
    let service = Service::start(&["--keep", "2"]);
    let (numbers, events, cuts) = read_crowd(&service, 7).await;
    assert_eq!(events, 1_300 * 1_299);
    assert!(cuts >= 15, "{cuts}");
    assert!(numbers.iter().copied().eq(1..=numbers.len() as u64));
}

#[test]
fn a_client_that_has_lost_its_state_asks_for_the_pairs() {
    with_stream(&[], async |service, mut stream| {
        let session = stream.opened.session.clone();
        stream.send(crowd()).await.unwrap();
        stream.update().await.unwrap();
        drop(stream);
        let mut stream = service.address().recover(session).await.unwrap();
        let opened = &stream.opened;
        assert_eq!((opened.resumed, &opened.scenes[..], opened.applied), (true, &[1][..], 1));
        let query = Query { id: 9, query: Some(query::Query::Pairs(AllPairs {})) };
        let asked = change(1, change::Change::Query(query));
        stream.send(vec![asked]).await.unwrap();
        let mut pairs = Vec::new();
        loop {
            let update = stream.update().await.unwrap().unwrap();
            for answer in &update.answers {
                assert_eq!((answer.query, answer.scene), (9, 1));
                pairs.extend(answer.observers.iter().copied().zip(answer.ids.iter().copied()));
            }
            if update.answers.last().is_some_and(|answer| !answer.more) {
                break;
            }
        }
        let all = (0..1_300_u64).flat_map(|a| (0..1_300).map(move |b| (a, b)));
        assert!(pairs.into_iter().eq(all.filter(|(a, b)| a != b)));
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_without_a_scene_do_not_wait_and_the_oldest_waiting_one_gives_way() {
    let service = Service::start(&["--sessions", "5"]);
    for _ in 0..40 {
        drop(service.address().begin().await.unwrap());
    }
    let mut names = Vec::new();
    for _ in 0..7 {
        let mut stream = service.address().begin().await.unwrap();
        ask(&mut stream, vec![scene(1, &circle())]).await;
        names.push(stream.opened.session.clone());
        drop(stream);
        // It waits before the next one comes.
        let (count, waiting) = (names.len().min(5), "purview_interest_sessions{state=\"waiting\"}");
        service.metric_when(waiting, |n| n == count as f64).await;
    }
    service.metric_when("purview_interest_evicted_sessions_total", |n| n == 2.0).await;
    let newest = service.address().resume(names[6].clone(), 1).await.unwrap();
    assert!(newest.opened.resumed);
    // The oldest one has gone; the stream that asks for it begins a session.
    let oldest = service.address().resume(names[0].clone(), 1).await.unwrap();
    assert!(!oldest.opened.resumed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_resumes_takes_the_session_from_another() {
    let service = Service::start(&[]);
    let mut old = service.address().begin().await.unwrap();
    ask(&mut old, vec![scene(1, &circle()), create(1, &[(1, 0, 0)]), tick(1)]).await;
    let session = old.opened.session.clone();
    let mut new = service.address().resume(session, 1).await.unwrap();
    assert!(new.opened.resumed);
    let error = outcome(&mut old).await.unwrap_err();
    assert_eq!(status(Some(error)).0, Code::Aborted);
    let outcome = ask(&mut new, vec![create(1, &[(2, 50, 0)]), tick(1)]).await;
    assert_eq!((outcome.sequence, outcome.events(1)), (2, both(1, 2, true).to_vec()));
}

#[test]
fn a_stream_that_its_client_closes_is_answered_to_the_end_and_may_be_resumed() {
    with_stream(&[], async |service, mut stream| {
        let session = stream.opened.session.clone();
        let begin = vec![scene(1, &circle()), create(1, &[(1, 0, 0), (2, 50, 0)]), tick(1)];
        stream.send(begin).await.unwrap();
        stream.send(vec![walk(1, 2, 5_000, 0), tick(1)]).await.unwrap();
        let mut rest = stream.half_close();
        let mut updates = 0;
        while rest.message().await.unwrap().is_some() {
            updates += 1;
        }
        assert_eq!(updates, 2);
        let mut stream = service.address().resume(session.clone(), 2).await.unwrap();
        assert_eq!((stream.opened.resumed, stream.opened.applied), (true, 2));
        let outcome = ask(&mut stream, vec![walk(1, 2, 50, 0), tick(1)]).await;
        assert_eq!(outcome.events(1), both(1, 2, true));
        // A session that its client ends is gone at once.
        let mut rest = stream.close().await.unwrap();
        assert_eq!(rest.message().await.unwrap(), None);
        service.metric_when("purview_interest_entities", |n| n == 0.0).await;
        let stream = service.address().resume(session, 3).await.unwrap();
        assert!(!stream.opened.resumed);
    });
}

/// Creates a scene that ticks by itself.
fn own_scene(id: u64, ms: u64) -> Change {
    let tick = Some(Duration::from_millis(ms));
    change(id, change::Change::CreateScene(encode::scene(&circle(), tick)))
}

/// The next events, and the number of their update.
async fn next_event(stream: &mut Stream) -> (Vec<purview::interest::Event>, u64) {
    loop {
        let outcome = outcome(stream).await.unwrap();
        if !outcome.events(1).is_empty() {
            return (outcome.events(1), outcome.sequence);
        }
    }
}

#[test]
fn scenes_that_tick_by_themselves_stand_still_without_a_stream() {
    with_stream(&[], async |service, mut stream| {
        let session = stream.opened.session.clone();
        let begin = vec![own_scene(1, 20), create(1, &[(1, 0, 0), (2, 50, 0)])];
        stream.send(begin).await.unwrap();
        let (events, received) = next_event(&mut stream).await;
        assert_eq!(events, both(1, 2, true));
        drop(stream);
        service.metric_when("purview_interest_sessions{state=\"waiting\"}", |n| n == 1.0).await;
        // Another client's scene of the same pace shows that the time of ten ticks has passed.
        let ticks = service.metric("purview_interest_ticks_total").await;
        let mut clock = service.address().begin().await.unwrap();
        clock.send(vec![own_scene(1, 20)]).await.unwrap();
        let passed = |n| n >= ticks + 10.0;
        service.metric_when("purview_interest_ticks_total", passed).await;
        drop(clock);
        let mut stream = service.address().resume(session, received).await.unwrap();
        stream.send(vec![walk(1, 2, 5_000, 0)]).await.unwrap();
        assert_eq!(next_event(&mut stream).await.0, both(1, 2, false));
        // If the first scene had ticked, too, half of the time would have passed, and no tick were late.
        assert!(service.metric("purview_interest_late_ticks_total").await >= 5.0);
    });
}

#[test]
fn a_service_that_ends_tells_its_clients() {
    let service = Service::start(&[]);
    let runtime = runtime();
    let mut stream = runtime.block_on(service.address().begin()).unwrap();
    assert_eq!(service.terminate(), Some(0));
    let error = runtime.block_on(outcome(&mut stream)).unwrap_err();
    let text = "the service is being shut down".to_owned();
    assert_eq!(status(Some(error)), (Code::Unavailable, text));
}
