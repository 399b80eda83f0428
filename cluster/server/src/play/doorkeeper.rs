//! Limits how many tokens one address is given within a minute.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::admission::Source;

/// For how long a token counts.
const MINUTE: Duration = Duration::from_secs(60);

/// Most addresses that are known at the same time; further ones wait.
const ADDRESSES_MAX: usize = 10_000;

#[derive(Debug)]
pub struct Doorkeeper {
    limit: u32,
    given: Mutex<BTreeMap<Source, (Instant, u32)>>,
}

impl Doorkeeper {
    /// At most `limit` tokens per address and minute.
    pub fn new(limit: u32) -> Doorkeeper {
        Doorkeeper { limit, given: Mutex::default() }
    }

    /// Counts a token for an address.
    ///
    /// # Errors
    /// The address has had its tokens, or too many addresses are known: how long to wait.
    pub fn admit(&self, from: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut given = self.given.lock();
        if given.len() >= ADDRESSES_MAX {
            given.retain(|_, (since, _)| now.duration_since(*since) < MINUTE);
        }
        let (full, source) = (given.len() >= ADDRESSES_MAX, Source::of(Some(from)));
        match given.get_mut(&source) {
            None if full => return Err(MINUTE),
            None => drop(given.insert(source, (now, 1))),
            Some((since, count)) if now.duration_since(*since) >= MINUTE => {
                (*since, *count) = (now, 1);
            }
            Some((since, count)) if *count >= self.limit => {
                return Err(MINUTE.saturating_sub(now.duration_since(*since)));
            }
            Some((_, count)) => *count += 1,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_given_its_tokens_and_more_of_them_a_minute_later() {
        let (doorkeeper, now) = (Doorkeeper::new(2), Instant::now());
        let ask =
            |addr: &str, s| doorkeeper.admit(addr.parse().unwrap(), now + Duration::from_secs(s));
        assert_eq!([ask("192.0.2.1", 0), ask("192.0.2.1", 1)], [Ok(()), Ok(())]);
        assert_eq!(ask("192.0.2.1", 20), Err(Duration::from_secs(40)));
        assert_eq!(ask("192.0.2.2", 20), Ok(()));
        assert_eq!(ask("192.0.2.1", 60), Ok(()));
    }

    #[test]
    fn the_addresses_of_one_ipv6_network_count_together() {
        let (doorkeeper, now) = (Doorkeeper::new(1), Instant::now());
        let ask = |addr: &str| doorkeeper.admit(addr.parse().unwrap(), now);
        assert_eq!((ask("2001:db8:0:1::1"), ask("2001:db8:0:2::1")), (Ok(()), Ok(())));
        assert!(ask("2001:db8:0:1:9::9").is_err());
        assert_eq!(ask("::ffff:192.0.2.1"), Ok(()));
        assert!(ask("192.0.2.1").is_err());
    }

    #[test]
    fn the_addresses_that_are_known_are_bounded() {
        let (doorkeeper, now) = (Doorkeeper::new(1), Instant::now());
        let ask = |n: usize, s| {
            let addr = IpAddr::from((n as u32).to_be_bytes());
            doorkeeper.admit(addr, now + Duration::from_secs(s))
        };
        assert!((0..ADDRESSES_MAX).all(|n| ask(n, 0).is_ok()));
        assert_eq!(ask(ADDRESSES_MAX, 1), Err(MINUTE));
        assert_eq!(ask(ADDRESSES_MAX, 60), Ok(()));
    }
}
