//! A client that plays `siege`: it walks where it is sent, says what it is told to say, and keeps what it is shown.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use purview::scene::properties::PropertyId;
use purview::scene::terrain::Ground;
use purview::scene::{EntityId, Kind, Pos};
use purview_client::{ClientError, Clock, Event, Player, Retry, View, Walker, join};
use purview_demo::land::Land;
use purview_server::gateway::Tokens;
use purview_server::process::ServerReach;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

const SPEED_CM_S: u32 = 800;

enum Order {
    Goes(Pos),
    Stands,
    Says(String),
    Leaves,
}

struct Known {
    view: View,
    pos: Pos,
    told: Vec<String>,
}

/// A soldier, which plays in a task of its own.
pub struct Soldier {
    id: EntityId,
    known: Arc<Mutex<Known>>,
    orders: UnboundedSender<Order>,
    task: JoinHandle<()>,
}

impl Soldier {
    /// Joins the city, with a guild in its token.
    pub async fn join(reach: &ServerReach, tokens: &Tokens, name: &str, guild: &str) -> Soldier {
        let claims = [("guild".to_owned(), guild.into())].into_iter().collect();
        let lasts = Some(Duration::from_secs(600));
        let token = tokens.mint_with(name, lasts, &Default::default(), claims).expect("a token");
        let urls = [reach.url().expect("a listener for clients")];
        let joined = Player::join(&urls, token.as_str(), join("city"), Retry::default()).await;
        let (player, joined) = joined.unwrap_or_else(|error| panic!("{name}: {error}"));
        let clock = Clock::new();
        let scene = reach.directory.scenes().next().expect("the city");
        let map = scene.terrain.clone().map(|terrain| Arc::new(Ground::new(terrain)));
        let tile_cm = joined.rules.movement.as_ref().expect("judged moves").tile_cm;
        let feet = Walker::on(clock.now(), &joined, Land { map, tile_cm }).expect("judged moves");
        let view = View::of(&joined);
        let known = Arc::new(Mutex::new(Known { view, pos: joined.pos, told: Vec::new() }));
        let (orders, commands) = unbounded_channel();
        let playing = Playing { player, feet, clock, goal: None, steps: 0, known: known.clone() };
        let task = tokio::spawn(playing.play(commands));
        Soldier { id: joined.id, known, orders, task }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no task has panicked")
    }

    /// Its entity.
    pub fn id(&self) -> EntityId {
        self.id
    }

    /// Where it is, as the server has told last and it has walked since.
    pub fn pos(&self) -> Pos {
        self.known().pos
    }

    /// Walks there, as far as its way is clear.
    pub fn goes(&self, to: Pos) {
        self.order(Order::Goes(to));
    }

    /// Goes no farther.
    pub fn stands(&self) {
        self.order(Order::Stands);
    }

    /// Asks the rules for something.
    pub fn says(&self, text: &str) {
        self.order(Order::Says(text.to_owned()));
    }

    fn order(&self, order: Order) {
        assert!(self.orders.send(order).is_ok(), "the session has ended");
    }

    /// Whether it was told a text that begins so.
    pub fn was_told(&self, text: &str) -> bool {
        self.known().told.iter().any(|told| told.starts_with(text))
    }

    /// An entity of a kind that it sees.
    pub fn sees(&self, kind: Kind) -> Option<EntityId> {
        self.known().view.iter().find(|(_, seen)| seen.kind == kind).map(|(id, _)| id)
    }

    /// Whether it sees an entity.
    pub fn sees_entity(&self, id: EntityId) -> bool {
        self.known().view.get(id).is_some()
    }

    /// The players that it sees.
    pub fn players(&self) -> Vec<EntityId> {
        let known = self.known();
        known.view.iter().filter(|(_, seen)| seen.kind == Kind(0)).map(|(id, _)| id).collect()
    }

    /// A property of an entity that it sees, as a number; 0: it has none.
    pub fn number(&self, id: EntityId, property: PropertyId) -> i64 {
        let known = self.known();
        let value = known.view.get(id).and_then(|seen| seen.properties.get(&property));
        value.and_then(|value| value.read().ok()).unwrap_or(0)
    }

    /// Leaves the game. Its session must have gone on until now.
    pub async fn leaves(self) {
        self.order(Order::Leaves);
        self.task.await.expect("the session has gone on");
    }
}

struct Playing {
    player: Player,
    feet: Walker<Land>,
    clock: Clock,
    goal: Option<Pos>,
    steps: u64,
    known: Arc<Mutex<Known>>,
}

impl Playing {
    async fn play(mut self, mut orders: UnboundedReceiver<Order>) {
        let mut step = tokio::time::interval(Duration::from_millis(100));
        loop {
            tokio::select! {
                event = self.player.next() => self.take(event.expect("the session goes on")),
                order = orders.recv() => match order {
                    Some(Order::Goes(goal)) => self.goal = Some(goal),
                    Some(Order::Stands) => {
                        self.goal = None;
                        self.feet.stop();
                    }
                    Some(Order::Says(text)) => {
                        self.player.act(text.into_bytes(), None).await.expect("it is sent");
                    }
                    Some(Order::Leaves) | None => {
                        // The server may close the connection first.
                        drop(self.player.leave().await);
                        return;
                    }
                },
                _ = step.tick() => self.step().await.expect("the session goes on"),
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no reader has panicked")
    }

    fn take(&mut self, event: Event) {
        let now = self.clock.now();
        match event {
            Event::Frame(frame) => {
                self.feet.frame(now, &frame);
                let mut known = self.known.lock().expect("no reader has panicked");
                known.view.apply(&frame).expect("a frame that fits");
                let told = frame.messages.iter().map(|told| text(&told.payload));
                known.told.extend(told);
                self.feet.sees(&known.view);
            }
            Event::Joined(joined) | Event::Resumed(joined) => {
                self.goal = None;
                self.feet.joined(now, &joined);
                self.known().view.joined(&joined);
                self.known().pos = joined.pos;
            }
            Event::Left(left) => panic!("left in {left:?}"),
            Event::Closed { code, detail } => panic!("closed with {code:?}: {detail}"),
            Event::Lines(_) | Event::Pong(_) | Event::Refused(_) | Event::Unconfirmed(_) => {}
        }
    }

    async fn step(&mut self) -> Result<(), ClientError> {
        self.steps += 1;
        if self.steps.is_multiple_of(50) {
            self.player.ping(self.steps).await?;
        }
        let now = self.clock.now();
        if let Some(goal) = self.goal {
            self.feet.walk_to(now, goal, SPEED_CM_S);
        }
        while let Some(command) = self.feet.poll(now, self.player.next_seq()) {
            self.player.send_walk(&command).await?;
        }
        self.known().pos = self.feet.position(now);
        Ok(())
    }
}

fn text(payload: &[u8]) -> String {
    String::from_utf8_lossy(payload).into_owned()
}
