//! Mutual TLS: a whole cluster without plain traffic, and what happens to processes that use none or show a
//! certificate of another authority.

mod command;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use purview::scene::{Epoch, Pos, RegionId};
use purview::wire::peer::MoveMsg;
use purview_client::{Client, Event, Trust, View, join_at};
use purview_lab::testbed::local_cluster::{LocalCluster, Parts, Stores};
use purview_server::config::{CertificateSettings, Config, TlsSettings};
use purview_server::http;
use purview_server::launch::PostgresServer;
use purview_server::node::ClusterSurvey;
use purview_server::peer::{Identity, Kind, Links, Member};
use purview_server::storage::checkpoints::postgres::Postgres;
use purview_server::storage::{CheckpointError, Checkpoints};
use purview_server::tls::make::{Order, make, make_more};
use purview_server::tls::{ProcessRole, Tls};
use tokio::runtime::Runtime;

use crate::common::{PATIENCE, PROGRAM, console, runtime, wait_for};
use crate::links::{self, Side};
use crate::walkers::{field, token};

/// The folder of an authority, with a certificate for each role.
pub struct Authority(tempfile::TempDir);

impl Authority {
    fn new(names: &[&str]) -> Authority {
        let place = tempfile::tempdir().unwrap();
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        make(&place.path().join("certs"), &names, 1).unwrap();
        Authority(place)
    }

    /// Of this machine.
    pub fn here() -> Authority {
        Authority::new(&HERE)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join("certs").join(name)
    }

    /// What its clients trust.
    pub fn trust(&self) -> Trust {
        Trust::file(&self.file("ca.pem")).unwrap()
    }

    /// The certificate of a server, and its key.
    pub fn server(&self) -> CertificateSettings {
        let [certificate, key] = ["gateway.pem", "gateway.key"].map(|name| self.file(name));
        CertificateSettings { certificate, key }
    }

    fn settings(&self, role: &str) -> TlsSettings {
        TlsSettings {
            certificate: self.file(&format!("{role}.pem")),
            key: self.file(&format!("{role}.key")),
            authority: self.file("ca.pem"),
        }
    }

    fn tls(&self, role: &str) -> Tls {
        Tls::load(&self.settings(role)).unwrap()
    }
}

const HERE: [&str; 2] = ["localhost", "127.0.0.1"];

fn side(number: u64, runtime: &Runtime, tls: Option<Tls>) -> (Links, SocketAddr) {
    let Side { directory, links, address } =
        runtime.block_on(links::side_of(Identity::new("purview", number), runtime, tls));
    // Links hold it weakly; it lives as long as the test.
    std::mem::forget(directory);
    (links, address)
}

fn connected(links: &Links) -> usize {
    let mut count = 0;
    links.each_channel(|_, _, _, connected, _| count += usize::from(connected));
    count
}

fn node() -> Member {
    Member { name: "node".into(), regions: true }
}

fn gateway() -> Member {
    Member { name: "gateway".into(), regions: false }
}

/// Tells each process about the other one and its role, by a host name that certificates have.
fn acquaint(runtime: &Runtime, both: [(&Links, SocketAddr, Member); 2]) {
    acquaint_at(runtime, "localhost", both);
}

/// The same by another host.
fn acquaint_at(
    runtime: &Runtime,
    host: &str,
    [(a, at_a, is_a), (b, at_b, is_b)]: [(&Links, SocketAddr, Member); 2],
) {
    runtime.block_on(async {
        a.join_as(b.process(), &format!("{host}:{}", at_b.port()), is_b);
        b.join_as(a.process(), &format!("{host}:{}", at_a.port()), is_a);
    });
}

/// Two processes that know of each other, each with its certificate.
fn pair(runtime: &Runtime, [a, b]: [(Tls, Member); 2]) -> [Links; 2] {
    let ((tls_a, is_a), (tls_b, is_b)) = (a, b);
    let ((a, at_a), (b, at_b)) = (side(1, runtime, Some(tls_a)), side(2, runtime, Some(tls_b)));
    acquaint(runtime, [(&a, at_a, is_a), (&b, at_b, is_b)]);
    [a, b]
}

