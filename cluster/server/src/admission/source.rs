//! The source of a connection, as limits count it: an address, and the network around it.

use std::net::IpAddr;

use ipnet::IpNet;

/// How many times as much as one address a whole IPv6 network of 48 bits may have.
pub(super) const NETWORK_FACTOR: u32 = 16;

/// Bits of an IPv6 address that count as one address: one customer has so many.
const ADDRESS_BITS: u8 = 64;

/// Bits of the IPv6 network that a site or a hosting provider's customer gets: it has 65,536
/// addresses.
const NETWORK_BITS: u8 = 48;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// A simulated client.
    Nowhere,
    /// An IPv4 address, or an IPv6 network of [`ADDRESS_BITS`] or [`NETWORK_BITS`].
    Net(IpNet),
}

impl Source {
    /// The address of a connection, as limits count it.
    pub(crate) fn of(addr: Option<IpAddr>) -> Source {
        match addr.map(|addr| IpNet::from(addr.to_canonical())) {
            None => Source::Nowhere,
            Some(net @ IpNet::V4(_)) => Source::Net(net),
            Some(net) => Source::Net(cut(net, ADDRESS_BITS)),
        }
    }

    /// The network around the address; that of an IPv4 address is the address itself.
    pub(super) fn network(self) -> Source {
        match self {
            Source::Net(net @ IpNet::V6(_)) => Source::Net(cut(net, NETWORK_BITS)),
            narrow => narrow,
        }
    }

    /// Whether the source is in one of these networks. A network narrower than one counted address
    /// stands for the whole counted address.
    pub(super) fn is_in(self, nets: &[IpNet]) -> bool {
        match self {
            Source::Nowhere => true,
            Source::Net(own) => {
                nets.iter().any(|net| net.contains(&own) || Source::of(Some(net.network())) == self)
            }
        }
    }
}

fn cut(net: IpNet, bits: u8) -> IpNet {
    // 48 and 64 are valid lengths of IPv6 prefixes.
    IpNet::new(net.addr(), bits).map_or(net, |net| net.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::AddressLimits;

    fn of(text: &str) -> Source {
        Source::of(Some(text.parse().unwrap()))
    }

    #[test]
    fn an_ipv6_network_of_one_customer_counts_as_one_address() {
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("2001:db8:1:2::1").network(), of("2001:db8:1:3::1").network());
        assert_ne!(of("2001:db8:1:2::1").network(), of("2001:db8:2:2::1").network());
        assert_eq!(of("10.0.0.1"), of("::ffff:10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert_eq!(of("10.0.0.1").network(), of("10.0.0.1"));
    }

    #[test]
    fn loopback_is_exempt_by_default() {
        let exempt = |addr| of(addr).is_in(&AddressLimits::default().exempt);
        assert!(exempt("127.0.0.9") && exempt("::1"));
        assert!(!exempt("10.0.0.1") && !exempt("2001:db8::1"));
    }
}
