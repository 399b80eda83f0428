//! `purview backup` writes all stored data to a file; `purview restore` puts it back.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde_json::json;

use purview_demo::flags::ConfigFlags;
use purview_server::backup::file::About;
use purview_server::backup::{Contents, back_up, inspect, restore};
use purview_server::config::Config;
use purview_server::process::stores;
use purview_server::storage::checkpoints::redb::{FILE, Redb};
use purview_server::storage::{Checkpoints, Event, LeaseError, Leases};
use purview_server::tls::Tls;

/// A store of checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// The file in `server.data_dir` of a single-process server.
    Redb,
    /// The database `cluster.postgres` of a cluster.
    Postgres,
}

/// `purview backup`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview backup monday.purview --config purview.toml\n  \
    purview backup monday.purview --set server.data_dir=data\n\n\
    Writes checkpoints, last positions and changed layouts to a new file with checksums. A cluster may run \
    meanwhile. A single-process server must be stopped, because it locks its store.\n\n\
    Exit codes: 0 done, 1 failed (no file is left), 2 invalid command line.")]
pub struct BackupArgs {
    /// The file to create; it must not exist.
    #[arg(value_name = "FILE")]
    pub backup: PathBuf,
    /// Configuration file, overrides and log level.
    #[command(flatten)]
    pub common: ConfigFlags,
    /// The store to back up, if the configuration names both.
    #[arg(long, value_name = "STORE")]
    pub store: Option<Kind>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `purview restore`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview restore monday.purview --config purview.toml\n  \
    purview restore monday.purview --set server.data_dir=data --force\n  \
    purview restore monday.purview --check\n\n\
    Stop every process first. The command checks the whole file before it changes anything. It removes \
    the keys of the cluster from etcd, because they do not match the restored data: the cluster starts again \
    from the checkpoints.\n\n\
    Exit codes: 0 done, 1 failed, 2 invalid command line.")]
pub struct RestoreArgs {
    /// The backup file.
    #[arg(value_name = "FILE")]
    pub backup: PathBuf,
    /// Configuration file, overrides and log level.
    #[command(flatten)]
    pub common: ConfigFlags,
    /// The store to restore to, if the configuration names both.
    #[arg(long, value_name = "STORE")]
    pub store: Option<Kind>,
    /// Erase the present content of the store.
    #[arg(long)]
    pub force: bool,
    /// Check the file only; change nothing.
    #[arg(long)]
    pub check: bool,
    /// Do not touch etcd: it is new, or cannot be reached.
    #[arg(long)]
    pub skip_etcd: bool,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// An open store.
struct Opened {
    store: Arc<dyn Checkpoints>,
    kind: Kind,
    cluster: String,
    tls: Option<Tls>,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Redb => "redb",
            Kind::Postgres => "postgres",
        }
    }

    /// The store that the configuration or the flag names.
    fn of(config: &Config, asked: Option<Kind>) -> anyhow::Result<Kind> {
        let has_redb = config.server.data_dir.is_some();
        let has_postgres = config.cluster.postgres != "off";
        match (asked, has_redb, has_postgres) {
            (Some(Kind::Redb), false, _) => bail!("server.data_dir is not set"),
            (Some(Kind::Postgres), _, false) => bail!("cluster.postgres is \"off\""),
            (Some(kind), ..) => Ok(kind),
            (None, true, true) => bail!(
                "the configuration names server.data_dir and cluster.postgres: choose one by --store redb or \
                 --store postgres"
            ),
            (None, true, false) => Ok(Kind::Redb),
            (None, false, true) => Ok(Kind::Postgres),
            (None, false, false) => bail!(
                "the configuration names no store: server.data_dir is not set, and cluster.postgres is \"off\""
            ),
        }
    }