#[test]
fn peers_with_certificates_of_one_authority_hear_each_other() {
    let (runtime, ours) = (runtime(), Authority::here());
    let [a, b] = pair(&runtime, [(ours.tls("node"), node()), (ours.tls("gateway"), gateway())]);
    wait_for("all channels", || connected(&a) == 2 && connected(&b) == 2);
    assert_eq!((a.refused(), b.refused()), (0, 0));
    [a, b].iter().for_each(Links::stop);
    runtime.shutdown_background();
}

#[test]
fn peers_read_new_certificates_and_keep_their_connections() {
    let (runtime, old, new) = (runtime(), Authority::here(), Authority::here());
    let (a, at_a) = side(1, &runtime, Some(old.tls("node")));
    let (b, at_b) = side(2, &runtime, Some(old.tls("gateway")));
    acquaint(&runtime, [(&a, at_a, node()), (&b, at_b, gateway())]);
    wait_for("all channels", || connected(&a) == 2 && connected(&b) == 2);
    for name in ["ca.pem", "node.pem", "node.key", "gateway.pem", "gateway.key"] {
        std::fs::copy(new.file(name), old.file(name)).unwrap();
    }
    // Both accept the new certificates as soon as both have read their files again.
    let (c, at_c) = side(3, &runtime, Some(new.tls("node")));
    for known in [(&a, at_a, node()), (&b, at_b, gateway())] {
        acquaint(&runtime, [known, (&c, at_c, node())]);
    }
    wait_for("a new peer", || [&a, &b, &c].iter().all(|links| connected(links) == 4));
    for (links, peer) in [(&a, 2), (&b, 1)] {
        links.each_channel(|process, kind, metrics, _, _| {
            let connections = metrics.connections.load(std::sync::atomic::Ordering::Relaxed);
            assert!(process != peer || connections == 1, "{kind:?}: {connections}");
        });
    }
    [a, b, c].iter().for_each(Links::stop);
    runtime.shutdown_background();
}

#[test]
fn a_peer_of_another_authority_or_without_a_certificate_is_not_heard() {
    let (runtime, ours, theirs) = (runtime(), Authority::here(), Authority::here());
    // The last certificate lacks the client-auth usage.
    for other in [Some(theirs.tls("node")), None, Some(ours.tls("postgres"))] {
        let (a, at_a) = side(1, &runtime, Some(ours.tls("node")));
        let (b, at_b) = side(2, &runtime, other);
        acquaint(&runtime, [(&a, at_a, node()), (&b, at_b, node())]);
        wait_for("refusals", || a.refused() >= 3);
        assert_eq!(connected(&b), 0);
        // The rejected peer does not affect the others.
        let (friend, at) = side(3, &runtime, Some(ours.tls("gateway")));
        acquaint(&runtime, [(&a, at_a, node()), (&friend, at, gateway())]);
        wait_for("a friend", || connected(&friend) == 2);
        assert_eq!(connected(&b), 0);
        [a, b, friend].iter().for_each(Links::stop);
    }
    runtime.shutdown_background();
}

/// The certificates of two nodes: the second one's names another host. Each trusts the other's authority and its own.
fn of_two_hosts() -> ([Authority; 2], [Tls; 2]) {
    let (ours, elsewhere) = (Authority::here(), Authority::new(&["node-9.internal"]));
    let settings = ours.settings("node");
    let both = |path: &Path| {
        let mut text = std::fs::read(ours.file("ca.pem")).unwrap();
        text.extend(std::fs::read(elsewhere.file("ca.pem")).unwrap());
        std::fs::write(path, text).unwrap();
        path.to_owned()
    };
    let authority = both(&ours.file("both.pem"));
    let here = TlsSettings { authority: authority.clone(), ..settings };
    let there = TlsSettings { authority, ..elsewhere.settings("node") };
    let tls = [&here, &there].map(|settings| Tls::load(settings).unwrap());
    ([ours, elsewhere], tls)
}

