//! What one node says to the process of a worker comes late, and what another node says does not: the worker is told
//! all the same that an entity has left a region before it is told that it entered the next one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use actix::System;
use purview::scene::Epoch;
use purview_server::logic::proto::{EnterCause, LeaveCause};
use purview_server::storage::leases::embedded::Embedded;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::cluster::{NODE, at, start, whole};
use super::support::{Happened, MONSTER, PATIENCE, Worker, place, runtime};

/// How late bytes of a slow connection come.
const LATE: Duration = Duration::from_millis(600);

/// Passes connections on to an address; those that begin while `slow` is set are slow in one direction.
struct Proxy {
    slow: Arc<AtomicBool>,
    /// Slow connections.
    slowed: Arc<AtomicUsize>,
}

impl Proxy {
    /// Must be called on the runtime that serves it.
    async fn start(listener: TcpListener, target: SocketAddr) -> Proxy {
        let (slow, slowed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let proxy = Proxy { slow: slow.clone(), slowed: slowed.clone() };
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let late = if slow.load(SeqCst) { LATE } else { Duration::ZERO };
                slowed.fetch_add(usize::from(!late.is_zero()), SeqCst);
                tokio::spawn(pass_on(near, target, late));
            }
        });
        proxy
    }
}

/// Ends with either side.
async fn pass_on(near: TcpStream, target: SocketAddr, late: Duration) {
    let Ok(far) = TcpStream::connect(target).await else { return };
    let ((mut near_in, mut near_out), (mut far_in, mut far_out)) =
        (near.into_split(), far.into_split());
    let (keep, mut kept) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let read = async move {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(count @ 1..) = near_in.read(&mut bytes).await {
            if keep.send((Instant::now() + late, bytes[..count].to_vec())).is_err() {
                break;
            }
        }
    };
    let write = async move {
        while let Some((due, bytes)) = kept.recv().await {
            tokio::time::sleep_until(due).await;
            if far_out.write_all(&bytes).await.is_err() {
                break;
            }
        }
    };
    let back = async move { tokio::io::copy(&mut far_in, &mut near_out).await.is_ok() };
    tokio::join!(read, write, back);
}

/// A port that nobody uses.
fn free_port() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn an_entity_leaves_one_region_before_it_enters_the_next_one_although_one_node_is_heard_late() {
    System::new().block_on(async {
        let outer = runtime();
        let store = outer.spawn(async { Embedded::new(Epoch(0)) }).await.unwrap();
        let target = free_port();
        let (proxy, advertised) = outer
            .spawn(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let advertised = listener.local_addr().unwrap();
                (Proxy::start(listener, target).await, advertised)
            })
            .await
            .unwrap();
        let by_proxy = format!("listen = \"{target}\"\nadvertise = \"{advertised}\"\n");
        let logic = "takeover = \"30s\"\nresume = \"30s\"\n";
        let a = start("a", &store, NODE, (&by_proxy, logic)).await;
        proxy.slow.store(true, SeqCst);
        let own = "listen = \"127.0.0.1:0\"\n";
        let b = start("b", &store, NODE, (own, logic)).await;
        while proxy.slowed.load(SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        proxy.slow.store(false, SeqCst);
        whole(&[&a, &b]).await;
        let each = async {
            while [&a, &b].iter().any(|node| node.status().borrow().here == 0) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, each).await.expect("each node has regions");

        let mut worker = Worker::begin_at(&at(&a), "one").await;
        worker.until(|w| w.leases.len() == 4).await;
        let monster = worker.spawn(0, MONSTER, 25_000, 5_000);
        worker.until(|w| w.is_applied(monster, 1)).await;
        // Through all four regions, in both directions: each border between the nodes is passed.
        let round = [(0, 1, 27_000, 5_000), (1, 3, 27_000, 27_000), (3, 2, 25_000, 27_000)];
        let back = [(2, 3, 27_000, 27_000), (3, 1, 27_000, 5_000), (1, 0, 25_000, 5_000)];
        for (from, to, x, z) in round.into_iter().chain(back) {
            worker.happened.clear();
            worker.give(from, monster, place(x, z));
            let entered = Happened::Entered(monster, to, EnterCause::HandedOff);
            let left = Happened::Left(monster, from, LeaveCause::HandedOff);
            worker.until(|w| w.has_happened(&entered) && w.has_happened(&left)).await;
            let of_both = worker.happened.iter().filter(|what| [&entered, &left].contains(what));
            assert_eq!(of_both.collect::<Vec<_>>(), [&left, &entered], "from {from} to {to}");
        }
        assert!(worker.results.is_empty(), "{:?}", worker.results);
        for process in [a, b] {
            process.stop().await;
        }
        outer.shutdown_background();
    });
}
