//! The servers that `purview dev` and these tests start: they end with their handle and with their parent.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use purview_server::launch::{EtcdServer, PostgresServer};

/// A zombie counts as ended.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn gone(pid: u32) {
    let begin = Instant::now();
    while runs(pid) {
        assert!(begin.elapsed() < Duration::from_secs(30), "process {pid} still runs");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn servers_end_with_their_handle_and_leave_nothing_behind() {
    let (etcd, postgres) = (EtcdServer::start(None).unwrap(), PostgresServer::start(None).unwrap());
    let pids = [etcd.pid(), postgres.pid()];
    assert!(pids.into_iter().all(runs));
    let (dir, other) = (etcd.dir().to_owned(), postgres.dir().to_owned());
    assert!(dir.exists() && other.exists());
    drop((etcd, postgres));
    pids.into_iter().for_each(gone);
    assert!(!dir.exists() && !other.exists());
}

#[test]
fn data_in_a_given_folder_stays() {
    let dir = tempfile::tempdir().unwrap();
    let pid = {
        let postgres = PostgresServer::start(Some(&dir.path().join("db"))).unwrap();
        let etcd = EtcdServer::start(Some(&dir.path().join("keys"))).unwrap();
        assert!(runs(etcd.pid()));
        postgres.pid()
    };
    gone(pid);
    let (version, data) = (dir.path().join("db/postgres/PG_VERSION"), dir.path().join("keys/etcd"));
    assert!(version.exists() && data.exists());
}

#[test]
fn servers_end_with_a_killed_parent() {
    const PARENT: &str = "PURVIEW_TEST_PARENT";
    const NAME: &str = "engine::servers::servers_end_with_a_killed_parent";
    if let Ok(path) = std::env::var(PARENT) {
        let (etcd, postgres) =
            (EtcdServer::start(None).unwrap(), PostgresServer::start(None).unwrap());
        let folders = [etcd.dir(), postgres.dir()].map(|dir| dir.display().to_string());
        let told = format!("{} {} {} {}", etcd.pid(), postgres.pid(), folders[0], folders[1]);
        std::fs::write(Path::new(&path).with_extension("part"), told).unwrap();
        std::fs::rename(Path::new(&path).with_extension("part"), path).unwrap();
        std::thread::sleep(Duration::from_secs(600));
        unreachable!("the parent was not killed");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("told");
    let mut parent = Command::new(std::env::current_exe().unwrap());
    parent.args([NAME, "--exact", "--nocapture"]).env(PARENT, &path);
    let mut parent = parent.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < Duration::from_secs(120), "the servers do not come up");
        assert_eq!(parent.try_wait().unwrap(), None, "the parent ended by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
    parent.kill().unwrap();
    parent.wait().unwrap();
    let told = std::fs::read_to_string(&path).unwrap();
    let told: Vec<&str> = told.split(' ').collect();
    told[..2].iter().for_each(|pid| gone(pid.parse().unwrap()));
    for folder in &told[2..] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}
