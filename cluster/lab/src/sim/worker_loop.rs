//! Runs the logic workers of a simulated cluster: each connects to one of the processes, serves regions by the rules
//! of `workers`, and tells the judge what it is told.

use std::time::Duration;

use purview_server::simulation::workers::Responses;
use purview_server::simulation::workers::proto::{Open, Request, request};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::journal::What;
use super::network::Host;
use super::process::SimContext;
use super::workers::Visit;
use super::workers::rules::Worker;
use crate::rng::Rng;

/// How long a worker waits for a process that does not answer.
const PATIENCE: Duration = Duration::from_secs(3);

struct Stream {
    requests: UnboundedSender<Request>,
    responses: Responses,
}

/// Runs one worker, for ever.
pub async fn run(ground: SimContext, number: u32, seed: u64, size: (i32, i32)) {
    let mut rng = Rng::new(seed);
    loop {
        ground.workers.wait_while(number, |trouble| trouble.dead).await;
        let mut worker = Worker::new(rng.seed(), size);
        let mut last: Option<Host> = None;
        while !ground.workers.one(number).1.dead {
            if let Some((host, stream)) = connect(&ground, (number, last), &mut rng).await {
                last = Some(host);
                live(&ground, &mut worker, (number, stream), &mut rng).await;
            } else {
                last = None;
            }
            sleep(Duration::from_millis(50 + rng.below(300) as u64)).await;
            ground.workers.wait_while(number, |trouble| trouble.cut && !trouble.dead).await;
        }
        ground.judge.worker_gone(number);
    }
}

async fn connect(
    ground: &SimContext,
    (number, last): (u32, Option<Host>),
    rng: &mut Rng,
) -> Option<(Host, Stream)> {
    let (host, door) = ground.workers.door(rng, last)?;
    let (requests, queue) = unbounded_channel();
    let (tell, told) = oneshot::channel();
    // Each scene has workers of its own.
    let scenes = &ground.config.scenes;
    let scene = scenes.get(number as usize % scenes.len().max(1))?.spec.name.clone();
    let name = format!("worker {number}");
    let open = Open { scene, name, ..Open::default() };
    let sent = requests.send(Request { message: Some(request::Message::Open(open)) });
    sent.ok()?;
    door.send(Visit(queue, tell)).ok()?;
    let responses = timeout(PATIENCE, told).await.ok()?.ok()?;
    ground.journal.note(What::Fault(format!("worker {number} connects to host {host}")));
    Some((host, Stream { requests, responses }))
}

/// Serves the regions of a stream until it ends.
async fn live(
    ground: &SimContext,
    worker: &mut Worker,
    (number, mut stream): (u32, Stream),
    rng: &mut Rng,
) {
    loop {
        let (one, trouble) = ground.workers.one(number);
        if trouble.dead || trouble.cut {
            return;
        }
        if trouble.silent {
            one.changed.notified().await;
            continue;
        }
        let response = tokio::select! {
            biased;
            () = one.changed.notified() => continue,
            response = timeout(PATIENCE, stream.responses.next()) => response,
        };
        let Ok(Ok(Some(response))) = response else { return };
        let calm = ground.will.is_to_stand();
        if !calm && rng.one_in(16) {
            sleep(Duration::from_millis(1 + rng.below(40) as u64)).await;
        }
        worker.acts = !calm;
        let (requests, news) = worker.take(ground.journal.now(), response);
        ground.judge.worker_tells(number, worker, &news);
        for message in requests {
            if stream.requests.send(Request { message: Some(message) }).is_err() {
                return;
            }
        }
    }
}
