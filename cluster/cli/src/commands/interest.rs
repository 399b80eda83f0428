//! `purview interest`: interest management as a service for any game server.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use purview_server::interest::{Limits, Most, Running, Settings, start};
use purview_server::logs::{LogFormat, LogSettings};
use purview_server::node::ready::READY;
use purview_server::shutdown::signals::ShutdownSignals;
use purview_server::supervisor::{
    self,
    watchdog::{Watchdog, Watched},
};
use purview_server::tls::CertificateSettings;

/// The default address of the service.
const ADDR: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7791);

/// `purview interest`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview interest\n  \
    purview interest --unix /run/purview/interest.sock --threads 4\n  \
    purview interest --listen 0.0.0.0:7791 --tls-cert cert.pem --tls-key key.pem --token-file token\n\n\
    Serves gRPC: proto/purview/interest/v1/interest.proto, reflection and health. Needs no configuration, no \
    etcd and no database. Prints one line, `ready` and a JSON object with the addresses, and runs until Ctrl-C \
    or SIGTERM.\n\n\
    Exit codes: 0 shut down, 1 failed, 2 invalid command line.")]
pub struct InterestArgs {
    /// The address to listen on; port 0: any free port [default: 127.0.0.1:7791, or none with --unix].
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// A Unix socket to listen on. Only the user of this process can connect.
    #[arg(long, value_name = "PATH")]
    pub unix: Option<PathBuf>,
    /// The address of the page /metrics, over HTTP and without a token [default: none].
    #[arg(long, value_name = "ADDR")]
    pub metrics: Option<SocketAddr>,
    /// The number of threads [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    pub threads: Option<u16>,
    /// A file with the token that clients must show: 32 bytes or more.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The certificate (PEM); clients must use TLS then.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Allow other machines to connect without TLS and without a token.
    #[arg(long)]
    pub insecure: bool,
    /// The most sessions of clients.
    #[arg(long, value_name = "N", default_value_t = 1_024, value_parser = number())]
    pub sessions: u32,
    /// The most entities of all clients together.
    #[arg(long, value_name = "N", default_value_t = 16_000_000, value_parser = number())]
    pub entities: u32,
    /// The most pairs of observer and subject of all clients together.
    #[arg(long, value_name = "N", default_value_t = 64_000_000, value_parser = number())]
    pub pairs: u32,
    /// The most pairs of a client.
    #[arg(long, value_name = "N", default_value_t = 16_000_000, value_parser = number())]
    pub session_pairs: u32,
    /// The most events of all ticks that are being told.
    #[arg(long, value_name = "N", default_value_t = 64_000_000, value_parser = number())]
    pub events: u32,
    /// The most events of a tick.
    #[arg(long, value_name = "N", default_value_t = 16_000_000, value_parser = number())]
    pub tick_events: u32,
    /// The most MiB of scenes and entities of all clients together.
    #[arg(long, value_name = "MIB", default_value_t = 8_192, value_parser = number())]
    pub memory: u32,
    /// The most MiB of scenes and entities of a client.
    #[arg(long, value_name = "MIB", default_value_t = 2_048, value_parser = number())]
    pub session_memory: u32,
    /// The most MiB of updates, unread and kept, of all clients together.
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = number())]
    pub buffers: u32,
    /// The most MiB of sent updates that are kept for a client, so that it can resume.
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub keep: u16,
    /// How long a client without a connection can resume.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = purview_demo::flags::time)]
    pub resume_within: Duration,
    /// The log level, for example `debug`.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log: String,
}

/// A number from 1 on.
fn number() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}

impl InterestArgs {
    fn limits(&self, threads: usize) -> Limits {
        let most = |session: u32, all: u32, unit: usize| Most {
            session: session as usize * unit,
            all: all as usize * unit,
        };
        Limits {
            sessions: self.sessions as usize,
            entities: self.entities as usize,
            pairs: most(self.session_pairs, self.pairs, 1),
            events: most(self.tick_events, self.events, 1),
            bytes: most(self.session_memory, self.memory, 1 << 20),
            keep_bytes: usize::from(self.keep) << 20,
            buffer_bytes: (self.buffers as usize) << 20,
            resume_within: self.resume_within,
            threads,
        }
    }

    fn settings(&self, threads: usize) -> Settings {
        let own = if self.unix.is_none() { Some(ADDR) } else { None };
        let certificate = self.tls_cert.clone().zip(self.tls_key.clone());
        Settings {
            listen: self.listen.or(own),
            unix: self.unix.clone(),
            metrics: self.metrics,
            tls: certificate.map(|(certificate, key)| CertificateSettings { certificate, key }),
            token_file: self.token_file.clone(),
            insecure: self.insecure,
            limits: self.limits(threads),
        }
    }
}

/// How long the service takes to end at most: TimeoutStopSec of its unit.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// Runs `purview interest`.
///
/// # Errors
/// The service cannot start.
pub fn run_interest(args: &InterestArgs) -> anyhow::Result<u8> {
    let level = args.log.clone();
    let _logs = purview_server::logs::init(&LogSettings { level, format: LogFormat::Text })?;
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = args.threads.map_or_else(cores, usize::from);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.context("cannot start the threads of the service")?;
    let settings = args.settings(threads);
    runtime.block_on(async {
        let mut ends = ShutdownSignals::listen().context("cannot listen for signals")?;
        let running = start(&settings).await?;
        greet(&running)?;
        supervisor::ready();
        let handle = tokio::runtime::Handle::current();
        let _watchdog = Watchdog::start(vec![Watched::runtime("service", handle)])?;
        ends.asked().await;
        supervisor::stopping(STOP_LIMIT);
        running.stop().await;
        anyhow::Ok(())
    })?;
    Ok(0)
}

fn greet(running: &Running) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{READY}{}", serde_json::to_string(running.ready())?)?;
    Ok(out.flush()?)
}
