//! All sections except the scenes: their settings, each of which is a key of its name.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use purview::scene::names::is_name;

use super::advertise::{self, ADVERTISE, Advertise};
use super::form::{Form, Rule, TEXT};
use super::keys::{HOUR, Keys, NAME, PATH, keys, settings};
use super::page::quoted;
use super::read::{Section, nearest, text_of};
use crate::admission::AddressLimits;
use crate::gateway::token::{RESUME_AUDIENCE, told_claim};
use crate::logins::Duplicate;
use crate::logs::{LogFormat, LogSettings};
use crate::metrics::RegionSeries;
use crate::node::balancer::BalanceMode;
use crate::storage::checkpoints::player_records::STORE_WAIT;
use crate::tls::{CertificateSettings, TlsSettings, make};

const FOLDER: &str = "the path of a folder, relative to this file's folder";

settings! {
    /// Settings of the process.
    pub struct ServerSettings {
        /// Threads over which the regions are spread; 0 = one per core.
        pub arbiters: usize = 0, count(0, 1_024);
        /// Most threads that work at the same time on long ticks of regions, the regions' own included; 0 = one per
        /// core. All regions of the process share them.
        pub region_threads: usize = 0, count(0, 256);
        /// Folder in which a single-process server keeps checkpoints and the players' last positions; the next start
        /// continues from there.
        pub data_dir: Option<PathBuf> = None, path(FOLDER, "data");
        /// Whether demo NPCs roam every scene, and scenes with the kinds of the example game have its rules, to try a server
        /// out; `purview dev` always has them.
        pub demo: bool = false, flag();
        /// How long the system that runs this process waits before it kills a process that is shutting down:
        /// terminationGracePeriodSeconds of Kubernetes, TimeoutStopSec of systemd. The minimum is shown by `purview check`.
        pub grace: Duration = Duration::from_secs(60), time(1_000, 2 * HOUR);
    }
}

settings! {
    /// Client connections and the limits of a session.
    pub struct GatewaySettings {
        /// The address on which WebSocket clients connect.
        pub ws: SocketAddr = local(7711), address();
        /// The address on which clients with length-prefixed frames over TCP connect.
        pub tcp: Option<SocketAddr> = Some(local(7712)), address_or_off();
        /// Messages per second that are read of a session on average; who sends more is read more slowly, and is closed
        /// after 10 s of it.
        pub rate_limit: u32 = 100, count(1, 100_000);
        /// Messages that are read of a session in one burst: what a client sends late, after a stall, is one.
        pub burst: u32 = 1_000, count(1, 1_000_000);
        /// A session that sends nothing for this long is closed.
        pub heartbeat: Duration = Duration::from_secs(30), time(100, HOUR);
        /// A connection without a valid hello after this time is closed.
        pub handshake_timeout: Duration = Duration::from_secs(5), time(100, 10 * 60_000);
        /// Frames queued for a slow client before they are merged into the latest state.
        pub send_queue: usize = 32, count(2, 65_536);
        /// A client that reads nothing for this long is closed.
        pub slow_close: Duration = Duration::from_secs(10), time(100, HOUR);
        /// How long a player stays in the scene after the client's connection breaks, so that the client can resume;
        /// 0ms = the player leaves at once.
        pub grace_period: Duration = Duration::from_secs(10), time(0, 10 * 60_000);
        /// How long a gateway that is asked to end still admits clients, so that load balancers can take it out; it spreads
        /// the closing of its sessions over this time.
        pub lame_duck: Duration = Duration::from_secs(10), time(0, 10 * 60_000);
        /// A gateway that reaches less than this share of the regions, percent, for 10 s is not ready.
        pub ready_share: u32 = 50, count(0, 100);
        /// How long a join waits while the store of players' records is out of reach; then it is refused, and may be
        /// repeated.
        pub store_wait: Duration = STORE_WAIT, time(0, 60_000);
        /// Most sessions at the same time.
        pub max_sessions: usize = 20_000, count(1, 1_000_000);
        /// Most connections without a valid hello at the same time; they do not count as sessions. One more closes the
        /// oldest connection of the address that has most.
        pub unauthenticated: usize = 2_000, count(1, 1_000_000);
        /// Limits per source address. IPv6 addresses count by their first 64 bits, and by their first 48 bits with 16 times
        /// these numbers.
        pub limits: AddressLimits = AddressLimits::default(), section(limits);
        /// Proxies that begin each connection with a PROXY protocol header, version 2. Limits and logs then use the client
        /// address in the header. Headers from other addresses are refused.
        pub proxies: Vec<IpNet> = Vec::new(), list(NETWORKS, network, IpNet::to_string);
        /// Origins of the web pages that may connect. Default: all. Programs other than browsers send no origin.
        pub origins: Vec<String> = Vec::new(), list(ORIGINS, origin, String::clone);
        /// The certificate that clients are shown. Without this section connections are not encrypted.
        pub tls: Option<CertificateSettings> = None, optional(TLS, false, listener_tls);
    }
}

