//! Which sessions are admitted, and for how long: two sessions of one subject at different gateways, kicks, private
//! planes, and keys that change.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::System;
use purview::actor::logins::{Logins, Verdict};
use purview::actor::player::Planes;
use purview::scene::{EntityId, Epoch, Plane, Pos, Seq, SessionId};
use purview::wire::client::Join;
use purview::wire::{CloseCode, ErrorCode};
use purview_client::{Client, ClientError, Event, join_at};
use purview_lab::rng::Rng;
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::gateway::token::Rules;
use purview_server::gateway::token::keys::Files;
use purview_server::logins::{Duplicate, Subjects};
use purview_server::node::{Roles, Status};
use purview_server::process::ClusterProcess;
use purview_server::storage::leases::embedded::Embedded;
use tokio::runtime::Runtime;

use crate::common::{
    GATEWAY, HOUR, PATIENCE, REGIONS, closed, event, runtime, still_there, stop, tries, waits,
};

/// Four regions, two lines, any ports. `token` goes into the section of tokens.
fn config(name: &str, token: &str) -> Config {
    let text = format!(
        "[server]\narbiters = 1\n[console]\nlisten = \"off\"\n[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\n\
         lame_duck = \"0ms\"\n\
         [token]\n{token}\n\
         [cluster]\nnode = {name:?}\nlisten = \"127.0.0.1:0\"\nlease = \"5s\"\n\
         [[scene]]\nteleports = \"clients\"\n\
         name = \"city\"\nwidth = \"1024m\"\ndepth = \"1024m\"\nregion = [1, 1]\nlines = 2\n"
    );
    Config::parse(&text).unwrap()
}

struct Cluster {
    store: Embedded,
    outer: Runtime,
    tokens: Tokens,
    token: &'static str,
    nodes: Vec<ClusterProcess>,
}

impl Cluster {
    /// A node with regions and two gateways.
    async fn start(tokens: Tokens, token: &'static str) -> Cluster {
        let outer = runtime();
        let store = outer.spawn(async { Embedded::new(Epoch(0)) }).await.unwrap();
        let mut cluster = Cluster { store, outer, tokens, token, nodes: Vec::new() };
        cluster.add("a", REGIONS).await;
        cluster.add("g", GATEWAY).await;
        cluster.add("h", GATEWAY).await;
        cluster
    }

    async fn add(&mut self, name: &str, roles: Roles) {
        let (store, tokens) = (Arc::new(self.store.another()), self.tokens.clone());
        let config = config(name, self.token);
        let node =
            ClusterProcess::join(&config, roles, tokens, store, None, runtime()).await.unwrap();
        let mut status = node.status();
        let whole = status.wait_for(Status::is_whole);
        tokio::time::timeout(PATIENCE, whole).await.expect("all regions").unwrap();
        self.nodes.push(node);
    }

    fn url(&self, node: usize) -> String {
        format!("ws://{}/", self.nodes[node].ws_addr().unwrap())
    }

    async fn connect(&self, node: usize, name: &str) -> Result<Client, ClientError> {
        Client::connect(&self.url(node), &self.tokens.mint(name, Some(HOUR)).unwrap()).await
    }

    async fn join(&self, node: usize, name: &str) -> Client {
        self.try_join(node, name).await.expect("there is room")
    }

    async fn try_join(&self, node: usize, name: &str) -> Result<Client, ClientError> {
        let mut client = self.connect(node, name).await?;
        client.join(join_at("city", Pos::ground(1_000, 1_000))).await?;
        Ok(client)
    }

    async fn stop(self) {
        stop(self.nodes.into_iter().rev()).await;
        self.outer.shutdown_background();
    }
}

/// Runs a test with a cluster and this section of tokens.
fn with_cluster(token: &'static str, test: impl AsyncFnOnce(&mut Cluster)) {
    System::new().block_on(async {
        let mut cluster = Cluster::start(Tokens::dev(), token).await;
        test(&mut cluster).await;
        cluster.stop().await;
    });
}

/// Waits until nobody is shown in the plane but so many.
async fn players(node: &ClusterProcess, n: u32) {
    let count = || node.directory().lines_here().iter().map(|(_, _, players)| players).sum::<u32>();
    waits("players have left", || count() == n).await;
}