#[test]
fn a_peer_at_an_ip_address_is_proved_by_its_name_in_the_certificate_alone() {
    let (runtime, (_authorities, tls)) = (runtime(), of_two_hosts());
    let [here, there] = &tls;
    let (a, at_a) = side(1, &runtime, Some(here.clone()));
    let (b, at_b) = side(2, &runtime, Some(there.clone()));
    acquaint_at(&runtime, "127.0.0.1", [(&a, at_a, node()), (&b, at_b, node())]);
    wait_for("all channels", || connected(&a) == 2 && connected(&b) == 2);
    // Another name than that of the member is refused as before.
    let (c, at_c) = side(3, &runtime, Some(there.clone()));
    let other = Member { name: "node-2".into(), regions: true };
    acquaint_at(&runtime, "127.0.0.1", [(&a, at_a, node()), (&c, at_c, other)]);
    wait_for("refusals", || a.refused() >= 3);
    assert_eq!((connected(&a), connected(&c)), (2, 0));
    [a, b, c].iter().for_each(Links::stop);
    runtime.shutdown_background();
}

#[test]
fn no_connection_is_made_to_a_peer_whose_certificate_names_another_host() {
    let (runtime, (_authorities, tls)) = (runtime(), of_two_hosts());
    let [a, b] = pair(&runtime, tls.map(|tls| (tls, node())));
    // The one that calls is accepted; the other one's certificate has the wrong name.
    wait_for("one way", || connected(&b) == 2);
    wait_for("refusals", || b.refused() >= 3);
    assert_eq!(connected(&a), 0);
    [a, b].iter().for_each(Links::stop);
    runtime.shutdown_background();
}

#[test]
fn a_process_is_only_what_its_certificate_says() {
    let (runtime, ours) = (runtime(), Authority::here());
    let elsewhere = [(ProcessRole::Node, "elsewhere".to_owned())];
    let hosts = HERE.map(str::to_owned);
    let order = Order { cluster: "other", processes: &elsewhere, hosts: &hosts, days: 1 };
    make_more(&ours.0.path().join("certs"), &order).unwrap();
    let owner = |name: &str| Member { name: name.into(), regions: true };
    for (shows, claims) in [
        ("node", owner("node-2")),
        ("gateway", node()),
        // The name of a process that may own regions.
        ("gateway", owner("gateway")),
        // A certificate without a process name, and one of another cluster.
        ("etcd", node()),
        ("elsewhere", owner("elsewhere")),
    ] {
        let honest = (ours.tls("node"), node());
        let [a, b] = pair(&runtime, [honest, (ours.tls(shows), claims.clone())]);
        // Neither accepts the other under its claimed name: the one hears it call and does not call it.
        wait_for("refusals", || a.refused() >= 3);
        assert_eq!((connected(&a), connected(&b)), (0, 0), "{shows} as {claims:?}");
        [a, b].iter().for_each(Links::stop);
    }
    // A node may also be a gateway alone.
    let only = Member { regions: false, ..node() };
    let [a, b] = pair(&runtime, [(ours.tls("node"), node()), (ours.tls("node"), only)]);
    wait_for("all channels", || connected(&a) == 2 && connected(&b) == 2);
    [a, b].iter().for_each(Links::stop);
    runtime.shutdown_background();
}

