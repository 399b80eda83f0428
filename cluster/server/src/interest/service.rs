//! The gRPC service: the method `World`, whose responses are encoded already, and `Acknowledge`.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, StreamingService, UnaryService};
use tonic::{Response, Status, Streaming};
use tower_service::Service;

use super::proto::{Acknowledgement, MOST_REQUEST_BYTES, MOST_RESPONSE_BYTES, Request};
use super::session::QUEUE;
use super::sessions::Sessions;
use crate::grpc::half_plain::HalfPlain;

const WORLD: &str = "/purview.interest.v1.Interest/World";
const ACKNOWLEDGE: &str = "/purview.interest.v1.Interest/Acknowledge";

const MOST_ACKNOWLEDGEMENT_BYTES: usize = 1 << 10;

#[derive(Debug, Clone)]
pub struct Interest(pub Arc<Sessions>);

impl NamedService for Interest {
    const NAME: &'static str = "purview.interest.v1.Interest";
}

impl StreamingService<Request> for Interest {
    type Response = Bytes;
    type ResponseStream = BoxStream<'static, Result<Bytes, Status>>;
    type Future = BoxFuture<'static, Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<Request>>) -> Self::Future {
        let (answers, mut responses) = mpsc::channel(QUEUE);
        tokio::spawn(self.0.clone().open(request.into_inner(), answers));
        let responses = futures::stream::poll_fn(move |cx| responses.poll_recv(cx));
        std::future::ready(Ok(Response::new(responses.boxed()))).boxed()
    }
}

impl UnaryService<Acknowledgement> for Interest {
    type Response = Bytes;
    type Future = std::future::Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: tonic::Request<Acknowledgement>) -> Self::Future {
        let Acknowledgement { session, received } = request.into_inner();
        // The answer has no fields.
        std::future::ready(self.0.acknowledge(&session, received).map(|()| Bytes::new().into()))
    }
}

impl Service<http::Request<Body>> for Interest {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            match request.uri().path() {
                WORLD => {
                    let mut grpc = Grpc::new(HalfPlain::default())
                        .max_decoding_message_size(MOST_REQUEST_BYTES)
                        .max_encoding_message_size(MOST_RESPONSE_BYTES);
                    Ok(grpc.streaming(service, request).await)
                }
                ACKNOWLEDGE => {
                    let mut grpc = Grpc::new(HalfPlain::default())
                        .max_decoding_message_size(MOST_ACKNOWLEDGEMENT_BYTES);
                    Ok(grpc.unary(service, request).await)
                }
                _ => {
                    let text =
                        "the methods are World and Acknowledge of purview.interest.v1.Interest";
                    Ok(Status::unimplemented(text).into_http())
                }
            }
        })
    }
}