#[test]
fn a_newer_session_of_a_subject_replaces_the_older_one_at_any_gateway() {
    with_cluster("", async |cluster| {
        let mut other = cluster.join(1, "bob").await;
        for (older, newer) in [(1, 1), (1, 2), (2, 1)] {
            let mut first = cluster.join(older, "ada").await;
            let mut second = cluster.join(newer, "ada").await;
            assert_eq!(closed(&mut first).await, Some(CloseCode::Replaced), "{older} {newer}");
            still_there(&mut second).await;
            second.leave().await.unwrap();
            assert_eq!(closed(&mut second).await, Some(CloseCode::Normal));
        }
        // Of many sessions at once one stays.
        for round in 0..5 {
            let all = (0..6).map(|i| cluster.try_join(1 + i % 2, "ada"));
            let all = futures::future::join_all(all).await.into_iter();
            // Some are replaced before they have joined.
            let mut all: Vec<_> = all
                .filter_map(|joined| match joined {
                    Ok(client) => Some(client),
                    Err(ClientError::Closed { code: Some(CloseCode::Replaced), .. }) => None,
                    Err(error) => panic!("{error}"),
                })
                .collect();
            let mut open = Vec::new();
            let begin = Instant::now();
            loop {
                open.clear();
                for (i, client) in all.iter_mut().enumerate() {
                    match tokio::time::timeout(Duration::from_millis(20), closed(client)).await {
                        Ok(code) => assert_eq!(code, Some(CloseCode::Replaced)),
                        Err(_) => open.push(i),
                    }
                }
                if open.len() <= 1 {
                    break;
                }
                assert!(begin.elapsed() < PATIENCE, "round {round}: {} stay", open.len());
            }
            assert_eq!(open.len(), 1, "round {round}: one stays");
            still_there(&mut all[open[0]]).await;
            all[open[0]].leave().await.unwrap();
            assert_eq!(closed(&mut all[open[0]]).await, Some(CloseCode::Normal));
        }
        still_there(&mut other).await;
        drop(other);
    });
}

#[test]
fn a_disconnected_player_leaves_when_its_subject_joins_again() {
    with_cluster("", async |cluster| {
        let mut observer = cluster.join(1, "bob").await;
        let mut gone = cluster.connect(1, "ada").await.unwrap();
        let old = gone.join(join_at("city", Pos::ground(1_000, 1_000))).await.unwrap().id;
        drop(gone);
        let mut back = cluster.connect(2, "ada").await.unwrap();
        let new = back.join(join_at("city", Pos::ground(1_000, 1_000))).await.unwrap().id;
        // Long before the end of its grace period of ten seconds.
        let (mut shown, begin) = (Vec::new(), Instant::now());
        while shown != [new] {
            assert!(begin.elapsed() < Duration::from_secs(9), "{shown:?}, not {new} without {old}");
            if let Event::Frame(frame) = observer.next().await.unwrap() {
                shown.retain(|id| !frame.leaves.contains(id));
                shown.extend(frame.enters.iter().map(|e| e.id));
            }
        }
        drop((observer, back));
    });
}

#[test]
fn with_keep_a_newer_session_is_refused_unless_the_older_client_is_gone() {
    with_cluster("duplicate = \"refuse\"", async |cluster| {
        let mut first = cluster.join(1, "ada").await;
        for gateway in [1, 2] {
            let mut second = cluster.connect(gateway, "ada").await.unwrap();
            let refused = second.join(join_at("city", Pos::ground(1_000, 1_000))).await;
            assert!(
                matches!(&refused, Err(ClientError::Refused(r)) if r.code == ErrorCode::Taken),
                "{refused:?}"
            );
        }
        still_there(&mut first).await;
        let ticket = first.ticket().expect("a ticket").token.clone();
        drop(first);
        // Its client is gone, and resumes, or another one comes.
        let mut back = tries("its client resumes", async || {
            let mut back = cluster.connect(2, "ada").await.unwrap();
            match back.resume(&ticket, Seq(0)).await {
                Ok(_) => Ok(back),
                Err(ClientError::Refused(r)) if r.code == ErrorCode::Busy => Err(r),
                Err(error) => panic!("{error}"),
            }
        })
        .await;
        still_there(&mut back).await;
        drop(back);
        let begin = Instant::now();
        loop {
            let mut third = cluster.connect(1, "ada").await.unwrap();
            match third.join(join_at("city", Pos::ground(1_000, 1_000))).await {
                Ok(_) => break,
                // The gateway has not noticed the end of the connection yet.
                Err(ClientError::Refused(r)) if r.code == ErrorCode::Taken => {}
                Err(error) => panic!("{error}"),
            }
            assert!(begin.elapsed() < Duration::from_secs(9));
        }
    });
}

