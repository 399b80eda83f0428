//! Workers of a simulated process: their streams are channels instead of connections. All else is as in production.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use purview::actor::directory::Directory;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::hub::Hub;
use super::proto::{Request, Response};
use super::stream::{QUEUE, serve};
use crate::executor::Executor;
use crate::peer::Links;

/// The responses of a stream. Dropping it breaks the stream.
#[derive(Debug)]
pub struct Responses(mpsc::Receiver<Result<Bytes, Status>>);

impl Responses {
    /// The next response; `None`: the stream has ended.
    ///
    /// # Errors
    /// With which status it has ended.
    pub async fn next(&mut self) -> Result<Option<Response>, Status> {
        let Some(response) = self.0.recv().await.transpose()? else { return Ok(None) };
        let response = Response::decode(response);
        response.map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Hub {
    /// Lets workers in that the simulator brings, and serves regions of other processes.
    pub(crate) fn simulate(
        self: &Arc<Hub>,
        executor: &Executor,
        (directory, links): (&Arc<Directory>, &Links),
    ) {
        self.set_directory(directory);
        // A second call changes nothing.
        drop(self.executor.set(executor.clone()));
        self.connect(links);
        self.spawn(self.clone().keep_telling());
    }

    pub fn attach(self: &Arc<Hub>, mut requests: UnboundedReceiver<Request>) -> Responses {
        let (answers, responses) = mpsc::channel(QUEUE);
        let requests =
            futures::stream::poll_fn(move |cx| requests.poll_recv(cx).map(|r| r.map(Ok)));
        self.spawn(serve(self.clone(), requests, answers, CancellationToken::new()));
        Responses(responses)
    }
}
