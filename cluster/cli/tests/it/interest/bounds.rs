//! One client cannot end the service for the others: ticks, requests and clients that do not read are
//! bounded, and the process stays small.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use purview::interest::{Mode, Reach, Rules};
use purview::scene::RangeSet;
use purview_server::interest::client::Stream;
use purview_server::interest::encode::change;
use purview_server::interest::proto::{Change, Delete, Reason, change};
use tonic::Code;

use super::support::{
    GROUND, Service, ask, both, circle, create, outcome, raw, runtime, scene, tick, walk,
};

const MIB: usize = 1 << 20;

fn crowd(ids: std::ops::Range<u64>) -> Change {
    create(1, &ids.map(|id| (id, 0, 0)).collect::<Vec<_>>())
}

/// Another client is served meanwhile.
async fn serves_others(service: &Service) {
    let begin = Instant::now();
    let mut other = service.address().begin().await.unwrap();
    let changes = vec![scene(1, &circle()), create(1, &[(1, 0, 0), (2, 900, 0)]), tick(1)];
    ask(&mut other, changes).await;
    let outcome = ask(&mut other, vec![walk(1, 2, 50, 0), tick(1)]).await;
    assert_eq!(outcome.events(1), both(1, 2, true));
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[test]
fn ten_thousand_entities_at_one_point_are_refused_and_end_nothing() {
    let service = Service::start(&[]);
    runtime().block_on(async {
        let modes = [
            circle(),
            Rules::new(GROUND, Mode::All, Reach::All),
            Rules::new(GROUND, Mode::Patches { patch_cm: 400 }, Reach::Rings(RangeSet::FULL)),
        ];
        for rules in modes {
            let mut stream = service.address().begin().await.unwrap();
            let refused =
                ask(&mut stream, vec![scene(1, &rules), crowd(0..10_000), tick(1)]).await.refused;
            let [refusal] = &refused[..] else { panic!("{refused:?}") };
            assert_eq!((refusal.change, refusal.reason()), (Some(2), Reason::TooManyEvents));
            let text = "the tick would change more than 16000000 pairs (--tick-events)";
            assert_eq!(refusal.text, text);
            serves_others(&service).await;
            // With fewer entities the same scene goes on.
            let most = Delete { ids: (100..10_000).collect() };
            let most = change(1, change::Change::Delete(most));
            let outcome = ask(&mut stream, vec![most, tick(1)]).await;
            assert_eq!((outcome.refused, outcome.scenes[0].tick), (vec![], 1));
            let events: usize = outcome.scenes.iter().map(|scene| scene.observers.len()).sum();
            assert_eq!(events, 100 * 99);
        }
        let refused = service.metric("purview_interest_refused_ticks_total").await;
        assert_eq!(refused, 3.0);
    });
    let most = service.most_memory();
    assert!(most < 700 * MIB, "{} MiB", most / MIB);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pairs_of_a_session_and_of_all_sessions_are_bounded() {
    let service = Service::start(&["--session-pairs", "10000", "--pairs", "15000"]);
    let rules = Rules::new(GROUND, Mode::All, Reach::All);
    let mut streams = Vec::new();
    for (ids, is_refused) in [(0..100, false), (0..101, true), (0..80, true), (0..70, false)] {
        let mut stream = service.address().begin().await.unwrap();
        let outcome = ask(&mut stream, vec![scene(1, &rules), crowd(ids), tick(1)]).await;
        let reasons: Vec<_> = outcome.refused.iter().map(|one| one.reason()).collect();
        let wanted = if is_refused { vec![Reason::TooManyPairs] } else { vec![] };
        assert_eq!(reasons, wanted);
        streams.push(stream);
    }
    let pairs = service.metric("purview_interest_pairs").await;
    assert_eq!(pairs, f64::from(100 * 99 + 70 * 69));
}

/// What a client without the types gets for a request.
async fn answer(service: &Service, request: Bytes) -> (Code, String) {
    let open = Bytes::from_static(&[0x0a, 0x00]);
    let requests = futures::stream::iter([open, request]).chain(futures::stream::pending());
    let channel = service.address().channel().await.unwrap();
    let mut responses = raw(channel, requests).await.unwrap();
    loop {
        match responses.message().await {
            Ok(message) => assert!(message.is_some(), "it says why it ends"),
            Err(status) => return (status.code(), status.message().to_owned()),
        }
    }
}

/// A batch with a field of so many bytes: the length is written as three bytes.
fn message(number: u8, content: &[u8]) -> Vec<u8> {
    let len = content.len();
    let varint = [0_u32, 7, 14, 21].map(|shift| (len >> shift & 0x7f) as u8 | 0x80);
    let last = [(len >> 28) as u8];
    [&[number << 3 | 2][..], &varint, &last, content].concat()
}

#[test]
fn a_request_of_empty_parts_takes_no_memory_before_it_is_refused() {
    let service = Service::start(&[]);
    runtime().block_on(async {
        let empty = [0x12, 0].repeat(8_300_000);
        let changes = Bytes::from(message(2, &empty));
        let pairs = [0x32, 0].repeat(8_300_000);
        let pairs = Bytes::from(message(2, &message(2, &message(2, &pairs))));
        let cases = [(changes, "changes"), (pairs, "create_scene.pairs")];
        for (request, name) in cases {
            let all = (0..6).map(|_| answer(&service, request.clone()));
            for (code, text) in futures::future::join_all(all).await {
                let wanted = format!("a request with more than 65536 elements of `{name}`");
                assert_eq!((code, text), (Code::InvalidArgument, wanted));
            }
        }
        serves_others(&service).await;
    });
    // Six requests of 16 MiB, and as much again where they are put together.
    let most = service.most_memory();
    assert!(most < 450 * MIB, "{} MiB", most / MIB);
}

/// Makes a session that has much to tell, and does not read.
async fn flooded(service: &Service) -> Stream {
    let mut stream = service.address().begin().await.unwrap();
    let rules = Rules::new(GROUND, Mode::All, Reach::All);
    ask(&mut stream, vec![scene(1, &rules)]).await;
    for _ in 0..6 {
        let gone = change(1, change::Change::Delete(Delete { ids: (0..800).collect() }));
        stream.send(vec![crowd(0..800), tick(1), gone, tick(1)]).await.unwrap();
    }
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_do_not_read_share_a_limit_and_others_are_served() {
    let service = Service::start(&["--buffers", "24"]);
    let before = service.most_memory();
    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.push(flooded(&service).await);
    }
    service.metric_when("purview_interest_blocked_sessions", |n| n == 20.0).await;
    let buffered = service.metric("purview_interest_buffered_bytes").await;
    // A window and a part more for each is legal.
    assert!(buffered <= (24 * MIB + 20 * 800 * 1_024) as f64, "{buffered}");
    serves_others(&service).await;
    let taken = service.most_memory() - before;
    // Each would take 65 MiB without the limit.
    assert!(taken < 800 * MIB, "{} MiB", taken / MIB);
    // Nothing is lost.
    let mut events = 0;
    while events < 12 * 800 * 799 {
        events += outcome(&mut streams[7]).await.unwrap().events(1).len();
    }
    assert_eq!(events, 12 * 800 * 799);
}
