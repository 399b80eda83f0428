//! A worker behind a slow connection: what a lease begins with comes in parts, each within the time for an answer, and so
//! it gets through; little waits for it meanwhile.

use std::net::SocketAddr;
use std::time::Duration;

use purview_server::interest::client::Address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::conduct::{server, told_of};
use super::support::{MONSTER, Worker, runtime};

/// Bytes that the connection passes in a second: 1 Mbit.
const BYTES_PER_S: usize = 125_000;

const ENTITIES: usize = 5_000;

const TAKEOVERS: usize = 10;

/// Passes connections on to an address, and what comes back slowly.
async fn slow(listener: TcpListener, target: SocketAddr) {
    while let Ok((near, _)) = listener.accept().await {
        tokio::spawn(async move {
            let Ok(far) = TcpStream::connect(target).await else { return };
            let ((mut near_in, mut near_out), (mut far_in, mut far_out)) =
                (near.into_split(), far.into_split());
            let there = async { tokio::io::copy(&mut near_in, &mut far_out).await.is_ok() };
            let back = async {
                let mut bytes = vec![0; 4 << 10];
                while let Ok(count @ 1..) = far_in.read(&mut bytes).await {
                    let takes = Duration::from_secs_f64(count as f64 / BYTES_PER_S as f64);
                    tokio::time::sleep(takes).await;
                    if near_out.write_all(&bytes[..count]).await.is_err() {
                        break;
                    }
                }
            };
            tokio::select! { _ = there => {}, () = back => {} }
        });
    }
}

#[test]
fn a_worker_behind_a_slow_connection_takes_over_a_large_region_in_parts() {
    let (server, console) = server("takeover = \"1s\"\n");
    runtime().block_on(async {
        let mut fast = Worker::begin_with_all(server.reach(), "fast").await;
        for n in 0..ENTITIES as i32 {
            fast.spawn(0, MONSTER, 1_000 + n % 240 * 100, 1_000 + n / 240 * 100);
        }
        fast.until(|w| w.homes.len() == ENTITIES).await;
        drop(fast);
        let target = server.reach().logic.expect("workers can connect");
        for _ in 0..TAKEOVERS {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = Address::new(&format!("http://{}", listener.local_addr().unwrap()));
            let proxy = tokio::spawn(slow(listener, target));
            let mut one = Worker::begin_at(&address, "slow").await;
            one.until(|w| w.leases.len() == 4 && w.homes.len() == ENTITIES).await;
            assert!(one.parts > 8, "in {} parts", one.parts);
            let waits = told_of(console, "slow")["waiting_bytes"].as_u64().unwrap();
            assert!(waits < 4 << 20, "{waits} bytes wait");
            drop(one);
            proxy.abort();
        }
    });
}
