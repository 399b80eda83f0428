//! A whole cluster on one machine for `purview dev` and for tests: an etcd, a PostgreSQL, nodes and gateways, each in its
//! own process. All processes end when the [`LocalCluster`] is dropped.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use rustix::process::Signal;

use crate::rng::Rng;
use purview_server::config::{Advertise, Config, TlsSettings};
use purview_server::gateway::Tokens;
use purview_server::gateway::token::random_secret;
use purview_server::launch::child::{Run, Running};
use purview_server::launch::{EtcdServer, PostgresServer};
use purview_server::node::ready::{READY, Ready};
use purview_server::tls::ProcessRole;
use purview_server::tls::make::{Order, make_all, make_more};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// The number of processes that own regions.
    pub nodes: u16,
    /// The number of processes that hold sessions.
    pub gateways: u16,
}

pub struct Member {
    pub name: String,
    process: Running,
    log: PathBuf,
}

impl Member {
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub fn kill(&self) {
        self.process.crash();
    }

    pub fn pause(&self) {
        self.process.signal(Signal::STOP);
    }

    /// Lets a suspended process go on.
    pub fn resume(&self) {
        self.process.signal(Signal::CONT);
    }

    /// Sends SIGTERM and does not wait.
    pub fn terminate(&self) {
        self.process.signal(Signal::TERM);
    }

    /// The exit status, if the process has ended.
    pub fn ended(&self) -> Option<std::process::ExitStatus> {
        self.process.ended()
    }

    /// The exit code, if the process has ended and not by a signal.
    pub fn exit_code(&self) -> Option<i32> {
        self.process.exit_code()
    }

    /// The output of the process so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The addresses of the process, once it is ready.
    pub fn ready(&self) -> Option<Ready> {
        let said = self.said();
        let line = said.lines().find_map(|line| line.strip_prefix(READY))?;
        serde_json::from_str(line).ok()
    }
}

/// How the stores of a cluster run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stores {
    /// With new certificates: all traffic of the cluster uses mutual TLS.
    pub secure: bool,
    /// The members of the etcd. Several survive the loss of a minority.
    pub etcds: usize,
}

impl Stores {
    pub const PLAIN: Stores = Stores { secure: false, etcds: 1 };
}

pub struct LocalCluster {
    /// The fields are in the order in which the processes end: the stores end last.
    gateways: Vec<Member>,
    nodes: Vec<Member>,
    etcds: Vec<EtcdServer>,
    postgres: PostgresServer,
    program: PathBuf,
    name: String,
    config: PathBuf,
    /// The folder of the certificates, with TLS.
    certificates: Option<PathBuf>,
    tokens: Tokens,
    folder: tempfile::TempDir,
}

impl Drop for LocalCluster {
    fn drop(&mut self) {
        self.gateways.clear();
        // With SIGTERM each node would migrate its regions to the next one.
        self.nodes.iter().for_each(Member::kill);
    }
}

/// How long the certificates are valid, days. The cluster ends with this process.
const CERTIFICATES_DAYS: u32 = 30;

fn hosts() -> [String; 2] {
    ["localhost", "127.0.0.1"].map(str::to_owned)
}

/// The certificate of a store or a process.
fn certificate(folder: &Path, name: &str) -> TlsSettings {
    TlsSettings {
        certificate: folder.join(format!("{name}.pem")),
        key: folder.join(format!("{name}.key")),
        authority: folder.join("ca.pem"),
    }
}

