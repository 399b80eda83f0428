//! Where certificates are: plain options, filled by the configuration.

use std::path::PathBuf;

/// Where the certificate of a listener is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateSettings {
    /// The certificate, with those between it and its authority.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsSettings {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The authorities whose certificates are let in.
    pub authority: PathBuf,
}
