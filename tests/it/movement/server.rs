//! The server's side: one entity on a map, in ticks of 100 ms.

use purview::scene::movement::{
    Accepted, Blend, Correction, Extrapolator, Footing, MoveCommand, Mover, RefusedCommand, Rules,
    ServerMs, Tile, Tiles, Trajectory,
};
use purview::scene::{Plane, Pos, Rect, Seq};

use super::link::{Link, Weather};
use crate::support::Rng;

pub const TICK_MS: u64 = 100;
pub const PLANE: Plane = Plane(0);

/// 400 x 400 tiles of a metre, one in `scarcity` blocked; none if that is 0.
#[derive(Debug, Clone)]
pub struct Map {
    blocked: Vec<bool>,
}

pub const SIDE: i32 = 400;

impl Map {
    pub fn new(seed: u64, scarcity: usize) -> Map {
        let mut rng = Rng::new(seed);
        let tiles = SIDE as usize * SIDE as usize;
        Map { blocked: (0..tiles).map(|_| scarcity > 0 && rng.below(scarcity) == 0).collect() }
    }

    pub fn wall(&mut self, tiles: impl IntoIterator<Item = (i32, i32)>) {
        tiles.into_iter().for_each(|(x, z)| self.blocked[(z * SIDE + x) as usize] = true);
    }

    /// A position on a free tile.
    pub fn free_place(&self, rng: &mut Rng) -> Pos {
        loop {
            let pos = Pos::ground(rng.range(0, 40_000), rng.range(0, 40_000));
            if self.is_free(PLANE, Tile::of(pos, 100)) {
                return pos;
            }
        }
    }
}

impl Tiles for Map {
    fn tile_cm(&self) -> i32 {
        100
    }

    fn is_free(&self, _: Plane, tile: Tile) -> bool {
        let on = |n: i32| (0..SIDE).contains(&n);
        on(tile.x) && on(tile.z) && !self.blocked[(tile.z * SIDE + tile.x) as usize]
    }

    fn height_cm(&self, _: Tile) -> Option<i32> {
        None
    }
}

pub fn rules() -> Rules {
    Rules::within(Rect { x0: 0, z0: 0, x1: SIDE * 100, z1: SIDE * 100 })
}

#[derive(Debug, Clone, Copy)]
pub enum Down {
    Ack(Seq),
    Correction(Correction),
    /// Whether the entity may move.
    MayMove(bool),
    /// Another top speed, for milliseconds of walking or for good.
    Speed(u32, Option<u32>),
}

/// The server, and a viewer of the entity.
pub struct Server {
    pub map: Map,
    pub rules: Rules,
    pub mover: Mover,
    pub inbox: Link<(Seq, MoveCommand)>,
    pub outbox: Link<Down>,
    pub refused: Vec<RefusedCommand>,
    pub dropped: u32,
    /// The farthest that a move started from where it should have, centimetres.
    pub off_cm: u32,
    pub commands: u64,
    /// Commands of which viewers were told.
    pub told: u64,
    acked: Seq,
    viewer: Extrapolator,
}

impl Server {
    pub fn new(map: Map, pos: Pos, speed_cm_s: u32, weather: Weather, seed: u64) -> Server {
        let mover = Mover::new(ServerMs(0), pos, speed_cm_s);
        Server {
            map,
            rules: rules(),
            viewer: Extrapolator::new(mover.trajectory(), Blend::default()),
            mover,
            inbox: Link::new(weather, seed),
            outbox: Link::new(weather, !seed),
            refused: Vec::new(),
            dropped: 0,
            off_cm: 0,
            commands: 0,
            told: 0,
            acked: Seq(0),
        }
    }

    pub fn on<'a>(map: &'a Map, rules: &'a Rules) -> Footing<'a, Map> {
        Footing { tiles: map, plane: PLANE, rules }
    }

    /// A tick: applies the messages that have arrived and sends updates. Returns the entity's
    /// position.
    pub fn tick(&mut self, now: u64) -> Pos {
        let at = ServerMs(now);
        while let Some((seq, order)) = self.inbox.receive(now) {
            self.commands += 1;
            let on = Server::on(&self.map, &self.rules);
            match self.mover.accept(at, seq, &order, &on) {
                Ok(Accepted::Changed) => self.tell(at),
                Ok(Accepted::Kept) => {}
                Ok(Accepted::Dropped) => self.dropped += 1,
                Err(refused) => {
                    self.refused.push(refused);
                    self.outbox.send(now, Down::Correction(refused.correction));
                    self.tell(at);
                }
            }
            self.acked = self.acked.max(seq);
            self.off_cm = self.off_cm.max(self.mover.off_cm());
        }
        let on = Server::on(&self.map, &self.rules);
        let advanced = self.mover.advance(at, &on);
        if advanced.halted {
            self.tell(at);
        }
        self.outbox.send(now, Down::Ack(self.acked));
        // A viewer that was told each change once computes what the server does.
        assert_eq!(self.viewer.position(at), advanced.pos, "a viewer at {now} ms");
        advanced.pos
    }

    fn tell(&mut self, now: ServerMs) {
        self.told += 1;
        let trajectory: Trajectory = self.mover.trajectory();
        self.viewer.told(now, trajectory);
    }

    /// The player leaves at `left` and joins again at `now`, where it was, with this account; what is
    /// under way is lost.
    pub fn rejoin(&mut self, now: u64, left: u64, weather: Weather) -> Pos {
        let (now, left) = (ServerMs(now), ServerMs(left));
        let on = Server::on(&self.map, &self.rules);
        let (pos, speed) = (self.mover.position(left, &on), self.mover.speed_cm_s());
        self.mover = Mover::back((now, left), pos, speed, &self.rules);
        (self.inbox, self.outbox) = (Link::new(weather, now.0), Link::new(weather, !now.0));
        self.viewer = Extrapolator::new(self.mover.trajectory(), Blend::default());
        self.acked = Seq(0);
        pos
    }

    pub fn correct(&mut self, now: u64, correction: Correction) {
        self.outbox.send(now, Down::Correction(correction));
        self.tell(ServerMs(now));
    }
}
