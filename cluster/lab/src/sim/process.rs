//! One process of a simulated cluster: a production node or gateway in its own task set, which can be suspended and
//! killed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use purview::actor::cluster_clock::ClusterClock;
use purview::actor::logic::LogicFactory;
use purview::actor::player::{Login, Pass, Passes, Planes, TokenCheck};
use purview::scene::{EntityId, SceneId, SubjectHash};
use purview::wire::CloseCode;
use purview::wire::client::Joined;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, sleep};

use purview_demo::npcs::DemoNpcs;
use purview_server::config::Config;
use purview_server::executor::Executor;
use purview_server::node::orders::Orders;
use purview_server::node::{Roles, Status};
use purview_server::peer::Links;
use purview_server::process::ClusterProcess;
use purview_server::simulation::Simulated;
use purview_server::simulation::clients::{Broken, Inbound, Outbound, SocketEvent, TestListener};
use purview_server::simulation::workers::{Hub, Limits, Workers as RemoteRules};
use purview_server::storage::leases::embedded::Embedded;
use purview_server::storage::{Checkpoints, Leases};

use super::Logic;
use super::heralds::heralds;
use super::journal::{Journal, What};
use super::judge::{Eye, Floor, Judge, claims_of, watched_game};
use super::network::{End, Host, Net, Port, Receiver, Sender, Silent, address};
use super::sights::sights;
use super::store::{LeaseWay, Memory};
use super::will::Will;
use super::workers::{self, Workers};

#[derive(Clone)]
pub struct SimContext {
    pub config: Config,
    pub net: Net,
    pub store: Arc<Embedded>,
    pub memory: Memory,
    pub journal: Journal,
    pub judge: Arc<Judge>,
    pub will: Arc<Will>,
    pub logic: Option<Logic>,
    pub workers: Arc<Workers>,
    /// The cost of a player in a tick, microseconds, where loads are balanced.
    pub player_us: Option<u64>,
    pub began: Instant,
}

impl SimContext {
    pub(super) fn scene_name(&self, scene: SceneId) -> &str {
        &self.config.scenes[usize::from(scene.0)].spec.name
    }

