//! Servers that have a token secret in common, and nothing else: a ticket of one takes nobody over at another. Over
//! real sockets.

use std::path::Path;
use std::time::Duration;

use purview::scene::{Pos, Seq};
use purview::wire::ErrorCode;
use purview::wire::client::{Join, Joined};
use purview_client::{Client, ClientError, Event};

use super::Background;
use crate::config::Config;
use crate::gateway::Tokens;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a player appears that was never there, and where the owner goes, centimetres.
const SPAWN: Pos = Pos { x: 10_000, y: 0, z: 10_000 };
const AWAY: Pos = Pos { x: 10_030, y: 0, z: 10_000 };

fn tokens() -> Tokens {
    Tokens::new(&[b's'; 32]).unwrap()
}

fn server(data_dir: Option<&Path>) -> Background {
    let data_dir = data_dir.map_or_else(String::new, |dir| format!("data_dir = {dir:?}\n"));
    let text = format!(
        "[server]\narbiters = 1\n{data_dir}[console]\nlisten = \"off\"\n\
         [gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\n\
         [[scene]]\nname = \"city\"\nwidth = \"1024m\"\ndepth = \"1024m\"\nspawn = [\"100m\", \"100m\"]\n\
         teleports = \"clients\"\nmoves = \"trusted\"\n"
    );
    Background::start(Config::parse(&text).unwrap(), tokens()).unwrap()
}

async fn connect(server: &Background, subject: &str) -> Client {
    let token = tokens().mint(subject, Some(PATIENCE * 10)).unwrap();
    let url = server.reach().url().expect("a listener for clients");
    Client::connect(&url, &token).await.expect("a session")
}

async fn join(client: &mut Client) -> Joined {
    let (scene, properties) = ("city".into(), Vec::new());
    let (plane, pos, sight) = (None, None, None);
    client
        .join(Join { scene, plane, pos, sight, properties, view_cap: 0 })
        .await
        .expect("there is room")
}

/// The subject's session with a player, and the ticket by which it comes back.
async fn joined(server: &Background, subject: &str) -> (Client, Joined, String) {
    let mut client = connect(server, subject).await;
    let joined = join(&mut client).await;
    let ticket = joined.ticket.clone().expect("a ticket").token;
    (client, joined, ticket)
}

async fn is_refused(client: &mut Client, ticket: &str) {
    match client.resume(ticket, Seq(0)).await {
        Err(ClientError::Refused(refused)) => assert_eq!(refused.code, ErrorCode::BadTicket),
        other => panic!("a ticket of another cluster was taken: {other:?}"),
    }
}

/// The session goes on, and its player obeys.
async fn goes_on(client: &mut Client, to: Pos) {
    let seq = client.send_move(to).await.expect("the session goes on");
    let applied = async {
        loop {
            match client.next().await.expect("the session goes on") {
                Event::Frame(frame) if frame.ack >= seq => {
                    return assert!(frame.refused.is_empty());
                }
                Event::Closed { code, detail } => panic!("closed: {code:?} {detail}"),
                Event::Refused(refused) => panic!("{refused:?}"),
                _ => {}
            }
        }
    };
    tokio::time::timeout(PATIENCE, applied).await.expect("it is applied");
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().unwrap().block_on(test);
}

#[test]
fn a_ticket_of_another_server_with_the_same_secret_takes_nobody_over_and_nothing_along() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [first, second] = [0, 1].map(|n| server(Some(folders[n].path())));
    run(async {
        let (_eve, of_eve, ticket) = joined(&first, "eve").await;
        let (mut owner, of_owner, _) = joined(&second, "owner").await;
        assert_eq!(of_eve.id, of_owner.id, "numbers begin alike everywhere");
        goes_on(&mut owner, AWAY).await;
        let mut thief = connect(&second, "eve").await;
        is_refused(&mut thief, &ticket).await;
        goes_on(&mut owner, AWAY).await;
        // Nothing of the owner's is stored under the other's subject.
        assert_eq!(join(&mut thief).await.pos, SPAWN);
        goes_on(&mut owner, AWAY).await;
    });
}

#[test]
fn a_restarted_server_without_a_data_directory_refuses_the_tickets_of_the_one_before() {
    let before = server(None);
    let (of_eve, ticket) = {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (_eve, of_eve, ticket) = runtime.block_on(joined(&before, "eve"));
        (of_eve, ticket)
    };
    drop(before);
    let after = server(None);
    run(async {
        let (mut owner, of_owner, own_ticket) = joined(&after, "owner").await;
        assert_eq!(of_eve.id, of_owner.id, "numbers begin anew");
        for subject in ["eve", "owner"] {
            is_refused(&mut connect(&after, subject).await, &ticket).await;
        }
        goes_on(&mut owner, AWAY).await;
        // The own ticket of the new server brings the owner back.
        drop(owner);
        let mut back = connect(&after, "owner").await;
        let resumed = back.resume(&own_ticket, Seq(0)).await.expect("the ticket of this server");
        assert_eq!((resumed.id, resumed.pos), (of_owner.id, AWAY));
    });
}

#[test]
fn a_ticket_outlives_a_restart_of_a_server_that_keeps_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let before = server(Some(folder.path()));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (eve, of_eve, ticket) = runtime.block_on(joined(&before, "eve"));
    drop(before);
    drop(eve);
    let after = server(Some(folder.path()));
    run(async {
        let begun = tokio::time::Instant::now();
        loop {
            // The region asks all others first.
            match connect(&after, "eve").await.resume(&ticket, Seq(0)).await {
                Ok(resumed) => return assert_eq!(resumed.id, of_eve.id),
                Err(ClientError::Refused(refused)) => assert_eq!(refused.code, ErrorCode::Busy),
                Err(error) => panic!("{error}"),
            }
            assert!(begun.elapsed() < PATIENCE, "it is never found");
        }
    });
}
