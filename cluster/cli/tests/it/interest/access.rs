//! Who may connect, and by what: tokens, TLS, Unix sockets; and what else a gRPC service offers.

use std::path::Path;

use purview_server::config::CertificateSettings;
use purview_server::interest::client::{Address, ClientError};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use super::support::{Service, ask, both, circle, create, refused, runtime, scene, tick};
use crate::tls::Authority;

const TOKEN: &str = "a-token-of-more-than-thirty-two-bytes";

/// Uses the service once.
async fn works(address: &Address) {
    let mut stream = address.begin().await.unwrap();
    let changes = vec![scene(1, &circle()), create(1, &[(1, 0, 0), (2, 50, 0)]), tick(1)];
    assert_eq!(ask(&mut stream, changes).await.events(1), both(1, 2, true));
}

fn code(error: ClientError) -> Code {
    match error {
        ClientError::Status(status) => status.code(),
        other => panic!("{other}"),
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_without_the_token_are_refused_except_health() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let service = Service::start(&["--token-file", text(&file)]);
    let with =
        |token: Option<&str>| Address { token: token.map(str::to_owned), ..service.address() };
    for token in [None, Some("another-token-of-more-than-32-bytes!!")] {
        let error = with(token).begin().await.unwrap_err();
        assert_eq!(code(error), Code::Unauthenticated);
    }
    works(&with(Some(TOKEN))).await;
    assert_eq!(service.metric("purview_interest_denied_calls_total").await, 2.0);
    let channel = service.address().channel().await.unwrap();
    assert_eq!(health(channel.clone(), "").await, Ok(ServingStatus::Serving));
    assert_eq!(
        reflect(channel, MessageRequest::ListServices(String::new())).await.err(),
        Some(Code::Unauthenticated)
    );
}

async fn health(channel: tonic::transport::Channel, service: &str) -> Result<ServingStatus, Code> {
    let request = HealthCheckRequest { service: service.to_owned() };
    let answer = HealthClient::new(channel).check(request).await.map_err(|status| status.code())?;
    Ok(answer.into_inner().status())
}

async fn reflect(
    channel: tonic::transport::Channel,
    request: MessageRequest,
) -> Result<MessageResponse, Code> {
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(request) };
    let request = futures::stream::iter([request]);
    let answers = ServerReflectionClient::new(channel).server_reflection_info(request).await;
    let mut answers = answers.map_err(|status| status.code())?.into_inner();
    let answer: Option<ServerReflectionResponse> =
        answers.message().await.map_err(|status| status.code())?;
    Ok(answer.unwrap().message_response.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_describes_itself_and_its_health() {
    let service = Service::start(&[]);
    let channel = service.address().channel().await.unwrap();
    let name = "purview.interest.v1.Interest";
    assert_eq!(health(channel.clone(), name).await, Ok(ServingStatus::Serving));
    assert_eq!(health(channel.clone(), "purview.other").await, Err(Code::NotFound));
    let list = MessageRequest::ListServices(String::new());
    let listed = reflect(channel.clone(), list).await.unwrap();
    let MessageResponse::ListServicesResponse(listed) = listed else { panic!("{listed:?}") };
    let names: Vec<String> = listed.service.into_iter().map(|service| service.name).collect();
    assert!(names.iter().any(|listed| listed == name), "{names:?}");
    assert!(names.iter().any(|listed| listed == "grpc.health.v1.Health"), "{names:?}");
    let symbol = MessageRequest::FileContainingSymbol(format!("{name}.World"));
    let found = reflect(channel, symbol).await.unwrap();
    let MessageResponse::FileDescriptorResponse(found) = found else { panic!("{found:?}") };
    let file = String::from_utf8_lossy(&found.file_descriptor_proto[0]).into_owned();
    assert!(file.contains("purview/interest/v1/interest.proto") && file.contains("SceneUpdate"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_encrypted_and_the_certificate_is_checked() {
    let ours = Authority::here();
    let CertificateSettings { certificate, key } = ours.server();
    let service = Service::start(&["--tls-cert", text(&certificate), "--tls-key", text(&key)]);
    let url = service.url().replace("http:", "https:");
    works(&Address { url: url.clone(), token: None, trust: ours.trust() }).await;
    let plain = service.address().begin().await.unwrap_err();
    assert!(matches!(plain, ClientError::Connect { .. } | ClientError::Status(_)), "{plain}");
    let trust = Authority::here().trust();
    let strange = Address { url, token: None, trust }.begin().await.unwrap_err();
    assert!(matches!(strange, ClientError::Connect { .. }), "{strange}");
}

#[test]
fn a_unix_socket_serves_one_user_and_goes_with_the_process() {
    use std::os::unix::fs::PermissionsExt;

    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("interest.sock");
    let service = Service::exactly(&["--unix", text(&socket)]);
    assert_eq!((service.ready.listen, service.ready.metrics), (None, None));
    assert_eq!(service.ready.unix.as_deref(), Some(&*socket));
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let address = Address::new(&format!("unix:{}", socket.display()));
    runtime().block_on(works(&address));
    let (code, error) = refused(&["--unix", text(&socket)]);
    assert_eq!(code, 1);
    assert!(error.contains("a process listens there"), "{error}");
    assert_eq!(service.terminate(), Some(0));
    assert!(!socket.exists());
    // What a killed process leaves behind is replaced; what is no socket is not.
    drop(Service::exactly(&["--unix", text(&socket)]));
    assert!(socket.exists());
    let again = Service::exactly(&["--unix", text(&socket)]);
    runtime().block_on(works(&address));
    drop(again);
    let file = place.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    let (code, error) = refused(&["--unix", text(&file)]);
    assert_eq!((code, std::fs::read(&file).unwrap()), (1, b"mine".to_vec()));
    assert!(error.contains("not a socket"), "{error}");
}

#[test]
fn other_machines_are_let_in_only_with_tls_and_a_token() {
    let place = tempfile::tempdir().unwrap();
    let ours = Authority::here();
    let CertificateSettings { certificate: cert, key } = ours.server();
    let tls = ["--tls-cert", text(&cert), "--tls-key", text(&key)];
    let (code, error) = refused(&["--listen", "0.0.0.0:0"]);
    assert_eq!(code, 1);
    assert!(error.contains("without TLS: give --tls-cert and --tls-key, or --insecure"), "{error}");
    let (code, error) = refused(&[&["--listen", "0.0.0.0:0"][..], &tls].concat());
    assert_eq!(code, 1);
    assert!(error.contains("without a token: give --token-file, or --insecure"), "{error}");
    let file = place.path().join("token");
    std::fs::write(&file, TOKEN).unwrap();
    let both = [&["--listen", "0.0.0.0:0", "--token-file", text(&file)][..], &tls].concat();
    assert!(Service::exactly(&both).ready.listen.is_some());
    assert!(Service::exactly(&["--listen", "0.0.0.0:0", "--insecure"]).ready.listen.is_some());
    assert_eq!(refused(&["--tls-cert", text(&cert)]).0, 2);
    let (code, error) =
        refused(&["--listen", "127.0.0.1:0", "--token-file", text(&cert.join("x"))]);
    assert_eq!(code, 1);
    assert!(error.contains("--token-file"), "{error}");
}