#[test]
fn a_gateway_may_not_send_messages_of_regions() {
    let (runtime, ours) = (runtime(), Authority::here());
    let [a, b] = pair(&runtime, [(ours.tls("node"), node()), (ours.tls("gateway"), gateway())]);
    wait_for("all channels", || connected(&a) == 2 && connected(&b) == 2);
    let moved = MoveMsg::Moved { region: RegionId(0), epoch: Epoch(7), to: 1 };
    let late = tokio::time::Instant::now() + PATIENCE;
    let said = runtime.block_on(b.say(1, Kind::Regions, moved.clone(), late));
    assert_eq!(said, Ok(()));
    let forbidden = |links: &Links| {
        links.router().metrics().forbidden.load(std::sync::atomic::Ordering::Relaxed)
    };
    wait_for("one message that is left out", || forbidden(&a) == 1);
    assert_eq!(a.router().elsewhere(RegionId(0)), None);
    // A node may send the same message.
    assert_eq!(runtime.block_on(a.say(2, Kind::Regions, moved, late)), Ok(()));
    wait_for("it is heard", || b.router().elsewhere(RegionId(0)).is_some());
    assert_eq!(forbidden(&b), 0);
    [a, b].iter().for_each(Links::stop);
    runtime.shutdown_background();
}

#[test]
fn plain_traffic_beyond_this_machine_must_be_allowed_explicitly() {
    for (set, key) in [
        ("cluster.listen=0.0.0.0:0", "cluster.listen"),
        ("cluster.etcd=http://192.0.2.1:2379", "cluster.etcd"),
        ("cluster.postgres=postgres://u@192.0.2.1/d", "cluster.postgres"),
    ] {
        let place = tempfile::tempdir().unwrap();
        let secret = place.path().join("secret");
        std::fs::write(&secret, "a secret of more than thirty-two bytes").unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["node", "--set", "cluster.advertise=auto", "--set", set, "--set"]);
        command.arg(format!("token.secret_file={}", secret.display()));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(key) && said.contains("cluster.insecure = true"), "{said}");
    }
}

#[test]
fn a_database_that_requires_certificates_receives_them_and_refuses_others() {
    let (runtime, ours, theirs) = (runtime(), Authority::here(), Authority::here());
    let server = PostgresServer::start_secure(None, &ours.settings("postgres")).unwrap();
    let url = server.url();
    let asked = runtime.block_on(async {
        let store = Postgres::connect_with(&url, "c", Some(&ours.tls("gateway"))).await.unwrap();
        store.regions().await
    });
    assert_eq!(asked, Ok(Vec::new()));
    let refused = |tls: Option<Tls>| {
        let store = runtime.block_on(Postgres::connect_with(&url, "c", tls.as_ref()));
        store.err().unwrap_or_else(|| panic!("{tls:?} was accepted"))
    };
    // A client without TLS gets an error.
    let plain = refused(None);
    assert!(matches!(&plain, CheckpointError::Refused { cause, .. } if cause.contains("28000")));
    // Neither side trusts the other.
    let strange = refused(Some(theirs.tls("node")));
    assert!(
        matches!(&strange, CheckpointError::Unreachable { cause, .. }
        if cause.contains("certificate")),
        "{strange}"
    );
    // A database without TLS does not receive the password.
    let bare = PostgresServer::start(None).unwrap();
    let connected =
        runtime.block_on(Postgres::connect_with(&bare.url(), "c", Some(&ours.tls("node")))).err();
    assert!(
        matches!(&connected, Some(CheckpointError::Unreachable { cause, .. }) if cause.contains("TLS")),
        "{connected:?}"
    );
}

/// Walks along the whole map, across two borders, and receives its own position from every region.
async fn walk(url: String, token: String) {
    let mut client = Client::connect(&url, &token).await.expect("the server accepts the client");
    let joined = client.join(join_at("field", Pos::ground(1_000, 6_000))).await.expect("room");
    let mut view = View::of(&joined);
    let (mut sender, mut receiver) = client.split();
    let mut clock = tokio::time::interval(Duration::from_millis(50));
    let mut x = 1_000;
    let mut last = purview::scene::Seq(0);
    while x < 37_000 || view.ack() != last {
        tokio::select! {
            _ = clock.tick(), if x < 37_000 => {
                x += 400;
                last = sender.send_move(Pos::ground(x, 6_000)).await.unwrap();
            }
            event = receiver.next() => match event.unwrap() {
                Event::Frame(frame) => {
                    assert!(frame.refused.is_empty(), "{frame:?}");
                    view.apply(&frame).unwrap();
                }
                Event::Unconfirmed(_) => {}
                other => panic!("unexpected event {other:?}"),
            },
        }
    }
}

