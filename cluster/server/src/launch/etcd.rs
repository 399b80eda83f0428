//! Starts etcd on this machine: a single one, or a cluster of several.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::child::{Run, Running};
use super::server::{Server, Setup, on_free_ports};
use super::{DataFolder, ServerError, find, free_port};
use crate::tls::TlsSettings;

/// Heartbeat interval and election timeout, ms. On one machine they allow leases of 1 s.
const HEARTBEAT_MS: u32 = 50;
const ELECTION_MS: u32 = 500;

const HEALTH_LIMIT: Duration = Duration::from_secs(1);

/// An etcd on this machine.
pub type EtcdServer = Server<EtcdSetup>;

pub struct EtcdSetup {
    file: PathBuf,
    name: String,
    client_port: u16,
    peer_port: u16,
    /// The port of `/health` and `/metrics`, without TLS.
    health_port: u16,
    /// The certificate, and the authority of accepted clients.
    tls: Option<TlsSettings>,
    place: DataFolder,
    /// All members: `name=url`, comma-separated.
    members: String,
}

impl Server<EtcdSetup> {
    /// Starts an etcd and waits until it is ready. The data stays in `dir`; without `dir` it is deleted at the end.
    pub fn start(dir: Option<&Path>) -> Result<EtcdServer, ServerError> {
        EtcdServer::start_as(dir, None)
    }

    /// Like [`EtcdServer::start`], with a required client certificate.
    pub fn start_secure(dir: Option<&Path>, tls: &TlsSettings) -> Result<EtcdServer, ServerError> {
        EtcdServer::start_as(dir, Some(tls))
    }

    fn start_as(dir: Option<&Path>, tls: Option<&TlsSettings>) -> Result<EtcdServer, ServerError> {
        on_free_ports(|| {
            let setup = EtcdSetup::new(0, DataFolder::new(dir)?)?;
            let mut setup = EtcdSetup { tls: tls.cloned(), ..setup };
            setup.members = setup.member();
            let server = EtcdServer::spawn(setup)?;
            server.wait_ready()?;
            Ok(server)
        })
    }

    /// Starts a cluster of `count` members. The data is deleted at the end.
    pub fn start_cluster(count: usize) -> Result<Vec<EtcdServer>, ServerError> {
        on_free_ports(|| {
            let setups = (0..count).map(|i| EtcdSetup::new(i, DataFolder::new(None)?));
            let mut setups: Vec<EtcdSetup> = setups.collect::<Result<_, _>>()?;
            let members: Vec<String> = setups.iter().map(EtcdSetup::member).collect();
            setups.iter_mut().for_each(|setup| setup.members = members.join(","));
            let servers = setups.into_iter().map(EtcdServer::spawn);
            let servers: Vec<EtcdServer> = servers.collect::<Result<_, _>>()?;
            servers.iter().try_for_each(EtcdServer::wait_ready)?;
            Ok(servers)
        })
    }

    /// The address for clients: `http://127.0.0.1:port`, or `https://`.
    pub fn url(&self) -> String {
        self.setup.url(self.setup.client_port)
    }

    pub fn leads(&self) -> bool {
        let metrics = get(self.setup.health_port, "/metrics");
        metrics.is_some_and(|text| text.lines().any(|line| line == "etcd_server_is_leader 1"))
    }
}

impl EtcdSetup {
    fn new(i: usize, place: DataFolder) -> Result<EtcdSetup, ServerError> {
        Ok(EtcdSetup {
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

    fn flags(&self) -> Vec<String> {
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
        flags.into_iter().chain(self.tls_flags()).collect()
    }
}

impl Setup for EtcdSetup {
    fn place(&self) -> &DataFolder {
        &self.place
    }

    fn spawn(&self) -> Result<Running, ServerError> {
        Run {
            program: "etcd",
            file: &self.file,
            args: self.flags(),
            log: self.place.path().join("etcd.log"),
            end: if self.place.stays() { Signal::TERM } else { Signal::KILL },
            crash: (Signal::KILL, "KILL"),
            hidden: "ETCD_",
            user: None,
        }
        .start()
    }

    fn is_ready(&self, _: &Running) -> bool {
        let health = get(self.health_port, "/health");
        health.is_some_and(|text| text.contains(r#""health":"true""#))
    }
}

/// The response to a `GET`; none if it does not come in time.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(HEALTH_LIMIT)).ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
