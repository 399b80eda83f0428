//! `purview certs`: an authority and certificates to develop with.

use std::io::Write;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use clap::Args;
use serde_json::json;

use purview_server::config::ClusterSettings;
use purview_server::tls::ProcessRole;
use purview_server::tls::make::{Made, Order, make_all, make_more, one_of_each};

/// Names of this machine alone.
const HERE: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// `purview certs`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview certs certs\n  \
    purview certs certs --node node-1 --node node-2 --gateway gateway-1 --name '*.internal'\n  \
    purview certs certs --more --node node-3 --name 10.0.0.3\n\n\
    Makes an authority (ca.pem, ca.key) and, signed by it, a certificate (.pem) and a key (.key) for \
    etcd, for postgres, and for each --node and --gateway, all of them for localhost, this machine and \
    every --name. A process must be called in its configuration as in its certificate (cluster.node), and a \
    gateway's certificate lets no process own regions. --more adds processes to an authority that is there. \
    Only the owner may read the files. ca.key can make more certificates that every process lets in: keep \
    it away from the machines of the cluster, or throw it away.\n\n\
    For development and tests: there is no revocation. Exits with 1, and makes nothing, if there is such \
    a file in the folder already.")]
pub struct CertsArgs {
    /// The folder for the files; it is made if it is missing.
    pub folder: PathBuf,
    /// The cluster's name: `cluster.name` of the configuration.
    #[arg(long, value_name = "NAME", default_value_t = ClusterSettings::default().name)]
    pub cluster: String,
    /// A node, by its name; may be repeated. Without any process: one node, `node`, and one gateway, `gateway`.
    #[arg(long = "node", value_name = "NAME")]
    pub nodes: Vec<String>,
    /// A process that is only a gateway, by its name; may be repeated.
    #[arg(long = "gateway", value_name = "NAME")]
    pub gateways: Vec<String>,
    /// Use the authority that is in the folder already.
    #[arg(long)]
    pub more: bool,
    /// A host, by name or address, on which processes of the cluster run; may be repeated.
    #[arg(long = "name", value_name = "HOST")]
    pub names: Vec<String>,
    /// For how long they hold.
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3_650))]
    pub days: u32,
    /// Print one JSON object instead.
    #[arg(long)]
    pub json: bool,
}

/// Runs `purview certs` to its end.
///
/// # Errors
/// What cannot be made; no file was left behind then.
pub fn run_certs(args: &CertsArgs) -> anyhow::Result<u8> {
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut names: Vec<String> = HERE.map(String::from).into();
    for name in std::iter::once(machine).filter(|name| !name.is_empty()).chain(args.names.clone()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let nodes = args.nodes.iter().map(|name| (ProcessRole::Node, name.clone()));
    let gateways = args.gateways.iter().map(|name| (ProcessRole::Gateway, name.clone()));
    let mut processes: Vec<_> = nodes.chain(gateways).collect();
    if processes.is_empty() {
        processes.extend(one_of_each());
    }
    let (cluster, days) = (&*args.cluster, args.days);
    let order = Order { cluster, processes: &processes, hosts: &names, days };
    let made = match args.more {
        true => make_more(&args.folder, &order)?,
        false => make_all(&args.folder, &order)?,
    };
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", told(&names, &made))?,
        false => out.write_all(text(args, &names, &processes[0].1, &made).as_bytes())?,
    }
    out.flush()?;
    Ok(0)
}

fn told(names: &[String], made: &Made) -> serde_json::Value {
    let until = made.until.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let files: Vec<_> = made.files.iter().map(|file| file.display().to_string()).collect();
    json!({ "names": names, "until_unix_s": until, "files": files })
}

/// What was made, and how the first process is configured.
fn text(args: &CertsArgs, names: &[String], process: &str, made: &Made) -> String {
    let mut text = String::new();
    for file in &made.files {
        text += &format!("{}\n", file.display());
    }
    let quoted = |value: &str| toml::Value::String(value.to_owned());
    text += &format!("for {}, {} days\n\n", names.join(", "), args.days);
    let (cluster, node) = (quoted(&args.cluster), quoted(process));
    text += &format!("[cluster]\nname = {cluster}\nnode = {node}\n\n[cluster.tls]\n");
    let keys = [
        ("certificate", format!("{process}.pem")),
        ("key", format!("{process}.key")),
        ("authority", "ca.pem".to_owned()),
    ];
    let folder = std::path::absolute(&args.folder).unwrap_or_else(|_| args.folder.clone());
    for (key, file) in keys {
        let path = toml::Value::String(folder.join(file).display().to_string());
        text += &format!("{key} = {path}\n");
    }
    text
}