#[test]
fn with_allow_all_sessions_stay_and_a_kick_ends_them_and_bars_the_subject_at_later_gateways_too() {
    with_cluster("duplicate = \"allow\"", async |cluster| {
        let mut kicked = [cluster.join(1, "ada").await, cluster.join(2, "ada").await];
        for client in &mut kicked {
            still_there(client).await;
        }
        let mut other = cluster.join(2, "bob").await;
        let orders = cluster.nodes[0].orders().clone();
        orders.kick("ada", Some(HOUR)).await.unwrap();
        for client in &mut kicked {
            assert_eq!(closed(client).await, Some(CloseCode::Kicked));
        }
        players(&cluster.nodes[1], 0).await;
        still_there(&mut other).await;
        cluster.add("i", GATEWAY).await;
        // A new gateway carries the order out within a second or two.
        let begin = Instant::now();
        for gateway in [1, 2, 3] {
            loop {
                match cluster.connect(gateway, "ada").await {
                    Err(ClientError::Closed { code: Some(CloseCode::Kicked), detail }) => {
                        assert!(detail.contains("barred for another 3"), "{detail}");
                        break;
                    }
                    Ok(mut early) if gateway == 3 => {
                        assert_eq!(closed(&mut early).await, Some(CloseCode::Kicked));
                    }
                    other => panic!("{:?}", other.err()),
                }
                assert!(begin.elapsed() < PATIENCE);
            }
        }
        orders.kick("ada", Some(Duration::ZERO)).await.unwrap();
        tries("the bar ends", async || cluster.connect(3, "ada").await).await;
        assert!(orders.kick("", None).await.is_err());
        drop(other);
    });
}

#[test]
fn a_private_plane_requires_a_token_that_names_it() {
    with_cluster("duplicate = \"allow\"", async |cluster| {
        let at = Pos::ground(1_000, 1_000);
        let join = |plane: i32| Join { plane: Some(Plane(plane)), ..join_at("city", at) };
        let private = |refused: &Result<_, ClientError>| match refused {
            Err(ClientError::Refused(refused)) => refused.code == ErrorCode::PrivatePlane,
            _ => false,
        };
        let mut client = cluster.connect(1, "ada").await.unwrap();
        for plane in [7, -5, i32::MAX, 2] {
            let refused = client.join(join(plane)).await;
            assert!(private(&refused), "{plane}: {refused:?}");
        }
        assert_eq!(client.join(join(1)).await.expect("a line").plane, Plane(1));
        client.teleport(None, Some(Plane(7)), at).await.unwrap();
        let refused = event(&mut client, |event| match event {
            Event::Refused(refused) => Some(refused),
            Event::Joined(joined) => panic!("it has come to {:?}", joined.plane),
            _ => None,
        });
        let refused = refused.await;
        assert_eq!(refused.code, ErrorCode::PrivatePlane);
        assert!(refused.detail.contains("plane 7 of scene \"city\""), "{refused:?}");
        let listed = Planes::Listed(vec![("city".into(), Plane(7)), ("moon".into(), Plane(8))]);
        let token = cluster.tokens.mint_for("bob", Some(HOUR), &listed).unwrap();
        let mut named = Client::connect(&cluster.url(2), &token).await.unwrap();
        assert!(private(&named.join(join(8)).await), "it is another scene's");
        assert_eq!(named.join(join(7)).await.expect("its token names it").plane, Plane(7));
        drop((client, named));
    });
}

