//! Whether players may come: rules inside the server and workers are asked, and workers open planes.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use futures::FutureExt;
use purview::actor::admission::{Admission, PendingDecision, Visitor};
use purview::actor::logic::LogicFactory;
use purview::actor::player::Planes;
use purview::scene::region::GameLogic;
use purview::scene::{Plane, Pos, RegionId, Scene, SceneId};
use purview::wire::ErrorCode;
use purview_client::{Client, ClientError, Event, join_at};
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::interest::client::Address;
use purview_server::logic::client::Stream;
use purview_server::logic::proto::{self, command};
use purview_server::process::{Background, ServerReach};
use tokio::sync::Notify;

use crate::common::try_for;

use super::support::{CONFIG, PATIENCE, Worker, address, open, runtime, server, with_worker};

/// A subject wants to join a plane; the answer of the server.
async fn join(
    reach: &ServerReach,
    subject: &str,
    plane: Option<i32>,
) -> Result<Client, (ErrorCode, String)> {
    join_by(&reach.url().expect("a listener for clients"), subject, plane).await
}

/// The same by the URL of a gateway.
pub async fn join_by(
    url: &str,
    subject: &str,
    plane: Option<i32>,
) -> Result<Client, (ErrorCode, String)> {
    let token = Tokens::dev().mint(subject, Some(PATIENCE)).expect("a token");
    let mut client = Client::connect(url, &token).await.expect("a session");
    let join = join_at("wood", Pos::ground(5_000, 5_000));
    let join = purview::wire::client::Join { plane: plane.map(Plane), ..join };
    match client.join(join).await {
        Ok(_) => Ok(client),
        Err(ClientError::Refused(refused)) => Err((refused.code, refused.detail)),
        Err(other) => panic!("{other}"),
    }
}

/// Rules that let everybody in but one, and decide about one's jumps when they are told to.
#[derive(Debug, Default)]
struct Choosy {
    decides: Arc<Notify>,
}

impl LogicFactory for Choosy {
    fn make(&self, _: &Arc<Scene>, _: RegionId) -> Option<Box<dyn GameLogic>> {
        None
    }

    fn admission(&self) -> Option<&dyn Admission> {
        Some(self)
    }
}

impl Admission for Choosy {
    fn ask(&self, visitor: Visitor) -> Option<PendingDecision> {
        let answer = match visitor.account.subject() {
            "bob" => Err("not today".to_owned()),
            "cid" => Ok(Some(Plane(if visitor.jumps { 7 } else { 2 }))),
            _ if visitor.jumps && visitor.to.plane == Plane(7) => Err("not there".to_owned()),
            _ => Ok(None),
        };
        let waits =
            (visitor.account.subject() == "dan" && visitor.jumps).then(|| self.decides.clone());
        let decision = async move {
            if let Some(decides) = waits {
                decides.notified().await;
            }
            answer
        };
        Some(decision.boxed())
    }

    fn opens(&self, _: SceneId, plane: Plane, subject: &str) -> bool {
        plane == Plane(7) || (plane == Plane(8) && subject == "ann")
    }
}

fn choosy() -> Background {
    deciding(Arc::default())
}

