//! Clients over TLS, and a certificate that is replaced while clients play.

use std::path::Path;
use std::time::Duration;

use purview_client::{Client, ClientError, Trust};
use purview_server::config::CertificateSettings;
use purview_server::gateway::{Gateway, GatewayConfig, GatewayError};
use purview_server::storage::ClusterId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::support::{Flood, World};
use crate::common::{still_there, tries};
use crate::tls::Authority;

/// The certificates of an authority come into a folder.
fn install(authority: &Authority, folder: &Path) -> CertificateSettings {
    let CertificateSettings { certificate, key } = authority.server();
    let [certificate, key] = [certificate, key].map(|file| {
        let place = folder.join(file.file_name().unwrap());
        std::fs::copy(file, &place).unwrap();
        place
    });
    CertificateSettings { certificate, key }
}

/// Repeats until the server shows a trusted certificate.
async fn connected(trust: &Trust, url: &str, token: &str) -> Client {
    let connect = async || match Client::connect_trusting(trust, url, token).await {
        Err(error) if !matches!(error, ClientError::Io(_)) => panic!("{error}"),
        connected => connected,
    };
    tries("the new certificate", connect).await
}

#[actix_rt::test]
async fn a_new_certificate_disconnects_no_client() {
    let (old, new) = (Authority::here(), Authority::here());
    let folder = tempfile::tempdir().unwrap();
    let tls = Some(install(&old, folder.path()));
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

    install(&new, folder.path());
    for url in &urls {
        let mut client = connected(&new.trust(), url, &token).await;
        still_there(&mut client).await;
    }
    assert!(Client::connect_trusting(&old.trust(), &urls[1], &token).await.is_err());
    // Connected clients go on.
    for client in &mut clients {
        still_there(client).await;
    }
}

#[actix_rt::test]
async fn a_client_that_does_not_finish_its_handshake_is_disconnected() {
    let (ours, folder) = (Authority::here(), tempfile::tempdir().unwrap());
    let tls = Some(install(&ours, folder.path()));
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
    let ours = Authority::here();
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