#[actix_rt::test]
async fn a_gateway_reads_its_keys_again_when_their_file_changes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, [b'1'; 32]).unwrap();
    let files = Files { secret: Some(file.clone()), set: None };
    let tokens = Tokens::of_files(files, Rules::default()).unwrap();
    let cluster = Cluster::start(tokens.clone(), "duplicate = \"allow\"").await;
    let mut before = cluster.join(1, "ada").await;
    let other = Tokens::new(&[b'2'; 32]).unwrap().mint("ada", Some(HOUR)).unwrap();
    let refused = Client::connect(&cluster.url(1), &other).await;
    assert!(matches!(refused, Err(ClientError::Closed { code: Some(CloseCode::Token), .. })));
    std::fs::write(&file, [b'2'; 32]).unwrap();
    tries("the new keys", async || Client::connect(&cluster.url(1), &other).await).await;
    still_there(&mut before).await;
    drop(before);
    cluster.stop().await;
}

/// Receives verdicts and does nothing.
struct Deaf;

impl actix::Actor for Deaf {
    type Context = actix::Context<Deaf>;
}

impl actix::Handler<Verdict> for Deaf {
    type Result = ();

    fn handle(&mut self, _: Verdict, _: &mut actix::Context<Deaf>) {}
}

/// In any order and with any loss, one of all claims of a subject stands once every two processes have told each
/// other.
#[actix_rt::test]
async fn of_competing_claims_in_any_order_the_right_one_stands() {
    let deaf = actix::Actor::start(Deaf);
    for (policy, seed) in [Duplicate::Replace, Duplicate::Refuse]
        .into_iter()
        .flat_map(|p| (0..300).map(move |s| (p, s)))
    {
        let mut rng = Rng::new(seed);
        let all: Vec<Subjects> = (0..3).map(|_| Subjects::new(policy)).collect();
        let tell = |from: usize, to: usize| {
            let claims: Vec<_> =
                all[from].claims_after(0, 100).into_iter().map(|(_, claim)| claim).collect();
            let stand = all[to].meet(&claims);
            all[from].meet(&stand);
        };
        for session in 1..=6 {
            let process = (rng.unit() * 3.0) as usize;
            let (id, entity) = (SessionId(session), EntityId(session));
            all[process].begin(id, "ada", deaf.clone().recipient()).unwrap();
            // The clocks differ by arbitrary amounts.
            let now = Duration::from_millis((rng.unit() * 10.0) as u64);
            drop(all[process].claim(id, entity, now));
            for _ in 0..(rng.unit() * 3.0) as u32 {
                tell((rng.unit() * 3.0) as usize, (rng.unit() * 3.0) as usize);
            }
        }
        let claims = || all.iter().flat_map(|one| one.claims_after(0, 100)).map(|(_, c)| c);
        let due = match policy {
            Duplicate::Refuse => claims().min_by_key(|claim| claim.stamp),
            _ => claims().max_by_key(|claim| claim.stamp),
        };
        for from in 0..3 {
            for to in (0..3).filter(|to| *to != from) {
                tell(from, to);
            }
        }
        let left: Vec<_> = claims().collect();
        assert_eq!(left, due.into_iter().collect::<Vec<_>>(), "{policy:?}, seed {seed}");
    }
}

#[actix_rt::test]
async fn a_ticket_counts_at_every_gateway_of_its_cluster_and_at_none_of_another_with_the_same_secret()
 {
    let (first, second) =
        (Cluster::start(Tokens::dev(), "").await, Cluster::start(Tokens::dev(), "").await);
    let (eve, mut owner) = (first.join(1, "eve").await, second.join(1, "owner").await);
    let ticket = eve.ticket().expect("a ticket").token.clone();
    for node in [1, 2] {
        let mut thief = second.connect(node, "eve").await.unwrap();
        match thief.resume(&ticket, Seq(0)).await {
            Err(ClientError::Refused(why)) => assert_eq!(why.code, ErrorCode::BadTicket),
            other => panic!("a ticket of another cluster was taken: {other:?}"),
        }
    }
    still_there(&mut owner).await;
    let mut back = first.connect(2, "eve").await.unwrap();
    back.resume(&ticket, Seq(0)).await.expect("another gateway of its own cluster");
    drop((eve, back, owner));
    first.stop().await;
    second.stop().await;
}
