//! Whether anything would leave this machine in plain text.

use std::net::IpAddr;

use http::Uri;
use tokio_postgres::config::Host;

use crate::config::{ClusterSettings, Config};

/// What would be said in plain text beyond this machine: the key of the configuration, and the address.
pub(super) fn leaves(config: &Config) -> Option<(&'static str, String)> {
    let cluster = &config.cluster;
    if cluster.tls.is_some() || cluster.insecure {
        return None;
    }
    let peers = (!cluster.listen.ip().is_loopback()).then(|| cluster.listen.to_string());
    let peers = peers.map(|address| ("cluster.listen", address));
    let etcd = || stores(cluster).map(|host| ("cluster.etcd", host));
    let postgres = || database(cluster).map(|host| ("cluster.postgres", host));
    peers.or_else(etcd).or_else(postgres)
}

/// An etcd on another machine.
fn stores(cluster: &ClusterSettings) -> Option<String> {
    let mut hosts = cluster.etcd.split(',').map(|address| {
        let address = address.trim();
        let host = address.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
        host.unwrap_or_else(|| address.to_owned())
    });
    hosts.find(|host| !is_here(host))
}

/// A PostgreSQL on another machine.
fn database(cluster: &ClusterSettings) -> Option<String> {
    let parsed = cluster.postgres.parse::<tokio_postgres::Config>().ok()?;
    let mut hosts = parsed.get_hosts().iter().filter_map(|host| match host {
        Host::Tcp(host) => Some(host.clone()),
        // A socket of this machine.
        Host::Unix(_) => None,
    });
    hosts.find(|host| !is_here(host))
}

fn is_here(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<&'static str> {
        leaves(&Config::parse(&format!("[cluster]\n{text}\n")).unwrap()).map(|(key, _)| key)
    }

    #[test]
    fn plain_text_stays_on_this_machine_unless_told_otherwise() {
        for text in [
            "",
            "listen = \"[::1]:7790\"",
            "etcd = \"http://localhost:1, http://[::1]:2\"",
            "postgres = \"postgres://u@127.0.0.1/d\"",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
        for (text, key) in [
            ("listen = \"0.0.0.0:7790\"\nadvertise = \"auto\"", "cluster.listen"),
            ("listen = \"10.0.0.3:7790\"", "cluster.listen"),
            ("etcd = \"http://127.0.0.1:1, http://10.0.0.1:2379\"", "cluster.etcd"),
            ("etcd = \"http://etcd.internal:2379\"", "cluster.etcd"),
            ("postgres = \"postgres://u@db.internal/d\"", "cluster.postgres"),
            ("postgres = \"host=10.0.0.2 user=u\"", "cluster.postgres"),
        ] {
            assert_eq!(told(text), Some(key), "{text}");
            assert_eq!(told(&format!("{text}\ninsecure = true")), None, "{text}");
        }
    }
}
