//! A whole cluster on one machine: an etcd, a PostgreSQL, nodes and gateways, each a process of its own, for
//! `purview dev` and for tests. All of them end with it.

use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use purview_server::config::{Config, TlsSettings};
use purview_server::gateway::Tokens;
use purview_server::gateway::token::random_secret;
use purview_server::launch::child::{Run, Running};
use purview_server::launch::{EtcdServer, PostgresServer, ServerError};
use purview_server::node::ready::{READY, Ready};
use purview_server::tls::ProcessRole;
use purview_server::tls::make::{MakeError, Order, make_all, make_more};

/// Why a cluster does not come up.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// A part of it does not.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Its processes have no secret for tokens.
    #[error(transparent)]
    Tokens(#[from] purview_server::process::ServerError),
    /// It has no certificates.
    #[error(transparent)]
    Certificates(#[from] MakeError),
    /// The system did not do what it was asked.
    #[error("{what}: {cause}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's words.
        cause: std::io::Error,
    },
    /// A process is up but does not say where.
    #[error("{0} does not say where clients connect")]
    NoAddress(String),
}

/// What a cluster is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Processes that own regions.
    pub nodes: u16,
    /// Processes that hold sessions.
    pub gateways: u16,
}

/// A process of the cluster.
pub struct Member {
    /// Its name.
    pub name: String,
    process: Running,
    log: PathBuf,
}

impl Member {
    /// The process's number.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Ends it at once, without a word.
    pub fn kill(&self) {
        self.process.crash();
    }

    /// Stops it as it is.
    pub fn pause(&self) {
        self.process.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.process.signal(Signal::CONT);
    }

    /// Asks it to end, and does not wait until it has.
    pub fn terminate(&self) {
        self.process.signal(Signal::TERM);
    }

    /// How it has ended, if it has.
    pub fn ended(&self) -> Option<std::process::ExitStatus> {
        self.process.ended()
    }

    /// With what it has ended, if it has, and not by a signal.
    pub fn exit_code(&self) -> Option<i32> {
        self.process.exit_code()
    }

    /// Everything that it has said so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Where it can be reached, once it is up.
    pub fn ready(&self) -> Option<Ready> {
        let said = self.said();
        let line = said.lines().find_map(|line| line.strip_prefix(READY))?;
        serde_json::from_str(line).ok()
    }
}

/// What the processes agree through.
struct Engine {
    secure: bool,
    etcds: usize,
}

/// A running cluster.
pub struct LocalCluster {
    /// In the order in which they end: what others need ends last.
    gateways: Vec<Member>,
    nodes: Vec<Member>,
    etcds: Vec<EtcdServer>,
    postgres: PostgresServer,
    program: PathBuf,
    /// The cluster's name.
    name: String,
    config: PathBuf,
    /// Where its certificates are, if it has any.
    certificates: Option<PathBuf>,
    tokens: Tokens,
    folder: tempfile::TempDir,
}

impl Drop for LocalCluster {
    fn drop(&mut self) {
        self.gateways.clear();
        // Asked to end, each would give its regions to the next one.
        self.nodes.iter().for_each(Member::kill);
    }
}

/// How long the certificates of a cluster hold that ends with this process, days.
const CERTIFICATES_DAYS: u32 = 30;

/// Where all of it is reached.
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

impl LocalCluster {
    /// Starts everything, with `program` (a `purview`) as its processes, and waits until every
    /// region can be reached from every gateway. `say` is told each step.
    ///
    /// # Errors
    /// [`LocalError`]; what was started ends again.
    pub fn start(
        program: &Path,
        config: &Config,
        parts: Parts,
        say: &mut dyn FnMut(String),
    ) -> Result<LocalCluster, LocalError> {
        LocalCluster::start_as(program, config, parts, Engine { secure: false, etcds: 1 }, say)
    }

    /// The same with so many etcds, of which a minority may be gone.
    ///
    /// # Errors
    /// [`LocalError`]; what was started ends again.
    pub fn start_with_etcds(
        program: &Path,
        config: &Config,
        parts: Parts,
        etcds: usize,
        say: &mut dyn FnMut(String),
    ) -> Result<LocalCluster, LocalError> {
        LocalCluster::start_as(program, config, parts, Engine { secure: false, etcds }, say)
    }

