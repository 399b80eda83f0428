//! What one source address may have of a listener: plain options. The configuration fills those of
//! the gateway.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use ipnet::IpNet;

/// What one source address may have. IPv6 addresses count by their first 64 bits, and by
/// their first 48 bits with 16 times these numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressLimits {
    pub connections: u32,
    /// Of these, connections that have not said a valid hello.
    pub handshakes: u32,
    /// Tokens within a minute that do not hold; then the address is blocked.
    pub failed_tokens: u32,
    pub block: Duration,
    pub exempt: Vec<IpNet>,
}

impl Default for AddressLimits {
    fn default() -> Self {
        let loopback = [
            IpNet::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8),
            IpNet::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
        ];
        AddressLimits {
            connections: 1_000,
            handshakes: 100,
            failed_tokens: 30,
            block: Duration::from_secs(60),
            exempt: loopback.into_iter().flatten().collect(),
        }
    }
}
