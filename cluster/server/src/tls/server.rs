//! The certificates of the gateway (`wss://`, `tls://`), of the console (`https://`), of the service for
//! logic workers and of the interest service. Clients show no certificate.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{self, ServerConfig};

use super::reload::Reloading;
use super::{CertificateSettings, TlsError, certificates, private_key, unfit};

/// The certificate of a listener. Cheap to clone.
#[derive(Clone)]
pub struct ServerTls(Arc<Reloading<Arc<ServerConfig>>>);

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls(...)")
    }
}

/// The keys of a section of the configuration with a certificate.
#[derive(Debug, Clone, Copy)]
pub struct Keys {
    certificate: &'static str,
    key: &'static str,
    /// The protocol that clients must speak, by its name in handshakes; `None`: none is named.
    protocol: Option<&'static [u8]>,
}

pub const GATEWAY: Keys =
    Keys { certificate: "gateway.tls.certificate", key: "gateway.tls.key", protocol: None };

pub const CONSOLE: Keys =
    Keys { certificate: "console.tls.certificate", key: "console.tls.key", protocol: None };

/// Those of the page on which visitors play.
pub const PLAY: Keys =
    Keys { certificate: "play.tls.certificate", key: "play.tls.key", protocol: None };

/// Those of the service for logic workers, which speak gRPC.
pub const LOGIC: Keys = Keys {
    certificate: "logic.tls.certificate",
    key: "logic.tls.key",
    protocol: Some(super::HTTP2),
};

/// The options of the interest service, whose clients speak gRPC.
pub const INTEREST: Keys =
    Keys { certificate: "--tls-cert", key: "--tls-key", protocol: Some(super::HTTP2) };

impl ServerTls {
    /// Reads the configured files and follows their changes.
    pub fn load(keys: Keys, settings: &CertificateSettings) -> Result<ServerTls, TlsError> {
        let settings = settings.clone();
        let files = vec![
            (keys.certificate, settings.certificate.clone()),
            (keys.key, settings.key.clone()),
        ];
        let make = move |contents: &[Vec<u8>]| {
            let [certificate, key] = contents else { return Err(TlsError::Ended) };
            let chain = certificates(keys.certificate, &settings.certificate, certificate)?;
            let private = private_key(keys.key, &settings.key, key)?;
            let provider = Arc::new(ring::default_provider());
            let config = ServerConfig::builder_with_provider(provider)
                .with_protocol_versions(rustls::DEFAULT_VERSIONS)
                .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private));
            let want = "the key of the certificate beside it";
            let with_protocol = |mut config: ServerConfig| {
                config.alpn_protocols.extend(keys.protocol.map(<[u8]>::to_vec));
                Arc::new(config)
            };
            config
                .map(with_protocol)
                .map_err(|e| unfit(keys.key, &settings.key, e.to_string(), want))
        };
        Ok(ServerTls(Reloading::start(files, make)?))
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        (*self.0.current()).clone()
    }
}
