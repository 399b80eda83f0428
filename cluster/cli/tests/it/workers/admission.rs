//! Whether players may come: rules inside the server and workers are asked, and workers open planes.

use std::sync::Arc;

use futures::FutureExt;
use purview::actor::admission::{Admission, Answer, Visitor};
use purview::actor::logic::LogicFactory;
use purview::scene::region::GameLogic;
use purview::scene::{Plane, Pos, RegionId, Scene, SceneId};
use purview::wire::ErrorCode;
use purview_client::{Client, ClientError, join_at};
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::logic::client::Stream;
use purview_server::logic::proto::{self, command};
use purview_server::process::{Background, Reach};

use super::support::{CONFIG, PATIENCE, Worker, address, open, runtime, server};

/// A subject wants to join a plane; the answer of the server.
async fn join(
    reach: &Reach,
    subject: &str,
    plane: Option<i32>,
) -> Result<Client, (ErrorCode, String)> {
    let token = Tokens::dev().mint(subject, Some(PATIENCE)).expect("a token");
    let url = reach.url().expect("a listener for clients");
    let mut client = Client::connect(&url, &token).await.expect("a session");
    let join = join_at("wood", Pos::ground(5_000, 5_000));
    let join = purview::wire::client::Join { plane: plane.map(Plane), ..join };
    match client.join(join).await {
        Ok(_) => Ok(client),
        Err(ClientError::Refused(refused)) => Err((refused.code, refused.detail)),
        Err(other) => panic!("{other}"),
    }
}

/// Rules that let everybody in but one.
#[derive(Debug)]
struct Choosy;

impl LogicFactory for Choosy {
    fn make(&self, _: &Arc<Scene>, _: RegionId) -> Option<Box<dyn GameLogic>> {
        None
    }

    fn admission(&self) -> Option<&dyn Admission> {
        Some(self)
    }
}

impl Admission for Choosy {
    fn ask(&self, visitor: Visitor) -> Option<Answer> {
        let answer = match &visitor.subject[..] {
            "bob" => Err("not today".to_owned()),
            _ if visitor.jumps && visitor.to.plane == Plane(7) => Err("not there".to_owned()),
            _ => Ok(()),
        };
        Some(async move { answer }.boxed())
    }

    fn opens(&self, _: SceneId, plane: Plane, subject: &str) -> bool {
        plane == Plane(7) || (plane == Plane(8) && subject == "ann")
    }
}

#[test]
fn rules_inside_the_server_are_asked() {
    let config = Config::parse(CONFIG).expect("a configuration");
    let rules: Arc<dyn LogicFactory> = Arc::new(Choosy);
    let server = Background::start_with(config, Tokens::dev(), Some(rules)).expect("a server");
    let reach = server.reach();
    runtime().block_on(async {
        let (code, why) = join(reach, "bob", None).await.expect_err("bob is refused");
        assert_eq!(code, ErrorCode::NotAdmitted);
        assert!(why.ends_with("not today"), "{why}");
        let mut ann = join(reach, "ann", None).await.expect("ann may come");
        for (plane, code) in [(9, ErrorCode::PrivatePlane), (7, ErrorCode::NotAdmitted)] {
            ann.teleport(None, Some(Plane(plane)), Pos::ground(5_000, 5_000)).await.unwrap();
            let refused = loop {
                match ann.next().await.expect("the session goes on") {
                    purview_client::Event::Refused(refused) => break refused,
                    purview_client::Event::Frame(frame) if !frame.refused.is_empty() => {
                        panic!("{:?}", frame.refused)
                    }
                    _ => {}
                }
            };
            assert_eq!(refused.code, code, "plane {plane}");
        }
        ann.teleport(None, Some(Plane(8)), Pos::ground(5_000, 5_000)).await.unwrap();
        loop {
            let told = ann.next().await.expect("the session goes on");
            if let purview_client::Event::Joined(joined) = told {
                assert_eq!(joined.plane, Plane(8));
                break;
            }
        }
    });
}

/// A worker that answers: subjects that begin with `a` may come.
async fn doorkeeper(reach: &Reach) {
    let open = proto::Open { answers: true, ..open("door") };
    let mut worker = Worker::new(Stream::begin(&address(reach), open).await.expect("a session"));
    loop {
        assert!(worker.step().await.expect("a response"));
        for question in std::mem::take(&mut worker.questions) {
            let allow = question.subject.starts_with('a');
            let reason = if allow { String::new() } else { "closed".to_owned() };
            let answer = proto::Answer { question: question.question, allow, reason };
            let message = proto::request::Message::Answer(answer);
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
        let at = reach.clone();
        let keeper = tokio::spawn(async move { doorkeeper(&at).await });
        while join(reach, "ann", None).await.is_err() {}
        let (code, why) = join(reach, "bob", None).await.expect_err("bob is refused");
        assert_eq!(code, ErrorCode::NotAdmitted);
        assert!(why.ends_with("closed"), "{why}");
        keeper.abort();
    });
    drop(server);
    let lenient = super::support::server(&format!("{ask}no_answer = \"admit\"\n"));
    runtime().block_on(async { drop(join(lenient.reach(), "bob", None).await.expect("he may")) });
}

#[test]
fn a_plane_that_a_worker_opens_is_for_those_it_names_until_it_closes_it() {
    let server = server("");
    let reach = server.reach();
    runtime().block_on(async {
        let mut worker = Worker::begin_with_all(reach, "instances").await;
        let open = |plane| {
            let subjects = vec!["ann".to_owned()];
            command::Command::OpenPlane(proto::OpenPlane { plane, subjects })
        };
        let number = worker.give(0, 0, open(1_000));
        worker.until(|w| w.is_applied(0, number)).await;
        drop(join(reach, "ann", Some(1_000)).await.expect("it is hers"));
        let (code, _) = join(reach, "bob", Some(1_000)).await.expect_err("it is not his");
        assert_eq!(code, ErrorCode::PrivatePlane);
        worker.give(0, 0, open(0));
        let close = command::Command::ClosePlane(proto::ClosePlane { plane: 1_000 });
        let number = worker.give(0, 0, close.clone());
        worker.until(|w| w.is_applied(0, number)).await;
        worker.give(0, 0, close);
        worker.until(|w| w.results.len() == 2).await;
        assert!(worker.results.iter().all(|result| result.reason() == proto::Reason::Plane));
        let (code, _) = join(reach, "cat", Some(1_000)).await.expect_err("it is closed");
        assert_eq!(code, ErrorCode::PrivatePlane);
    });
}
