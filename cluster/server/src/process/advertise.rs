//! The address that a process tells its peers to call, where the configuration leaves it to the machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::Uri;

use super::error::ProcessError;
use crate::config::{Advertise, ClusterSettings};

/// The address for peers of a process that listens on `listens`.
///
/// # Errors
/// [`ProcessError::NoAdvertise`]: the machine has no address by which it reaches etcd.
pub(super) async fn advertised(
    cluster: &ClusterSettings,
    listens: SocketAddr,
) -> Result<String, ProcessError> {
    match &cluster.advertise {
        Advertise::Address(address) => return Ok(address.clone()),
        // The configuration refuses an unspecified address here.
        Advertise::Listen => return Ok(listens.to_string()),
        Advertise::Auto if !listens.ip().is_unspecified() => return Ok(listens.to_string()),
        Advertise::Auto => {}
    }
    for endpoint in cluster.etcd.split(',') {
        if let Some(ip) = towards(endpoint.trim(), listens.is_ipv4()).await {
            return Ok(SocketAddr::new(ip, listens.port()).to_string());
        }
    }
    Err(ProcessError::NoAdvertise { listen: listens, etcd: cluster.etcd.clone() })
}

/// The address of this machine from which packets to an etcd are sent; none is sent.
async fn towards(endpoint: &str, only_ipv4: bool) -> Option<IpAddr> {
    let uri: Uri = endpoint.parse().ok()?;
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = uri.port_u16().unwrap_or(2379);
    let all = tokio::net::lookup_host((host.as_str(), port)).await.ok()?;
    for to in all.filter(|to| to.is_ipv4() || !only_ipv4) {
        if let Some(ip) = source(to) {
            return Some(ip);
        }
    }
    None
}

fn source(to: SocketAddr) -> Option<IpAddr> {
    let any = match to {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = std::net::UdpSocket::bind((any, 0)).ok()?;
    socket.connect(to).ok()?;
    let ip = socket.local_addr().ok()?.ip().to_canonical();
    // A link-local address has no meaning on another machine.
    let local = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    (!local && !ip.is_unspecified()).then_some(ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn told(advertise: Advertise, etcd: &str, listens: &str) -> Result<String, String> {
        let cluster = ClusterSettings { advertise, etcd: etcd.into(), ..Default::default() };
        advertised(&cluster, listens.parse().unwrap()).await.map_err(|e| e.to_string())
    }

    #[tokio::test]
    async fn auto_is_the_address_that_reaches_etcd_with_the_port_of_the_listener() {
        let own = "http://127.0.0.1:2379";
        assert_eq!(told(Advertise::Auto, own, "0.0.0.0:7790").await.unwrap(), "127.0.0.1:7790");
        let two = "http://no.such.host.invalid:1, http://127.0.0.1:2379";
        assert_eq!(told(Advertise::Auto, two, "[::]:7790").await.unwrap(), "127.0.0.1:7790");
        assert_eq!(told(Advertise::Auto, own, "10.0.0.3:7790").await.unwrap(), "10.0.0.3:7790");
        let named = Advertise::Address("node-3:1".into());
        assert_eq!(told(named, own, "0.0.0.0:7790").await.unwrap(), "node-3:1");
        assert_eq!(told(Advertise::Listen, own, "10.0.0.3:1").await.unwrap(), "10.0.0.3:1");
    }

    #[tokio::test]
    async fn without_such_an_address_the_error_names_the_key_and_a_value_that_would_be_right() {
        let error = told(Advertise::Auto, "http://no.such.host.invalid:1", "0.0.0.0:7790").await;
        let error = error.unwrap_err();
        assert!(error.contains("cluster.advertise") && error.contains("host:port"), "{error}");
    }
}
