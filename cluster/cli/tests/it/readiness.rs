//! `/ready` of the processes of a real cluster: of gateways that can or cannot reach every region, and of processes
//! that shut down.

use std::net::TcpStream;
use std::path::Path;
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

/// Repeats `/ready` until it answers with this status and these words.
fn wait_for(runtime: &Runtime, member: &Member, status: u16, words: &str) {
    let (console, begin) = (console(member), Instant::now());
    loop {
        let told = match runtime.block_on(http::get(&console, "/ready")) {
            Ok(answer) => (answer.status, String::from_utf8_lossy(&answer.body).into_owned()),
            Err(error) => (0, error.to_string()),
        };
        if told.0 == status && told.1.contains(words) {
            return;
        }
        let late = begin.elapsed() > PATIENCE;
        assert!(!late, "{} says {told:?}, not {status} {words:?}", member.name);
        std::thread::sleep(Duration::from_millis(10));
    }
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
