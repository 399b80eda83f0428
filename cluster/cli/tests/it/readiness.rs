//! `/ready` of the processes of a real cluster: of gateways that can or cannot reach every region, and of processes
//! that shut down.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use purview::scene::Pos;
use purview_client::{Client, join_at};
use purview_lab::testbed::local_cluster::{LocalCluster, Member, Parts};
use purview_server::admin::token_at;
use purview_server::config::Config;
use purview_server::http;
use tokio::runtime::{Builder, Runtime};

/// How long a test waits for a state that must come.
const PATIENCE: Duration = Duration::from_secs(60);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn start() -> LocalCluster {
    let text = "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\n[console]\nlisten = \"127.0.0.1:0\"\n\
                [cluster]\nlease = \"3s\"\n\
                [[scene]]\nteleports = \"clients\"\n\
                name = \"field\"\nwidth = \"384m\"\ndepth = \"256m\"\nland = \"64m\"\n\
                region = [2, 2]\npatch = \"16m\"\nmoves = \"trusted\"\ntop_speed = \"20m/s\"\n";
    let program = Path::new(env!("CARGO_BIN_EXE_purview"));
    let parts = Parts { nodes: 2, gateways: 1 };
    LocalCluster::start(program, &Config::parse(text).unwrap(), parts, &mut |_| {}).unwrap()
}

fn console(member: &Member) -> String {
    format!("http://{}", member.ready().unwrap().console.unwrap())
}

/// The status and the text of an answer; status 0 without one.
fn answer(runtime: &Runtime, member: &Member, path: &str) -> (u16, String) {
    match runtime.block_on(http::get(&console(member), path)) {
        Ok(answer) => (answer.status, String::from_utf8_lossy(&answer.body).into_owned()),
        Err(error) => (0, error.to_string()),
    }
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "timed out");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Repeats a request until it is answered with this status and these words.
fn wait_for_path(runtime: &Runtime, member: &Member, path: &str, status: u16, words: &str) {
    let begin = Instant::now();
    loop {
        let told = answer(runtime, member, path);
        if told.0 == status && told.1.contains(words) {
            return;
        }
        let late = begin.elapsed() > PATIENCE;
        assert!(!late, "{} says {told:?}, not {status} {words:?}", member.name);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The same of `/ready`.
fn wait_for(runtime: &Runtime, member: &Member, status: u16, words: &str) {
    wait_for_path(runtime, member, "/ready", status, words);
}

#[test]
fn a_gateway_is_ready_while_it_reaches_every_region() {
    let (runtime, mut cluster) = (runtime(), start());
    wait_for(&runtime, &cluster.gateways()[0], 200, "true");
    cluster.nodes().iter().for_each(|node| wait_for(&runtime, node, 200, "true"));
    cluster.nodes().iter().for_each(Member::kill);
    wait_for(&runtime, &cluster.gateways()[0], 503, "0 of 6 regions have an owner");
    cluster.add_node("node-3".into()).unwrap();
    wait_for(&runtime, &cluster.gateways()[0], 200, "true");
}

#[test]
fn one_lost_node_takes_no_gateway_out_of_a_balancer_although_the_cluster_is_not_whole() {
    let (runtime, cluster) = (runtime(), start());
    let gateway = &cluster.gateways()[0];
    wait_for_path(&runtime, gateway, "/whole", 200, "true");
    cluster.nodes()[1].kill();
    let mut seen = Vec::new();
    wait_until(|| {
        seen.push(answer(&runtime, gateway, "/ready").0);
        let (status, words) = answer(&runtime, gateway, "/whole");
        status == 503 && (words.contains("no connection to node-2") || words.contains("an owner"))
    });
    // Until the other node has its regions.
    wait_until(|| {
        seen.push(answer(&runtime, gateway, "/ready").0);
        answer(&runtime, gateway, "/whole").0 == 200
    });
    assert!(seen.iter().all(|status| *status == 200), "{seen:?}");
}

#[test]
fn a_health_check_needs_the_program_alone() {
    let (runtime, cluster) = (runtime(), start());
    let gateway = &cluster.gateways()[0];
    wait_for_path(&runtime, gateway, "/whole", 200, "true");
    let ready = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_purview"));
        let command = command.args(["ctl", "ready", "--console", &console(gateway)]).args(more);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(ready(&[]), (Some(0), "ready\n".to_owned()));
    assert_eq!(ready(&["--whole"]), (Some(0), "whole\n".to_owned()));
    cluster.nodes().iter().for_each(Member::kill);
    wait_for(&runtime, gateway, 503, "0 of 6 regions");
    let (code, said) = ready(&[]);
    assert_eq!(code, Some(1));
    assert!(said.starts_with("not ready: 0 of 6 regions"), "{said}");
    let mut nobody = Command::new(env!("CARGO_BIN_EXE_purview"));
    let nobody = nobody.args(["ctl", "ready", "--console", "http://127.0.0.1:1"]).output().unwrap();
    assert_eq!(nobody.status.code(), Some(1));
}

#[test]
fn a_process_that_shuts_down_is_not_ready() {
    let (runtime, cluster) = (runtime(), start());
    let (node, gateway) = (&cluster.nodes()[0], &cluster.gateways()[0]);
    wait_for(&runtime, gateway, 200, "true");
    wait_for(&runtime, node, 200, "true");
    // A connection without a word: the gateway waits for its end. It is accepted before the client that comes after it.
    let address = cluster.url(0).unwrap();
    let address = address.trim_start_matches("ws://").trim_end_matches('/').to_owned();
    let _silent = TcpStream::connect(address).unwrap();
    let _client = runtime.block_on(async {
        let token = cluster.tokens().mint("player", Some(Duration::from_secs(3_600))).unwrap();
        let mut client = Client::connect(&cluster.url(0).unwrap(), &token).await.unwrap();
        client.join(join_at("field", Pos::ground(1_000, 1_000))).await.unwrap();
        client
    });
    gateway.terminate();
    wait_for(&runtime, gateway, 503, "shutting down");
    // The other node takes no regions, so this one keeps trying to migrate its own.
    cluster.nodes()[1].pause();
    let (url, body) = (console(node), bytes::Bytes::from_static(b"{\"node\": \"node-1\"}"));
    let token = token_at(&url);
    let order = http::post_as(&url, "/api/cluster/drain", body, token.as_deref());
    assert_eq!(runtime.block_on(order).unwrap().status, 202);
    wait_for(&runtime, node, 503, "shutting down");
    cluster.nodes()[1].resume();
}
