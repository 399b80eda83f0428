//! `/ready` of the processes of a real cluster: of gateways that can or cannot reach every region, and of processes
//! that shut down.

use std::net::TcpStream;

use purview::scene::Pos;
use purview_client::{Client, join_at};
use purview_lab::testbed::local_cluster::{LocalCluster, Member};
use purview_server::admin::token_at;
use purview_server::http;
use tokio::runtime::Runtime;

use crate::common::{cluster, console, runtime, try_for, wait_for};
use crate::end_to_end::process::run;
use crate::walkers::{field, token};

/// A cluster of two nodes and a gateway.
fn start() -> LocalCluster {
    cluster(&field("[cluster]\nlease = \"3s\"\n"), 2, 1)
}

fn url(member: &Member) -> String {
    format!("http://{}", console(member))
}

/// The status and the text of an answer; status 0 without one.
fn answer(runtime: &Runtime, member: &Member, path: &str) -> (u16, String) {
    match runtime.block_on(http::get(&url(member), path)) {
        Ok(answer) => (answer.status, String::from_utf8_lossy(&answer.body).into_owned()),
        Err(error) => (0, error.to_string()),
    }
}

/// Repeats `/ready` until it is answered with this status and these words.
fn is_ready(runtime: &Runtime, member: &Member, status: u16, words: &str) {
    try_for(&format!("{} says {status} {words:?}", member.name), || {
        let told = answer(runtime, member, "/ready");
        if told.0 == status && told.1.contains(words) { Ok(()) } else { Err(told) }
    });
}

#[test]
fn a_gateway_is_ready_while_it_reaches_any_region_and_whole_while_it_reaches_all() {
    let (runtime, mut cluster) = (runtime(), start());
    is_ready(&runtime, &cluster.gateways()[0], 200, "true");
    cluster.nodes().iter().for_each(|node| is_ready(&runtime, node, 200, "true"));
    health_checks_need_the_program_alone(&cluster.gateways()[0], "true");
    one_lost_node_takes_no_gateway_out_of_a_balancer(&runtime, &cluster);
    cluster.nodes()[0].kill();
    is_ready(&runtime, &cluster.gateways()[0], 503, "0 of 6 regions have an owner");
    health_checks_need_the_program_alone(&cluster.gateways()[0], "0 of 6 regions");
    cluster.add_node("node-3".into()).unwrap();
    is_ready(&runtime, &cluster.gateways()[0], 200, "true");
}

/// Although the cluster is not whole.
fn one_lost_node_takes_no_gateway_out_of_a_balancer(runtime: &Runtime, cluster: &LocalCluster) {
    let gateway = &cluster.gateways()[0];
    cluster.nodes()[1].kill();
    let mut seen = Vec::new();
    wait_for("a gateway that is not whole", || {
        seen.push(answer(runtime, gateway, "/ready").0);
        let (status, words) = answer(runtime, gateway, "/whole");
        status == 503 && (words.contains("no connection to node-2") || words.contains("an owner"))
    });
    // Until the other node has its regions.
    wait_for("a whole gateway", || {
        seen.push(answer(runtime, gateway, "/ready").0);
        answer(runtime, gateway, "/whole").0 == 200
    });
    assert!(seen.iter().all(|status| *status == 200), "{seen:?}");
}

/// `purview ctl ready` of a gateway that is ready and whole, or is not for a reason.
fn health_checks_need_the_program_alone(gateway: &Member, is: &str) {
    let at = url(gateway);
    let said = |at: &str, more: &[&str]| {
        let done = run(&[&["ctl", "ready", "--console", at], more].concat());
        (done.code, done.stdout)
    };
    if is == "true" {
        wait_for("a whole gateway", || said(&at, &["--whole"]).0 == Some(0));
        assert_eq!(said(&at, &["--whole"]).1, "whole\n");
        assert_eq!(said(&at, &[]), (Some(0), "ready\n".to_owned()));
        assert_eq!(said("http://127.0.0.1:1", &[]).0, Some(1), "nobody answers");
    } else {
        let (code, text) = said(&at, &[]);
        assert!(code == Some(1) && text.starts_with(&format!("not ready: {is}")), "{text}");
    }
}

#[test]
fn a_process_that_shuts_down_is_not_ready() {
    let (runtime, cluster) = (runtime(), start());
    let (node, gateway) = (&cluster.nodes()[0], &cluster.gateways()[0]);
    is_ready(&runtime, gateway, 200, "true");
    is_ready(&runtime, node, 200, "true");
    // A connection without a word: the gateway waits for its end. It is accepted before the client that comes after it.
    let address = cluster.url(0).unwrap();
    let address = address.trim_start_matches("ws://").trim_end_matches('/').to_owned();
    let _silent = TcpStream::connect(address).unwrap();
    let _client = runtime.block_on(async {
        let token = token(&cluster, "player");
        let mut client = Client::connect(&cluster.url(0).unwrap(), &token).await.unwrap();
        client.join(join_at("field", Pos::ground(1_000, 1_000))).await.unwrap();
        client
    });
    gateway.terminate();
    is_ready(&runtime, gateway, 503, "shutting down");
    // The other node takes no regions, so this one keeps trying to migrate its own.
    cluster.nodes()[1].pause();
    let (url, body) = (url(node), bytes::Bytes::from_static(b"{\"node\": \"node-1\"}"));
    let token = token_at(&url);
    let order = http::post_as(&url, "/api/cluster/drain", body, token.as_deref());
    assert_eq!(runtime.block_on(order).unwrap().status, 202);
    is_ready(&runtime, node, 503, "shutting down");
    cluster.nodes()[1].resume();
}
