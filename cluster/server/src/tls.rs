//! TLS with certificates on both sides: between processes, and towards etcd and PostgreSQL.
//!
//! The configured files are read at the start and again when they change. Both sides of a
//! connection show a certificate of the same authority, and the called side's certificate names the
//! called host, unless a process is called by an IP address: then its name in the certificate
//! ([`Named`]) proves it. Any other connection must be refused with an [`Untrusted`] before any data is
//! exchanged. The certificate of a process also names that process ([`Named`]).
//!
//! One stack for all: rustls with ring, which tonic brings, too.

mod any_host;
mod files;
pub mod make;
mod named;
mod reload;
pub mod server;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use any_host::AnyHost;
use reload::Reloading;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig, version};

pub use files::{CertificateSettings, TlsSettings};
pub use named::{Named, ProcessRole};

/// The ALPN protocol between processes.
const HTTP2: &[u8] = b"h2";

/// Why certificates are unusable. The process does not start.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{key} = {path:?}: cannot be read: {source}")]
    Unreadable { key: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{key} = {path:?}: {cause}; expected {want}, as `purview certs` makes them")]
    Unfit { key: &'static str, path: PathBuf, cause: String, want: &'static str },
    /// The system gives no thread that follows changes of the files.
    #[error("cannot start the thread that follows changes of certificates: {0}")]
    Thread(std::io::Error),
    /// Not as many files were read as there are.
    #[error("the certificate files were not read completely")]
    Ended,
}

/// Why the other side of a connection is refused. No data was exchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    #[error("the connection is plain, not TLS")]
    Plain,
    #[error("the other side shows no certificate")]
    NoCertificate,
    #[error("the other side's certificate is refused: {0}")]
    Certificate(String),
    #[error(
        "the other side's certificate names no process: give it one alternative name such as \
         purview://CLUSTER/node/NAME or purview://CLUSTER/gateway/NAME"
    )]
    Nameless,
    #[error("the other side refuses this side's certificate or protocol: {0}")]
    RefusesUs(String),
    #[error("the TLS handshake failed: {0}")]
    Handshake(String),
    #[error("the TLS handshake took too long")]
    Slow,
    #[error("{0:?} is not a host name that a certificate can have")]
    Name(String),
}

impl From<&rustls::Error> for Untrusted {
    fn from(error: &rustls::Error) -> Untrusted {
        match error {
            rustls::Error::InvalidMessage(_) => Untrusted::Plain,
            rustls::Error::NoCertificatesPresented => Untrusted::NoCertificate,
            rustls::Error::InvalidCertificate(why) => Untrusted::Certificate(why.to_string()),
            rustls::Error::AlertReceived(alert) => Untrusted::RefusesUs(format!("{alert:?}")),
            other => Untrusted::Handshake(other.to_string()),
        }
    }
}

impl From<&std::io::Error> for Untrusted {
    fn from(error: &std::io::Error) -> Untrusted {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        inner.map_or_else(|| Untrusted::Handshake(error.to_string()), Untrusted::from)
    }
}

impl Untrusted {
    /// The TLS failure somewhere below an error; `None`: another failure.
    pub fn below(error: &(dyn std::error::Error + 'static)) -> Option<Untrusted> {
        let mut at = Some(error);
        while let Some(error) = at {
            if let Some(tls) = error.downcast_ref::<rustls::Error>() {
                return Some(tls.into());
            }
            // An error inside an `io::Error` is not among its sources.
            let carried = error.downcast_ref::<std::io::Error>().and_then(|e| e.get_ref());
            if let Some(tls) = carried.and_then(|e| e.downcast_ref::<rustls::Error>()) {
                return Some(tls.into());
            }
            at = carried.and_then(|e| e.source()).or_else(|| error.source());
        }
        None
    }
}

/// The certificate of this process and its trusted authority. Clones share them.
#[derive(Clone)]
pub struct Tls(Arc<Reloading<Inner>>);

struct Inner {
    serve: Arc<ServerConfig>,
    call: Arc<ClientConfig>,
    call_by_ip: Arc<ClientConfig>,
    database: Arc<ClientConfig>,
    etcd: Arc<ClientConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(...)")
    }
}

struct Files {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: RootCertStore,
}

fn unfit(key: &'static str, path: &Path, cause: String, want: &'static str) -> TlsError {
    TlsError::Unfit { key, path: path.into(), cause, want }
}