    /// The same with certificates, made for it: everything that its parts say to each other is encrypted,
    /// and both ends show who they are.
    ///
    /// # Errors
    /// [`LocalError`]; what was started ends again.
    pub fn start_secure(
        program: &Path,
        config: &Config,
        parts: Parts,
        say: &mut dyn FnMut(String),
    ) -> Result<LocalCluster, LocalError> {
        LocalCluster::start_as(program, config, parts, Engine { secure: true, etcds: 1 }, say)
    }

    fn start_as(
        program: &Path,
        config: &Config,
        parts: Parts,
        Engine { secure, etcds }: Engine,
        say: &mut dyn FnMut(String),
    ) -> Result<LocalCluster, LocalError> {
        let system = |what| move |cause| LocalError::System { what, cause };
        let folder = tempfile::Builder::new().prefix("purview-cluster-").tempdir();
        let folder = folder.map_err(system("a temporary directory"))?;
        let certificates = secure.then(|| folder.path().join("certificates"));
        if let Some(folder) = &certificates {
            let cluster = &*config.cluster.name;
            make_all(
                folder,
                &Order { cluster, processes: &[], hosts: &hosts(), days: CERTIFICATES_DAYS },
            )?;
            say(format!("certificates in {}", folder.display()));
        }
        let of = |role| certificates.as_deref().map(|folder| certificate(folder, role));
        let etcds = match of("etcd") {
            Some(tls) => vec![EtcdServer::start_secure(None, &tls)?],
            None if etcds == 1 => vec![EtcdServer::start(None)?],
            None => EtcdServer::start_cluster(etcds)?,
        };
        for etcd in &etcds {
            say(format!("etcd       {}, process {}", etcd.url(), etcd.pid()));
        }
        let postgres = match of("postgres") {
            Some(tls) => PostgresServer::start_secure(None, &tls)?,
            None => PostgresServer::start(None)?,
        };
        say(format!("PostgreSQL {}, process {}", postgres.address(), postgres.pid()));
        let mut config = config.clone();
        config.cluster.postgres = postgres.address();
        config.cluster.postgres_password_file = Some(postgres.password_file());
        config.cluster.etcd = etcds.iter().map(EtcdServer::url).collect::<Vec<_>>().join(",");
        // Each process is told its own.
        config.cluster.tls = of("etcd");
        config.cluster.listen.set_port(0);
        config.cluster.advertise.clear();
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        config.console.listen = config.console.listen.map(|_| any);
        if config.token.files() == Default::default() {
            let file = folder.path().join("token.secret");
            let secret = random_secret().map_err(purview_server::process::ServerError::Token)?;
            // The folder is its owner's alone.
            std::fs::write(&file, secret).map_err(system("the secret for tokens"))?;
            config.token.secret_file = Some(file);
        }
        let tokens = purview_server::process::tokens(&config)?;
        let file = folder.path().join("purview.toml");
        std::fs::File::create(&file)
            .and_then(|mut out| out.write_all(config.to_toml().as_bytes()))
            .map_err(system("the cluster's configuration"))?;
        let program = program.to_owned();
        let (gateways, nodes) = (Vec::new(), Vec::new());
        let (name, config) = (config.cluster.name.clone(), file);
        let mut cluster = LocalCluster {
            gateways,
            nodes,
            etcds,
            postgres,
            program,
            name,
            config,
            certificates,
            tokens,
            folder,
        };
        for i in 1..=parts.nodes {
            let node = cluster.run("node", format!("node-{i}"), &[], &[])?;
            say(format!("{:<10} process {}", node.name, node.pid()));
            cluster.nodes.push(node);
        }
        for i in 1..=parts.gateways {
            // The first has the addresses of the configuration.
            let any = ["gateway.ws=127.0.0.1:0", "gateway.tcp=off"].map(str::to_owned);
            let any: &[String] = if i == 1 { &[] } else { &any };
            let gateway = cluster.run("gateway", format!("gateway-{i}"), &[], any)?;
            say(format!("{:<10} process {}", gateway.name, gateway.pid()));
            cluster.gateways.push(gateway);
        }
        for member in cluster.nodes.iter().chain(&cluster.gateways) {
            member.process.wait_ready(|| member.ready().is_some())?;
        }
        Ok(cluster)
    }

