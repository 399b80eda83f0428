//! What a cluster costs: CPU time and memory of each process, and how much etcd and PostgreSQL are given to write.

use std::time::Instant;

use crate::world::{PROCESSES, World, container, pause, with_world};

const BOTS: u32 = 200;
const SECONDS: u64 = 60;

/// The processes of Purview, the stores, and the rules.
const SERVICES: [&str; 8] = [
    PROCESSES[0],
    PROCESSES[1],
    PROCESSES[2],
    PROCESSES[3],
    PROCESSES[4],
    "etcd",
    "postgres",
    "worker",
];

/// What was used and written until now.
struct Usage {
    at: Instant,
    /// CPU seconds and memory, MiB, of each service.
    services: Vec<(f64, f64)>,
    etcd_revision: f64,
    commits: f64,
    wal_bytes: f64,
}

/// CPU seconds and memory, MiB, of the processes of a container. Those of PostgreSQL share a part of their memory.
fn used(world: &World, service: &str) -> (f64, f64) {
    let top = world.docker(&["top", &container(service), "-o", "pid,rss"]);
    let rows = top.lines().skip(1).map(|row| {
        let mut columns = row.split_whitespace();
        let (pid, kib) = (columns.next().unwrap(), columns.next().unwrap());
        (cpu_s(pid), kib.parse::<f64>().unwrap() / 1_024.0)
    });
    rows.fold((0.0, 0.0), |sum, row| (sum.0 + row.0, sum.1 + row.1))
}

/// CPU seconds of a process.
fn cpu_s(pid: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // After the name in parentheses: state, parent, ...; times in hundredths of a second.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap() / 100.0).sum()
}

impl Usage {
    fn of(world: &World) -> Usage {
        let etcdctl = [
            "etcdctl",
            "--endpoints=https://etcd:2379",
            "--cacert=/run/certs/ca.pem",
            "--cert=/run/certs/etcd.pem",
            "--key=/run/certs/etcd.key",
            "get",
            "none",
            "--write-out=json",
        ];
        let status = world.exec("etcd", &etcdctl).unwrap();
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        let asked = "PGPASSWORD=$(cat /run/certs/postgres.password) psql -h /var/run/postgresql -U purview -Atc \
            \"select sum(xact_commit), pg_current_wal_lsn() - '0/0' from pg_stat_database\"";
        let told = world.exec("postgres", &["sh", "-c", asked]).unwrap();
        let told: Vec<f64> = told.trim().split('|').map(|n| n.parse().unwrap()).collect();
        Usage {
            at: Instant::now(),
            services: SERVICES.map(|service| used(world, service)).to_vec(),
            etcd_revision: status["header"]["revision"].as_f64().unwrap(),
            commits: told[0],
            wal_bytes: told[1],
        }
    }

    /// What was used since.
    fn print(&self, since: &Usage, players: u32) {
        let seconds = (self.at - since.at).as_secs_f64();
        println!("== {players} players, for {seconds:.0} s");
        for ((service, (cpu, memory)), (before, _)) in
            SERVICES.iter().zip(&self.services).zip(&since.services)
        {
            let share = (cpu - before) / seconds * 100.0;
            println!("{service:<12}{share:>6.1} % of a core, {memory:>6.1} MiB");
        }
        let per_s = |now: f64, before: f64| (now - before) / seconds;
        println!("etcd: {:.1} writes/s", per_s(self.etcd_revision, since.etcd_revision));
        let (commits, wal) = (self.commits - since.commits, self.wal_bytes - since.wal_bytes);
        let (commits, wal) = (commits / seconds, wal / seconds / 1_000.0);
        println!("PostgreSQL: {commits:.1} transactions/s, {wal:.1} KB/s of log");
    }
}

#[test]
#[ignore = "takes minutes: deploy/rehearse/sizing"]
fn what_a_cluster_costs() {
    with_world("rehearsals::sizing", |world| {
        world.up(&[]);
        world.wait_whole("gateway-1");
        pause(10);
        let idle = Usage::of(world);
        pause(SECONDS);
        Usage::of(world).print(&idle, 0);
        let report = world.walk(SECONDS as u32 + 20, |world| {
            world.wait_players(BOTS);
            let before = Usage::of(world);
            pause(SECONDS - 15);
            let after = Usage::of(world);
            assert!(after.wal_bytes > before.wal_bytes, "PostgreSQL is given nothing");
            after.print(&before, BOTS);
        });
        println!("{report}");
    });
}