/// The certificates of a file, at least one.
fn certificates(
    key: &'static str,
    path: &Path,
    text: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unfit = |cause| unfit(key, path, cause, "one or more certificates (PEM)");
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let all = all.map_err(|e| unfit(e.to_string()))?;
    if all.is_empty() { Err(unfit("there is none".into())) } else { Ok(all) }
}

fn private_key(
    key: &'static str,
    path: &Path,
    text: &[u8],
) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(text)
        .map_err(|e| unfit(key, path, e.to_string(), "a private key (PEM)"))
}

/// The configuration keys of the certificate files.
const CERTIFICATE: &str = "cluster.tls.certificate";
const KEY: &str = "cluster.tls.key";
const AUTHORITY: &str = "cluster.tls.authority";

impl Tls {
    /// Reads the configured files and follows their changes.
    pub fn load(settings: &TlsSettings) -> Result<Tls, TlsError> {
        let settings = settings.clone();
        let files = vec![
            (CERTIFICATE, settings.certificate.clone()),
            (KEY, settings.key.clone()),
            (AUTHORITY, settings.authority.clone()),
        ];
        let make = move |contents: &[Vec<u8>]| Inner::new(&settings, contents);
        Ok(Tls(Reloading::start(files, make)?))
    }

    /// The configuration for accepting peers; a certificate is required.
    pub(crate) fn serve(&self) -> Arc<ServerConfig> {
        self.0.current().serve.clone()
    }

    /// The configuration for calling peers by a host name.
    pub(crate) fn call(&self) -> Arc<ClientConfig> {
        self.0.current().call.clone()
    }

    /// The configuration for calling peers by an IP address, which their certificates need not name.
    pub(crate) fn call_by_ip(&self) -> Arc<ClientConfig> {
        self.0.current().call_by_ip.clone()
    }

    pub(crate) fn database(&self) -> Arc<ClientConfig> {
        self.0.current().database.clone()
    }

    pub(crate) fn etcd(&self) -> Arc<ClientConfig> {
        self.0.current().etcd.clone()
    }
}

impl Inner {
    fn new(settings: &TlsSettings, contents: &[Vec<u8>]) -> Result<Inner, TlsError> {
        let TlsSettings { certificate, key, authority } = settings;
        let [chain_text, key_text, roots_text] = contents else { return Err(TlsError::Ended) };
        let private = private_key(KEY, key, key_text)?;
        let mut roots = RootCertStore::empty();
        for root in certificates(AUTHORITY, authority, roots_text)? {
            let want = "the certificates of authorities (PEM)";
            roots.add(root).map_err(|e| unfit(AUTHORITY, authority, e.to_string(), want))?;
        }
        let chain = certificates(CERTIFICATE, certificate, chain_text)?;
        let files = Files { chain, key: private, roots };
        // The key is not the certificate's, or neither is of a kind that is known here.
        configs(&files)
            .map_err(|e| unfit(KEY, key, e.to_string(), "the key of cluster.tls.certificate"))
    }
}

fn configs(files: &Files) -> Result<Inner, Box<dyn std::error::Error>> {
    let provider = Arc::new(ring::default_provider());
    let roots = Arc::new(files.roots.clone());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone()).build()?;
    let own = || (files.chain.clone(), files.key.clone_key());
    // Both sides are this program, so no older version is needed.
    let newest = &[&version::TLS13];
    let (chain, key) = own();
    let mut serve = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(newest)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    serve.alpn_protocols.push(HTTP2.into());
    let client = |versions| {
        let (chain, key) = own();
        ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)?
            .with_root_certificates(files.roots.clone())
            .with_client_auth_cert(chain, key)
    };
    let mut call = client(newest)?;
    call.alpn_protocols.push(HTTP2.into());
    let servers = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build()?;
    let mut call_by_ip = call.clone();
    call_by_ip.dangerous().set_certificate_verifier(Arc::new(AnyHost(servers)));
    let database = client(&[&version::TLS12, &version::TLS13])?;
    let mut etcd = database.clone();
    etcd.alpn_protocols.push(HTTP2.into());
    Ok(Inner {
        serve: Arc::new(serve),
        call: Arc::new(call),
        call_by_ip: Arc::new(call_by_ip),
        database: Arc::new(database),
        etcd: Arc::new(etcd),
    })
}
