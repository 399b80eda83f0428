//! Workers that are wrong, old or foreign are refused, and affect nobody.

use std::path::Path;

use purview_server::config::{CertificateSettings, Config};
use purview_server::gateway::Tokens;
use purview_server::interest::client::{Address, ClientError};
use purview_server::logic::client::Stream;
use purview_server::logic::proto::{self, request};
use purview_server::process::Background;
use tonic::Code;

use super::support::{self, CONFIG, HP, Worker, address, open, runtime, server, set, with_worker};
use crate::tls::Authority;

fn code(error: ClientError) -> Code {
    match error {
        ClientError::Status(status) => status.code(),
        other => panic!("{other}"),
    }
}

#[test]
fn an_answer_for_a_lease_that_is_not_the_workers_does_not_count() {
    with_worker("", async |_, mut worker| {
        let monster = worker.monster(0, 5_000, 5_000).await;
        let lease = worker.leases[&0];
        let seq = worker.pictures[&0].seq;
        let wrong = [
            (proto::Lease { epoch: lease.epoch + 1, ..lease }, seq + 1),
            (proto::Lease { number: lease.number + 1, ..lease }, seq + 1),
            (proto::Lease { region: 99, ..lease }, seq + 1),
            (lease, seq - 1),
            (lease, seq + 1_000),
            (lease, 0),
        ];
        for (lease, seq) in wrong {
            let command = Some(set(HP, 1));
            let commands =
                vec![proto::Command { entity: monster, command, ..proto::Command::default() }];
            let answer = proto::Answer { lease: Some(lease), seq, commands };
            worker.stream.send_raw(request::Message::Answer(answer)).await.unwrap();
        }
        worker.ticks(12).await;
        assert_eq!(worker.property(monster, HP), None);
        // Its own answers go on.
        worker.give(0, monster, set(HP, 5));
        worker.until(|w| w.property(monster, HP) == Some(5)).await;
        assert!(worker.results.is_empty());
    });
}

#[test]
fn a_malformed_request_ends_its_stream_and_no_other() {
    with_worker("", async |server, mut honest| {
        let at = address(server.reach());
        let none = proto::Command { entity: 5, ..proto::Command::default() };
        let nobody = proto::Command { command: Some(set(HP, 1)), ..proto::Command::default() };
        let lease = Some(proto::Lease::default());
        let answer = |lease, command| {
            request::Message::Answer(proto::Answer { lease, seq: 1, commands: vec![command] })
        };
        let wrong = [
            (answer(lease, none), "command 0 has no kind"),
            (answer(lease, nobody.clone()), "names no entity"),
            (answer(None, nobody), "an answer without a lease"),
            (request::Message::Open(open("again")), "only its first request"),
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_worker_says_first_is_checked() {
    let server = server("[logic]\nlisten = \"127.0.0.1:0\"\nworkers = 1\n");
    let at = address(server.reach());
    let begin = async |open| Stream::begin(&at, open).await;
    let nowhere = proto::Open { scene: "no such".into(), ..open("lost") };
    assert_eq!(code(begin(nowhere).await.unwrap_err()), Code::NotFound);
    let long = open(&"x".repeat(65));
    assert_eq!(code(begin(long).await.unwrap_err()), Code::InvalidArgument);
    let first = begin(open("first")).await.unwrap();
    assert_eq!(code(begin(open("second")).await.unwrap_err()), Code::ResourceExhausted);
    drop(first);
}

/// A service with a certificate and a token.
pub struct Secured {
    /// The section `[logic]`.
    pub config: String,
    pub authority: Authority,
    pub token: &'static str,
}

impl Secured {
    /// With the token in a folder.
    pub fn in_folder(folder: &Path) -> Secured {
        let (authority, token) = (Authority::here(), "0123456789abcdef0123456789abcdef");
        let file = folder.join("token");
        std::fs::write(&file, token).unwrap();
        let CertificateSettings { certificate, key } = authority.server();
        let config = format!(
            "[logic]\nlisten = \"127.0.0.1:0\"\ntoken_file = {file:?}\n\
             [logic.tls]\ncertificate = {certificate:?}\nkey = {key:?}\n"
        );
        Secured { config, authority, token }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_workers_are_encrypted_and_the_certificate_and_the_token_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let secured = Secured::in_folder(folder.path());
    let server = server(&secured.config);
    let plain = address(server.reach());
    let token = Some(secured.token.to_owned());
    let url = plain.url.replace("http:", "https:");
    let by = |url: &str, token: &Option<String>, ca: &Authority| Address {
        url: url.to_owned(),
        token: token.clone(),
        trust: ca.trust(),
    };
    let known = by(&url, &token, &secured.authority);
    let mut worker = Worker::begin_at(&known, "known").await;
    worker.until(|w| w.leases.len() == 4).await;
    for wrong in [None, Some("0123456789abcdef0123456789abcdeX".to_owned())] {
        let error = Stream::begin(&by(&url, &wrong, &secured.authority), open("stranger")).await;
        assert_eq!(code(error.unwrap_err()), Code::Unauthenticated);
    }
    let error = Stream::begin(&by(&plain.url, &token, &secured.authority), open("plain")).await;
    let error = error.unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. } | ClientError::Status(_)), "{error}");
    let strange = by(&url, &token, &Authority::here());
    let error = Stream::begin(&strange, open("strange")).await.unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. }), "{error}");
    // The one that is let in was not disturbed.
    worker.ticks(4).await;
}

#[test]
fn beyond_this_machine_the_service_needs_tls_and_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let secured = Secured::in_folder(folder.path());
    let open = secured.config.replace("127.0.0.1:0", "0.0.0.0:0");
    let start = |section: &str| {
        let config = Config::parse(&format!("{CONFIG}\n{section}")).expect("a configuration");
        Background::start(config, Tokens::dev())
    };
    let without = |section: &str| start(section).map(drop).unwrap_err().to_string();
    let (no_tls, _) = open.split_once("[logic.tls]").unwrap();
    // On this machine a token is enough.
    let here = start(&no_tls.replace("0.0.0.0:0", "127.0.0.1:0")).unwrap();
    runtime().block_on(async {
        let mut at = address(here.reach());
        let error = Stream::begin(&at, support::open("stranger")).await.unwrap_err();
        assert_eq!(code(error), Code::Unauthenticated);
        at.token = Some(secured.token.to_owned());
        Stream::begin(&at, support::open("known")).await.unwrap();
    });
    assert!(without(no_tls).contains("without TLS"), "{}", without(no_tls));
    let no_token: String = open
        .lines()
        .filter(|line| !line.starts_with("token_file"))
        .fold(String::new(), |all, line| all + line + "\n");
    assert!(without(&no_token).contains("without a token"), "{}", without(&no_token));
}
