//! `purview certs`: creates a certificate authority and certificates for development.

use std::io::Write;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use clap::Args;
use serde_json::json;

use purview_server::config::ClusterSettings;
use purview_server::tls::ProcessRole;
use purview_server::tls::make::{Made, Order, make_all, make_more, one_of_each};

/// The loopback names of this machine.
const HERE: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// `purview certs`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview certs certs\n  \
    purview certs certs --node node-1 --node node-2 --gateway gateway-1 --name '*.internal'\n  \
    purview certs certs --more --node node-3 --name 10.0.0.3\n\n\
    Creates an authority (ca.pem, ca.key) and, signed by it, a certificate (.pem) and a key (.key) for \
    etcd, for postgres, and for each --node and --gateway. Each certificate is valid for localhost, this machine \
    and every --name. The name of a process (cluster.node) must be that in its certificate. A process with the \
    certificate of a gateway cannot own regions. --more adds processes to an existing authority. Only the owner \
    may read the files. ca.key can sign further certificates that every process accepts: keep it away from the \
    machines of the cluster, or delete it.\n\n\
    For development and tests: there is no revocation.\n\n\
    Exit codes: 0 done, 1 failed (for example because a file exists; then nothing is written), 2 invalid command line.")]
pub struct CertsArgs {
    /// The folder for the files; created if it does not exist.
    pub folder: PathBuf,
    /// The name of the cluster: `cluster.name` of the configuration.
    #[arg(long, value_name = "NAME", default_value_t = ClusterSettings::default().name)]
    pub cluster: String,
    /// The name of a node; may be repeated. Without --node and --gateway: one node, `node`, and one gateway, `gateway`.
    #[arg(long = "node", value_name = "NAME")]
    pub nodes: Vec<String>,
    /// The name of a process that is only a gateway; may be repeated.
    #[arg(long = "gateway", value_name = "NAME")]
    pub gateways: Vec<String>,
    /// Use the existing authority in the folder.
    #[arg(long)]
    pub more: bool,
    /// The name or address of a host of the cluster; may be repeated.
    #[arg(long = "name", value_name = "HOST")]
    pub names: Vec<String>,
    /// How long the certificates are valid, days.
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3_650))]
    pub days: u32,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Runs `purview certs`.
///
/// # Errors
/// A file exists or cannot be written; then no new file is left.
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

/// The files, and the configuration of the first process.
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
