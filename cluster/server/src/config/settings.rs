//! The sections beside the scenes, as plain structs, and how they are read.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use purview::scene::region::ESCROW_TICKS;

use super::keys::{self, Key, nearest};
use super::limits::{self, AddressLimits};
use super::password::{self, Password, PasswordError};
use super::read::Section;
use super::units::Quantity;
use crate::gateway::token::keys::Files;
use crate::gateway::token::{RESUME_AUDIENCE, Rules};
use crate::logins::Duplicate;

/// The process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// Threads over which the regions are spread; 0 = one per core.
    pub arbiters: usize,
    /// Folder in which a server that is a single process keeps its checkpoints; `None`: it keeps none.
    pub data_dir: Option<PathBuf>,
    /// Time between two of these of a region.
    pub checkpoint: Duration,
    /// Whether demo NPCs roam the scenes.
    pub demo_npcs: bool,
    /// After this long a process that is asked to end is killed by the system that runs it.
    pub grace: Duration,
}

impl Default for ServerSettings {
    fn default() -> Self {
        let checkpoint = Duration::from_secs(1);
        let grace = Duration::from_secs(60);
        ServerSettings { arbiters: 0, data_dir: None, checkpoint, demo_npcs: false, grace }
    }
}

/// Where clients connect, and what a session may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewaySettings {
    /// Where WebSocket clients connect.
    pub ws: SocketAddr,
    /// Where clients with length-prefixed frames over TCP connect; `None` = nowhere.
    pub tcp: Option<SocketAddr>,
    /// Messages a second that a session may send in the long run.
    pub rate_limit: u32,
    /// Messages that a session may send at once.
    pub burst: u32,
    /// A session silent for this long is closed.
    pub heartbeat: Duration,
    /// A connection that has not said hello by then is closed.
    pub handshake_timeout: Duration,
    /// Frames that wait for a slow client before they are merged into its latest state.
    pub send_queue: usize,
    /// A client that takes nothing for this long is closed.
    pub slow_close: Duration,
    /// For how long a player stays when its client's connection breaks; zero: it leaves at once.
    pub linger: Duration,
    /// Sessions at once.
    pub max_sessions: usize,
    /// Connections at once that have not said a valid hello.
    pub unauthenticated: usize,
    /// What one source address may have.
    pub limits: AddressLimits,
    /// Proxies that name the client of each connection by a header of the PROXY protocol, version 2.
    pub proxies: Vec<IpNet>,
    /// Origins of the web pages that may connect; empty: all.
    pub origins: Vec<String>,
    /// The certificate that clients are shown; `None`: they are talked to plain.
    pub tls: Option<CertificateSettings>,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        GatewaySettings {
            ws: local(7711),
            tcp: Some(local(7712)),
            rate_limit: 60,
            burst: 120,
            heartbeat: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(5),
            send_queue: 32,
            slow_close: Duration::from_secs(10),
            linger: Duration::from_secs(10),
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
    /// Where they are served; `None` = nowhere.
    pub listen: Option<SocketAddr>,
    /// File with the token for reading; `None`: none on loopback, elsewhere one for each run.
    pub token_file: Option<PathBuf>,
    /// File with the token for commands, which reads, too; `None`: one for each run.
    pub command_token_file: Option<PathBuf>,
    /// Names by which it may be called, beside addresses and `localhost`.
    pub hosts: Vec<String>,
    /// The certificate that it shows; `None`: it is served plain.
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

/// One process among the others of a cluster; of no meaning where everything is one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSettings {
    /// The cluster's name.
    pub name: String,
    /// This process's name; empty: made of the machine's name and the peers' port.
    pub node: String,
    /// Where the other processes connect.
    pub listen: SocketAddr,
    /// Where the others find this process, host:port; empty: where it listens.
    pub advertise: String,
    /// The addresses of etcd, parted by commas.
    pub etcd: String,
    /// The user at etcd; empty: etcd asks for none.
    pub etcd_user: String,
    /// File with the password of that user.
    pub etcd_password_file: Option<PathBuf>,
    /// The address of the PostgreSQL that keeps checkpoints, without a password, or "off".
    pub postgres: String,
    /// File with the password of the user in that address.
    pub postgres_password_file: Option<PathBuf>,
    /// Time between two checkpoints of a region.
    pub checkpoint: Duration,
    /// Time to live of this process's lease, whole seconds.
    pub lease: Duration,
    /// How long this process may take to give its regions to others when it is asked to end.
    pub drain: Duration,
    /// How much it carries, against the others.
    pub capacity: u32,
    /// Whether plain text may leave this machine.
    pub insecure: bool,
    /// Certificates for peers, etcd and PostgreSQL; `None`: all are talked to plain.
    pub tls: Option<TlsSettings>,
}