/// Starts the lease store and the checkpoint store, with TLS if there are certificates.
fn start_stores(
    certificates: Option<&Path>,
    etcds: usize,
    say: &mut dyn FnMut(String),
) -> anyhow::Result<(Vec<EtcdServer>, PostgresServer)> {
    let tls = |name| certificates.map(|folder| certificate(folder, name));
    let etcds = match tls("etcd") {
        Some(tls) => vec![EtcdServer::start_secure(None, &tls)?],
        None if etcds == 1 => vec![EtcdServer::start(None)?],
        None => EtcdServer::start_cluster(etcds)?,
    };
    for etcd in &etcds {
        say(format!("etcd       {}, process {}", etcd.url(), etcd.pid()));
    }
    let postgres = match tls("postgres") {
        Some(tls) => PostgresServer::start_secure(None, &tls)?,
        None => PostgresServer::start(None)?,
    };
    say(format!("PostgreSQL {}, process {}", postgres.address(), postgres.pid()));
    Ok((etcds, postgres))
}

/// Gives every process free ports and the cluster a secret for tokens.
fn finish_config(config: &mut Config, folder: &Path) -> anyhow::Result<Tokens> {
    config.cluster.listen.set_port(0);
    config.cluster.advertise = Advertise::Listen;
    // No load balancer stands before the gateways, unless a test says so.
    if config.gateway.lame_duck == Config::default().gateway.lame_duck {
        config.gateway.lame_duck = Duration::ZERO;
    }
    let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    config.console.listen = config.console.listen.map(|_| any);
    if config.token.files() == Default::default() {
        let file = folder.join("token.secret");
        let secret = random_secret()?;
        // Only the owner can read the folder.
        std::fs::write(&file, secret).context("the secret for tokens")?;
        config.token.secret_file = Some(file);
    }
    Ok(purview_server::process::tokens(config)?)
}

impl LocalCluster {
    /// Starts a cluster of processes of `program` (the binary `purview`), and waits until every gateway can reach every
    /// region. `say` receives a line for each step.
    pub fn start(
        program: &Path,
        config: &Config,
        parts: Parts,
        say: &mut dyn FnMut(String),
    ) -> anyhow::Result<LocalCluster> {
        LocalCluster::start_on(Stores::PLAIN, program, config, parts, say)
    }

    /// As [`LocalCluster::start`], but all processes start in an order by `seed`, and both stores later than all of them.
    /// Before each store starts, `meanwhile` is shown the cluster and told which one comes; it may take its time.
    pub fn start_before_stores(
        program: &Path,
        config: &Config,
        parts: Parts,
        seed: u64,
        meanwhile: &mut dyn FnMut(&LocalCluster, &str),
    ) -> anyhow::Result<LocalCluster> {
        let (stores, say) = (Stores::PLAIN, &mut |_| {});
        let mut cluster = LocalCluster::without_members(program, config, stores, say)?;
        // They have chosen their ports, and hold nothing yet.
        cluster.etcd().stop();
        cluster.postgres.stop();
        let (mut left, mut rng) = (members(parts), Rng::new(seed));
        while !left.is_empty() {
            let next = left.swap_remove(rng.below(left.len()));
            cluster.begin(next)?;
        }
        meanwhile(&cluster, "PostgreSQL");
        cluster.postgres.restart()?;
        meanwhile(&cluster, "etcd");
        cluster.etcd().restart()?;
        cluster.wait_ready()?;
        Ok(cluster)
    }

    /// As [`LocalCluster::start`], on such stores.
    pub fn start_on(
        stores: Stores,
        program: &Path,
        config: &Config,
        parts: Parts,
        say: &mut dyn FnMut(String),
    ) -> anyhow::Result<LocalCluster> {
        let mut cluster = LocalCluster::without_members(program, config, stores, say)?;
        for member in members(parts) {
            let begun = cluster.begin(member)?;
            say(format!("{:<10} process {}", begun.name, begun.pid()));
        }
        cluster.wait_ready()?;
        Ok(cluster)
    }

