//! Which authorities a client believes when a server shows its certificate (`wss://`, `tls://`).
//!
//! Read once: the machine's own authorities are read when the first connection needs them, and are shared by all.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Why there is nothing to judge a server's certificate by.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// The machine has no certificates of authorities.
    #[error(
        "this machine has no certificates of authorities that could be read ({0}); name a file with them"
    )]
    NoPlatform(String),
    /// The file cannot be read.
    #[error("the authorities' file {path:?} cannot be read: {cause}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: String,
    },
    /// What was given are no certificates.
    #[error("no certificates of authorities (PEM): {0}")]
    Unfit(String),
}

/// The authorities whose certificates are believed. Cheap to clone.
#[derive(Clone)]
pub struct Trust(Roots);

#[derive(Clone)]
enum Roots {
    Platform,
    Own(Arc<ClientConfig>),
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Roots::Platform => "Trust(platform)",
            Roots::Own(_) => "Trust(own)",
        })
    }
}

impl Default for Trust {
    fn default() -> Self {
        Trust::platform()
    }
}

impl Trust {
    /// Those of the machine; the variables `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
    pub fn platform() -> Trust {
        Trust(Roots::Platform)
    }

    /// Those in this text (PEM) alone.
    ///
    /// # Errors
    /// [`TrustError::Unfit`].
    pub fn only(pem: &[u8]) -> Result<Trust, TrustError> {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let all = all.map_err(|e| TrustError::Unfit(e.to_string()))?;
        let mut roots = RootCertStore::empty();
        for certificate in all {
            roots.add(certificate).map_err(|e| TrustError::Unfit(e.to_string()))?;
        }
        match roots.is_empty() {
            true => Err(TrustError::Unfit("there is none".into())),
            false => Ok(Trust(Roots::Own(config(roots).map_err(TrustError::Unfit)?))),
        }
    }

    /// Those in this file (PEM) alone.
    ///
    /// # Errors
    /// The file cannot be read or holds no certificates.
    pub fn file(path: &Path) -> Result<Trust, TrustError> {
        let read = std::fs::read(path);
        let pem =
            read.map_err(|e| TrustError::Unreadable { path: path.into(), cause: e.to_string() });
        Trust::only(&pem?)
    }

    /// The same for rustls, without a certificate of the client's own.
    ///
    /// # Errors
    /// [`TrustError::NoPlatform`].
    pub fn config(&self) -> Result<Arc<ClientConfig>, TrustError> {
        static PLATFORM: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
        match &self.0 {
            Roots::Own(config) => Ok(config.clone()),
            Roots::Platform => {
                PLATFORM.get_or_init(platform).clone().map_err(TrustError::NoPlatform)
            }
        }
    }
}

/// The machine's authorities, but for those that rustls cannot read.
fn platform() -> Result<Arc<ClientConfig>, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (_, unread) = roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let causes: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(match causes.is_empty() {
            true => format!("{unread} of another kind"),
            false => causes.join("; "),
        });
    }
    config(roots)
}

fn config(roots: RootCertStore) -> Result<Arc<ClientConfig>, String> {
    let versions = rustls::DEFAULT_VERSIONS;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_no_certificates_is_refused() {
        for text in ["", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
        {
            assert!(matches!(Trust::only(text.as_bytes()), Err(TrustError::Unfit(_))), "{text:?}");
        }
        let none = Trust::file(Path::new("/no/such.pem")).unwrap_err();
        assert!(matches!(none, TrustError::Unreadable { .. }), "{none}");
    }
}
