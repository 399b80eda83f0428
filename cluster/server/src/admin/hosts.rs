//! By which names the console may be called. A page of another site can make a browser on this network call any
//! address, under a name of that site that it lets point there (DNS rebinding). The header `Host` tells
//! such a call: it carries that site's name. An IP address cannot be rebound, so all of them are let in.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};

/// The names under which the console answers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Hosts(Arc<[String]>);

/// Why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misdirected {
    /// There is no header `Host`, or more than one, or it is no host.
    #[error("the request names no host, or not exactly one")]
    NoHost,
    /// It names another host.
    #[error("this console is not called {0:?}")]
    Unknown(String),
}

impl Hosts {
    /// `localhost`, every IP address, and these names.
    pub fn new(names: &[String]) -> Hosts {
        Hosts(names.iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    /// Whether a request is for this console.
    ///
    /// # Errors
    /// [`Misdirected`].
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Misdirected> {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(Misdirected::NoHost);
        };
        let host = Authority::try_from(host.as_bytes()).map_err(|_| Misdirected::NoHost)?;
        // A request may name a host in its first line, too.
        uri.authority().into_iter().chain([&host]).try_for_each(|host| self.check_one(host.host()))
    }

    fn check_one(&self, host: &str) -> Result<(), Misdirected> {
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let known = bare.parse::<IpAddr>().is_ok() || name == "localhost" || self.0.contains(&name);
        if known { Ok(()) } else { Err(Misdirected::Unknown(host.to_owned())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, hosts: &[&str]) -> Result<(), Misdirected> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, host.parse().unwrap());
        }
        let names = ["Console.Internal".to_owned()];
        Hosts::new(&names).check(&line.parse().unwrap(), &headers)
    }

    #[test]
    fn addresses_loopback_and_configured_names_are_let_in() {
        for host in ["localhost", "LOCALHOST:7780", "127.0.0.1:7780", "[::1]:7780", "10.0.0.7"] {
            assert_eq!(check("/", &[host]), Ok(()), "{host}");
        }
        for host in ["console.internal:80", "console.internal.", "CONSOLE.internal"] {
            assert_eq!(check("http://localhost/", &[host]), Ok(()), "{host}");
        }
    }

    #[test]
    fn any_other_name_is_refused_wherever_it_stands() {
        let unknown = |name: &str| Err(Misdirected::Unknown(name.into()));
        for name in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "internal"]
        {
            assert_eq!(check("/", &[name]), unknown(name), "{name}");
        }
        assert_eq!(check("http://evil.example/", &["localhost"]), unknown("evil.example"));
        for none in [&[][..], &["localhost", "localhost"], &[""], &["a b"]] {
            assert_eq!(check("/", none), Err(Misdirected::NoHost), "{none:?}");
        }
    }
}