const NETWORKS: Rule<'static> = (
    "a list of addresses and networks, such as [\"10.0.0.7\", \"2001:db8::/64\"]",
    Form::List(&Form::Matching("^[0-9a-fA-F:.]+(?:/[0-9]+)?$")),
);
const ORIGINS: Rule<'static> = (
    "a list of origins, such as [\"https://game.example\", \"http://localhost:8080\"]",
    Form::List(&Form::Matching(r"^https?://[^\s/?#*]+$")),
);
pub(super) const TLS: &str = "a section with `certificate` and `key`";

const CLAIMS: Rule<'static> = (
    "a list of claims, such as [\"guild\", \"level\"]; not sub, exp, iss, aud, nbf or planes",
    Form::List(&TEXT),
);

fn network(text: &str) -> Option<IpNet> {
    let one = text.parse::<IpAddr>().map(IpNet::from);
    one.ok().or_else(|| text.parse().ok())
}

/// An origin as browsers write it: scheme, host and, unless it is the scheme's default, port.
fn origin(text: &str) -> Option<String> {
    let (scheme, host) = text.split_once("://")?;
    let is_origin = matches!(scheme, "http" | "https")
        && !host.is_empty()
        && !host.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '*'));
    is_origin.then(|| text.to_owned())
}

fn limits(k: &mut Keys<'_, '_, AddressLimits>) {
    keys! { k;
        "connections" count(1, 1_000_000) connections: "Most connections of one address at the same time.";
        "handshakes" count(1, 1_000_000) handshakes:
            "Most connections of one address without a valid hello; one more closes the oldest of them.";
        "failed_tokens" count(1, 1_000_000) failed_tokens:
            "Invalid tokens from one address within a minute; one more blocks the address.";
        "block" time(1_000, HOUR) block: "How long new connections of a blocked address are refused.";
        "exempt" list(NETWORKS, network, IpNet::to_string) exempt:
            "Addresses and networks without these limits: load tests, or a proxy that does not name its clients.";
    }
}

settings! {
    /// Console, metrics and health.
    pub struct ConsoleSettings {
        /// The address of the console, metrics and health checks.
        pub listen: Option<SocketAddr> = Some(local(7780)), address_or_off();
        /// File with the token for reading /api, at least 32 bytes; created if missing. Default: on loopback no token is
        /// needed; elsewhere each start creates a token in a file that the log names.
        pub token_file: Option<PathBuf> = None, path(PATH, "console.token");
        /// File with the token for commands (POST), at least 32 bytes; it permits reading, too; created if missing.
        /// Default: each start creates a token in a file that the log names.
        pub command_token_file: Option<PathBuf> = None, path(PATH, "command.token");
        /// Which regions have metric series of their own: all; the 20 busiest, for gauges, while counters are summed by
        /// scene; or none.
        pub region_metrics: RegionSeries = RegionSeries::All, choice(&[
            (RegionSeries::All, "all"),
            (RegionSeries::Top, "top"),
            (RegionSeries::Off, "off")
        ]);
        /// Host names of the console, in addition to IP addresses and "localhost". Requests under any other name are
        /// refused, so that a foreign web page cannot reach the console.
        pub hosts: Vec<String> = Vec::new(), other(
            HOSTS,
            |node| hosts(text_of(node).unwrap_or_default()),
            |hosts: &Vec<String>| quoted(&hosts.join(", "))
        );
        /// The certificate that clients are shown. Without this section connections are not encrypted.
        pub tls: Option<CertificateSettings> = None, optional(TLS, false, listener_tls);
    }
}