fn survey(runtime: &Runtime, console: &str) -> ClusterSurvey {
    let answer = runtime.block_on(http::get(&format!("http://{console}"), "/api/cluster")).unwrap();
    serde_json::from_slice(&answer.body).unwrap()
}

#[test]
fn a_whole_cluster_uses_tls_only_and_refuses_strangers() {
    let config = field("[cluster]\nlease = \"3s\"\ncheckpoint = \"500ms\"\n");
    let parts = Parts { nodes: 2, gateways: 1 };
    let (program, stores) = (Path::new(PROGRAM), Stores { secure: true, ..Stores::PLAIN });
    let cluster = LocalCluster::start_on(stores, program, &config, parts, &mut |_| {}).unwrap();
    let (runtime, url) = (runtime(), cluster.url(0).unwrap());
    let walks = |url: String| {
        let token = token(&cluster, "walker");
        let walked = async { tokio::time::timeout(PATIENCE, walk(url, token)).await };
        runtime.block_on(walked).expect("it comes to the end of the map");
    };
    walks(url.clone());

    // A process with a certificate of another authority is refused by etcd, PostgreSQL and peers.
    let theirs = Authority::here();
    let other = |role: &str, authority: &Path| {
        let TlsSettings { certificate, key, .. } = theirs.settings(role);
        [("certificate", &*certificate), ("key", &*key), ("authority", authority)]
            .map(|(name, path)| format!("cluster.tls.{name}={}", path.display()))
    };
    let believed = cluster.certificates().unwrap().join("ca.pem");
    let set = other("node", &believed);
    let set: Vec<&str> = set.iter().map(String::as_str).chain(["cluster.patience=0ms"]).collect();
    let stranger = cluster.try_node("stranger", &set).unwrap();
    wait_for("the stranger gives up", || stranger.ended().is_some());
    let code = stranger.ended().and_then(|status| status.code());
    assert_eq!(code, Some(1), "{}", stranger.said());
    let said = stranger.said().to_lowercase();
    assert!(said.contains("certificate") || said.contains("unknownca"), "{said}");

    // A peer without TLS, one that sends garbage, and one of another authority.
    let console = console(&cluster.nodes()[0]);
    let before = survey(&runtime, &console);
    assert!(!before.nodes.iter().any(|node| node.name == "stranger"));
    let me = before.nodes.iter().find(|node| node.name == before.me).unwrap();
    for words in [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &[0xff; 64][..]] {
        let mut plain = TcpStream::connect(&me.address).unwrap();
        plain.set_read_timeout(Some(PATIENCE)).unwrap();
        plain.write_all(words).unwrap();
        let mut answer = Vec::new();
        // A TLS alert or a reset connection; no HTTP/2.
        let _reset = plain.read_to_end(&mut answer).is_err();
        assert!(answer.len() < 16, "{answer:?}");
    }
    let (links, _) = side(999, &runtime, Some(theirs.tls("node")));
    let known = Member { name: me.name.clone(), regions: true };
    runtime.block_on(async { links.join_as(me.process, &me.address, known) });
    wait_for("refusals", || survey(&runtime, &console).refused >= before.refused + 3);
    assert_eq!(connected(&links), 0);
    links.stop();
    wait_for("a line in the log", || cluster.nodes()[0].said().contains("a peer was refused"));

    // The cluster is not affected: regions stay where they were, and clients walk.
    let after = survey(&runtime, &console);
    assert_eq!(after.regions, before.regions);
    assert!(after.channels.iter().all(|channel| channel.connected), "{after:?}");
    walks(url);
}
