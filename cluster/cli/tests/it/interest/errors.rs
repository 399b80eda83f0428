//! What is refused: items with their reasons, and whole requests with a status.

use bytes::Bytes;
use futures::StreamExt;
use purview::interest::{Mode, Reach, Rules};
use purview_server::interest::client::Stream;
use purview_server::interest::encode::change;
use purview_server::interest::proto::{
    Batch, Change, Create, CreateScene, Kinds, Move, Open, Reason, Request, SetBond, SetKind,
    SetObserved, SetReach, change, request,
};
use tonic::Code;

use super::support::{
    Service, ask, both, circle, create, outcome, raw, scene, status, tick, walk, with_stream,
};
use crate::common::tries;

#[test]
fn each_invalid_item_has_an_error_and_the_others_succeed() {
    with_stream(&[], async |_, mut stream| {
        let reach = |enter_cm| {
            let circle =
                purview_server::interest::proto::Circle { enter_cm, leave_cm: 20, height_cm: None };
            let form = purview_server::interest::proto::reach::Reach::Circle(circle);
            Some(purview_server::interest::proto::Reach { reach: Some(form) })
        };
        let kinds = |kinds: Vec<u32>| Some(Kinds { kinds });
        let ids = vec![1];
        let changes = vec![
            scene(5, &circle()),
            create(5, &[(1, 0, 0), (1, 5, 5), (2, 10_000, 0), (3, 50, 0)]),
            walk(5, 9, 0, 0),
            walk(5, 1, -1, 0),
            walk(6, 1, 0, 0),
            scene(5, &circle()),
            change(7, change::Change::CreateScene(CreateScene::default())),
            change(5, change::Change::SetKind(SetKind { ids: ids.clone(), kinds: vec![256] })),
            change(5, change::Change::SetReach(SetReach { ids: ids.clone(), reach: reach(20) })),
            change(5, change::Change::SetReach(SetReach { ids: vec![8], reach: reach(10) })),
            change(
                5,
                change::Change::SetObserved(SetObserved {
                    ids: ids.clone(),
                    observed: kinds(vec![0, 999]),
                }),
            ),
            change(5, change::Change::SetBond(SetBond { ids, strength: 0, groups: vec![3] })),
            walk(5, 0, 0, 0),
            tick(5),
        ];
        let outcome = ask(&mut stream, changes).await;
        let told = outcome.refused.iter().map(|r| (r.change, r.item, r.entity, r.reason()));
        let item = |change, item, entity, reason| (Some(change), Some(item), Some(entity), reason);
        let whole = |change, reason| (Some(change), None, None, reason);
        let wanted = [
            item(1, 1, 1, Reason::DuplicateEntity),
            item(1, 2, 2, Reason::OutOfBounds),
            item(2, 0, 9, Reason::UnknownEntity),
            item(3, 0, 1, Reason::OutOfBounds),
            whole(4, Reason::UnknownScene),
            whole(5, Reason::DuplicateScene),
            whole(6, Reason::Rules),
            item(7, 0, 1, Reason::Kind),
            item(8, 0, 1, Reason::Reach),
            item(9, 0, 8, Reason::UnknownEntity),
            whole(10, Reason::Kind),
            item(11, 0, 1, Reason::Bond),
            // Entity 0 is an entity.
            item(12, 0, 0, Reason::UnknownEntity),
        ];
        assert_eq!(told.collect::<Vec<_>>(), wanted);
        let text: Vec<&str> = outcome.refused.iter().map(|r| r.text.as_str()).collect();
        assert_eq!(text[1], "entity 2: (10000, 0) is not on the ground");
        assert_eq!(text[6], "the scene has no ground");
        assert_eq!(text[10], "kind 999; 0 to 255 is legal");
        assert_eq!(outcome.events(5), both(1, 3, true));
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_has_a_limit_of_entities_and_of_sessions() {
    let service = Service::start(&["--entities", "3", "--sessions", "2"]);
    let rules = Rules::new(super::support::GROUND, Mode::All, Reach::All);
    let mut first = service.address().begin().await.unwrap();
    let four = create(1, &[(1, 0, 0), (2, 0, 0), (3, 0, 0), (4, 0, 0)]);
    let outcome = ask(&mut first, vec![scene(1, &rules), four, tick(1)]).await;
    assert_eq!((outcome.refused.len(), outcome.refused[0].reason()), (1, Reason::Full));
    assert_eq!(outcome.events(1).len(), 6);
    let second = service.address().begin().await.unwrap();
    let third = status(service.address().begin().await.err());
    assert_eq!(
        third,
        (
            Code::ResourceExhausted,
            "2 sessions have a stream, as many as may be (--sessions)".into()
        )
    );
    // A session that its client ends makes room at once.
    let mut rest = second.close().await.unwrap();
    assert_eq!(rest.message().await.unwrap(), None);
    service.metric_when("purview_interest_sessions{state=\"connected\"}", |n| n == 1.0).await;
    tries("room for a session", async || service.address().begin().await).await;
}

fn batch(sequence: u64, changes: Vec<Change>) -> Request {
    let batch = Batch { sequence, changes, received: 0 };
    Request { message: Some(request::Message::Batch(batch)) }
}

async fn ended(stream: &mut Stream) -> (Code, String) {
    loop {
        if let Err(error) = outcome(stream).await {
            return status(Some(error));
        }
    }
}

#[test]
fn a_malformed_request_ends_the_stream_with_what_is_wrong_and_not_the_session() {
    with_stream(&[], async |service, mut stream| {
        let session = stream.opened.session.clone();
        stream.send(vec![scene(1, &circle()), create(1, &[(1, 0, 0)])]).await.unwrap();
        let uneven = Move { ids: vec![1, 2], x: vec![5], y: vec![], z: vec![5, 5] };
        let uneven = change(1, change::Change::Move(uneven));
        let none = Change { scene: 1, change: None };
        let open = Some(request::Message::Open(Open::default()));
        let cases = [
            (
                batch(2, vec![tick(1), uneven]),
                Code::InvalidArgument,
                "batch 2, change 1: 2 ids and 1 elements of x; columns must have equal lengths",
            ),
            (
                batch(2, vec![none]),
                Code::InvalidArgument,
                "batch 2, change 0: its kind is missing or unknown to this service",
            ),
            (
                batch(3, vec![]),
                Code::FailedPrecondition,
                "batch 3 after batch 1: batch 2 is missing",
            ),
            (
                batch(0, vec![]),
                Code::FailedPrecondition,
                "batch 0 after batch 1: batch 2 is missing",
            ),
            (
                Request { message: open },
                Code::InvalidArgument,
                "the stream is open; only its first request is `open`",
            ),
            (Request::default(), Code::InvalidArgument, "a request without `open` or `batch`"),
        ];
        for (request, code, text) in cases {
            stream.send_raw(request).await.unwrap();
            assert_eq!(ended(&mut stream).await, (code, text.to_owned()));
            stream = service.address().resume(session.clone(), 0).await.unwrap();
            assert!(stream.opened.resumed, "{:?}", stream.opened);
            assert_eq!(stream.opened.applied, 1);
        }
        let outcome = ask(&mut stream, vec![create(1, &[(2, 50, 0)]), tick(1)]).await;
        assert_eq!((outcome.sequence, outcome.events(1)), (2, both(1, 2, true).to_vec()));
    });
}

#[test]
fn what_was_not_sent_cannot_have_been_received() {
    with_stream(&[], async |service, mut stream| {
        let session = stream.opened.session.clone();
        ask(&mut stream, vec![scene(1, &circle())]).await;
        let text = "received 2, but the last update that was sent is 1";
        let refused = status(stream.acknowledge(2).await.err());
        assert_eq!(refused, (Code::InvalidArgument, text.into()));
        let early = Batch { sequence: 2, changes: vec![], received: 2 };
        let early = Request { message: Some(request::Message::Batch(early)) };
        stream.send_raw(early).await.unwrap();
        let wanted = (Code::InvalidArgument, format!("batch 2: {text}"));
        assert_eq!(ended(&mut stream).await, wanted);
        let refused = status(service.address().resume(session.clone(), 2).await.err());
        assert_eq!(refused, (Code::InvalidArgument, text.into()));
        let mut stream = service.address().resume(session, 1).await.unwrap();
        assert!(stream.opened.resumed);
        stream.acknowledge(1).await.unwrap();
        stream.opened.session = vec![7; 16].into();
        let refused = status(stream.acknowledge(1).await.err());
        assert_eq!(refused.0, Code::NotFound);
    });
}

#[test]
fn limits_of_nothing_are_refused() {
    for flag in [
        "--sessions",
        "--entities",
        "--pairs",
        "--session-pairs",
        "--events",
        "--tick-events",
        "--memory",
        "--session-memory",
        "--buffers",
        "--keep",
    ] {
        let (code, text) = super::support::refused(&[flag, "0"]);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(flag) && text.contains("1.."), "{text}");
    }
}

#[test]
fn a_batch_that_leads_to_nothing_is_answered_and_empty_columns_are_zeros() {
    with_stream(&[], async |_, mut stream| {
        for _ in 0..3 {
            let outcome = ask(&mut stream, vec![]).await;
            assert_eq!((outcome.scenes, outcome.refused), (vec![], vec![]));
        }
        assert_eq!(ask(&mut stream, vec![scene(1, &circle())]).await.applied, 4);
        // Columns that may be empty are zeros.
        let two = Create { ids: vec![1, 2], x: vec![0, 5], z: vec![0, 0], ..Create::default() };
        let changes = vec![scene(2, &circle()), change(2, change::Change::Create(two)), tick(2)];
        let outcome = ask(&mut stream, changes).await;
        assert_eq!((outcome.refused, outcome.scenes[0].observers.len()), (vec![], 2));
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_no_message_are_refused() {
    let service = Service::start(&[]);
    let bytes = [Bytes::from_static(&[0x0a, 0x00]), Bytes::from_static(&[0x12, 0xff, 0xff])];
    let requests = futures::stream::iter(bytes).chain(futures::stream::pending());
    let channel = service.address().channel().await.unwrap();
    let mut responses = raw(channel, requests).await.unwrap();
    assert!(responses.message().await.unwrap().is_some(), "it was opened");
    let status = responses.message().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().starts_with("a request: "), "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_begins_with_open() {
    let service = Service::start(&[]);
    let channel = service.address().channel().await.unwrap();
    let client = purview_server::interest::proto::interest_client::InterestClient::new(channel);
    let first = |request: Vec<Request>| {
        let mut client = client.clone();
        async move {
            let mut responses =
                client.world(futures::stream::iter(request)).await.unwrap().into_inner();
            let status = responses.message().await.unwrap_err();
            (status.code(), status.message().to_owned())
        }
    };
    let text = "the first request of a stream must be `open`";
    assert_eq!(first(vec![batch(1, vec![])]).await, (Code::InvalidArgument, text.into()));
    let text = "the stream has no requests";
    assert_eq!(first(vec![]).await, (Code::InvalidArgument, text.into()));
}