settings! {
    /// The page on which visitors play in the browser.
    pub struct PlaySettings {
        /// Whether visitors play in the browser: the process serves the page, gives a token to each visitor, and admits those
        /// who have one. Every process with a gateway needs the same value. `purview dev` has it on.
        pub enabled: bool = false, flag();
        /// The address of the page, which is at /play.
        pub listen: SocketAddr = local(7781), address();
        /// Host names of the page, in addition to IP addresses and "localhost".
        pub hosts: Vec<String> = Vec::new(), other(
            HOSTS,
            |node| hosts(text_of(node).unwrap_or_default()),
            |hosts: &Vec<String>| quoted(&hosts.join(", "))
        );
        /// The WebSocket address to which visitors connect. Default: the page's host name with the port of gateway.ws.
        pub gateway: Option<String> = None, other(
            GATEWAY,
            |node| gateway_url(text_of(node).unwrap_or_default()),
            |url: &Option<String>| quoted(url.as_deref().unwrap_or_default())
        );
        /// Tokens that one address is given within a minute; an IPv6 address counts by its first 64 bits.
        pub tokens: u32 = 30, count(1, 1_000_000);
        /// The certificate that visitors are shown. Without this section connections are not encrypted.
        pub tls: Option<CertificateSettings> = None, optional(TLS, false, listener_tls);
    }
}

const GATEWAY: Rule<'static> = (
    "ws:// or wss:// with a host: \"wss://play.example.net/\"",
    Form::Matching(r"^(?:wss?://[-A-Za-z0-9._~:\[\]][-A-Za-z0-9._~:/\[\]]*)?$"),
);

/// The address of a gateway, as a browser connects to it.
fn gateway_url(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let host = text.strip_prefix("wss://").or_else(|| text.strip_prefix("ws://"));
    let is_url = host.is_some_and(|host| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~:/[]".contains(&b);
        !host.is_empty() && !host.starts_with('/') && host.bytes().all(plain)
    });
    if is_url {
        Ok(Some(text.into()))
    } else {
        Err(format!("{text:?} is not one: write {}", GATEWAY.0))
    }
}

const HOSTS: Rule<'static> = (
    "names, comma-separated, without scheme and port: \"console.internal\"",
    Form::Matching(r"^[-A-Za-z0-9_.,\s]*$"),
);

/// The host names of the console.
fn hosts(text: &str) -> Result<Vec<String>, String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(str::to_ascii_lowercase).collect();
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    match names.iter().find(|name| !name.bytes().all(inner)) {
        Some(name) => Err(format!("{name:?} is not a host name: write {}", HOSTS.0)),
        None => Ok(names),
    }
}

