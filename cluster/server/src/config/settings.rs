//! All sections except the scenes: their settings as plain structs, and how they are read.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use purview::scene::names::is_name;
use purview::scene::region::ESCROW_TICKS;

use super::keys::{self, Key, nearest};
use super::limits;
use super::read::{Section, time};
use super::units::Quantity;
use crate::admission::AddressLimits;
use crate::logins::Duplicate;
use crate::logs::{LogFormat, LogSettings};
use crate::storage::checkpoints::player_records::STORE_WAIT;
use crate::storage::password;
use crate::tls::{CertificateSettings, TlsSettings, make};

/// Settings of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// Threads that run regions; 0 = one per core.
    pub arbiters: usize,
    /// Most threads that work on one tick of a region.
    pub region_threads: usize,
    /// Folder in which a single-process server keeps checkpoints; `None`: no checkpoints.
    pub data_dir: Option<PathBuf>,
    /// Whether demo NPCs roam the scenes.
    pub demo: bool,
    /// After this long a process that is asked to end is killed by the system that runs it.
    pub grace: Duration,
}

impl Default for ServerSettings {
    fn default() -> Self {
        let grace = Duration::from_secs(60);
        ServerSettings { arbiters: 0, region_threads: 1, data_dir: None, demo: false, grace }
    }
}

/// Client connections and the limits of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewaySettings {
    /// Address of WebSocket clients.
    pub ws: SocketAddr,
    /// Address of TCP clients with length-prefixed frames; `None` = off.
    pub tcp: Option<SocketAddr>,
    /// Messages per second that a session may send on average.
    pub rate_limit: u32,
    /// Messages that a session may send in one burst.
    pub burst: u32,
    /// A session that sends nothing for this long is closed.
    pub heartbeat: Duration,
    /// A connection without a valid hello after this time is closed.
    pub handshake_timeout: Duration,
    /// Frames queued for a slow client before they are merged into the latest state.
    pub send_queue: usize,
    /// A client that reads nothing for this long is closed.
    pub slow_close: Duration,
    /// Grace period of a player whose client disconnected; zero: the player leaves at once.
    pub grace_period: Duration,
    /// How long a join waits while the store of players' records is out of reach.
    pub store_wait: Duration,
    /// Most sessions at the same time.
    pub max_sessions: usize,
    /// Most connections without a valid hello at the same time.
    pub unauthenticated: usize,
    /// Limits per source address.
    pub limits: AddressLimits,
    /// Proxies that name the client of each connection in a PROXY protocol header, version 2.
    pub proxies: Vec<IpNet>,
    /// Origins of the web pages that may connect; empty: all.
    pub origins: Vec<String>,
    /// The certificate that clients are shown; `None`: no TLS.
    pub tls: Option<CertificateSettings>,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        GatewaySettings {
            ws: local(7711),
            tcp: Some(local(7712)),
            rate_limit: 100,
            burst: 1_000,
            heartbeat: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(5),
            send_queue: 32,
            slow_close: Duration::from_secs(10),
            grace_period: Duration::from_secs(10),
            store_wait: STORE_WAIT,
            max_sessions: 20_000,
            unauthenticated: 2_000,
            limits: AddressLimits::default(),
            proxies: Vec::new(),
            origins: Vec::new(),
            tls: None,
        }
    }
}

/// Console, metrics and health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleSettings {
    /// The address; `None` = off.
    pub listen: Option<SocketAddr>,
    /// File with the token for reading; `None`: no token on loopback, elsewhere a new one at each
    /// start.
    pub token_file: Option<PathBuf>,
    /// File with the token for commands, which permits reading, too; `None`: a new one at each
    /// start.
    pub command_token_file: Option<PathBuf>,
    /// Host names of the console, in addition to IP addresses and `localhost`.
    pub hosts: Vec<String>,
    /// The certificate of the console; `None`: no TLS.
    pub tls: Option<CertificateSettings>,
}

impl Default for ConsoleSettings {
    fn default() -> Self {
        ConsoleSettings {
            listen: Some(local(7780)),
            token_file: None,
            command_token_file: None,
            hosts: Vec::new(),
            tls: None,
        }
    }
}

