//! Bots: many clients from a process of their own. The oracle checks them as it checks a replay.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use purview::scene::terrain::Ground;
use purview::scene::{Plane, Pos};
use purview::wire::client::Joined;
use purview_client::{Trust, join};
use purview_demo::flags::time;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::clients::{Order, Progress, Server, gather};
use super::report::Report;
use super::script::{Area, Group, Pattern, Script};
use crate::args::centimetres;
use crate::oracle::Options;
use crate::rng::Rng;

const STEP: Duration = Duration::from_millis(100);
const STEPS_PER_S: u32 = 10;
/// The standard deviation of a crowd, centimetres.
const CROWD_SIGMA_CM: f64 = 2_000.0;
const JOINING_MAX: usize = 32;

#[derive(Debug, Clone, Args)]
pub struct BotsOptions {
    /// The number of bots.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub count: u32,
    /// How long the bots move, for example 30s, 5m or 500ms.
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = time)]
    pub length: Duration,
    /// The number of the first bot: with several machines each takes other bots, and so other tokens.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first: u32,
    /// A script of groups of bots (TOML): their scenes, areas, movement, actions and properties.
    #[arg(long, value_name = "FILE", requires = "connect", conflicts_with_all = ["pattern", "area_cm"])]
    pub script: Option<PathBuf>,
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

impl BotsOptions {
    /// The script that `--script` names, or one group as the other flags describe it.
    fn script(&self) -> anyhow::Result<Script> {
        if let Some(file) = &self.script {
            return Script::open(file);
        }
        let area = self.area_cm.map(|side_cm| Area { centre_cm: None, side_cm });
        Ok(Script::of(Group { pattern: self.pattern, area, ..Group::default() }))
    }
}

/// Runs bots on a server until their time is over. The report has no tick times.
///
/// # Errors
/// The script cannot be read, or there is no thread for the oracle.
pub async fn bots(
    url: &str,
    token: &str,
    options: BotsOptions,
    progress: Progress,
) -> anyhow::Result<Report> {
    let script = Arc::new(options.script()?);
    let (map, trust) = (options.map.clone(), options.trust.clone());
    let server = Server { url: url.into(), token: token.into(), trust, map };
    let oracle = Options { late_ticks: options.late_ticks, ..Options::default() };
    let (run, judge) = gather(server, oracle)?;
    let until = run.start() + options.length;
    let doors = Arc::new(Semaphore::new(JOINING_MAX));
    let play = async {
        let mut tasks = JoinSet::new();
        for client in (0..options.count).map(|n| options.first.saturating_add(n)) {
            let (run, options, script) = (run.clone(), options.clone(), Arc::clone(&script));
            // The permit is returned when the bot has joined.
            let Ok(door) = doors.clone().acquire_owned().await else { break };
            tasks.spawn(async move {
                let group = script.group(client);
                let join = join(group.scene.as_ref().unwrap_or(&options.scene));
                let enter = |joined: &Joined| {
                    drop(door);
                    Ok(Bot::new(client, group, &options, joined, until))
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

/// One bot: an order for each step, and an action now and then.
struct Bot<'a> {
    client: u32,
    group: &'a Group,
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
    /// Until when it stays where it is.
    rests: Instant,
    orders: u32,
    /// When the actions of its group are due, and then the properties.
    due: Vec<Instant>,
}

impl<'a> Bot<'a> {
    fn new(
        client: u32,
        group: &'a Group,
        options: &BotsOptions,
        joined: &Joined,
        until: Instant,
    ) -> Bot<'a> {
        let size = joined.rules.size_cm.map(f64::from);
        let side = |i: usize| group.area.map_or(size[i], |a| f64::from(a.side_cm).min(size[i]));
        let centre = group.area.and_then(|a| a.centre_cm).map(|at| at.map(f64::from));
        let middle = centre.unwrap_or(size.map(|s| s / 2.0));
        let now = Instant::now();
        let mut bot = Bot {
            client,
            group,
            random: Rng::new(options.seed ^ (u64::from(client) << 32)),
            low: [0, 1].map(|i| (middle[i] - side(i) / 2.0).max(0.0)),
            high: [0, 1].map(|i| (middle[i] + side(i) / 2.0).min(size[i] - 1.0)),
            border_every: options.border_every_cm.map(f64::from),
            at: [f64::from(joined.pos.x), f64::from(joined.pos.z)],
            goal: [0.0; 2],
            plane: joined.plane,
            judged: joined.rules.movement.is_some(),
            walks: false,
            next: now,
            until,
            rests: now,
            orders: 0,
            due: Vec::new(),
        };
        bot.next += STEP.mul_f64(bot.random.unit());
        bot.goal = bot.somewhere();
        let acts = group.acts.iter().map(|act| act.every);
        let all = acts.chain(group.sets.iter().map(|set| set.every));
        bot.due = all.map(|every| now + every.mul_f64(bot.random.unit())).collect();
        bot
    }

    fn somewhere(&mut self) -> [f64; 2] {
        let anywhere = [0, 1].map(|i| {
            let share = self.random.unit();
            self.low[i] + share * (self.high[i] - self.low[i])
        });
        let goal = match self.group.pattern {
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
        if self.next < self.rests {
            return Order::Stay;
        }
        let step_cm = f64::from(self.group.speed_cm_s / STEPS_PER_S);
        let way = [self.goal[0] - self.at[0], self.goal[1] - self.at[1]];
        let left = way[0].hypot(way[1]);
        let turns = left <= step_cm;
        if turns {
            self.at = self.goal;
            self.goal = self.somewhere();
            self.rests = self.next + self.group.rest;
        } else {
            self.at = [0, 1].map(|i| self.at[i] + way[i] / left * step_cm);
        }
        if turns && !self.group.rest.is_zero() {
            self.walks = false;
        }
        match self.judged {
            false => Order::Move(self.pos()),
            true if turns && !self.walks => Order::Stay,
            true if turns || !self.walks => self.set_out(),
            true => Order::Stay,
        }
    }

    fn set_out(&mut self) -> Order {
        self.walks = true;
        let goal = Pos::ground(self.goal[0] as i32, self.goal[1] as i32);
        Order::Walk(goal, self.group.speed_cm_s)
    }

    /// What its group does at this time.
    fn due(&mut self) -> Option<Order> {
        let at = self.due.iter().position(|due| *due <= self.next)?;
        let Group { acts, sets, .. } = self.group;
        match acts.get(at) {
            Some(act) => {
                self.due[at] += act.every;
                Some(Order::Act(act.payload(self.client, self.orders)))
            }
            None => {
                let set = &sets[at - acts.len()];
                self.due[at] += set.every;
                Some(Order::Set(set.property, set.value.clone()))
            }
        }
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
        if let Some(due) = self.due() {
            return due;
        }
        if self.due.is_empty() && self.random.one_in(50) {
            let name = [self.client.to_be_bytes(), self.orders.to_be_bytes()];
            return Order::Act(name.concat());
        }
        if self.group.pattern == Pattern::Teleport && self.random.one_in(100) {
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

impl Iterator for Bot<'_> {
    type Item = (Instant, Order);

    fn next(&mut self) -> Option<(Instant, Order)> {
        let at = self.next;
        self.next += STEP;
        (at < self.until).then(|| (at, self.order()))
    }
}
