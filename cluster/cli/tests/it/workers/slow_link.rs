//! A worker behind a slow connection: what a lease begins with comes in parts, each within the time for an answer, and so
//! it gets through; little waits for it meanwhile.

use purview_server::interest::client::Address;

use super::conduct::{server, told_of};
use super::support::{MONSTER, Worker};
use crate::proxy::Proxy;

/// Bytes that the connection passes in a second: 1 Mbit.
const BYTES_PER_S: usize = 125_000;

const ENTITIES: usize = 5_000;

const TAKEOVERS: usize = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_behind_a_slow_connection_takes_over_a_large_region_in_parts() {
    let (server, console) = server("takeover = \"1s\"\n");
    let mut fast = Worker::begin_with_all(server.reach(), "fast").await;
    for n in 0..ENTITIES as i32 {
        fast.spawn(0, MONSTER, 1_000 + n % 240 * 100, 1_000 + n / 240 * 100);
    }
    fast.until(|w| w.homes.len() == ENTITIES).await;
    drop(fast);
    let target = server.reach().logic.expect("workers can connect");
    for _ in 0..TAKEOVERS {
        let proxy = Proxy::slow(target, BYTES_PER_S);
        let mut one = Worker::begin_at(&Address::new(&proxy.url()), "slow").await;
        one.until(|w| w.leases.len() == 4 && w.homes.len() == ENTITIES).await;
        assert!(one.parts > 8, "in {} parts", one.parts);
        let waits = told_of(console, "slow")["waiting_bytes"].as_u64().unwrap();
        assert!(waits < 4 << 20, "{waits} bytes wait");
    }
}
