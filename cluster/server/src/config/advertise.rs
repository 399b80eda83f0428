//! `cluster.advertise`: the address under which other processes call this one.
//!
//! An unspecified address (`0.0.0.0`, `[::]`) must never get past this module: each process that reads it would call
//! itself.

use std::fmt;
use std::net::IpAddr;

use super::form::{Form, Rule};
use super::read::text_of;
use super::tree::Node;

/// The legal values of the key.
pub(super) const ADVERTISE: Rule<'static> = (
    "host:port that peers can call, such as \"node-3.internal:7790\" or \"[2001:db8::3]:7790\", or \"auto\"",
    Form::Matching("^(?:auto|.+:[0-9]+)?$"),
);

/// What a process tells its peers to call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Advertise {
    /// The address on which it listens.
    #[default]
    Listen,
    /// The address of the interface that reaches etcd.
    Auto,
    /// Host and port, as peers call them.
    Address(String),
}

impl fmt::Display for Advertise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Advertise::Listen => "",
            Advertise::Auto => "auto",
            Advertise::Address(address) => address,
        })
    }
}

pub(super) fn read(node: &Node) -> Result<Advertise, String> {
    let wrong = || format!("must be {}", ADVERTISE.0);
    match text_of(node).ok_or_else(wrong)? {
        "" => Ok(Advertise::Listen),
        "auto" => Ok(Advertise::Auto),
        address => host_and_port(address).map(Advertise::Address),
    }
}

/// Host and port. An IPv4 address may stand in brackets, so that one template serves both families.
fn host_and_port(address: &str) -> Result<String, String> {
    let wrong = || format!("must be {}", ADVERTISE.0);
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = match (bare.unwrap_or(host).parse::<IpAddr>(), bare) {
        (Ok(ip), _) if ip.is_unspecified() => {
            return Err(format!(
                "is every address of a machine, and peers that call it reach themselves; write {}",
                ADVERTISE.0
            ));
        }
        (Ok(IpAddr::V4(ip)), _) => ip.to_string(),
        (Ok(IpAddr::V6(ip)), Some(_)) => format!("[{ip}]"),
        (Err(_), None) if is_host(host) => host.to_owned(),
        _ => return Err(wrong()),
    };
    Ok(format!("{host}:{port}"))
}

fn is_host(host: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    !host.is_empty() && host.bytes().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_that_peers_can_call() {
        for (text, address) in [
            ("node-3.internal:7790", "node-3.internal:7790"),
            ("10.0.0.3:7790", "10.0.0.3:7790"),
            ("[10.0.0.3]:7790", "10.0.0.3:7790"),
            ("[2001:db8::3]:7790", "[2001:db8::3]:7790"),
        ] {
            assert_eq!(host_and_port(text).as_deref(), Ok(address), "{text}");
        }
        for text in ["0.0.0.0:7790", "[0.0.0.0]:7790", "[::]:7790"] {
            assert!(host_and_port(text).unwrap_err().contains("every address"), "{text}");
        }
        for text in [
            "",
            "node",
            "node:",
            "node:0",
            "node:x",
            ":7790",
            "2001:db8::3:7790",
            "[node]:1",
            "a b:1",
        ] {
            assert!(host_and_port(text).unwrap_err().starts_with("must be"), "{text}");
        }
    }
}