    /// The stores, and the configuration of all processes.
    fn without_members(
        program: &Path,
        config: &Config,
        stores: Stores,
        say: &mut dyn FnMut(String),
    ) -> anyhow::Result<LocalCluster> {
        let folder = tempfile::Builder::new().prefix("purview-cluster-").tempdir();
        let folder = folder.context("a temporary directory")?;
        let certificates = stores.secure.then(|| folder.path().join("certificates"));
        if let Some(folder) = &certificates {
            let (cluster, hosts, days) = (&*config.cluster.name, &hosts()[..], CERTIFICATES_DAYS);
            make_all(folder, &Order { cluster, processes: &[], hosts, days })?;
            say(format!("certificates in {}", folder.display()));
        }
        let (etcds, postgres) = start_stores(certificates.as_deref(), stores.etcds, say)?;
        let mut config = config.clone();
        config.cluster.postgres = postgres.address();
        config.cluster.postgres_password_file = Some(postgres.password_file());
        config.cluster.etcd = etcds.iter().map(EtcdServer::url).collect::<Vec<_>>().join(",");
        // The certificate of the etcd satisfies the check of the file; each process overrides it.
        config.cluster.tls = certificates.as_deref().map(|folder| certificate(folder, "etcd"));
        let tokens = finish_config(&mut config, folder.path())?;
        let file = folder.path().join("purview.toml");
        std::fs::write(&file, config.to_toml()).context("the cluster's configuration")?;
        Ok(LocalCluster {
            gateways: Vec::new(),
            nodes: Vec::new(),
            etcds,
            postgres,
            program: program.to_owned(),
            name: config.cluster.name.clone(),
            config: file,
            certificates,
            tokens,
            folder,
        })
    }

    /// Starts a process and does not wait for it.
    fn begin(&mut self, (role, i): (ProcessRole, u16)) -> anyhow::Result<&Member> {
        if role == ProcessRole::Node {
            self.nodes.push(self.run(role, format!("node-{i}"), &[], &[])?);
            return Ok(&self.nodes[self.nodes.len() - 1]);
        }
        // The first gateway has the addresses of the configuration.
        let any = ["gateway.ws=127.0.0.1:0", "gateway.tcp=off"].map(str::to_owned);
        let any: &[String] = if i == 1 { &[] } else { &any };
        self.gateways.push(self.run(role, format!("gateway-{i}"), &[], any)?);
        Ok(&self.gateways[self.gateways.len() - 1])
    }

    fn wait_ready(&self) -> anyhow::Result<()> {
        for member in self.nodes.iter().chain(&self.gateways) {
            member.process.wait_ready(|| member.ready().is_some())?;
        }
        Ok(())
    }

    /// Starts a process. `within` is a command prefix such as `ip netns exec NAME`.
    fn run(
        &self,
        role: ProcessRole,
        name: String,
        within: &[String],
        set: &[String],
    ) -> anyhow::Result<Member> {
        // Each start has its own log.
        let log = (1..).map(|n| self.folder.path().join(format!("{name}.{n}.log")));
        let log = log.into_iter().find(|log| !log.exists()).unwrap_or_default();
        let config = self.config.display().to_string();
        let program = self.program.display().to_string();
        let mut all = within.to_vec();
        all.extend([program, "node".into(), "--config".into(), config]);
        if role == ProcessRole::Gateway {
            all.extend(["--role".into(), "gateway".into()]);
        }
        let named = format!("cluster.node={name}");
        let own = self.certificates.as_deref().map(|folder| self.certify(folder, role, &name));
        let own = own.transpose()?;
        let own = own.iter().flat_map(|TlsSettings { certificate, key, .. }| {
            let (certificate, key) = (certificate.display(), key.display());
            [format!("cluster.tls.certificate={certificate}"), format!("cluster.tls.key={key}")]
        });
        for set in own.chain([named]).chain(set.iter().cloned()) {
            all.extend(["--set".to_owned(), set]);
        }
        let args = all.split_off(1);
        let file = PathBuf::from(all.concat());
        let run = Run {
            program: "purview",
            file: &file,
            args,
            log: log.clone(),
            end: Signal::TERM,
            crash: (Signal::KILL, "KILL"),
            hidden: "PURVIEW_",
            user: None,
        };
        Ok(Member { name, process: run.start()?, log })
    }