    /// Runs a process; `within` goes before its command.
    fn run(
        &self,
        role: &str,
        name: String,
        within: &[String],
        set: &[String],
    ) -> Result<Member, LocalError> {
        // Each start has a log of its own.
        let log = (1..).map(|n| self.folder.path().join(format!("{name}.{n}.log")));
        let log = log.into_iter().find(|log| !log.exists()).unwrap_or_default();
        let config = self.config.display().to_string();
        let program = self.program.display().to_string();
        let mut all = within.to_vec();
        all.extend([program, role.to_owned(), "--config".into(), config]);
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

    /// The certificate of a process, which is made if it is missing.
    fn certify(&self, folder: &Path, role: &str, name: &str) -> Result<TlsSettings, LocalError> {
        let role = match role {
            "gateway" => ProcessRole::Gateway,
            _ => ProcessRole::Node,
        };
        let own = certificate(folder, name);
        if !own.certificate.exists() {
            let processes = [(role, name.to_owned())];
            let (cluster, hosts, days) = (&*self.name, &hosts()[..], CERTIFICATES_DAYS);
            make_more(folder, &Order { cluster, processes: &processes, hosts, days })?;
        }
        Ok(own)
    }

    /// Starts one more node, and waits until it is a member.
    ///
    /// # Errors
    /// It does not come up.
    pub fn add_node(&mut self, name: String) -> Result<(), LocalError> {
        self.add_node_within(name, &[], &[])
    }

    /// The same with settings of its own, by a command such as `ip netns exec NAME` that runs another.
    ///
    /// # Errors
    /// As [`LocalCluster::add_node`].
    pub fn add_node_within(
        &mut self,
        name: String,
        within: &[String],
        set: &[String],
    ) -> Result<(), LocalError> {
        let node = self.run("node", name, within, set)?;
        node.process.wait_ready(|| node.ready().is_some())?;
        self.nodes.push(node);
        Ok(())
    }

    /// Starts a process with settings of its own and does not wait for it; whether it becomes a part of
    /// the cluster shows.
    ///
    /// # Errors
    /// The system does not start it.
    pub fn try_node(&self, name: &str, set: &[&str]) -> Result<Member, LocalError> {
        let set: Vec<String> = set.iter().map(|set| set.to_string()).collect();
        self.run("node", name.into(), &[], &set)
    }

    /// Who signs tokens that let clients in.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Where its certificates are, if it has any.
    pub fn certificates(&self) -> Option<&Path> {
        self.certificates.as_deref()
    }

    /// Starts a gateway again that has ended, where its clients know it to be, and waits until it is ready.
    ///
    /// # Errors
    /// There is no such gateway, or it does not come up.
    pub fn restart_gateway(&mut self, gateway: usize) -> Result<(), LocalError> {
        let member = self.gateways.get(gateway);
        let (name, ready) = member.map(|m| (m.name.clone(), m.ready())).unwrap_or_default();
        let ws = ready.and_then(|ready| ready.ws);
        let ws = ws.ok_or_else(|| LocalError::NoAddress(name.clone()))?;
        let set = [format!("gateway.ws={ws}"), "gateway.tcp=off".to_owned()];
        let again = self.run("gateway", name, &[], &set)?;
        again.process.wait_ready(|| again.ready().is_some())?;
        self.gateways[gateway] = again;
        Ok(())
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Member] {
        &self.nodes
    }

    /// The gateways.
    pub fn gateways(&self) -> &[Member] {
        &self.gateways
    }

    /// The etcd, the first of them.
    pub fn etcd(&mut self) -> &mut EtcdServer {
        &mut self.etcds[0]
    }

    /// All etcds.
    pub fn etcds(&mut self) -> &mut [EtcdServer] {
        &mut self.etcds
    }

    /// The PostgreSQL.
    pub fn postgres(&mut self) -> &mut PostgresServer {
        &mut self.postgres
    }

    /// The URL for clients of a gateway: WebSocket.
    ///
    /// # Errors
    /// There is no such gateway, or it takes no WebSocket clients.
    pub fn url(&self, gateway: usize) -> Result<String, LocalError> {
        let member = self.gateways.get(gateway);
        let ready = member.and_then(Member::ready).and_then(|ready| ready.ws);
        let name = member.map_or_else(|| format!("gateway {gateway}"), |m| m.name.clone());
        Ok(format!("ws://{}/", ready.ok_or(LocalError::NoAddress(name))?))
    }
}
