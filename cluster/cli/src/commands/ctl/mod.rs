//! `purview ctl`: queries and commands a running server over the HTTP API of its console.

mod balance;
mod context;
mod find;
mod kick;
mod layout;
mod orders;
mod ready;
mod region;
mod status;
mod why;
mod workers;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context;
use bytes::Bytes;
use clap::{Args, Subcommand};
use purview_client::{Trust, TrustError};
use serde::{Deserialize, Serialize};

use purview_demo::flags::ConfigFlags;
use purview_server::admin::{self, Scope};
use purview_server::config::ConfigErrors;
use purview_server::http::{self, HttpError, HttpResponse};

pub use balance::BalanceCommand;
pub use context::{ContextCommand, ContextError};
pub use find::FindArgs;
pub use kick::KickArgs;
pub use layout::{LayoutArgs, MergeArgs, SplitArgs};
pub use orders::{DrainArgs, MoveArgs};
pub use ready::ReadyArgs;
pub use region::RegionArgs;
pub use status::StatusArgs;
pub use why::WhyArgs;

/// The subcommands of `purview ctl`.
#[derive(Debug, Subcommand)]
pub enum CtlCommand {
    /// Print the state of the cluster: its processes, its regions, or its logic workers.
    Status(StatusArgs),
    /// Say by the exit code whether a process is ready: a health check, without a token.
    Ready(ReadyArgs),
    /// Print where an entity is, or where all players are.
    Find(FindArgs),
    /// Explain why two players see each other, or why not.
    Why(WhyArgs),
    /// Migrate a region to another node, with all its entities.
    Move(MoveArgs),
    /// Migrate all regions of a node to other nodes, then end the node.
    Drain(DrainArgs),
    /// Split a region in two while players walk.
    Split(SplitArgs),
    /// Merge two regions into one while players walk.
    Merge(MergeArgs),
    /// Change the number of regions of a scene while players walk.
    Layout(LayoutArgs),
    /// Decide what to do with a region whose checkpoint cannot be read.
    Region(RegionArgs),
    /// Print and direct how regions are shared out by load.
    #[command(subcommand)]
    Balance(BalanceCommand),
    /// End the sessions of a subject, and optionally bar it for a while.
    Kick(KickArgs),
    /// Keep the addresses and tokens of consoles by name.
    #[command(subcommand)]
    Context(ContextCommand),
}

/// How the console is reached.
#[derive(Debug, Clone, Args)]
pub struct ConsoleArgs {
    /// The URL of the server's console [default: that of the context, or `console.listen` of the configuration].
    #[arg(long, value_name = "URL", conflicts_with = "context")]
    pub console: Option<String>,
    /// The context to use [default: the one in use, unless --config or --set is given].
    #[arg(long, value_name = "NAME", env = "PURVIEW_CONTEXT")]
    pub context: Option<String>,
    /// The token: the command token, or for queries the read token [default: the content of `console.command_token_file`
    /// or `console.token_file`, or the token of a server on this machine].
    // One token of sixty-four begins with a hyphen.
    #[arg(long, value_name = "TOKEN", env = http::TOKEN_VAR, hide_env_values = true, allow_hyphen_values = true)]
    pub token: Option<String>,
    /// A PEM file with the trusted authorities for https:// [default: those of the machine].
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Configuration file, overrides and log level.
    #[command(flatten)]
    pub common: ConfigFlags,
}

/// Why a request failed. The server has changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum CtlError {
    /// The configuration has errors.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The context cannot be used.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The configuration switches the console off.
    #[error(
        "console.listen is \"off\": this server has no console to ask; name another one with --console URL"
    )]
    Off,
    /// The configuration leaves the port to the system.
    #[error(
        "console.listen is {0}: port 0 is any free port; name the actual one with --console URL"
    )]
    AnyPort(SocketAddr),
    /// The trusted authorities cannot be read.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// No answer.
    #[error(
        "{0}; is the server running, and is this its console? Name another one with --console URL"
    )]
    NoAnswer(HttpError),
    /// The URL is invalid.
    #[error("{0}")]
    BadUrl(HttpError),
    /// The console refuses the request.
    #[error("{error}; expected {expected}")]
    Refused {
        /// What is wrong.
        error: String,
        /// What would be right.
        expected: String,
    },
    /// The answer is not that of a console of this version.
    #[error("{url} answers ({status}), but not as the console of a Purview server does")]
    Stranger {
        /// The URL of the console.
        url: String,
        /// The status of the answer.
        status: u16,
    },
}

