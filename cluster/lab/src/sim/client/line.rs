//! The connections of a simulated client to gateways.

use futures::future::BoxFuture;
use futures::{FutureExt, SinkExt, StreamExt};
use parking_lot::Mutex;
use purview_client::{Messages, Network};

use crate::rng::Rng;

use super::CLIENTS;
use crate::sim::network::{Host, Receiver, Sender, Silent};
use crate::sim::process::SimContext;

pub(super) struct Line {
    ground: SimContext,
    number: u32,
    rng: Mutex<Rng>,
}

impl Line {
    pub(super) fn new(ground: SimContext, number: u32, seed: u64) -> Line {
        Line { ground, number, rng: Mutex::new(Rng::new(seed)) }
    }
}

impl Network for Line {
    fn open(&self, url: &str) -> BoxFuture<'static, std::io::Result<Messages>> {
        let (ground, number) = (self.ground.clone(), self.number);
        let host = url.strip_prefix("sim://").and_then(|host| host.parse::<Host>().ok());
        async move {
            let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
            let host = host.ok_or_else(refused)?;
            let (sender, receiver) =
                ground.net.visit(CLIENTS + number, host).await.ok_or_else(refused)?;
            Ok(messages(sender, receiver, ground, number))
        }
        .boxed()
    }

    fn random(&self) -> u32 {
        (self.rng.lock().unit() * 1e6) as u32
    }
}

fn messages(sender: Sender, receiver: Receiver, ground: SimContext, number: u32) -> Messages {
    let out = sender.sink_map_err(|Silent| std::io::ErrorKind::BrokenPipe.into());
    let come = receiver.inspect(move |message| ground.journal.received(number, message));
    Messages { out: Box::pin(out), come: come.boxed() }
}
