//! The certificate authorities by which a client verifies a server (`wss://`, `tls://`).
//!
//! The machine's authorities are read when the first connection needs them, and are then shared. A
//! connection must never skip verification.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Why there are no certificate authorities to verify a server with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// The machine has no readable certificates of authorities.
    #[error("no readable CA certificates on this machine ({0}); name a file with CA certificates")]
    NoPlatform(String),
    /// The file cannot be read.
    #[error("the CA certificate file {path:?} cannot be read: {cause}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: String,
    },
    /// The text or file holds no usable certificates.
    #[error("no CA certificates (PEM): {0}")]
    Unfit(String),
}

/// A set of trusted certificate authorities. Cheap to clone.
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
    /// The machine's authorities; the variables `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
    pub fn platform() -> Trust {
        Trust(Roots::Platform)
    }

    /// Only the authorities in this text (PEM).
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
            true => Err(TrustError::Unfit("the text holds no certificate".into())),
            false => Ok(Trust(Roots::Own(config(roots).map_err(TrustError::Unfit)?))),
        }
    }

    /// Only the authorities in this file (PEM).
    ///
    /// # Errors
    /// The file cannot be read or holds no certificates.
    pub fn file(path: &Path) -> Result<Trust, TrustError> {
        let read = std::fs::read(path);
        let pem =
            read.map_err(|e| TrustError::Unreadable { path: path.into(), cause: e.to_string() });
        Trust::only(&pem?)
    }

    /// The rustls configuration, without a client certificate.
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

/// The machine's authorities, except those that rustls cannot parse.
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
    fn a_text_without_certificates_is_refused() {
        for text in ["", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
        {
            assert!(matches!(Trust::only(text.as_bytes()), Err(TrustError::Unfit(_))), "{text:?}");
        }
        let none = Trust::file(Path::new("/no/such.pem")).unwrap_err();
        assert!(matches!(none, TrustError::Unreadable { .. }), "{none}");
    }
}