    /// Where a player is that has joined. A scene of another name gets the number after the last scene.
    pub(super) fn floor_of(&self, joined: &Joined) -> Floor {
        let scenes = &self.config.scenes;
        let scene = scenes.iter().position(|scene| scene.spec.name == joined.scene);
        Floor { scene: SceneId(scene.unwrap_or(scenes.len()) as u16), plane: joined.plane }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunState {
    Runs,
    Stopped,
    Over,
}

struct Control {
    run_state: Mutex<(RunState, Option<Waker>)>,
}

impl Control {
    fn set(&self, run_state: RunState) {
        let mut lock = self.run_state.lock();
        if lock.0 != RunState::Over {
            lock.0 = run_state;
        }
        if let Some(waker) = lock.1.take() {
            waker.wake();
        }
    }

    fn is_over(&self) -> bool {
        self.run_state.lock().0 == RunState::Over
    }
}

/// Runs the tasks of a process according to its fate.
struct Gate {
    tasks: Option<Pin<Box<LocalSet>>>,
    control: Arc<Control>,
}

impl Future for Gate {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let run_state = {
            let mut lock = self.control.run_state.lock();
            match &mut lock.1 {
                Some(waker) => waker.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            lock.0
        };
        let me = &mut *self;
        match (run_state, &mut me.tasks) {
            (RunState::Over, tasks) => {
                // The whole process ends here, between two of its steps.
                *tasks = None;
                Poll::Ready(())
            }
            (RunState::Runs, Some(tasks)) => tasks.as_mut().poll(cx),
            _ => Poll::Pending,
        }
    }
}

#[derive(Clone)]
pub struct ProcessHandle {
    pub orders: Orders,
    pub status: watch::Receiver<Status>,
    pub links: Links,
    pub clock: Arc<ClusterClock>,
}

pub struct Process {
    pub host: Host,
    /// The number of the process among those of its host.
    pub life: u64,
    pub way: Arc<LeaseWay>,
    pub memory: Memory,
    pub handle: watch::Receiver<Option<ProcessHandle>>,
    control: Arc<Control>,
    eye: Arc<Eye>,
    ground: SimContext,
}

impl Process {
    /// Starts a process. Its clock is `ahead` of the others.
    pub fn start(
        ground: &SimContext,
        host: Host,
        life: u64,
        roles: Roles,
        (seed, ahead): (u64, Duration),
    ) -> Process {
        let (tell_peers, peers) = unbounded_channel();
        let (tell_clients, clients) = unbounded_channel();
        ground.net.listen(host, tell_peers, tell_clients);
        ground.journal.note(What::Begins(host, life));
        let way = Arc::new(LeaseWay::to(&ground.store, seed));
        let control = Arc::new(Control { run_state: Mutex::new((RunState::Runs, None)) });
        let closed = AtomicBool::new(false);
        let (judge, player_us) = (ground.judge.clone(), ground.player_us);
        let eye = Arc::new(Eye { judge, process: (host, life), closed, player_us });
        let time_of_day = Duration::from_secs(1_800_000_000) + ahead;
        let hub = (ground.logic == Some(Logic::Workers)).then(|| Arc::new(Hub::new(limits(seed))));
        let simulated = Simulated {
            executor: Executor::Simulated { at: ground.began, time_of_day },
            address: address(host),
            links: (Arc::new(Port { net: ground.net.clone(), host }), peers),
            tokens: tokens(),
            passes: Arc::new(PlainPasses),
            observer: eye.clone(),
            population: Some(Arc::new(DemoNpcs)),
            logic: game(ground, (&eye, hub.as_ref()), seed),
            hub: hub.clone(),
        };
        let (tell, handle) = watch::channel(None);
        let tasks = LocalSet::new();
        // Gateways let no workers in.
        if let Some(hub) = hub.filter(|_| roles.regions) {
            tasks.spawn_local(workers::serve(hub, ground.workers.open(host)));
        }
        let (own, ended) = (ground.clone(), control.clone());
        let leases: Arc<dyn Leases> = way.clone();
        let memory = ground.memory.another();
        let checkpoints = Some(Arc::new(memory.clone()) as Arc<dyn Checkpoints>);
        tasks.spawn_local(async move {
            let mut config = own.config.clone();
            config.cluster.node = name(host, life);
            let node = ClusterProcess::simulate(&config, roles, leases, checkpoints, simulated);
            let why = match node.await {
                Ok((node, listener)) => live(node, listener, clients, tell).await,
                Err(_) => {
                    // As a supervisor does: another attempt, a little later.
                    sleep(Duration::from_millis(500)).await;
                    "cannot join"
                }
            };
            own.journal.note(What::ShutdownSignals(host, why));
            ended.set(RunState::Over);
        });
        let gate = Gate { tasks: Some(Box::pin(tasks)), control: control.clone() };
        let (net, over) = (ground.net.clone(), eye.clone());
        spawn_local(async move {
            gate.await;
            if !over.closed.swap(true, Relaxed) {
                net.silence(host, false);
            }
        });
        Process { host, life, way, memory, handle, control, eye, ground: ground.clone() }
    }

    pub fn is_over(&self) -> bool {
        self.control.is_over()
    }

    pub fn is_stopped(&self) -> bool {
        self.control.run_state.lock().0 == RunState::Stopped
    }

    /// Kills the process. With `lost` its messages in flight are lost, too.
    pub fn kill(&self, lost: bool) {
        if self.is_over() {
            return;
        }
        self.ground.journal.note(What::ShutdownSignals(self.host, "killed"));
        self.eye.closed.store(true, Relaxed);
        self.ground.net.silence(self.host, lost);
        self.control.set(RunState::Over);
    }

    pub fn stop(&self) {
        self.way.cut();
        self.ground.net.stop(self.host, true);
        self.control.set(RunState::Stopped);
    }

    pub fn go_on(&self) {
        if self.is_over() {
            return;
        }
        self.ground.net.stop(self.host, false);
        self.way.mend();
        self.control.set(RunState::Runs);
    }

    /// Cuts the process off from the lease store, and perhaps from the checkpoint store.
    pub fn cut_stores(&self, checkpoints: bool) {
        self.way.cut();
        if checkpoints {
            self.memory.cut();
        }
    }

    /// Restores both connections.
    pub fn mend_stores(&self) {
        self.way.mend();
        self.memory.mend();
    }
}

/// What waits for a worker at most, KiB, by the process: often so little that it overflows when a worker is silent.
const KEEP_KIB: [usize; 4] = [4, 6, 8, 64];

/// After how long regions of a silent worker go to others: so long that responses overflow before.
const TAKEOVER: Duration = Duration::from_secs(2);

fn limits(seed: u64) -> Limits {
    let keep = KEEP_KIB[(seed >> 8) as usize % KEEP_KIB.len()] << 10;
    Limits { keep, takeover: TAKEOVER, ..Limits::default() }
}

/// The rules that the process's regions run, seen by the judge.
fn game(
    ground: &SimContext,
    (eye, hub): (&Arc<Eye>, Option<&Arc<Hub>>),
    seed: u64,
) -> Option<Arc<dyn LogicFactory>> {
    let rules: Arc<dyn LogicFactory> = match (ground.logic?, hub) {
        (Logic::Workers, hub) => Arc::new(RemoteRules(hub?.clone())),
        (Logic::Hunt, _) => crate::game::hunt(),
        (Logic::Messages, _) => return Some(heralds(eye.clone(), seed)),
        (Logic::Sights, _) => return Some(sights(eye.clone(), ground.will.clone(), seed)),
        (Logic::Sessions | Logic::Linger, _) => return None,
    };
    Some(watched_game(rules, eye.clone(), seed))
}

/// Runs the process until it ends. The result says why it ended.
async fn live(
    node: ClusterProcess,
    listener: Option<TestListener>,
    mut clients: UnboundedReceiver<End>,
    tell: watch::Sender<Option<ProcessHandle>>,
) -> &'static str {
    let handle = ProcessHandle {
        orders: node.orders().clone(),
        status: node.status(),
        links: node.links().clone(),
        clock: node.directory().clock().clone(),
    };
    tell.send_replace(Some(handle));
    if let Some(mut listener) = listener {
        spawn_local(async move {
            loop {
                let visit = tokio::select! {
                    biased;
                    () = listener.stopped() => return,
                    visit = clients.recv() => visit,
                };
                let Some((sender, receiver)) = visit else { return };
                let listener = listener.clone();
                spawn_local(async move {
                    let (mut receiver, mut sender) = (receiver, sender);
                    listener.serve(&mut receiver, &mut sender).await;
                });
            }
        });
    }
    let why = tokio::select! {
        biased;
        _ = node.lost() => {
            // Other tasks that wait for this would be woken in an order that the seed does not determine.
            sleep(Duration::from_millis(1)).await;
            return "its lease is lost";
        }
        () = node.drained() => "drained",
    };
    node.stop().await;
    why
}

impl Inbound for Receiver {
    async fn receive(&mut self) -> SocketEvent {
        self.recv().await.map_or(SocketEvent::End, SocketEvent::Message)
    }
}

impl Outbound for Sender {
    fn put_now(&mut self, message: Bytes) -> Result<Option<Bytes>, Broken> {
        self.say_now(message).map_err(|Silent| Broken)
    }

