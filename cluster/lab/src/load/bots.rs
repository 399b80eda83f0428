//! Bots: many clients from a process of their own. The oracle checks them as it checks a replay.

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use purview::scene::terrain::Ground;
use purview::scene::{Plane, Pos};
use purview::wire::client::{Join, Joined};
use purview_client::Trust;
use purview_demo::flags::time;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::clients::{Order, Progress, Server, gather};
use super::report::Report;
use crate::args::centimetres;
use crate::oracle::Options;
use crate::rng::Rng;

const STEP: Duration = Duration::from_millis(100);
/// The length of a step, centimetres: 5 m/s.
const STEP_CM: f64 = 50.0;
const SPEED_CM_S: u32 = 500;
/// The standard deviation of a crowd, centimetres.
const CROWD_SIGMA_CM: f64 = 2_000.0;
const JOINING_MAX: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pattern {
    /// Walk to random places all over the map, at 5 m/s
    Walk,
    /// Walk to random places around the centre of the map (sigma 20 m), at 5 m/s
    Crowd,
    /// Walk to and fro across borders, at 5 m/s
    Border,
    /// As walk, with a teleport now and then, some of them to another plane
    Teleport,
}

#[derive(Debug, Clone, Args)]
pub struct BotsOptions {
    /// The number of bots.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub count: u32,
    /// How long the bots move, for example 30s, 5m or 500ms.
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = time)]
    pub length: Duration,
    /// How the bots move.
    #[arg(long, value_enum, default_value_t = Pattern::Walk)]
    pub pattern: Pattern,
    /// The seed of the bots' movement; the same seed repeats it.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Keep the bots in a square of this side, metres, around the centre of the map.
    #[arg(long = "area", value_name = "METRES", value_parser = centimetres)]
    pub area_cm: Option<i32>,
    /// The distance between the borders to cross, metres, for the pattern border [default: the centre lines].
    #[arg(long = "border-every", value_name = "METRES", value_parser = centimetres)]
    pub border_every_cm: Option<i32>,
    /// The scene to join on a running server.
    #[arg(long, value_name = "NAME", default_value = "meadow", requires = "connect")]
    pub scene: String,
    /// How many ticks late, or again, a bot may be told an action: 300 while links are cut and nodes die.
    #[arg(long, value_name = "TICKS", default_value_t = 0)]
    pub late_ticks: u64,
    #[arg(skip)]
    pub map: Option<Arc<Ground>>,
    #[arg(skip)]
    pub trust: Trust,
}

/// Runs bots on a server until their time is over. The report has no tick times.
pub async fn bots(
    url: &str,
    token: &str,
    options: BotsOptions,
    progress: Progress,
) -> std::io::Result<Report> {
    let (map, trust) = (options.map.clone(), options.trust.clone());
    let server = Server { url: url.into(), token: token.into(), trust, map };
    let oracle = Options { late_ticks: options.late_ticks, ..Options::default() };
    let (run, judge) = gather(server, oracle)?;
    let until = run.start() + options.length;
    let doors = Arc::new(Semaphore::new(JOINING_MAX));
    let play = async {
        let mut tasks = JoinSet::new();
        for client in 0..options.count {
            let (run, options) = (run.clone(), options.clone());
            // The permit is returned when the bot has joined.
            let Ok(door) = doors.clone().acquire_owned().await else { break };
            tasks.spawn(async move {
                let join = Join {
                    scene: options.scene.clone(),
                    plane: None,
                    pos: None,
                    sight: None,
                    properties: Vec::new(),
                    view_cap: 0,
                };
                let enter = |joined: &Joined| {
                    drop(door);
                    Ok(Bot::new(client, &options, joined, until))
                };
                run.play(client, join, enter).await;
            });
        }
        tasks.join_all().await;
    };
    tokio::select! {
        () = play => {}
        () = run.show_progress(progress, options.count.into()) => {}
    }
    Ok(run.report(judge).await)
}

/// The script of one bot: an order for each step, and an action now and then.
struct Bot {
    client: u32,
    pattern: Pattern,
    random: Rng,
    /// The corners of the area in which the bot stays, centimetres.
    low: [f64; 2],
    high: [f64; 2],
    border_every: Option<f64>,
    at: [f64; 2],
    goal: [f64; 2],
    plane: Plane,
    judged: bool,
    /// Whether the bot has sent a move command since it appeared.
    walks: bool,
    next: Instant,
    until: Instant,
    orders: u32,
}

