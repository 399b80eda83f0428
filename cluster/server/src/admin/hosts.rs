//! The host names of the console. A foreign web page can make a browser on this network call any
//! address under a name of its own that points there (DNS rebinding). The `Host` header of such a
//! call has the foreign name, so the console refuses unknown names. An IP address cannot be
//! rebound, so all IP addresses are accepted.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};

use super::error::ApiError;

/// The host names of the console. Clones share them.
#[derive(Debug, Clone)]
pub struct Hosts(Arc<[String]>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misdirected {
    #[error("the request must have exactly one valid Host header")]
    NoHost,
    #[error("this console has no name {0:?}")]
    Unknown(String),
}

impl Misdirected {
    /// The answer; `section` of the configuration has the host names.
    pub fn refusal(&self, section: &str) -> ApiError {
        let (status, expected) = match self {
            Misdirected::NoHost => (StatusCode::BAD_REQUEST, "one Host header".into()),
            Misdirected::Unknown(_) => (
                StatusCode::MISDIRECTED_REQUEST,
                format!("an IP address, localhost, or a name in [{section}] hosts"),
            ),
        };
        ApiError::new(status, self.to_string(), expected)
    }
}

impl Hosts {
    /// `localhost`, every IP address, and `names`.
    pub fn new(names: &[String]) -> Hosts {
        Hosts(names.iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Misdirected> {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(Misdirected::NoHost);
        };
        let host = Authority::try_from(host.as_bytes()).map_err(|_| Misdirected::NoHost)?;
        // The request line may name a host, too.
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
    fn addresses_localhost_and_configured_names_are_accepted() {
        for host in ["localhost", "LOCALHOST:7780", "127.0.0.1:7780", "[::1]:7780", "10.0.0.7"] {
            assert_eq!(check("/", &[host]), Ok(()), "{host}");
        }
        for host in ["console.internal:80", "console.internal.", "CONSOLE.internal"] {
            assert_eq!(check("http://localhost/", &[host]), Ok(()), "{host}");
        }
    }

    #[test]
    fn any_other_name_is_refused_in_header_and_request_line() {
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