/// Where the certificate of a listener is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateSettings {
    /// The certificate, with those between it and its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Where the certificates are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// The certificate of this process.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities whose certificates are let in.
    pub authority: PathBuf,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        ClusterSettings {
            name: "purview".into(),
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

/// How clients prove who they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenSettings {
    /// File with a secret by which tokens are checked and resume tickets signed.
    pub secret_file: Option<PathBuf>,
    /// File with a JSON Web Key Set by which tokens are checked.
    pub keys_file: Option<PathBuf>,
    /// The issuer that a token must name; `None`: any.
    pub issuer: Option<String>,
    /// The audience that a token must name; `None`: any.
    pub audience: Option<String>,
    /// Whether a token may lack the time when it expires.
    pub may_last: bool,
    /// What becomes of two sessions of one subject; `None`: as the command has it.
    pub duplicate: Option<Duplicate>,
}

impl TokenSettings {
    /// Where the keys are.
    pub fn files(&self) -> Files {
        Files { secret: self.secret_file.clone(), set: self.keys_file.clone() }
    }

    /// What a token must say.
    pub fn rules(&self) -> Rules {
        let (issuer, audience) = (self.issuer.clone(), self.audience.clone());
        Rules { issuer, audience, may_last: self.may_last }
    }
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// A level, or levels by module: `info,crate::gateway=debug`.
    pub level: String,
    /// The form of the lines.
    pub format: LogFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        LogSettings { level: "info".into(), format: LogFormat::Text }
    }
}

/// This machine alone: a server is not open to the world unless told to be.
const fn local(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

pub(super) fn server(root: &mut Section<'_>, folder: &Path, tick_ms: u32) -> ServerSettings {
    let mut s = root.section("server");
    let d = ServerSettings::default();
    let settings = ServerSettings {
        arbiters: s.count(&keys::ARBITERS, 0) as usize,
        data_dir: s.path(&keys::DATA_DIR, folder),
        checkpoint: checkpoint(&mut s, d.checkpoint, tick_ms),
        demo_npcs: s.choice(&keys::DEMO_NPCS, usize::from(d.demo_npcs)) == 1,
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
        linger: time(&mut s, &keys::LINGER, d.linger),
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
        "a token does not stand in a configuration; put it into a file and name that file in \
         console.token_file",
    );
    let token_file = s.path(&keys::TOKEN_FILE, folder);
    let command_token_file = s.path(&keys::COMMAND_TOKEN_FILE, folder);
    let hosts = hosts(&mut s);
    let tls = listener_tls(&mut s, folder);
    root.close(s);
    ConsoleSettings { listen, token_file, command_token_file, hosts, tls }
}

/// The names by which the console may be called.
fn hosts(s: &mut Section<'_>) -> Vec<String> {
    let text = s.text(&keys::HOSTS, "");
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(str::to_ascii_lowercase).collect();
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if let Some(name) = names.iter().find(|name| !name.bytes().all(inner)) {
        let rule = format!("{name:?} is no name: want {}", keys::HOSTS.form.rule());
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
        "a password does not stand in a configuration; put it into a file and name that file in \
         cluster.etcd_password_file",
    );
    if !passwords(&mut s, &settings) {
        schemes(&mut s, &settings);
    }
    root.close(s);
    settings
}

/// The certificate of a listener: all of it or none of it.
fn listener_tls(parent: &mut Section<'_>, folder: &Path) -> Option<CertificateSettings> {
    let mut s = parent.section(keys::LISTENER_TLS.name);
    let all = [&keys::LISTENER_CERTIFICATE, &keys::LISTENER_KEY];
    let [certificate, key] = together(&mut s, folder, all, "certificate and key stand together");
    parent.close(s);
    Some(CertificateSettings { certificate: certificate?, key: key? })
}

/// Time between two checkpoints. Recovery remembers so many ticks; half of them are for a checkpoint's way to
/// its store.
fn checkpoint(s: &mut Section<'_>, default: Duration, tick_ms: u32) -> Duration {
    let every = time(s, &keys::CHECKPOINT, default);
    let ticks = ESCROW_TICKS / 2;
    let max_ms = ticks as i64 * i64::from(tick_ms);
    if every > Duration::from_millis(max_ms as u64) {
        let (max, tick) = (Quantity::Time.text(max_ms), Quantity::Time.text(tick_ms.into()));
        let rule = format!(
            "must be at most {max:?}, {ticks} ticks of {tick:?}: recovery remembers twice as many"
        );
        let found = Quantity::Time.text(every.as_millis() as i64);
        s.unfit(&keys::CHECKPOINT, &found, rule);
    }
    every
}

/// Passwords stand in files. Whether the address of etcd holds one, which then must not be printed.
fn passwords(s: &mut Section<'_>, settings: &ClusterSettings) -> bool {
    let ClusterSettings { etcd, etcd_user, etcd_password_file, postgres, .. } = settings;
    let together = "is missing; cluster.etcd_user and cluster.etcd_password_file stand together";
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
        let rule = "a user or a password does not stand in an address; name them in cluster.etcd_user and \
                    cluster.etcd_password_file";
        s.refuse(&keys::ETCD, rule);
    }
    has_user
}