impl Bot {
    fn new(client: u32, options: &BotsOptions, joined: &Joined, until: Instant) -> Bot {
        let size = joined.rules.size_cm.map(f64::from);
        let half = size.map(|s| options.area_cm.map_or(s, |a| f64::from(a).min(s)) / 2.0);
        let middle = size.map(|s| s / 2.0);
        let mut bot = Bot {
            client,
            pattern: options.pattern,
            random: Rng::new(options.seed ^ (u64::from(client) << 32)),
            low: [0, 1].map(|i| middle[i] - half[i]),
            high: [0, 1].map(|i| (middle[i] + half[i]).min(size[i] - 1.0)),
            border_every: options.border_every_cm.map(f64::from),
            at: [f64::from(joined.pos.x), f64::from(joined.pos.z)],
            goal: [0.0; 2],
            plane: joined.plane,
            judged: joined.rules.movement.is_some(),
            walks: false,
            next: Instant::now(),
            until,
            orders: 0,
        };
        bot.next += STEP.mul_f64(bot.random.unit());
        bot.goal = bot.somewhere();
        bot
    }

    fn somewhere(&mut self) -> [f64; 2] {
        let anywhere = [0, 1].map(|i| {
            let share = self.random.unit();
            self.low[i] + share * (self.high[i] - self.low[i])
        });
        let goal = match self.pattern {
            Pattern::Walk | Pattern::Teleport => anywhere,
            Pattern::Crowd => [0, 1].map(|i| {
                let middle = (self.low[i] + self.high[i]) / 2.0;
                middle + CROWD_SIGMA_CM * self.random.normal()
            }),
            Pattern::Border => self.across(anywhere),
        };
        [0, 1].map(|i| goal[i].clamp(self.low[i], self.high[i]))
    }

    /// A place up to 20 m beyond the border nearest to `place`, on the other side of it than the bot.
    fn across(&mut self, mut place: [f64; 2]) -> [f64; 2] {
        let axis = usize::from(self.random.one_in(2));
        let line = match self.border_every {
            Some(every) => (self.at[axis] / every).round().max(1.0) * every,
            None => (self.low[axis] + self.high[axis]) / 2.0,
        };
        let beyond = 100.0 + 1_900.0 * self.random.unit();
        place[axis] = if self.at[axis] < line { line + beyond } else { line - beyond };
        place[1 - axis] = self.at[1 - axis] + 500.0 * self.random.normal();
        place
    }

    fn pos(&self) -> Pos {
        Pos::ground(self.at[0] as i32, self.at[1] as i32)
    }

    fn step(&mut self) -> Order {
        let way = [self.goal[0] - self.at[0], self.goal[1] - self.at[1]];
        let left = way[0].hypot(way[1]);
        let turns = left <= STEP_CM;
        if turns {
            self.at = self.goal;
            self.goal = self.somewhere();
        } else {
            self.at = [0, 1].map(|i| self.at[i] + way[i] / left * STEP_CM);
        }
        match self.judged {
            false => Order::Move(self.pos()),
            true if turns || !self.walks => self.set_out(),
            true => Order::Stay,
        }
    }

    fn set_out(&mut self) -> Order {
        self.walks = true;
        Order::Walk(Pos::ground(self.goal[0] as i32, self.goal[1] as i32), SPEED_CM_S)
    }

    fn order(&mut self) -> Order {
        self.orders += 1;
        if self.orders == 1 {
            // Bots join at the spawn position and teleport to where their pattern begins.
            self.at = self.goal;
            self.goal = self.somewhere();
            self.walks = false;
            return Order::Teleport(None, self.pos());
        }
        if self.random.one_in(50) {
            let name = [self.client.to_be_bytes(), self.orders.to_be_bytes()];
            return Order::Act(name.concat());
        }
        if self.pattern == Pattern::Teleport && self.random.one_in(100) {
            self.at = self.somewhere();
            self.goal = self.somewhere();
            let other = Plane(i32::from(self.random.one_in(2)));
            let plane = self.random.one_in(3).then_some(other).filter(|p| *p != self.plane);
            self.plane = plane.unwrap_or(self.plane);
            self.walks = false;
            return Order::Teleport(plane, self.pos());
        }
        self.step()
    }
}

impl Iterator for Bot {
    type Item = (Instant, Order);

    fn next(&mut self) -> Option<(Instant, Order)> {
        let at = self.next;
        self.next += STEP;
        (at < self.until).then(|| (at, self.order()))
    }
}
