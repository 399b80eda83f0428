//! An attack: thousands of connections from one address send nothing or garbage, while honest players from another
//! address join and play.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::sync::Semaphore;

use super::operations::{get, metric};
use super::process::{FREE_PORTS, Served, assert_clean, run_lab};
use crate::common::{runtime, wait_for};

const ATTACKERS: usize = 3_000;

#[derive(Debug, Clone, Copy)]
enum Says {
    Nothing,
    Nonsense,
}

/// Connects again and again from 127.0.0.2, and stays as long as the server allows.
async fn attack(to: SocketAddr, says: Says, doors: Arc<Semaphore>, opened: Arc<AtomicUsize>) {
    let mut is_first = true;
    loop {
        let door = doors.acquire().await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
        let connected = socket.connect(to).await;
        drop(door);
        if let Ok(mut socket) = connected {
            if matches!(says, Says::Nonsense) {
                let nonsense: Vec<u8> = (0..200_u8).map(|i| i.wrapping_mul(37)).collect();
                drop(socket.write_all(&nonsense).await);
            }
            opened.fetch_add(usize::from(std::mem::take(&mut is_first)), Relaxed);
            while socket.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

#[test]
fn thousands_of_idle_and_garbage_connections_affect_no_honest_player() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let server =
        Served::start(&["--set", "gateway.max_sessions=500", "--set", "gateway.limits.exempt=[]"]);
    let runtime = runtime();
    let (doors, opened) = (Arc::new(Semaphore::new(100)), Arc::new(AtomicUsize::new(0)));
    let bare = |url: &str| url.rsplit('/').find(|part| !part.is_empty()).unwrap().parse().unwrap();
    let (ws, tcp): (SocketAddr, SocketAddr) = (bare(&server.ws), bare(&server.tcp));
    for i in 0..2 * ATTACKERS {
        let says = if i < ATTACKERS { Says::Nothing } else { Says::Nonsense };
        let to = if i % 2 == 0 { ws } else { tcp };
        runtime.spawn(attack(to, says, doors.clone(), opened.clone()));
    }
    wait_for("all connections", || opened.load(Relaxed) >= 2 * ATTACKERS);
    // From 127.0.0.1, during the attack.
    let honest =
        ["load", "walk", "--connect", &server.ws, "--count", "200", "--for", "8s", "--json"];
    let report = assert_clean(&run_lab(&honest));
    assert_eq!(report["players"], 200);
    let text = get(&server.console, "/metrics").1;
    let count = |reason| {
        metric(&text, &format!("purview_connections_refused_total{{reason=\"{reason}\"}}"))
    };
    assert!(count("evicted") + count("address") > 1_000.0);
    assert_eq!(count("full"), 0.0);
    assert!(metric(&text, "purview_connections_total") >= (2 * ATTACKERS) as f64);
    runtime.shutdown_background();
}

#[test]
fn a_low_limit_on_open_files_is_reported_once_with_figures() {
    let program = env!("CARGO_BIN_EXE_purview");
    let script = "ulimit -n 400; exec \"$0\" \"$@\"";
    let args = [&["-c", script, program, "dev", "--bots", "0", "--for", "300ms"], &FREE_PORTS[..]];
    let output = std::process::Command::new("sh").args(args.concat()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let told: Vec<_> = text.lines().filter(|line| line.contains("may open 400 files")).collect();
    assert_eq!(told.len(), 1, "{text}");
    assert!(told[0].contains("needs 22256") && told[0].contains("max_sessions = 20000"), "{text}");
}