    async fn put(&mut self, message: Bytes) -> Result<(), Broken> {
        self.send(message).await.map_err(|Silent| Broken)
    }

    async fn flush(&mut self) -> Result<(), Broken> {
        Ok(())
    }

    async fn goodbye(&mut self, _: CloseCode, _: &str) -> Result<(), Broken> {
        Ok(())
    }
}

const PASS: &str = "pass|";

/// The name of a host's process. A killed process keeps its name until its lease ends, so each life has its own.
pub(super) fn name(host: Host, life: u64) -> String {
    format!("host-{host}-{life}")
}

fn tokens() -> TokenCheck {
    Arc::new(|token| match read(token) {
        Some(_) => Err("a resume token cannot log in".into()),
        None => Ok((
            Login {
                subject: token.into(),
                expires_s: None,
                planes: Planes::Any,
                claims: claims_of(token),
            },
            whose(token),
        )),
    })
}

/// Whose the players of a client are: its name, as far as there is room for it.
fn whose(name: &str) -> SubjectHash {
    let mut hash = [0; 16];
    name.bytes().zip(&mut hash).for_each(|(byte, to)| *to = byte);
    SubjectHash::new(hash)
}

/// Tokens without signatures: no client of the simulation forges them.
#[derive(Debug)]
struct PlainPasses;

fn read(token: &str) -> Option<Pass> {
    let mut parts = token.strip_prefix(PASS)?.split('|');
    let (subject, entity, scene) = (parts.next()?, parts.next()?, parts.next()?);
    let entity = EntityId(entity.parse().ok()?);
    Some(Pass { subject: subject.into(), entity, scene: scene.into() })
}

impl Passes for PlainPasses {
    fn write(&self, pass: &Pass, _: &Login, _: Duration) -> Option<String> {
        Some(format!("{PASS}{}|{}|{}", pass.subject, pass.entity, pass.scene))
    }

    fn read(&self, token: &str) -> Result<Pass, String> {
        read(token).ok_or_else(|| format!("{token:?} is not a resume token"))
    }
}
