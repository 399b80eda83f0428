//! Which process of which cluster a certificate names: a URI among its alternative names,
//! `purview://CLUSTER/node/NAME` or `purview://CLUSTER/gateway/NAME`.

use std::fmt;

use tokio_rustls::rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use super::Untrusted;

/// The role of a process in its certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessRole {
    /// The process may own regions and hold sessions.
    Node,
    /// The process may only hold sessions.
    Gateway,
}

impl ProcessRole {
    pub fn name(self) -> &'static str {
        match self {
            ProcessRole::Node => "node",
            ProcessRole::Gateway => "gateway",
        }
    }
}

/// A process as its certificate names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub cluster: String,
    /// What the process may be.
    pub role: ProcessRole,
    /// Its name: `cluster.node` of the configuration.
    pub name: String,
}

const SCHEME: &str = "purview://";

impl fmt::Display for Named {
    /// The URI. Whatever is neither letter, digit nor one of `-._~` is written by percent signs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Named { cluster, role, name } = self;
        write!(f, "{SCHEME}{}/{}/{}", encoded(cluster), role.name(), encoded(name))
    }
}

impl Named {
    /// The process that a certificate chain names, of which the first certificate is its own.
    pub(crate) fn of(chain: Option<&[CertificateDer<'_>]>) -> Result<Named, Untrusted> {
        let own = chain.and_then(<[_]>::first).ok_or(Untrusted::NoCertificate)?;
        let own = EndEntityCert::try_from(own);
        let own = own.map_err(|error| Untrusted::Certificate(error.to_string()))?;
        let mut named = own.valid_uri_names().filter_map(Named::read);
        match (named.next(), named.next()) {
            (Some(named), None) => Ok(named),
            // A certificate with two names could speak for either process.
            _ => Err(Untrusted::Nameless),
        }
    }

    fn read(uri: &str) -> Option<Named> {
        let mut parts = uri.strip_prefix(SCHEME)?.split('/');
        let (cluster, role, name) = (parts.next()?, parts.next()?, parts.next()?);
        let all = [ProcessRole::Node, ProcessRole::Gateway];
        let role = all.into_iter().find(|known| known.name() == role)?;
        let (cluster, name) = (decoded(cluster)?, decoded(name)?);
        let whole = parts.next().is_none() && !cluster.is_empty() && !name.is_empty();
        whole.then_some(Named { cluster, role, name })
    }
}

fn encoded(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let one = |b: u8| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    text.bytes().map(one).collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match first {
            b'%' => {
                let digits = std::str::from_utf8(after.get(..2)?).ok()?;
                let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
                (is_hex.then(|| u8::from_str_radix(digits, 16).ok()).flatten()?, &after[2..])
            }
            byte => (*byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_and_read_back_whatever_it_is() {
        for (cluster, name) in [("purview", "node-1"), ("a b/c", "host:7790"), ("ü%", "x/y?z#")] {
            for role in [ProcessRole::Node, ProcessRole::Gateway] {
                let named = Named { cluster: cluster.into(), role, name: name.into() };
                assert!(named.to_string().is_ascii());
                assert_eq!(Named::read(&named.to_string()), Some(named));
            }
        }
        let plain = Named::read("purview://c/gateway/host%3A7790").unwrap();
        assert_eq!(plain.to_string(), "purview://c/gateway/host%3A7790");
    }

    #[test]
    fn what_is_no_name_of_a_process_is_none() {
        for uri in [
            "",
            "https://c/node/a",
            "purview://c/node",
            "purview://c/node/",
            "purview:///node/a",
            "purview://c/etcd/a",
            "purview://c/node/a/b",
            "purview://c/node/%4",
            "purview://c/node/%+1",
            "purview://c/node/%FF",
        ] {
            assert_eq!(Named::read(uri), None, "{uri}");
        }
        assert_eq!(Named::of(None), Err(Untrusted::NoCertificate));
    }
}