settings! {
    /// This process as a member of a cluster; unused in a single-process server.
    pub struct ClusterSettings {
        /// The cluster's name. Processes of different clusters refuse each other and use different keys in etcd.
        pub name: String = make::CLUSTER.into(), text(NAME);
        /// This process's name, unique in the cluster. Default: the machine's name and the peer port.
        pub node: String = String::new(), text(NODE);
        /// The address on which other processes of the cluster connect.
        pub listen: SocketAddr = local(7790), address();
        /// The address under which other processes reach this one. "auto" is the address of the interface that reaches
        /// etcd, with the port of `listen`. Default: `listen`, which must then be one address.
        pub advertise: Advertise = Advertise::Listen,
            other(ADVERTISE, advertise::read, |address: &Advertise| quoted(&address.to_string()));
        /// The etcd that holds membership, leases and the layout.
        pub etcd: String = "http://127.0.0.1:2379".into(),
            text("one or more comma-separated addresses, such as \"http://127.0.0.1:2379\"", TEXT);
        /// The etcd user, if etcd requires one; needs `etcd_password_file`.
        pub etcd_user: String = String::new(), text("a name", TEXT);
        /// File with the password of `etcd_user`.
        pub etcd_password_file: Option<PathBuf> = None, path(PATH, "etcd.password");
        /// The PostgreSQL that stores checkpoints. The password belongs in `postgres_password_file`.
        pub postgres: String = "off".into(),
            text("an address such as \"postgres://purview@127.0.0.1:5432/purview\", or \"off\"", TEXT);
        /// File with the password of the user in `postgres`.
        pub postgres_password_file: Option<PathBuf> = None, path(PATH, "postgres.password");
        /// Time between two checkpoints of a region. After a failure at most this much is lost of NPCs and other entities
        /// that no client steers. At most 600 ticks.
        pub checkpoint: Duration = Duration::from_secs(1), time(100, HOUR);
        /// A node that does not renew its lease at etcd for this long loses its regions; whole seconds.
        pub lease: Duration = Duration::from_secs(5), time(1_000, 10 * 60_000);
        /// How long a node that is shutting down may take to migrate its regions to other nodes.
        pub drain: Duration = Duration::from_secs(30), time(0, HOUR);
        /// How long a process that starts waits for PostgreSQL and etcd; then it ends with an error.
        pub patience: Duration = Duration::from_secs(120), time(0, HOUR);
        /// What this node can do: 100 is one core, and 200 gets twice as much load. 0: 100 for each of its threads.
        pub capacity: u32 = 0, count(0, 1_000_000);
        /// What the leader does with what it decides by the loads of all regions: nothing is measured, it is only told, or
        /// regions are moved and cut. The same for all nodes: `purview ctl balance` shows it.
        pub balance: BalanceMode = BalanceMode::Explain, choice(&BalanceMode::NAMES);
        /// Where this process runs: a zone of a cloud, a rack. Scenes may ask for it (`scene.nodes`); `purview ctl status`
        /// shows it.
        pub zone: String = String::new(), text(ZONE);
        /// Further facts about this process. Scenes may ask for them (`scene.nodes`); `purview ctl status` shows them.
        pub labels: Vec<(String, String)> = Vec::new(), list(LABELS, label, label_text);
        /// Whether traffic to peers, etcd and PostgreSQL may leave this machine unencrypted. Only for a network that only
        /// the cluster can reach.
        pub insecure: bool = false, flag();
        /// Certificates. With this section all traffic with peers, etcd and PostgreSQL uses mutual TLS; without it none is
        /// encrypted.
        pub tls: Option<TlsSettings> = None, optional("a section, [cluster.tls]", false, cluster_tls);
    }
}

/// The legal values of a zone.
pub(super) const ZONE: Rule<'static> = ("a name, such as \"eu-1a\"", Form::Text(0, 64));

pub(super) const LABELS: Rule<'static> = (
    "a list of labels, such as [\"map=city\", \"machine=fast\"]",
    Form::List(&Form::Matching("^[^=]{1,64}=.{1,64}$")),
);

pub(super) fn label(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once('=')?;
    (is_name(key, 64) && is_name(value, 64)).then(|| (key.to_owned(), value.to_owned()))
}

pub(super) fn label_text((key, value): &(String, String)) -> String {
    format!("{key}={value}")
}

/// The legal values of the name of a node.
pub(super) const NODE: Rule<'static> = ("1 to 255 bytes of printable text", Form::Text(0, 255));

fn cluster_tls(k: &mut Keys<'_, '_, TlsSettings>) {
    let missing = "set certificate, key and authority together";
    keys! { k;
        "certificate" file(missing) certificate:
            "The certificate of this process; it must name the host in `advertise`, unless that is an IP address.";
        "key" file(missing) key: "The private key of that certificate.";
        "authority" file(missing) authority: "The certificate authorities that this process trusts.";
    }
}

/// The certificate of a listener.
pub(super) fn listener_tls(k: &mut Keys<'_, '_, CertificateSettings>) {
    let missing = "set certificate and key together";
    keys! { k;
        "certificate" file(missing) certificate:
            "The certificate chain: the certificate, then its intermediates. Reloaded when the file changes.";
        "key" file(missing) key: "The private key of that certificate. Reloaded when the file changes.";
    }
}