/// An error response of the console.
#[derive(Debug, Deserialize)]
struct ErrorBody {
    error: String,
    expected: String,
}

impl ConsoleArgs {
    /// The context in force: none beside a console's URL or a configuration, unless it is named.
    fn in_context(&self) -> Result<Option<context::Context>, CtlError> {
        let configured = self.common.file.is_some() || !self.common.set.is_empty();
        match &self.context {
            None if self.console.is_some() || configured => Ok(None),
            name => Ok(context::find(name.as_deref())?),
        }
    }

    /// How the console is reached.
    ///
    /// # Errors
    /// The configuration has errors, or does not name a console, or there is no such context.
    fn target(&self, scope: Scope) -> Result<Target, CtlError> {
        let context = self.in_context()?;
        let ca = self.ca.as_deref().or(context.as_ref().and_then(|context| context.ca.as_deref()));
        let trust = ca.map(Trust::file).transpose()?.unwrap_or_default();
        let (url, token) = match context {
            Some(context::Context { console, token_file, .. }) => {
                let token = token_file.map(|path| {
                    let text = std::fs::read_to_string(&path);
                    let path = path.display().to_string();
                    text.map_err(|error| ContextError::File { path, error })
                });
                (console, token.transpose()?.map(|text| text.trim().to_owned()))
            }
            None => (self.url()?, None),
        };
        let on_this_machine = || {
            let console = self.common.load().ok()?.console;
            admin::token_for(admin::on_loopback(&url).or(console.listen), &console, scope)
        };
        let token = self.token.clone().or(token).or_else(on_this_machine);
        Ok(Target { url, caller: http::Caller { token, trust } })
    }

    /// The address of the console, without a context.
    fn url(&self) -> Result<String, CtlError> {
        if let Some(url) = &self.console {
            return Ok(url.clone());
        }
        let console = self.common.load()?.console;
        let scheme = if console.tls.is_some() { "https" } else { "http" };
        match console.listen {
            None => Err(CtlError::Off),
            Some(addr) if addr.port() == 0 => Err(CtlError::AnyPort(addr)),
            Some(addr) => Ok(format!("{scheme}://{}", from_here(addr))),
        }
    }

    /// Sends a `GET` for `path`.
    ///
    /// # Errors
    /// [`CtlError`]; also if the console answers with an error.
    pub async fn get(&self, path: &str) -> Result<ApiAnswer, CtlError> {
        let Target { url, caller } = self.target(Scope::Read)?;
        let answer = caller.get(&url, path).await;
        told(url, answer)
    }

    /// Sends a `POST` of some JSON to `path`.
    ///
    /// # Errors
    /// As [`ConsoleArgs::get`].
    pub async fn post(&self, path: &str, order: &impl Serialize) -> Result<ApiAnswer, CtlError> {
        let Target { url, caller } = self.target(Scope::Command)?;
        // Orders are plain data, so this cannot fail.
        let body = serde_json::to_vec(order).unwrap_or_default();
        let answer = caller.post(&url, path, body.into()).await;
        told(url, answer)
    }
}

/// A console, and what a caller shows it.
struct Target {
    url: String,
    caller: http::Caller,
}

fn told(url: String, answer: Result<HttpResponse, HttpError>) -> Result<ApiAnswer, CtlError> {
    let HttpResponse { status, body } = answer.map_err(|e| match e {
        HttpError::BadUrl(_) => CtlError::BadUrl(e),
        HttpError::Trust(e) => CtlError::Trust(e),
        HttpError::NoAnswer { .. } | HttpError::Silent { .. } => CtlError::NoAnswer(e),
    })?;
    if (200..300).contains(&status) {
        return Ok(ApiAnswer { url, status, body });
    }
    match serde_json::from_slice(&body) {
        Ok(ErrorBody { error, expected }) => Err(CtlError::Refused { error, expected }),
        Err(_) => Err(CtlError::Stranger { url, status }),
    }
}

