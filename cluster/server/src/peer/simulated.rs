//! Links over a simulated network, in which no process listens.

use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use purview::actor::directory::Directory;
use tokio::sync::mpsc::UnboundedReceiver;

use super::accept::PeerIdentity;
use super::transport::{Dial, Offer, Transport};
use super::{Identity, Links};
use crate::executor::Executor;

impl Links {
    /// The links of a process: `dial` calls peers, and calls of peers arrive through `offers`.
    pub(crate) fn simulated(
        identity: Identity,
        directory: Arc<Directory>,
        executor: Executor,
        (dial, mut offers): (Arc<dyn Dial>, UnboundedReceiver<Offer>),
    ) -> Links {
        let links = Links::by(identity, Transport::Simulated(dial), directory, executor);
        let inboxes = links.0.inboxes.clone();
        links.0.executor.spawn(async move {
            while let Some(offer) = offers.recv().await {
                let Offer { hello, frames, mut acknowledge, answer } = offer;
                let opened = inboxes.clone().open(hello, PeerIdentity::default(), frames).await;
                let opened = opened.map(|(welcome, mut taken)| {
                    inboxes.executor().spawn(async move {
                        while let Some(Ok(upto)) = taken.next().await {
                            if acknowledge.send(upto).await.is_err() {
                                return;
                            }
                        }
                    });
                    welcome
                });
                // The caller may have gone.
                let _received = answer.send(opened).is_ok();
            }
        });
        links
    }
}