    /// The certificate of a process; created if there is none.
    fn certify(&self, folder: &Path, role: ProcessRole, name: &str) -> anyhow::Result<TlsSettings> {
        let own = certificate(folder, name);
        if !own.certificate.exists() {
            let processes = [(role, name.to_owned())];
            let (cluster, hosts, days) = (&*self.name, &hosts()[..], CERTIFICATES_DAYS);
            make_more(folder, &Order { cluster, processes: &processes, hosts, days })?;
        }
        Ok(own)
    }

    /// Starts one more node, and waits until it is a member.
    pub fn add_node(&mut self, name: String) -> anyhow::Result<()> {
        self.add_node_within(name, &[], &[])
    }

    /// As [`LocalCluster::add_node`], with its own settings and a command prefix such as `ip netns exec NAME`.
    pub fn add_node_within(
        &mut self,
        name: String,
        within: &[String],
        set: &[String],
    ) -> anyhow::Result<()> {
        let node = self.run(ProcessRole::Node, name, within, set)?;
        node.process.wait_ready(|| node.ready().is_some())?;
        self.nodes.push(node);
        Ok(())
    }

    /// Starts a node with its own settings and does not wait until it is a member.
    pub fn try_node(&self, name: &str, set: &[&str]) -> anyhow::Result<Member> {
        let set: Vec<String> = set.iter().map(|set| set.to_string()).collect();
        self.run(ProcessRole::Node, name.into(), &[], &set)
    }

    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// The folder of the certificates, with TLS.
    pub fn certificates(&self) -> Option<&Path> {
        self.certificates.as_deref()
    }

    /// Starts a gateway that has ended again, at the same address, and waits until it is ready.
    pub fn restart_gateway(&mut self, gateway: usize) -> anyhow::Result<()> {
        let member = self.gateways.get(gateway);
        let (name, ready) = member.map(|m| (m.name.clone(), m.ready())).unwrap_or_default();
        let ws = ready.and_then(|ready| ready.ws);
        let ws = ws.with_context(|| no_address(&name))?;
        let set = [format!("gateway.ws={ws}"), "gateway.tcp=off".to_owned()];
        let again = self.run(ProcessRole::Gateway, name, &[], &set)?;
        again.process.wait_ready(|| again.ready().is_some())?;
        self.gateways[gateway] = again;
        Ok(())
    }

    pub fn nodes(&self) -> &[Member] {
        &self.nodes
    }

    pub fn gateways(&self) -> &[Member] {
        &self.gateways
    }

    /// Host and port of a store: of `"etcd"`, or else of PostgreSQL.
    pub fn store_address(&self, store: &str) -> String {
        let url = if store == "etcd" { self.etcds[0].url() } else { self.postgres.address() };
        let host = url.rsplit(['@', '/']).find(|part| part.contains(':'));
        host.unwrap_or_default().to_owned()
    }

    pub fn etcd(&mut self) -> &mut EtcdServer {
        &mut self.etcds[0]
    }

    pub fn etcds(&mut self) -> &mut [EtcdServer] {
        &mut self.etcds
    }

    pub fn postgres(&mut self) -> &mut PostgresServer {
        &mut self.postgres
    }

    pub fn url(&self, gateway: usize) -> anyhow::Result<String> {
        let member = self.gateways.get(gateway);
        let ready = member.and_then(Member::ready).and_then(|ready| ready.ws);
        let name = member.map_or_else(|| format!("gateway {gateway}"), |m| m.name.clone());
        Ok(format!("ws://{}/", ready.with_context(|| no_address(&name))?))
    }
}

/// The processes of a cluster, by their roles and numbers.
fn members(parts: Parts) -> Vec<(ProcessRole, u16)> {
    let nodes = (1..=parts.nodes).map(|i| (ProcessRole::Node, i));
    nodes.chain((1..=parts.gateways).map(|i| (ProcessRole::Gateway, i))).collect()
}

fn no_address(name: &str) -> String {
    format!("{name} has printed no address for clients")
}