/// This process as a member of a cluster; unused in a single-process server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSettings {
    /// The cluster's name.
    pub name: String,
    /// This process's name; empty: derived from the machine's name and the peer port.
    pub node: String,
    /// Address on which other processes connect.
    pub listen: SocketAddr,
    /// Address under which other processes reach this one, host:port; empty: `listen`.
    pub advertise: String,
    /// The addresses of etcd, comma-separated.
    pub etcd: String,
    /// The etcd user; empty: etcd requires none.
    pub etcd_user: String,
    /// File with the password of `etcd_user`.
    pub etcd_password_file: Option<PathBuf>,
    /// The address of the PostgreSQL that stores checkpoints, without a password, or "off".
    pub postgres: String,
    /// File with the password of the user in `postgres`.
    pub postgres_password_file: Option<PathBuf>,
    /// Time between two checkpoints of a region.
    pub checkpoint: Duration,
    /// Time to live of this process's lease, whole seconds.
    pub lease: Duration,
    /// How long this process may take to migrate its regions when it shuts down.
    pub drain: Duration,
    /// Capacity relative to other nodes.
    pub capacity: u32,
    /// Whether unencrypted traffic may leave this machine.
    pub insecure: bool,
    /// Certificates for peers, etcd and PostgreSQL; `None`: no TLS.
    pub tls: Option<TlsSettings>,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        ClusterSettings {
            name: make::CLUSTER.into(),
            node: String::new(),
            listen: local(7790),
            advertise: String::new(),
            etcd: "http://127.0.0.1:2379".into(),
            etcd_user: String::new(),
            etcd_password_file: None,
            postgres: "off".into(),
            postgres_password_file: None,
            checkpoint: Duration::from_secs(1),
            lease: Duration::from_secs(5),
            drain: Duration::from_secs(30),
            capacity: 100,
            insecure: false,
            tls: None,
        }
    }
}

/// How clients authenticate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenSettings {
    /// File with the secret that verifies tokens and signs resume tickets.
    pub secret_file: Option<PathBuf>,
    /// File with a JSON Web Key Set that verifies tokens.
    pub keys_file: Option<PathBuf>,
    /// The issuer that a token must have; `None`: any.
    pub issuer: Option<String>,
    /// The audience that a token must have; `None`: any.
    pub audience: Option<String>,
    /// Whether a token may omit its expiry time.
    pub may_last: bool,
    /// What happens to a second session of a subject; `None`: the default of the command.
    pub duplicate: Option<Duplicate>,
    /// Most sessions of a subject; `None`: the default of `duplicate`.
    pub max_sessions: Option<u32>,
}

/// Sessions of a subject unless something else is configured: one that plays, and connections that
/// the client has lost and the server not yet.
pub(super) const SUBJECT_SESSIONS: u32 = 8;

impl TokenSettings {
    /// Most sessions of a subject at one gateway.
    pub fn sessions_per_subject(&self) -> u32 {
        let default = match self.duplicate.unwrap_or_default() {
            Duplicate::Replace | Duplicate::Refuse => SUBJECT_SESSIONS,
            Duplicate::Allow => u32::MAX,
        };
        self.max_sessions.unwrap_or(default)
    }
}

