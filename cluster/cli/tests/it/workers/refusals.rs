//! Workers that are wrong, old or foreign are refused, and affect nobody.

use purview_server::interest::client::ClientError;
use purview_server::logic::client::{Lease, Stream};
use purview_server::logic::proto::{self, Refusal, command, request};
use tonic::Code;

use super::support::{HP, MONSTER, Worker, address, open, runtime, server, set};

fn code(error: ClientError) -> Code {
    match error {
        ClientError::Status(status) => status.code(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_batch_for_a_region_that_is_not_the_workers_is_refused_as_a_whole() {
    let server = server("");
    runtime().block_on(async {
        let mut worker = Worker::begin_with_all(server.reach(), "honest").await;
        let monster = worker.spawn(0, MONSTER, 5_000, 5_000);
        worker.until(|w| w.is_applied(monster, 1)).await;
        let lease = worker.leases[&0];
        let wrong = [
            (Lease { epoch: lease.epoch + 1, ..lease }, Refusal::Epoch),
            (Lease { lease: lease.lease + 1, ..lease }, Refusal::Lease),
            (Lease { region: 99, ..lease }, Refusal::UnknownRegion),
        ];
        for (lease, reason) in wrong {
            let command = Some(set(HP, 1));
            let commands = vec![proto::Command { entity: monster, number: 2, command }];
            worker.stream.send(lease, commands).await.unwrap();
            worker.until(|w| !w.refused.is_empty()).await;
            let refused = worker.refused.pop().unwrap();
            assert_eq!((refused.reason(), refused.region), (reason, lease.region));
        }
        // Its own commands go on with the same number.
        worker.give(0, monster, set(HP, 5));
        worker.until(|w| w.property(monster, HP) == Some(5)).await;
        assert!(worker.results.is_empty());
    });
}

#[test]
fn a_malformed_request_ends_its_stream_and_no_other() {
    let server = server("");
    runtime().block_on(async {
        let mut honest = Worker::begin_with_all(server.reach(), "honest").await;
        let at = address(server.reach());
        let none = proto::Command { entity: 5, number: 1, command: None };
        let zero = proto::Command { entity: 5, number: 0, command: Some(set(HP, 1)) };
        let nobody = proto::Command { entity: 0, number: 1, command: Some(set(HP, 1)) };
        let batch = |command| {
            request::Message::Batch(proto::Batch { commands: vec![command], ..Default::default() })
        };
        let wrong = [
            (batch(none), "command 0 has no kind"),
            (batch(zero), "numbers begin at 1"),
            (batch(nobody), "names no entity"),
            (request::Message::Open(open("again")), "only its first request"),
            (
                request::Message::Received(proto::Received { received: 1 << 40 }),
                "the last response",
            ),
        ];
        for (message, says) in wrong {
            let mut stream = Stream::begin(&at, open("wrong")).await.unwrap();
            stream.send_raw(message).await.unwrap();
            let error = loop {
                match stream.next().await {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("the stream has ended without a status"),
                    Err(error) => break error,
                }
            };
            assert!(error.to_string().contains(says), "{error}");
            assert_eq!(code(error), Code::InvalidArgument);
        }
        let before = honest.ticks;
        honest.until(|w| w.ticks > before + 8).await;
    });
}

#[test]
fn what_a_worker_says_first_is_checked() {
    let server = server("[logic]\nlisten = \"127.0.0.1:0\"\nworkers = 1\n");
    runtime().block_on(async {
        let at = address(server.reach());
        let begin = async |open| Stream::begin(&at, open).await;
        let nowhere = proto::Open { scene: "no such".into(), ..open("lost") };
        assert_eq!(code(begin(nowhere).await.unwrap_err()), Code::NotFound);
        let long = open(&"x".repeat(65));
        assert_eq!(code(begin(long).await.unwrap_err()), Code::InvalidArgument);
        let first = begin(open("first")).await.unwrap();
        assert_eq!(code(begin(open("second")).await.unwrap_err()), Code::ResourceExhausted);
        drop(first);
    });
}

#[test]
fn only_workers_with_the_token_are_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let (file, token) = (folder.path().join("token"), "0123456789abcdef0123456789abcdef");
    std::fs::write(&file, token).unwrap();
    let server = server(&format!("[logic]\nlisten = \"127.0.0.1:0\"\ntoken_file = {file:?}\n"));
    runtime().block_on(async {
        let mut at = address(server.reach());
        for wrong in [None, Some("0123456789abcdef0123456789abcdeX".to_owned())] {
            at.token = wrong;
            let error = Stream::begin(&at, open("stranger")).await.unwrap_err();
            assert_eq!(code(error), Code::Unauthenticated);
        }
        at.token = Some(token.to_owned());
        Stream::begin(&at, open("known")).await.unwrap();
    });
}

#[test]
fn a_command_for_no_entity_is_not_taken_for_one() {
    let server = server("");
    runtime().block_on(async {
        let mut worker = Worker::begin_with_all(server.reach(), "one").await;
        let monster = worker.spawn(0, MONSTER, 5_000, 5_000);
        let announce = proto::Announce { plane: None, payload: bytes::Bytes::from_static(b"hi") };
        worker.give(0, monster, command::Command::Announce(announce));
        worker.until(|w| w.is_applied(monster, 2)).await;
        assert_eq!(worker.results.len(), 1);
    });
}
