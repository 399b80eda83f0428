//! A server on a thread of its own, for a process that does other things too: tests, benches, `purview dev`.

use std::sync::Arc;
use std::thread::JoinHandle;

use actix::System;
use purview::actor::logic::LogicFactory;
use tokio::sync::oneshot;

use super::error::ServerError;
use super::inside::Inside;
use super::reach::ServerReach;
use super::server::Server;
use crate::config::Config;
use crate::gateway::Tokens;

/// A server on a thread of its own, for a process that does other things too.
#[derive(Debug)]
pub struct Background {
    reach: ServerReach,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts a server on a thread and waits until it is up.
    ///
    /// # Errors
    /// As [`Server::start`], or the system gives no thread.
    pub fn start(config: Config, tokens: Tokens) -> Result<Background, ServerError> {
        Background::start_with(config, tokens, None)
    }

    /// The same with the game's logic in every region.
    ///
    /// # Errors
    /// As [`Background::start`].
    pub fn start_with(
        config: Config,
        tokens: Tokens,
        logic: Option<Arc<dyn LogicFactory>>,
    ) -> Result<Background, ServerError> {
        Background::start_inside(config, tokens, Inside { logic, ..Inside::default() })
    }

    /// The same with all that regions have inside the process.
    ///
    /// # Errors
    /// As [`Background::start`].
    pub fn start_inside(
        config: Config,
        tokens: Tokens,
        inside: Inside,
    ) -> Result<Background, ServerError> {
        let (stop, stopping) = oneshot::channel();
        let (up, is_up) = std::sync::mpsc::channel();
        let thread =
            std::thread::Builder::new().name("purview-server".into()).spawn(move || {
                System::new().block_on(async move {
                    match Server::start(&config, tokens, inside).await {
                        Err(e) => drop(up.send(Err(e))),
                        Ok(server) => {
                            drop(up.send(Ok(server.reach().clone())));
                            // An error means that the owner is gone, which is a reason to stop too.
                            drop(stopping.await);
                            server.stop().await;
                        }
                    }
                });
            })?;
        let reach = is_up.recv().map_err(|_| ServerError::Ended)??;
        Ok(Background { reach, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it can be reached.
    pub fn reach(&self) -> &ServerReach {
        &self.reach
    }
}

impl Drop for Background {
    /// Stops the server and waits for its end.
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|t| t.join().is_err()) {
            tracing::error!("the server ended in a panic");
        }
    }
}