/// This machine alone: a server is not open to the world unless told to be.
const fn local(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

pub(super) fn server(root: &mut Section<'_>, folder: &Path) -> ServerSettings {
    let mut s = root.section("server");
    let d = ServerSettings::default();
    let settings = ServerSettings {
        arbiters: s.count(&keys::ARBITERS, 0) as usize,
        region_threads: s.count(&keys::REGION_THREADS, d.region_threads as i64) as usize,
        data_dir: s.path(&keys::DATA_DIR, folder),
        demo: s.flag(&keys::DEMO, d.demo),
        grace: time(&mut s, &keys::STOP_GRACE, d.grace),
    };
    root.close(s);
    settings
}

pub(super) fn gateway(root: &mut Section<'_>, folder: &Path) -> GatewaySettings {
    let mut s = root.section("gateway");
    let d = GatewaySettings::default();
    let settings = GatewaySettings {
        ws: s.address(&keys::WS, Some(d.ws)).unwrap_or(d.ws),
        tcp: s.address(&keys::TCP, d.tcp),
        rate_limit: s.count(&keys::RATE_LIMIT, d.rate_limit.into()) as u32,
        burst: s.count(&keys::BURST, d.burst.into()) as u32,
        heartbeat: time(&mut s, &keys::HEARTBEAT, d.heartbeat),
        handshake_timeout: time(&mut s, &keys::HANDSHAKE_TIMEOUT, d.handshake_timeout),
        send_queue: s.count(&keys::SEND_QUEUE, d.send_queue as i64) as usize,
        slow_close: time(&mut s, &keys::SLOW_CLOSE, d.slow_close),
        grace_period: time(&mut s, &keys::GRACE_PERIOD, d.grace_period),
        store_wait: time(&mut s, &keys::STORE_WAIT, d.store_wait),
        max_sessions: s.count(&keys::MAX_SESSIONS, d.max_sessions as i64) as usize,
        unauthenticated: s.count(&keys::UNAUTHENTICATED, d.unauthenticated as i64) as usize,
        limits: limits::address(&mut s),
        proxies: limits::networks(&mut s, &keys::PROXIES, d.proxies),
        origins: limits::origins(&mut s, &keys::ORIGINS),
        tls: listener_tls(&mut s, folder),
    };
    root.close(s);
    settings
}

pub(super) fn console(root: &mut Section<'_>, folder: &Path) -> ConsoleSettings {
    let mut s = root.section("console");
    let listen = s.address(&keys::LISTEN, ConsoleSettings::default().listen);
    s.forbid(
        "token",
        "a token must not be in the configuration; put it into a file and name that file in \
         console.token_file",
    );
    let token_file = s.path(&keys::TOKEN_FILE, folder);
    let command_token_file = s.path(&keys::COMMAND_TOKEN_FILE, folder);
    let hosts = hosts(&mut s);
    let tls = listener_tls(&mut s, folder);
    root.close(s);
    ConsoleSettings { listen, token_file, command_token_file, hosts, tls }
}

/// The host names of the console.
fn hosts(s: &mut Section<'_>) -> Vec<String> {
    let text = s.text(&keys::HOSTS, "");
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(str::to_ascii_lowercase).collect();
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if let Some(name) = names.iter().find(|name| !name.bytes().all(inner)) {
        let rule = format!("{name:?} is not a host name: write {}", keys::HOSTS.form.rule());
        s.unfit(&keys::HOSTS, &text, rule);
    }
    names
}

pub(super) fn cluster(root: &mut Section<'_>, folder: &Path, tick_ms: u32) -> ClusterSettings {
    let mut s = root.section("cluster");
    let d = ClusterSettings::default();
    let settings = ClusterSettings {
        name: s.text(&keys::CLUSTER_NAME, &d.name),
        node: s.text(&keys::NODE, &d.node),
        listen: s.address(&keys::PEERS, Some(d.listen)).unwrap_or(d.listen),
        advertise: s.text(&keys::ADVERTISE, &d.advertise),
        etcd: s.text(&keys::ETCD, &d.etcd),
        etcd_user: s.text(&keys::ETCD_USER, &d.etcd_user),
        etcd_password_file: s.path(&keys::ETCD_PASSWORD_FILE, folder),
        postgres: s.text(&keys::POSTGRES, &d.postgres),
        postgres_password_file: s.path(&keys::POSTGRES_PASSWORD_FILE, folder),
        checkpoint: checkpoint(&mut s, d.checkpoint, tick_ms),
        lease: time(&mut s, &keys::LEASE, d.lease),
        drain: time(&mut s, &keys::DRAIN, d.drain),
        capacity: s.count(&keys::CAPACITY, d.capacity.into()) as u32,
        insecure: s.flag(&keys::INSECURE, d.insecure),
        tls: tls(&mut s, folder),
    };
    s.forbid(
        "etcd_password",
        "a password must not be in the configuration; put it into a file and name that file in \
         cluster.etcd_password_file",
    );
    for (key, name, most) in
        [(&keys::CLUSTER_NAME, &settings.name, 64), (&keys::NODE, &settings.node, 255)]
    {
        if !name.is_empty() && !is_name(name, most) {
            s.unfit(key, name, format!("must be {}", key.form.rule()));
        }
    }
    if !passwords(&mut s, &settings) {
        schemes(&mut s, &settings);
    }
    root.close(s);
    settings
}

/// The certificate of a listener: both paths or neither.
pub(super) fn listener_tls(parent: &mut Section<'_>, folder: &Path) -> Option<CertificateSettings> {
    let mut s = parent.section(keys::LISTENER_TLS.name);
    let all = [&keys::LISTENER_CERTIFICATE, &keys::LISTENER_KEY];
    let [certificate, key] = together(&mut s, folder, all, "set certificate and key together");
    parent.close(s);
    Some(CertificateSettings { certificate: certificate?, key: key? })
}

/// Time between two checkpoints. Recovery keeps [`ESCROW_TICKS`] ticks; half of them cover the way
/// of a checkpoint to its store.
fn checkpoint(s: &mut Section<'_>, default: Duration, tick_ms: u32) -> Duration {
    let every = time(s, &keys::CHECKPOINT, default);
    let ticks = ESCROW_TICKS / 2;
    let max_ms = ticks as i64 * i64::from(tick_ms);
    if every > Duration::from_millis(max_ms as u64) {
        let (max, tick) = (Quantity::Time.text(max_ms), Quantity::Time.text(tick_ms.into()));
        let rule = format!(
            "must be at most {max:?}, {ticks} ticks of {tick:?}: recovery keeps twice as many"
        );
        let found = Quantity::Time.text(every.as_millis() as i64);
        s.unfit(&keys::CHECKPOINT, &found, rule);
    }
    every
}

/// Checks that passwords are in files. True if the address of etcd holds a user; such an address
/// must not be printed.
fn passwords(s: &mut Section<'_>, settings: &ClusterSettings) -> bool {
    let ClusterSettings { etcd, etcd_user, etcd_password_file, postgres, .. } = settings;
    let together = "is missing; set cluster.etcd_user and cluster.etcd_password_file together";
    match (etcd_user.is_empty(), etcd_password_file) {
        (false, None) => s.missing(&keys::ETCD_PASSWORD_FILE, together),
        (true, Some(_)) => s.missing(&keys::ETCD_USER, together),
        (true, None) | (false, Some(_)) => {}
    }
    if postgres != "off"
        && let Err(rule) = password::check_postgres(postgres)
    {
        s.refuse(&keys::POSTGRES, rule);
    }
    let has_user = etcd.contains('@');
    if has_user {
        let rule = "an address must not hold a user or a password; set cluster.etcd_user and \
                    cluster.etcd_password_file";
        s.refuse(&keys::ETCD, rule);
    }
    has_user
}

/// The certificates: all of it or none of it.
fn tls(cluster: &mut Section<'_>, folder: &Path) -> Option<TlsSettings> {
    let mut s = cluster.section(keys::TLS.name);
    let all = [&keys::CERTIFICATE, &keys::PRIVATE_KEY, &keys::AUTHORITY];
    let rule = "set certificate, key and authority together";
    let [certificate, key, authority] = together(&mut s, folder, all, rule);
    cluster.close(s);
    Some(TlsSettings { certificate: certificate?, key: key?, authority: authority? })
}

/// Paths that must be set together.
fn together<const N: usize>(
    s: &mut Section<'_>,
    folder: &Path,
    all: [&Key; N],
    rule: &str,
) -> [Option<PathBuf>; N] {
    let paths = all.map(|key| s.path(key, folder));
    let any = paths.iter().any(Option::is_some);
    for (key, _) in all.iter().zip(&paths).filter(|(_, path)| any && path.is_none()) {
        s.missing(key, &format!("is missing; {rule}"));
    }
    paths
}

/// With certificates every etcd address must be https, without them http.
fn schemes(s: &mut Section<'_>, settings: &ClusterSettings) {
    let (want, when) = match settings.tls {
        Some(_) => ("https://", "with"),
        None => ("http://", "without"),
    };
    let fits = |address: &str| address.trim().starts_with(want);
    if (settings.tls.is_some() || s.says(&keys::ETCD)) && !settings.etcd.split(',').all(fits) {
        let rule = format!("must begin with {want} {when} [cluster.tls]");
        s.unfit(&keys::ETCD, &settings.etcd, rule);
    }
}

pub(super) fn log(root: &mut Section<'_>) -> LogSettings {
    let mut s = root.section("log");
    let d = LogSettings::default();
    let mut level = s.text(&keys::LEVEL, &d.level);
    if let (Err(rule), Some(node)) = (check_level(&level), s.get(&keys::LEVEL)) {
        s.wrong("level", node, rule);
        level = d.level;
    }
    let format = match s.choice(&keys::FORMAT, 0) {
        0 => LogFormat::Text,
        _ => LogFormat::Json,
    };
    root.close(s);
    LogSettings { level, format }
}

/// Checks that a text is a level, or a list of levels by module.
pub(crate) fn check_level(text: &str) -> Result<(), String> {
    const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
    for part in text.split(',') {
        let level = part.rsplit_once('=').map_or(part, |(_, level)| level).trim();
        if !LEVELS.contains(&level) {
            let near = nearest(level, &LEVELS).map(|near| format!("; did you mean {near:?}?"));
            let rule = keys::LEVEL.form.rule();
            return Err(format!(
                "{level:?} is not a level: write {rule}{}",
                near.unwrap_or_default()
            ));
        }
    }
    match tracing_subscriber::EnvFilter::try_new(text) {
        Ok(_) => Ok(()),
        Err(e) => Err(format!("is not a list of levels: {e}")),
    }
}
