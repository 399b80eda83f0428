//! The gRPC service: the method `Attach`, whose responses are encoded already.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Response, Status, Streaming};
use tower_service::Service;

use super::hub::Hub;
use super::proto::{MOST_REQUEST_BYTES, MOST_RESPONSE_BYTES, Request};
use super::stream::{QUEUE, serve};
use crate::grpc::half_plain::HalfPlain;

const METHOD: &str = "/purview.logic.v1.Logic/Attach";

/// The service. All its streams end when the token is cancelled.
#[derive(Debug, Clone)]
pub struct Logic(pub Arc<Hub>, pub CancellationToken);

impl NamedService for Logic {
    const NAME: &'static str = "purview.logic.v1.Logic";
}

impl StreamingService<Request> for Logic {
    type Response = Bytes;
    type ResponseStream = BoxStream<'static, Result<Bytes, Status>>;
    type Future = BoxFuture<'static, Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<Request>>) -> Self::Future {
        let (answers, mut responses) = mpsc::channel(QUEUE);
        let Logic(hub, stop) = self.clone();
        tokio::spawn(serve(hub, request.into_inner(), answers, stop));
        let responses = futures::stream::poll_fn(move |cx| responses.poll_recv(cx));
        std::future::ready(Ok(Response::new(responses.boxed()))).boxed()
    }
}

impl Service<http::Request<Body>> for Logic {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            if request.uri().path() != METHOD {
                let text = "the only method is purview.logic.v1.Logic/Attach";
                return Ok(Status::unimplemented(text).into_http());
            }
            let mut grpc = Grpc::new(HalfPlain::default())
                .max_decoding_message_size(MOST_REQUEST_BYTES)
                .max_encoding_message_size(MOST_RESPONSE_BYTES);
            Ok(grpc.streaming(service, request).await)
        })
    }
}
