//! The limits of one source address at a gateway, and lists of addresses and origins.

use std::net::IpAddr;

use ipnet::IpNet;

use super::keys::{self, Key};
use super::read::{Section, text_of, time};
use super::tree::Item;
use crate::admission::AddressLimits;

pub(super) fn address(gateway: &mut Section<'_>) -> AddressLimits {
    let mut s = gateway.section(keys::LIMITS.name);
    let d = AddressLimits::default();
    let limits = AddressLimits {
        connections: s.count(&keys::CONNECTIONS, d.connections.into()) as u32,
        handshakes: s.count(&keys::HANDSHAKES, d.handshakes.into()) as u32,
        failed_tokens: s.count(&keys::FAILED_TOKENS, d.failed_tokens.into()) as u32,
        block: time(&mut s, &keys::BLOCK, d.block),
        exempt: networks(&mut s, &keys::EXEMPT, d.exempt),
    };
    gateway.close(s);
    limits
}

/// A list of addresses and networks.
pub(super) fn networks(s: &mut Section<'_>, key: &Key, default: Vec<IpNet>) -> Vec<IpNet> {
    list(s, key, default, |text| {
        let one = text.parse::<IpAddr>().map(IpNet::from);
        one.ok().or_else(|| text.parse().ok())
    })
}

/// A list of origins as browsers write them: scheme, host and, unless it is the scheme's default,
/// port.
pub(super) fn origins(s: &mut Section<'_>, key: &Key) -> Vec<String> {
    list(s, key, Vec::new(), |text| {
        let (scheme, host) = text.split_once("://")?;
        let is_origin = matches!(scheme, "http" | "https")
            && !host.is_empty()
            && !host.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '*'));
        is_origin.then(|| text.to_owned())
    })
}

fn list<T>(
    s: &mut Section<'_>,
    key: &Key,
    default: Vec<T>,
    parse: impl Fn(&str) -> Option<T>,
) -> Vec<T> {
    let Some(node) = s.get(key) else { return default };
    let found = match &node.item {
        Item::Array(list) => list.iter().map(|n| text_of(n).and_then(&parse)).collect(),
        _ => None,
    };
    found.unwrap_or_else(|| {
        s.wrong(key.name, node, format!("must be {}", key.form.rule()));
        default
    })
}