fn deciding(decides: Arc<Notify>) -> Background {
    let config = Config::parse(CONFIG).expect("a configuration");
    let rules: Arc<dyn LogicFactory> = Arc::new(Choosy { decides });
    Background::start_with(config, Tokens::dev(), Some(rules)).expect("a server")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_inside_the_server_are_asked() {
    let server = choosy();
    let reach = server.reach();
    let (code, why) = join(reach, "bob", None).await.expect_err("bob is refused");
    assert_eq!(code, ErrorCode::NotAdmitted);
    assert!(why.ends_with("not today"), "{why}");
    let mut ann = join(reach, "ann", None).await.expect("ann may come");
    for (plane, code) in [(9, ErrorCode::PrivatePlane), (7, ErrorCode::NotAdmitted)] {
        let (told, _) = jump(&mut ann, plane).await.expect_err("it may not");
        assert_eq!(told, code, "plane {plane}");
    }
    assert_eq!(jump(&mut ann, 8).await, Ok(Plane(8)), "it is open for her");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_says_after_a_jump_waits_for_the_decision() {
    let decides = Arc::new(Notify::new());
    let server = deciding(Arc::clone(&decides));
    let reach = server.reach();
    let mut dan = join(reach, "dan", None).await.expect("dan may come");
    let received = || reach.gateway.messages_in.load(Relaxed);
    let before = received();
    dan.teleport(None, Some(Plane(1)), Pos::ground(5_000, 5_000)).await.unwrap();
    let last = dan.act(b"here".to_vec()).await.unwrap();
    try_for("both messages", || (received() >= before + 2).then_some(()).ok_or(received()));
    decides.notify_one();
    let mut plane = None;
    loop {
        match dan.next().await.expect("the session goes on") {
            Event::Joined(joined) => plane = Some(joined.plane),
            Event::Frame(frame) if frame.ack >= last => break,
            Event::Refused(refused) => panic!("{refused:?}"),
            _ => {}
        }
    }
    assert_eq!(plane, Some(Plane(1)));
}

/// Where a subject finds itself that joins without a plane.
async fn line_of(reach: &ServerReach, subject: &str, planes: &Planes) -> (Client, Plane) {
    let token = Tokens::dev().mint_for(subject, Some(PATIENCE), planes).expect("a token");
    let url = reach.url().expect("a listener for clients");
    let mut client = Client::connect(&url, &token).await.expect("a session");
    let joined = client.join(join_at("wood", Pos::ground(5_000, 5_000))).await;
    (client, joined.expect("it may come").plane)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_enters_the_line_that_its_token_or_the_game_names() {
    let server = choosy();
    let reach = server.reach();
    let listed = |line| Planes::Listed(vec![("moon".into(), Plane(1)), ("wood".into(), line)]);
    let (_eve, plane) = line_of(reach, "eve", &Planes::default()).await;
    assert_eq!(plane, Plane(0));
    // The line of its party, and then a plane that is none of the lines, which it enters only if it asks for it.
    let (_fay, plane) = line_of(reach, "fay", &listed(Plane(3))).await;
    assert_eq!(plane, Plane(3));
    let (_gil, plane) = line_of(reach, "gil", &listed(Plane(77))).await;
    assert_eq!(plane, Plane(0));
    let (mut cid, plane) = line_of(reach, "cid", &listed(Plane(3))).await;
    assert_eq!(plane, Plane(2), "the game's word counts more");
    assert_eq!(jump(&mut cid, 8).await.map_err(|(code, _)| code), Err(ErrorCode::PrivatePlane));
    assert_eq!(jump(&mut cid, 1).await, Ok(Plane(7)));
    // Places are counted where the players are.
    let lines = cid.lines("wood").await.expect("an answer").lines;
    let lines: Vec<_> = lines.iter().map(|line| (line.plane.0, line.players)).collect();
    assert_eq!(lines, [(0, 2), (3, 1)]);
}

/// A player's client takes it to a plane; where the server lets it appear.
pub async fn jump(player: &mut Client, plane: i32) -> Result<Plane, (ErrorCode, String)> {
    player.teleport(None, Some(Plane(plane)), Pos::ground(5_000, 5_000)).await.unwrap();
    loop {
        match player.next().await.expect("the session goes on") {
            purview_client::Event::Refused(refused) => return Err((refused.code, refused.detail)),
            purview_client::Event::Frame(frame) => {
                assert!(frame.refused.is_empty(), "{:?}", frame.refused);
            }
            purview_client::Event::Joined(joined) => {
                return Ok(joined.plane);
            }
            _ => {}
        }
    }
}

/// A worker that answers: subjects that begin with `a` may come, and jump to planes that are even. It names plane 3 for
/// `abe`.
pub async fn doorkeeper(at: Address) {
    let open = proto::Open { answers: true, ..open("door") };
    let mut worker = Worker::new(Stream::begin(&at, open).await.expect("a session"));
    loop {
        assert!(worker.step().await.expect("a response"));
        for question in std::mem::take(&mut worker.questions) {
            let may_jump = !question.jumps || question.plane % 2 == 0;
            let allow = question.subject.starts_with('a') && may_jump;
            let reason = if allow { String::new() } else { "closed".to_owned() };
            let plane = (question.subject == "abe").then_some(3);
            let question = question.question;
            let verdict = proto::Verdict { question, allow, reason, plane };
            let message = proto::request::Message::Verdict(verdict);
            worker.stream.send_raw(message).await.expect("the stream is open");
        }
    }
}

#[test]
fn a_worker_is_asked_and_without_an_answer_the_policy_counts() {
    let ask = "[logic]\nlisten = \"127.0.0.1:0\"\nask = \"joins\"\nanswer_within = \"5s\"\n";
    let server = server(&format!("{ask}no_answer = \"refuse\"\n"));
    let reach = server.reach();
    runtime().block_on(async {
        let (code, _) = join(reach, "ann", None).await.expect_err("there is no worker");
        assert_eq!(code, ErrorCode::NotAdmitted);
        let keeper = tokio::spawn(doorkeeper(address(reach)));
        while join(reach, "ann", None).await.is_err() {}
        let (_abe, plane) = line_of(reach, "abe", &Planes::default()).await;
        assert_eq!(plane, Plane(3));
        let (code, why) = join(reach, "bob", None).await.expect_err("bob is refused");
        assert_eq!(code, ErrorCode::NotAdmitted);
        assert!(why.ends_with("closed"), "{why}");
        keeper.abort();
    });
    drop(server);
    let lenient = super::support::server(&format!("{ask}no_answer = \"admit\"\n"));
    runtime().block_on(async { drop(join(lenient.reach(), "bob", None).await.expect("he may")) });
}

/// Opens a plane.
pub fn open_plane(plane: i32, subjects: &[&str]) -> command::Command {
    let subjects = subjects.iter().map(|subject| (*subject).to_owned()).collect();
    command::Command::OpenPlane(proto::OpenPlane { plane, subjects })
}

/// Closes a plane.
pub fn close_plane(plane: i32) -> command::Command {
    command::Command::ClosePlane(proto::ClosePlane { plane })
}

#[test]
fn a_plane_that_a_worker_opens_is_for_those_it_names_until_it_closes_it() {
    with_worker("", async |server, mut worker| {
        let reach = server.reach();
        let open = |plane| open_plane(plane, &["ann"]);
        let number = worker.give(0, 0, open(1_000));
        worker.until(|w| w.counted.contains(&number)).await;
        assert_eq!(worker.planes, [(1_000, vec!["ann".to_owned()])].into(), "it is told, too");
        drop(join(reach, "ann", Some(1_000)).await.expect("it is hers"));
        let (code, _) = join(reach, "bob", Some(1_000)).await.expect_err("it is not his");
        assert_eq!(code, ErrorCode::PrivatePlane);
        worker.give(0, 0, open(0));
        let close = close_plane(1_000);
        let number = worker.give(0, 0, close.clone());
        worker.until(|w| w.counted.contains(&number)).await;
        worker.give(0, 0, close);
        worker.until(|w| w.results.len() == 2).await;
        assert!(worker.results.iter().all(|(_, reason)| *reason == proto::Reason::Plane));
        let (code, _) = join(reach, "ann", Some(1_000)).await.expect_err("it is closed");
        assert_eq!(code, ErrorCode::PrivatePlane);
        assert!(worker.planes.is_empty());
    });
}