    async fn open(self, config: &Config) -> anyhow::Result<Opened> {
        let cluster = config.cluster.name.clone();
        let opened = |store, tls| Opened { store, kind: self, cluster, tls };
        match (self, &config.server.data_dir) {
            (Kind::Redb, Some(folder)) => {
                let folder = folder.clone();
                let store = tokio::task::spawn_blocking(move || Redb::open(&folder)).await??;
                Ok(opened(Arc::new(store), None))
            }
            (Kind::Redb, None) => bail!("server.data_dir is not set"),
            (Kind::Postgres, _) => {
                let tls = stores::certificates(config)?;
                let store = stores::postgres(config, tls.as_ref()).await?;
                Ok(opened(store.context("cluster.postgres is \"off\"")?, tls))
            }
        }
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().context("cannot start a runtime")
}

/// Runs `purview backup`.
///
/// # Errors
/// The store cannot be read, or the file cannot be written; then there is no file.
pub fn run_backup(args: &BackupArgs) -> anyhow::Result<u8> {
    let config = args.common.load()?;
    let _logs = purview_server::logs::init(&config.log)?;
    let kind = Kind::of(&config, args.store)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    if let (Kind::Redb, Some(folder)) = (kind, &config.server.data_dir)
        && !folder.join(FILE).exists()
    {
        bail!("{}: no such file, so there is nothing to back up", folder.join(FILE).display());
    }
    let contents = runtime()?.block_on(async {
        let opened = kind.open(&config).await?;
        let of = (opened.cluster.as_str(), kind.name());
        anyhow::Ok(back_up(&*opened.store, of, now, &args.backup).await?)
    })?;
    let file = args.backup.display();
    say(args.json, &format!("{file}: {contents}"), None, contents)
}

/// Runs `purview restore`.
///
/// # Errors
/// The file is damaged, the cluster runs, or the store cannot be written.
pub fn run_restore(args: &RestoreArgs) -> anyhow::Result<u8> {
    let file = args.backup.display();
    let (about, contents) = inspect(&args.backup)?;
    if args.check {
        let text = format!("{file}: valid, of {}: {contents}", what(&about));
        return say(args.json, &text, Some(&about), contents);
    }
    let config = args.common.load()?;
    let _logs = purview_server::logs::init(&config.log)?;
    let kind = Kind::of(&config, args.store)?;
    let contents = runtime()?.block_on(async {
        let opened = kind.open(&config).await?;
        if opened.kind == Kind::Postgres && !args.skip_etcd {
            let begins = stores::Begins { checkpoints: Some(&*opened.store) };
            let etcd = stores::etcd(&config, opened.tls.as_ref(), Some(begins)).await?;
            let present = members(&etcd).await?;
            if !present.is_empty() {
                bail!("the cluster is running: stop these processes first: {}", present.join(", "));
            }
            let restored = restore(&*opened.store, &args.backup, args.force).await?;
            // Last, so that a failed restore leaves etcd unchanged.
            etcd.forget().await?;
            return Ok(restored);
        }
        Ok(restore(&*opened.store, &args.backup, args.force).await?)
    })?;
    say(args.json, &format!("restored {}: {contents}", what(&about)), Some(&about), contents)
}

/// The names of the processes that are members of the cluster.
async fn members(store: &dyn Leases) -> anyhow::Result<Vec<String>> {
    let mut watch = store.watch();
    loop {
        match watch.next().await.context("etcd closed the watch of the members")? {
            Ok(Event::Snapshot(view)) => {
                return Ok(view.nodes.values().map(|node| node.name.clone()).collect());
            }
            Ok(Event::Change(_)) => {}
            // A damaged key of another kind; it names no member.
            Err(LeaseError::BadData { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn what(about: &About) -> String {
    format!("cluster {:?} ({}) at {} s since 1970", about.cluster, about.store, about.unix_s)
}

fn say(json: bool, text: &str, about: Option<&About>, contents: Contents) -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    match json {
        true => writeln!(out, "{}", json!({ "about": about, "contents": contents }))?,
        false => writeln!(out, "{text}")?,
    }
    out.flush()?;
    Ok(0)
}
