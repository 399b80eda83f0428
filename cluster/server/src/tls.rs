//! Who may talk to whom, by certificates: mutual TLS between processes and towards etcd and PostgreSQL.
//!
//! What the configuration names is read at the start, and again when it changes. Both ends of a connection show a certificate of the
//! same authority, and that of the called one names the host that was called. Whoever does not, or speaks
//! plain, is refused with an [`Untrusted`] before anything is said. The certificate of a process of the
//! cluster also says which process it is ([`Named`]).
//!
//! One stack for all: rustls with ring, which tonic and the client of etcd bring.

mod files;
pub mod make;
mod named;
mod reload;
pub mod server;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcd_client::{Certificate, Identity, TlsOptions};
use reload::Reloading;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig, version};

pub use files::{CertificateSettings, TlsSettings};
pub use named::{Named, ProcessRole};

/// What streams between processes speak inside of TLS.
const HTTP2: &[u8] = b"h2";

/// Why certificates cannot be used. The process does not start.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{key} = {path:?}: cannot be read: {source}")]
    Unreadable {
        /// The key of the configuration.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{key} = {path:?}: {cause}; want {want}, as `purview certs` makes them")]
    Unfit {
        /// The key of the configuration.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
        /// What should stand there.
        want: &'static str,
    },
    /// The system gives no thread that follows changes of the files.
    #[error("cannot start the thread that follows changes of certificates: {0}")]
    Thread(std::io::Error),
    /// Not as many files were read as there are.
    #[error("certificates were not read to the end")]
    Ended,
}

/// Why the other end of a connection is not talked to. Nothing was said to it, and nothing heard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// It does not speak TLS.
    #[error("it speaks plain, not TLS")]
    Plain,
    /// It shows no certificate.
    #[error("it shows no certificate")]
    NoCertificate,
    /// Its certificate is of another authority, has run out, or is another host's.
    #[error("its certificate is refused: {0}")]
    Certificate(String),
    /// Its certificate names no process of a cluster, or more than one.
    #[error(
        "its certificate names no process: want one alternative name such as \
         purview://CLUSTER/node/NAME or purview://CLUSTER/gateway/NAME"
    )]
    Nameless,
    /// It refuses our certificate, or our way to speak.
    #[error("it refuses this side's certificate or words: {0}")]
    RefusesUs(String),
    /// Something else is wrong with its handshake.
    #[error("its handshake is wrong: {0}")]
    Handshake(String),
    /// It did not come to an end with its handshake.
    #[error("it does not end its handshake in time")]
    Slow,
    /// What it is called can stand in no certificate.
    #[error("{0:?} is no name that a certificate could have")]
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
    /// What of TLS was wrong, wherever it lies below an error; `None`: something else was.
    pub fn below(error: &(dyn std::error::Error + 'static)) -> Option<Untrusted> {
        let mut at = Some(error);
        while let Some(error) = at {
            if let Some(tls) = error.downcast_ref::<rustls::Error>() {
                return Some(tls.into());
            }
            // What an error of the system carries is not among its sources.
            let carried = error.downcast_ref::<std::io::Error>().and_then(|e| e.get_ref());
            if let Some(tls) = carried.and_then(|e| e.downcast_ref::<rustls::Error>()) {
                return Some(tls.into());
            }
            at = carried.and_then(|e| e.source()).or_else(|| error.source());
        }
        None
    }
}

/// The certificate of this process and the authority that it trusts. Cheap to clone.
#[derive(Clone)]
pub struct Tls(Arc<Reloading<Inner>>);

struct Inner {
    serve: Arc<ServerConfig>,
    call: Arc<ClientConfig>,
    database: Arc<ClientConfig>,
    etcd: TlsOptions,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(...)")
    }
}

/// What the files say.
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

/// The keys of the configuration that name the files of processes.
const CERTIFICATE: &str = "cluster.tls.certificate";
const KEY: &str = "cluster.tls.key";
const AUTHORITY: &str = "cluster.tls.authority";

impl Tls {
    /// Reads what the configuration names, and follows its changes.
    ///
    /// # Errors
    /// [`TlsError`]: a file cannot be read, is no certificate or key, or the key is another
    /// certificate's.
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

    /// For peers that call: only those with a certificate are let in.
    pub(crate) fn serve(&self) -> Arc<ServerConfig> {
        self.0.current().serve.clone()
    }

    /// For calling peers.
    pub(crate) fn call(&self) -> Arc<ClientConfig> {
        self.0.current().call.clone()
    }

    /// For calling a database.
    pub(crate) fn database(&self) -> Arc<ClientConfig> {
        self.0.current().database.clone()
    }

    /// For calling etcd.
    pub(crate) fn etcd(&self) -> TlsOptions {
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
        let identity = Identity::from_pem(chain_text, key_text);
        let etcd =
            TlsOptions::new().ca_certificate(Certificate::from_pem(roots_text)).identity(identity);
        let files = Files { chain, key: private, roots };
        // The key is not the certificate's, or neither is of a kind that is known here.
        let (serve, call, database) = configs(&files)
            .map_err(|e| unfit(KEY, key, e.to_string(), "the key of cluster.tls.certificate"))?;
        Ok(Inner { serve, call, database, etcd })
    }
}

type Configs = (Arc<ServerConfig>, Arc<ClientConfig>, Arc<ClientConfig>);

fn configs(files: &Files) -> Result<Configs, Box<dyn std::error::Error>> {
    let provider = Arc::new(ring::default_provider());
    let roots = Arc::new(files.roots.clone());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone()).build()?;
    let own = || (files.chain.clone(), files.key.clone_key());
    // Both sides are this program: nothing older is spoken between them.
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
    let database = client(&[&version::TLS12, &version::TLS13])?;
    Ok((Arc::new(serve), Arc::new(call), Arc::new(database)))
}
