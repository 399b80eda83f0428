//! Clients over TLS, and a certificate that is replaced while clients play.

use std::path::{Path, PathBuf};
use std::time::Duration;

use purview_client::{Client, ClientError, Event, Trust};
use purview_server::config::CertificateSettings;
use purview_server::gateway::{Gateway, GatewayConfig, GatewayError};
use purview_server::storage::ClusterId;
use purview_server::tls::make::make;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::support::{Flood, World};
use crate::common::event;

/// Certificates of a test authority.
struct Authority(tempfile::TempDir);

impl Authority {
    fn new() -> Authority {
        let place = tempfile::tempdir().unwrap();
        make(&place.path().join("certs"), &["localhost".into(), "127.0.0.1".into()], 1).unwrap();
        Authority(place)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join("certs").join(name)
    }

    fn trust(&self) -> Trust {
        Trust::file(&self.file("ca.pem")).unwrap()
    }

    /// Signs new certificates for a folder.
    fn install(&self, folder: &Path) -> CertificateSettings {
        let [certificate, key] = ["gateway.pem", "gateway.key"].map(|name| {
            let place = folder.join(name);
            std::fs::copy(self.file(name), &place).unwrap();
            place
        });
        CertificateSettings { certificate, key }
    }
}

async fn pong(client: &mut Client, nonce: u64) {
    client.ping(nonce).await.unwrap();
    event(client, |event| match event {
        Event::Pong(pong) => {
            assert_eq!(pong.nonce, nonce);
            Some(())
        }
        Event::Closed { code, detail } => panic!("closed with {code:?}: {detail}"),
        _ => None,
    })
    .await;
}

/// Repeats until the server shows a trusted certificate.
async fn connected(trust: &Trust, url: &str, token: &str) -> Client {
    let try_again = async {
        loop {
            match Client::connect_trusting(trust, url, token).await {
                Ok(client) => return client,
                Err(ClientError::Io(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(other) => panic!("{other}"),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), try_again).await.expect("the new certificate")
}

#[actix_rt::test]
async fn a_new_certificate_disconnects_no_client() {
    let (old, new) = (Authority::new(), Authority::new());
    let folder = tempfile::tempdir().unwrap();
    let tls = Some(old.install(folder.path()));
    let world = World::with(GatewayConfig { tls, ..GatewayConfig::default() }, Flood::No).await;
    let (token, ws) = (world.token(), world.gateway.ws_addr().unwrap());
    let tcp = world.gateway.tcp_addr().unwrap();
    let urls = [format!("wss://{ws}/"), format!("tls://{tcp}")];
    let mut clients = Vec::new();
    for url in &urls {
        let mut client = Client::connect_trusting(&old.trust(), url, &token).await.unwrap();
        client
            .join(purview_client::join_at("meadow", purview::scene::Pos::ground(100, 100)))
            .await
            .unwrap();
        clients.push(client);
    }
    // Another authority is not trusted, and a client without TLS is refused.
    let strange = Client::connect_trusting(&new.trust(), &urls[1], &token).await.unwrap_err();
    assert!(strange.to_string().contains("certificate"), "{strange}");
    assert!(Client::connect(&format!("tcp://{tcp}"), &token).await.is_err());
    assert!(Client::connect(&format!("ws://{ws}/"), &token).await.is_err());

    new.install(folder.path());
    for url in &urls {
        let mut client = connected(&new.trust(), url, &token).await;
        pong(&mut client, 7).await;
    }
    assert!(Client::connect_trusting(&old.trust(), &urls[1], &token).await.is_err());
    // Connected clients go on.
    for client in &mut clients {
        pong(client, 8).await;
    }
}

#[actix_rt::test]
async fn a_client_that_does_not_finish_its_handshake_is_disconnected() {
    let (ours, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let tls = Some(ours.install(folder.path()));
    let handshake_timeout = Duration::from_millis(50);
    let config = GatewayConfig { tls, handshake_timeout, ..GatewayConfig::default() };
    let world = World::with(config, Flood::No).await;
    for addr in [world.gateway.ws_addr().unwrap(), world.gateway.tcp_addr().unwrap()] {
        let mut slow = TcpStream::connect(addr).await.unwrap();
        // The beginning of a TLS record, and no more.
        slow.write_all(&[0x16, 3, 1]).await.unwrap();
        let end = tokio::time::timeout(Duration::from_secs(20), slow.read(&mut [0; 16])).await;
        assert!(matches!(end.unwrap(), Ok(0) | Err(_)));
    }
}

#[actix_rt::test]
async fn an_unusable_certificate_is_named_and_nothing_starts() {
    let ours = Authority::new();
    let tls = CertificateSettings { certificate: ours.file("node.pem"), key: ours.file("ca.key") };
    let config = GatewayConfig { tls: Some(tls), ..GatewayConfig::default() };
    let world = World::new().await;
    let arbiters = vec![actix::Arbiter::new().handle()];
    let tokens = world.tokens.clone().in_cluster(ClusterId::new([7; 16]), &[7; 32]);
    let started = Gateway::start(config, world.directory.clone(), tokens, arbiters);
    let error = started.await.unwrap_err();
    assert!(matches!(error, GatewayError::Tls(_)), "{error}");
    assert!(error.to_string().contains("gateway.tls.key"), "{error}");
}
