//! `purview certs`: an authority and certificates to develop with.

use std::io::Write;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use clap::Args;
use serde_json::json;

use crate::tls::make::{Made, make};

/// Names of this machine alone.
const HERE: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// `purview certs`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview certs certs\n  \
    purview certs certs --name node-1.internal --name 10.0.0.3\n  \
    purview certs certs --name '*.internal' --days 30 --json\n\n\
    Makes an authority (ca.pem, ca.key) and, signed by it, a certificate (.pem) and a key (.key) for \
    node, gateway, etcd and postgres, all of them for localhost, this machine and every --name. Only \
    the owner may read the files. ca.key can make more certificates that every process lets in: keep it \
    away from the machines of the cluster, or throw it away.\n\n\
    For development and tests: there is no revocation. Exits with 1, and makes nothing, if there is such \
    a file in the folder already.")]
pub struct CertsArgs {
    /// The folder for the files; it is made if it is missing.
    pub folder: PathBuf,
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
    let made = make(&args.folder, &names, args.days)?;
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", told(&names, &made))?,
        false => out.write_all(text(args, &names, &made).as_bytes())?,
    }
    out.flush()?;
    Ok(0)
}

fn told(names: &[String], made: &Made) -> serde_json::Value {
    let until = made.until.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let files: Vec<_> = made.files.iter().map(|file| file.display().to_string()).collect();
    json!({ "names": names, "until_unix_s": until, "files": files })
}

fn text(args: &CertsArgs, names: &[String], made: &Made) -> String {
    let mut text = String::new();
    for file in &made.files {
        text += &format!("{}\n", file.display());
    }
    text += &format!("for {}, {} days\n\n[cluster.tls]\n", names.join(", "), args.days);
    let keys = [("certificate", "node.pem"), ("key", "node.key"), ("authority", "ca.pem")];
    let folder = std::path::absolute(&args.folder).unwrap_or_else(|_| args.folder.clone());
    for (key, file) in keys {
        let path = toml::Value::String(folder.join(file).display().to_string());
        text += &format!("{key} = {path}\n");
    }
    text
}
