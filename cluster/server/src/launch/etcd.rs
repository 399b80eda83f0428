//! Starts etcd on this machine: a single one, or a cluster of several.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::child::{Run, Running};
use super::{Place, STARTS_MAX, ServerError, find, free_port};
use crate::tls::TlsSettings;

/// Heartbeat and election time of the etcds of one machine, ms. They allow leases of 1 s.
const HEARTBEAT_MS: u32 = 50;
const ELECTION_MS: u32 = 500;

/// How long an answer about its health is waited for.
const HEALTH_LIMIT: Duration = Duration::from_secs(1);

/// An etcd of this machine; ended when it is dropped.
pub struct EtcdServer {
    running: Running,
    setup: Setup,
}

/// How one etcd is started, again and again under the same ports.
struct Setup {
    file: PathBuf,
    name: String,
    client_port: u16,
    peer_port: u16,
    /// Where its health is asked after, plain.
    health_port: u16,
    /// The certificate, and the authority of accepted clients.
    tls: Option<TlsSettings>,
    place: Place,
    /// All members: `name=url`, comma-separated.
    members: String,
}

impl EtcdServer {
    /// Starts one and waits until it is ready. It keeps its data below `dir`, or throws them away.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn start(dir: Option<&Path>) -> Result<EtcdServer, ServerError> {
        EtcdServer::start_as(dir, None)
    }

    /// Like [`EtcdServer::start`], with a required client certificate.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn start_secure(dir: Option<&Path>, tls: &TlsSettings) -> Result<EtcdServer, ServerError> {
        EtcdServer::start_as(dir, Some(tls))
    }

    fn start_as(dir: Option<&Path>, tls: Option<&TlsSettings>) -> Result<EtcdServer, ServerError> {
        let mut tries = 1;
        loop {
            let setup = Setup { tls: tls.cloned(), ..Setup::new(0, Place::new(dir)?)? };
            let server = EtcdServer::spawn(vec![setup]);
            match server.map(|mut servers| servers.pop()) {
                Ok(Some(server)) => return Ok(server),
                Err(ServerError::NotUp { .. }) if tries < STARTS_MAX => tries += 1,
                Ok(None) => return Err(find::missing("etcd", "etcd-server")),
                Err(e) => return Err(e),
            }
        }
    }

    /// Starts a cluster of `count`, which throw their data away.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn start_cluster(count: usize) -> Result<Vec<EtcdServer>, ServerError> {
        let mut tries = 1;
        loop {
            let setups = (0..count).map(|i| Setup::new(i, Place::new(None)?));
            match setups.collect::<Result<_, _>>().and_then(EtcdServer::spawn) {
                Err(ServerError::NotUp { .. }) if tries < STARTS_MAX => tries += 1,
                other => return other,
            }
        }
    }

    fn spawn(mut setups: Vec<Setup>) -> Result<Vec<EtcdServer>, ServerError> {
        let members: Vec<String> = setups.iter().map(Setup::member).collect();
        let mut servers = Vec::new();
        for mut setup in setups.drain(..) {
            setup.members = members.join(",");
            servers.push(EtcdServer { running: setup.run()?, setup });
        }
        for server in &servers {
            server.wait_ready()?;
        }
        Ok(servers)
    }

    /// Where it is reached: `http://127.0.0.1:port`, or `https://`.
    pub fn url(&self) -> String {
        self.setup.url(self.setup.client_port)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Where its data and what it says are.
    pub fn dir(&self) -> &Path {
        self.setup.place.path()
    }

    /// Ends it at once, as a power cut would.
    pub fn kill(&self) {
        self.running.crash();
    }

    /// Stops it without ending it: connections to it stay and nothing is answered.
    pub fn pause(&self) {
        self.running.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.running.signal(Signal::CONT);
    }

    /// Starts it again where it was, if it has ended, and waits until it is ready.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.running.crash();
        self.running = self.setup.run()?;
        self.wait_ready()
    }

    /// Whether it is the leader of its cluster.
    pub fn leads(&self) -> bool {
        let metrics = get(self.setup.health_port, "/metrics");
        metrics.is_some_and(|text| text.lines().any(|line| line == "etcd_server_is_leader 1"))
    }

    fn wait_ready(&self) -> Result<(), ServerError> {
        self.running.wait_ready(|| {
            let health = get(self.setup.health_port, "/health");
            health.is_some_and(|text| text.contains(r#""health":"true""#))
        })
    }
}

impl Setup {
    fn new(i: usize, place: Place) -> Result<Setup, ServerError> {
        Ok(Setup {
            file: find::program("etcd", "etcd-server")?,
            name: format!("m{i}"),
            client_port: free_port()?,
            peer_port: free_port()?,
            health_port: free_port()?,
            tls: None,
            place,
            members: String::new(),
        })
    }

    fn member(&self) -> String {
        format!("{}={}", self.name, self.url(self.peer_port))
    }

    fn url(&self, port: u16) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{port}")
    }

    /// Certificates for clients and for other members.
    fn tls_flags(&self) -> Vec<String> {
        let Some(TlsSettings { certificate, key, authority }) = &self.tls else {
            return Vec::new();
        };
        let (certificate, key) = (certificate.display(), key.display());
        let flags = |of: &str| {
            [
                format!("--{of}cert-file={certificate}"),
                format!("--{of}key-file={key}"),
                format!("--{of}trusted-ca-file={}", authority.display()),
                format!("--{of}client-cert-auth=true"),
            ]
        };
        [flags(""), flags("peer-")].concat()
    }

    fn run(&self) -> Result<Running, ServerError> {
        let (client, peer) = (self.url(self.client_port), self.url(self.peer_port));
        let data = self.place.path().join("etcd");
        let flags = [
            ("name", self.name.clone()),
            ("data-dir", data.display().to_string()),
            ("listen-metrics-urls", format!("http://127.0.0.1:{}", self.health_port)),
            ("listen-client-urls", client.clone()),
            ("advertise-client-urls", client),
            ("listen-peer-urls", peer.clone()),
            ("initial-advertise-peer-urls", peer),
            ("initial-cluster", self.members.clone()),
            ("heartbeat-interval", HEARTBEAT_MS.to_string()),
            ("election-timeout", ELECTION_MS.to_string()),
            ("auto-compaction-mode", "periodic".into()),
            ("auto-compaction-retention", "10m".into()),
            ("logger", "zap".into()),
        ];
        let flags = flags.map(|(flag, value)| format!("--{flag}={value}"));
        Run {
            program: "etcd",
            file: &self.file,
            args: flags.into_iter().chain(self.tls_flags()).collect(),
            log: self.place.path().join("etcd.log"),
            end: if self.place.stays() { Signal::TERM } else { Signal::KILL },
            crash: (Signal::KILL, "KILL"),
            hidden: "ETCD_",
            user: None,
        }
        .start()
    }
}

/// The answer to a `GET`; none: it does not answer in time.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(HEALTH_LIMIT)).ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