/// The address at which a client on this machine reaches a server that listens on `addr`.
fn from_here(addr: SocketAddr) -> SocketAddr {
    let ip = match addr.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    SocketAddr::new(ip, addr.port())
}

/// A successful answer of the console.
#[derive(Debug)]
pub struct ApiAnswer {
    url: String,
    status: u16,
    /// The JSON as received.
    pub body: Bytes,
}

impl ApiAnswer {
    /// The answer as a value.
    ///
    /// # Errors
    /// [`CtlError::Stranger`] if the JSON has other fields.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, CtlError> {
        let ApiAnswer { url, status, body } = self;
        let strange = |_| CtlError::Stranger { url: url.clone(), status: *status };
        serde_json::from_slice(body).map_err(strange)
    }

    /// Prints the JSON as received, or what it says in words.
    fn print(&self, json: bool, text: &str) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        if !json {
            return out.write_all(text.as_bytes());
        }
        out.write_all(&self.body)?;
        writeln!(out)
    }
}

/// Runs `purview ctl`; the exit code is that of the subcommand.
///
/// # Errors
/// [`CtlError`], or standard output cannot be written.
pub fn run(command: &CtlCommand) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    match command {
        CtlCommand::Status(args) => runtime.block_on(status::run(args)),
        CtlCommand::Ready(args) => runtime.block_on(ready::run(args)),
        CtlCommand::Find(args) => runtime.block_on(find::find(args)),
        CtlCommand::Why(args) => runtime.block_on(why::run(args)),
        CtlCommand::Move(args) => runtime.block_on(orders::move_region(args)),
        CtlCommand::Drain(args) => runtime.block_on(orders::drain(args)),
        CtlCommand::Split(args) => runtime.block_on(layout::split(args)),
        CtlCommand::Merge(args) => runtime.block_on(layout::merge(args)),
        CtlCommand::Layout(args) => runtime.block_on(layout::layout(args)),
        CtlCommand::Region(args) => runtime.block_on(region::run(args)),
        CtlCommand::Balance(command) => runtime.block_on(balance::run(command)),
        CtlCommand::Kick(args) => runtime.block_on(kick::kick(args)),
        CtlCommand::Context(command) => context::run(command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(listen: &str) -> Result<String, CtlError> {
        let set = vec![format!("console.listen={listen}").parse().unwrap()];
        let common = ConfigFlags { set, ..ConfigFlags::default() };
        ConsoleArgs { console: None, context: None, token: None, ca: None, common }.url()
    }

    #[test]
    fn the_console_url_comes_from_the_configuration() {
        assert_eq!(url("127.0.0.1:7780").unwrap(), "http://127.0.0.1:7780");
        assert_eq!(url("10.0.0.7:80").unwrap(), "http://10.0.0.7:80");
        assert_eq!(url("0.0.0.0:7780").unwrap(), "http://127.0.0.1:7780");
        assert_eq!(url("[::]:7780").unwrap(), "http://[::1]:7780");
    }

    #[test]
    fn a_console_with_a_certificate_has_an_https_url() {
        let set = ["console.listen=10.0.0.7:80", "console.tls.certificate=a", "console.tls.key=b"];
        let set = set.map(|set| set.parse().unwrap()).into();
        let common = ConfigFlags { set, ..ConfigFlags::default() };
        let args = ConsoleArgs { console: None, context: None, token: None, ca: None, common };
        assert_eq!(args.url().unwrap(), "https://10.0.0.7:80");
    }

    #[test]
    fn a_configuration_without_a_console_address_is_an_error() {
        assert!(matches!(url("off"), Err(CtlError::Off)));
        assert!(matches!(url("127.0.0.1:0"), Err(CtlError::AnyPort(_))));
        assert!(matches!(url("here"), Err(CtlError::Config(_))));
    }

    #[test]
    fn with_the_console_flag_no_configuration_is_read() {
        let common = ConfigFlags { file: Some("/no/such.toml".into()), ..ConfigFlags::default() };
        let console = Some("http://h:1".into());
        let args = ConsoleArgs { console, context: None, token: None, ca: None, common };
        assert_eq!(args.url().unwrap(), "http://h:1");
    }
}