settings! {
    /// How clients authenticate.
    pub struct TokenSettings {
        /// File with the secret, at least 32 bytes, that signs tokens. `serve` and `node` need this or `keys_file`. Reloaded
        /// when the file changes.
        pub secret_file: Option<PathBuf> = None, path(PATH, "purview.secret");
        /// File with a JSON Web Key Set that verifies tokens, by `kid`: oct (HS256), RSA (RS256), EC with P-256 (ES256),
        /// OKP with Ed25519 (EdDSA). Reloaded when the file changes.
        pub keys_file: Option<PathBuf> = None, path(PATH, "keys.json");
        /// The `iss` that a token must have. Empty: any.
        pub issuer: Option<String> = None, optional_text("a text, for example \"https://login.example\"");
        /// The `aud` that a token must have or contain. Empty: any.
        pub audience: Option<String> = None, optional_text("a text, for example \"my-game\"");
        /// Claims of a token that game logic is told of its player, together at most 1,024 bytes of MessagePack.
        pub claims: Vec<String> = Vec::new(), list(CLAIMS, told_claim, String::clone);
        /// Whether a token must state its expiry time (`exp`).
        pub expiry: Expiry = Expiry::Required,
            choice(&[(Expiry::Required, "required"), (Expiry::Optional, "optional")]);
        /// What happens when a subject opens a second session in the cluster: the newer session replaces the older, or is
        /// refused, or both stay. In `purview dev` both stay unless this says otherwise.
        pub duplicate: Option<Duplicate> = None, optional_choice(&[
            (Duplicate::Replace, "replace"),
            (Duplicate::Refuse, "refuse"),
            (Duplicate::Allow, "allow")
        ]);
        /// Most sessions of one subject at the same time at a gateway, from a valid hello on; one more is closed with 4012.
        /// No limit by default where `duplicate` is "allow".
        pub max_sessions: Option<u32> = None, optional_count(1, 1_000_000, SUBJECT_SESSIONS);
    }
}

/// Whether a token must state its expiry time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// It must.
    Required,
    /// It need not.
    Optional,
}

/// Sessions of a subject unless something else is configured: one that plays, and connections that
/// the client has lost and the server not yet.
const SUBJECT_SESSIONS: i64 = 8;

impl TokenSettings {
    /// Most sessions of a subject at one gateway.
    pub fn sessions_per_subject(&self) -> u32 {
        let default = match self.duplicate.unwrap_or_default() {
            Duplicate::Replace | Duplicate::Refuse => SUBJECT_SESSIONS as u32,
            Duplicate::Allow => u32::MAX,
        };
        self.max_sessions.unwrap_or(default)
    }
}

/// This machine alone: a server is not open to the world unless told to be.
const fn local(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

pub(super) fn check_console(s: &mut Section<'_>) {
    s.forbid(
        "token",
        "a token must not be in the configuration; put it into a file and name that file in \
         console.token_file",
    );
}

pub(super) fn check_token(s: &mut Section<'_>, settings: &TokenSettings) {
    s.forbid(
        "secret",
        "a secret must not be in the configuration; put it into a file and name that file in \
         token.secret_file",
    );
    if settings.audience.as_deref() == Some(RESUME_AUDIENCE) {
        s.unfit("audience", RESUME_AUDIENCE, "is reserved for resume tickets".into());
    }
}

/// The legal values of a level.
const LEVEL: Rule<'static> = (
    "\"error\", \"warn\", \"info\", \"debug\", \"trace\" or \"off\", also by module: \
     \"info,purview_server::gateway=debug\"",
    Form::Matching(
        r"^(?:[^,]*=)?\s*(?:error|warn|info|debug|trace|off)\s*(?:,(?:[^,]*=)?\s*(?:error|warn|info|debug|trace|off)\s*)*$",
    ),
);

pub(super) fn log(k: &mut Keys<'_, '_, LogSettings>) {
    let read = |node: &super::tree::Node| {
        let level =
            text_of(node).ok_or_else(|| format!("must be a text in quotes: {}", LEVEL.0))?;
        check_level(level).map(|()| level.to_owned())
    };
    let words = [(LogFormat::Text, "text"), (LogFormat::Json, "json")];
    keys! { k;
        "level" other(LEVEL, read, |level: &String| quoted(level)) level:
            "Lowest level of log lines that are written.";
        "format" choice(&words) format: "Format of log lines.";
    }
}

/// Checks that a text is a level, or a list of levels by module.
pub(crate) fn check_level(text: &str) -> Result<(), String> {
    const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
    for part in text.split(',') {
        let level = part.rsplit_once('=').map_or(part, |(_, level)| level).trim();
        if !LEVELS.contains(&level) {
            let near = nearest(level, &LEVELS).map(|near| format!("; did you mean {near:?}?"));
            return Err(format!(
                "{level:?} is not a level: write {}{}",
                LEVEL.0,
                near.unwrap_or_default()
            ));
        }
    }
    match tracing_subscriber::EnvFilter::try_new(text) {
        Ok(_) => Ok(()),
        Err(e) => Err(format!("is not a list of levels: {e}")),
    }
}
