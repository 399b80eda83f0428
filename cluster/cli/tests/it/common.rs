//! What tests of several modules share: waiting, runtimes, and clusters of processes.

use std::fmt::Debug;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::System;
use purview::scene::Epoch;
use purview::wire::CloseCode;
use purview_client::{Client, Event};
use purview_lab::testbed::local_cluster::{LocalCluster, Member, Parts};
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::node::Roles;
use purview_server::process::ClusterProcess;
use purview_server::storage::Leases;
use purview_server::storage::leases::embedded::Embedded;
use tokio::runtime::{Builder, Runtime};

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_purview");

/// How long a test waits for a state that must come.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks at what must come.
const LOOK: Duration = Duration::from_millis(50);

pub const HOUR: Duration = Duration::from_secs(3_600);

/// Listeners for clients and operators on any ports.
pub const ANY_PORTS: &str = "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\n\
                             [console]\nlisten = \"127.0.0.1:0\"\n";

/// Tries until it works. The failure of the test has the last error.
#[track_caller]
pub fn try_for<T, E: Debug>(what: &str, mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let begin = Instant::now();
    loop {
        match attempt() {
            Ok(found) => return found,
            Err(error) => assert!(begin.elapsed() < PATIENCE, "timed out: {what}: {error:?}"),
        }
        std::thread::sleep(LOOK);
    }
}

/// Waits until a condition holds.
#[track_caller]
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    try_for(what, || holds().then_some(()).ok_or("not yet"));
}

/// As [`try_for`], on a runtime.
pub async fn tries<T, E: Debug>(what: &str, mut attempt: impl AsyncFnMut() -> Result<T, E>) -> T {
    let begin = Instant::now();
    loop {
        match attempt().await {
            Ok(found) => return found,
            Err(error) => assert!(begin.elapsed() < PATIENCE, "timed out: {what}: {error:?}"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// As [`wait_for`], on a runtime.
pub async fn waits(what: &str, mut holds: impl FnMut() -> bool) {
    tries(what, async || holds().then_some(()).ok_or("not yet")).await;
}

/// A token of a development server, for an hour.
pub fn dev_token(name: &str) -> String {
    Tokens::dev().mint(name, Some(HOUR)).expect("a token")
}

pub fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A cluster of this configuration, each node and gateway a process.
pub fn cluster(config: &Config, nodes: u16, gateways: u16) -> LocalCluster {
    let parts = Parts { nodes, gateways };
    LocalCluster::start(Path::new(PROGRAM), config, parts, &mut |_| {}).unwrap()
}

/// All processes of a cluster.
pub fn members(cluster: &LocalCluster) -> impl Iterator<Item = &Member> {
    cluster.nodes().iter().chain(cluster.gateways())
}

/// `host:port` of a process's console.
pub fn console(member: &Member) -> String {
    member.ready().and_then(|ready| ready.console).expect("the member has a console")
}

/// Sends a request as it is, and reads the answer: its status, its head in lower case, its body.
pub fn http(addr: impl ToSocketAddrs, request: &str) -> (u16, String, Vec<u8>) {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_ascii_lowercase(), answer[end + 4..].to_vec())
}

/// Runs a test over a new lease store in this process, which outlives the processes of the test.
pub fn with_store(test: impl AsyncFnOnce(&Embedded, &Runtime)) {
    System::new().block_on(async {
        let outer = runtime();
        let store = outer.spawn(async { Embedded::new(Epoch(0)) }).await.unwrap();
        test(&store, &outer).await;
        outer.shutdown_background();
    });
}

pub const REGIONS: Roles = Roles { regions: true, gateway: false };
pub const GATEWAY: Roles = Roles { regions: false, gateway: true };

/// A process of a cluster over a store, on a runtime of its own.
pub async fn joined(config: &Config, roles: Roles, store: Arc<dyn Leases>) -> ClusterProcess {
    let joins = ClusterProcess::join(config, roles, Tokens::dev(), store, None, runtime());
    joins.await.unwrap()
}

/// Stops processes in this order.
pub async fn stop(all: impl IntoIterator<Item = ClusterProcess>) {
    for process in all {
        process.stop().await;
    }
}

/// The first event of a client's session that `pick` accepts.
pub async fn event<T>(client: &mut Client, mut pick: impl FnMut(Event) -> Option<T>) -> T {
    let found = async {
        loop {
            let event = client.next().await.expect("the session goes on");
            if let Some(found) = pick(event) {
                return found;
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("an event")
}

/// The code with which a client's session is closed.
pub async fn closed(client: &mut Client) -> Option<CloseCode> {
    let is_close = |event| if let Event::Closed { code, .. } = event { Some(code) } else { None };
    event(client, is_close).await
}

/// The client's session goes on: the server answers.
pub async fn still_there(client: &mut Client) {
    client.ping(7).await.expect("the session goes on");
    event(client, |event| match event {
        Event::Pong(pong) if pong.nonce == 7 => Some(()),
        Event::Closed { code, detail } => panic!("closed: {code:?} {detail}"),
        _ => None,
    })
    .await;
}
