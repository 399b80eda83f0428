//! Every certificate, and the authority behind them, is replaced while players walk.

use std::time::Instant;

use super::Trials;
use crate::world::{Clients, PROCESSES, World, pause, with_world};

/// Makes a new authority and certificates of it; all trust both authorities.
const TRUST_BOTH: &str = "mkdir old && cp certs/* old/
    purview certs next --node node-1 --node node-2 --node node-3 --gateway gateway-1 \
        --gateway gateway-2 --name etcd --name postgres --name nodes
    cat old/ca.pem next/ca.pem >certs/ca.pem";

const NEW_CERTIFICATES: &str =
    "cp certs/ca.pem both.pem && cp next/* certs/ && mv both.pem certs/ca.pem";

const TRUST_THE_NEW: &str = "cp next/ca.pem certs/";

/// Changes the files of the authority and gives them to every service, as the compose file does at its start. Returns
/// when every process has read them; `count`: how often it has then.
fn give(world: &World, count: usize, what: &str, change: &str) {
    let begin = Instant::now();
    let change = format!("set -eu; umask 077; cd /volumes/authority; {change}");
    world.run_as("setup", &["--entrypoint=/bin/sh"], &["-c", &change]);
    world.run_as("setup", &[], &[]);
    for process in PROCESSES {
        world.wait_for("new certificates in use", |world| {
            let log = world.compose(&["logs", "--no-color", process]);
            let has = |line: &&str| line.contains("new certificates") && line.contains("ca.pem");
            log.lines().filter(has).count() >= count
        });
    }
    println!("{what}: in use after {:.1} s", begin.elapsed().as_secs_f64());
}

/// PostgreSQL reads its files again when it is told to, etcd reads authorities at its start.
fn renew_stores(world: &World) {
    world.docker(&["kill", "--signal=HUP", "purview-postgres-1"]);
    world.docker(&["restart", "purview-etcd-1"]);
    world.wait_whole("gateway-1");
}

/// Whether etcd lets in a node with a certificate of this folder.
fn lets_in(world: &World, folder: &str) -> bool {
    let [certificate, key] = [("cert", "pem"), ("key", "key")]
        .map(|(flag, end)| format!("--{flag}=/authority/{folder}/node-1.{end}"));
    let volume = format!("--volume={}:/authority:ro", world.volume("authority").display());
    let client = ["run", "--rm", "--user=0", "--network=purview_default", &volume];
    let command = ["--entrypoint=etcdctl", "quay.io/coreos/etcd:v3.5.17"];
    let ask = ["--endpoints=https://etcd:2379", "--cacert=/authority/certs/ca.pem"];
    let get = [&certificate, &key, "--command-timeout=3s", "get", "purview"];
    world.0.docker(&[&client[..], &command, &ask, &get].concat()).is_ok()
}

#[test]
#[ignore = "takes minutes: deploy/rehearse/certificates"]
fn certificates_and_their_authority_are_replaced_under_load() {
    with_world("rehearsals::certificates", |world| {
        world.up(&[]);
        let mut trials = Trials::of(world, 200);
        trials.run(("every certificate replaced", Clients::Stay), 240, |world| {
            give(world, 1, "both authorities", TRUST_BOTH);
            renew_stores(world);
            give(world, 2, "new certificates", NEW_CERTIFICATES);
            renew_stores(world);
            give(world, 3, "the new authority alone", TRUST_THE_NEW);
            renew_stores(world);
            world.docker(&["restart", "purview-postgres-1"]);
            for node in ["node-1", "node-2", "node-3"] {
                println!("{node} replaced in {:.1} s", world.replace(node).as_secs_f64());
                world.wait_whole("gateway-1");
            }
        });
        assert!(lets_in(world, "next") && !lets_in(world, "old"));
        trials.run(("both gateways replaced", Clients::Resume), 60, |world| {
            for gateway in ["gateway-1", "gateway-2"] {
                println!("{gateway} replaced in {:.1} s", world.replace(gateway).as_secs_f64());
            }
            pause(5);
        });
        trials.end();
    });
}