impl ClusterSettings {
    /// The user at etcd and its password, if there is one.
    ///
    /// # Errors
    /// The file of the password cannot be read, or holds none.
    pub fn etcd_login(&self) -> Result<Option<(String, Password)>, PasswordError> {
        let key = "cluster.etcd_password_file";
        let password = self.etcd_password_file.as_deref().map(|file| Password::read(key, file));
        Ok(password.transpose()?.map(|password| (self.etcd_user.clone(), password)))
    }

    /// The address of the PostgreSQL, with its password; `None`: there is no PostgreSQL.
    ///
    /// # Errors
    /// As [`ClusterSettings::etcd_login`].
    pub fn postgres_login(&self) -> Result<Option<String>, PasswordError> {
        if self.postgres == "off" {
            return Ok(None);
        }
        let key = "cluster.postgres_password_file";
        let file = self.postgres_password_file.as_deref();
        let password = file.map(|file| Password::read(key, file)).transpose()?;
        let bare = self.postgres.clone();
        Ok(Some(password.map_or(bare, |password| password.within(&self.postgres))))
    }
}

/// The certificates: all of it or none of it.
fn tls(cluster: &mut Section<'_>, folder: &Path) -> Option<TlsSettings> {
    let mut s = cluster.section(keys::TLS.name);
    let all = [&keys::CERTIFICATE, &keys::PRIVATE_KEY, &keys::AUTHORITY];
    let rule = "certificate, key and authority stand together";
    let [certificate, key, authority] = together(&mut s, folder, all, rule);
    cluster.close(s);
    Some(TlsSettings { certificate: certificate?, key: key?, authority: authority? })
}

/// Paths of which all are given or none.
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

/// With certificates nothing is said plain, and without them nothing can be said else.
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

/// The token section; a file named in the configuration is meant from the folder of that file.
pub(super) fn token(root: &mut Section<'_>, folder: &Path) -> TokenSettings {
    let mut s = root.section("token");
    s.forbid(
        "secret",
        "a secret does not stand in a configuration; put it into a file and name that file in \
         token.secret_file",
    );
    let secret_file = s.path(&keys::SECRET_FILE, folder);
    let keys_file = s.path(&keys::KEYS_FILE, folder);
    let [issuer, audience] = [&keys::ISSUER, &keys::AUDIENCE].map(|key| {
        let text = s.text(key, "");
        (!text.is_empty()).then_some(text)
    });
    if audience.as_deref() == Some(RESUME_AUDIENCE) {
        s.unfit(&keys::AUDIENCE, RESUME_AUDIENCE, "is the audience of resume tickets".into());
    }
    let may_last = s.choice(&keys::EXPIRY, 0) == 1;
    let says = s.says(&keys::DUPLICATE);
    let duplicate = match s.choice(&keys::DUPLICATE, 0) {
        0 => Duplicate::Replace,
        1 => Duplicate::Refuse,
        _ => Duplicate::Allow,
    };
    root.close(s);
    let duplicate = says.then_some(duplicate);
    TokenSettings { secret_file, keys_file, issuer, audience, may_last, duplicate }
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

/// Whether a text is a level, or a list of levels by module.
pub(crate) fn check_level(text: &str) -> Result<(), String> {
    const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
    for part in text.split(',') {
        let level = part.rsplit_once('=').map_or(part, |(_, level)| level).trim();
        if !LEVELS.contains(&level) {
            let near = nearest(level, &LEVELS).map(|near| format!("; did you mean {near:?}?"));
            let rule = keys::LEVEL.form.rule();
            return Err(format!("{level:?} is no level: write {rule}{}", near.unwrap_or_default()));
        }
    }
    match tracing_subscriber::EnvFilter::try_new(text) {
        Ok(_) => Ok(()),
        Err(e) => Err(format!("is no list of levels: {e}")),
    }
}

pub(super) fn time(s: &mut Section<'_>, key: &Key, default: Duration) -> Duration {
    Duration::from_millis(s.quantity(key, default.as_millis() as i64) as u64)
}
