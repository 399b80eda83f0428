//! The player's own movement in a scene that judges moves.
//!
//! Games own one [`Walker`], give it wishes and frames, and send the commands it returns. It
//! follows every correction, and sends no command that an honest server refuses.
//!
//! ```text
//!   walk, walk_to, steps, stop          poll              send_walk
//!   the game ------------------> Walker ----> MoveCommand ------------> server
//!                                  ^                                    |
//!                                  '- frame, joined: acks, corrections <'
//! ```

use purview::scene::movement::{
    Blend, ClientMs, Flags, MoveCommand, Open, Predictor, ServerMs, Steps, Tiles, Wish,
};
use purview::scene::{Plane, Pos, Seq};
use purview::wire::client::Joined;
use purview::wire::{Frame, MoveRules, OwnMove};

use crate::occupied::Occupied;
use crate::view::View;

/// The player's own entity: what it wants to do, which commands to send, and where it is meanwhile.
/// It moves at once and tells the server; if the server disagrees, it follows the correction.
///
/// It has no clock and no socket: `now` is the client's time ([`crate::Clock::now`]) and must not
/// decrease from call to call. `T` is the ground as the game knows it. With [`Open`] ground only
/// the server knows the walls, and its corrections stop the player one round trip late.
#[derive(Debug)]
pub struct Walker<T = Open> {
    predictor: Predictor,
    ground: Occupied<T>,
    plane: Plane,
    rules: MoveRules,
    own: OwnMove,
    /// The present wish, kept so that it can be changed when the player becomes slower.
    wish: Wish,
}

impl Walker<Open> {
    /// The movement of a player that has just joined, on ground without a map; `None` if positions
    /// are trusted.
    pub fn new(now: ClientMs, joined: &Joined) -> Option<Walker> {
        let tile_cm = joined.rules.movement.as_ref()?.tile_cm;
        Walker::on(now, joined, Open { tile_cm })
    }
}

impl<T: Tiles> Walker<T> {
    /// As [`Walker::new`], on ground that the game knows. Its tiles must have the scene's side.
    pub fn on(now: ClientMs, joined: &Joined, tiles: T) -> Option<Walker<T>> {
        let (rules, own) = (joined.rules.movement.clone()?, joined.own.clone()?);
        let limits = rules.rules(joined.rules.size_cm);
        let predictor = Predictor::new(now, joined.pos, own.correction, limits, Blend::default());
        let ground = Occupied::nowhere(tiles);
        Some(Walker { predictor, ground, plane: joined.plane, rules, own, wish: Wish::Stand })
    }

    /// The player has teleported or resumed: it is where the last correction puts it, by the rules
    /// of the same or another scene. If a frame has brought that correction before, the player
    /// continues what it did since, and the server is told. Returns false, with nothing changed, if
    /// positions are trusted.
    pub fn joined(&mut self, now: ClientMs, joined: &Joined) -> bool {
        let (Some(rules), Some(own)) = (joined.rules.movement.clone(), joined.own.clone()) else {
            return false;
        };
        self.predictor.set_rules(rules.rules(joined.rules.size_cm));
        (self.rules, self.plane) = (rules, joined.plane);
        self.take(now, &own);
        true
    }

    /// The ground, for opening and closing doors.
    pub fn tiles_mut(&mut self) -> &mut T {
        &mut self.ground.tiles
    }

    /// The entities in view: those of kinds that block are in the way from now on. A game that does not say what it sees
    /// is corrected where they stop the player.
    pub fn sees(&mut self, view: &View) {
        self.ground.see(view, &self.rules.blocks);
    }

    /// Applies a frame's acknowledgement and own movement.
    pub fn frame(&mut self, now: ClientMs, frame: &Frame) {
        if let Some(own) = &frame.own {
            self.take(now, own);
        }
        self.predictor.acked(now, frame.ack);
    }

    fn take(&mut self, now: ClientMs, own: &OwnMove) {
        let trajectory = own.trajectory.on_tiles(self.rules.tile_cm);
        let (number, lasts_ms) = (own.correction, trajectory.lasts_ms);
        if number > self.predictor.correction() {
            self.wish = Wish::Stand;
        }
        let motion = trajectory.motion;
        self.predictor
            .corrected(now, &purview::scene::movement::Correction { number, motion, lasts_ms });
        self.own = own.clone();
        self.slow_down();
    }

    /// After the speed has dropped: walks on at the speed that is allowed now.
    fn slow_down(&mut self) {
        match self.wish {
            Wish::Straight { vx_mm_s, vz_mm_s, lasts_ms: None } => {
                let wished = self.wish_speed();
                if wished > self.speed() {
                    self.walk(vx_mm_s, vz_mm_s, self.speed());
                }
            }
            Wish::Steps { speed_cm_s, .. } if speed_cm_s > self.speed() => self.stop(),
            Wish::Stand | Wish::Straight { .. } | Wish::Steps { .. } => {}
        }
    }

    fn wish_speed(&self) -> u32 {
        match self.wish {
            Wish::Stand => 0,
            Wish::Straight { vx_mm_s, vz_mm_s, .. } => {
                let square = |v: i32| i64::from(v).pow(2) as u64;
                ((square(vx_mm_s) + square(vz_mm_s)).isqrt() / 10) as u32
            }
            Wish::Steps { speed_cm_s, .. } => speed_cm_s,
        }
    }

    /// The greatest speed without a time limit, centimetres per second.
    pub fn speed(&self) -> u32 {
        let endless = self.own.grants.iter().filter(|g| g.left_ms.is_none());
        endless.map(|g| g.speed).fold(self.own.speed, u32::max)
    }

    /// What keeps the player from moving. Wishes to walk are ignored meanwhile.
    pub fn flags(&self) -> Flags {
        self.own.flags
    }

    /// The last own movement that the server sent.
    pub fn own(&self) -> &OwnMove {
        &self.own
    }

    /// Walks straight on towards (`dx`, `dz`) until the next wish, at `speed_cm_s`, but at most
    /// [`Walker::speed`].
    pub fn walk(&mut self, dx: i32, dz: i32, speed_cm_s: u32) {
        self.wish(Wish::heading(dx, dz, speed_cm_s.min(self.speed())));
    }

    /// Walks straight to a position and stands there, within a centimetre or two.
    pub fn walk_to(&mut self, now: ClientMs, goal: Pos, speed_cm_s: u32) {
        let here = self.predictor.position(now);
        let (dx, dz) = (goal.x.saturating_sub(here.x), goal.z.saturating_sub(here.z));
        let way_cm = here.dist2(goal).isqrt();
        self.walk_for(dx, dz, speed_cm_s.min(self.speed()), |speed_cm_s| {
            u32::try_from(way_cm * 1_000 / u64::from(speed_cm_s.max(1))).unwrap_or(u32::MAX)
        });
    }

    /// Spends a speed that was granted for a time: straight on towards (`dx`, `dz`) for as long as
    /// it lasts. Returns false if there is no such grant.
    pub fn dash(&mut self, dx: i32, dz: i32) -> bool {
        let best = self.own.grants.iter_mut().filter(|g| g.left_ms.is_some_and(|ms| ms > 0));
        let Some(grant) = best.max_by_key(|g| g.speed) else { return false };
        let (speed, left_ms) = (grant.speed, grant.left_ms.replace(0).unwrap_or(0));
        self.walk_for(dx, dz, speed, |_| left_ms);
        true
    }

    fn walk_for(&mut self, dx: i32, dz: i32, speed_cm_s: u32, lasts: impl FnOnce(u32) -> u32) {
        let Wish::Straight { vx_mm_s, vz_mm_s, .. } = Wish::heading(dx, dz, speed_cm_s) else {
            return;
        };
        self.wish(Wish::Straight { vx_mm_s, vz_mm_s, lasts_ms: Some(lasts(speed_cm_s)) });
    }

    /// Walks tile by tile, at most at [`Walker::speed`]. A path that the ground does not allow is
    /// not walked.
    pub fn steps(&mut self, steps: Steps, speed_cm_s: u32) {
        self.wish(Wish::Steps { steps, speed_cm_s: speed_cm_s.min(self.speed()) });
    }

    /// Stands still.
    pub fn stop(&mut self) {
        self.wish(Wish::Stand);
    }

    fn wish(&mut self, wish: Wish) {
        if self.own.flags.is_free() || wish == Wish::Stand {
            self.wish = wish;
            self.predictor.wish(wish);
        }
    }

    /// The command to send at `now`, if any; send it at once as input number `seq`. Poll in every
    /// frame of the game until it returns `None`; [`crate::Sender::walk`] does.
    pub fn poll(&mut self, now: ClientMs, seq: Seq) -> Option<MoveCommand> {
        self.predictor.poll(now, seq, &self.ground, self.plane)
    }

    /// The player's position, equal to the server's unless a correction is on its way.
    pub fn position(&self, now: ClientMs) -> Pos {
        self.predictor.position(now)
    }

    /// The position to display: the same, blended after a correction.
    pub fn shown(&self, now: ClientMs) -> Pos {
        self.predictor.shown(now)
    }

    /// Whether the player stands at the leash and waits for an acknowledgement.
    pub fn is_held(&self) -> bool {
        self.predictor.is_held()
    }

    /// Number of the last correction that was followed.
    pub fn correction(&self) -> u32 {
        self.predictor.correction()
    }

    /// The player's position as other clients are told it, at a server time.
    pub fn told(&self, now: ServerMs) -> Pos {
        self.own.trajectory.on_tiles(self.rules.tile_cm).position(now)
    }
}

#[cfg(test)]
mod tests {
    use purview::scene::movement::{Footing, GrantId, Mover, Own};
    use purview::scene::{EntityId, Epoch, Kind, RangeSet, Tick, Tile, Visibility};
    use purview::wire::client::movement::{Blocker, Grant};
    use purview::wire::{Entered, JoinRules};

    use super::*;

    const TILES: Open = Open { tile_cm: 100 };
    const WALL: Kind = Kind(3);
    const OX: Kind = Kind(4);
    const START: Pos = Pos { x: 1_000, y: 0, z: 1_000 };

    fn move_rules() -> MoveRules {
        MoveRules {
            tick_ms: 100,
            tile_cm: 100,
            top_speed: 2_000,
            command_ms: 500,
            grace_ms: 300,
            leash_ms: 1_000,
            climb: None,
            blocks: [(WALL, [100; 2]), (OX, [400, 200])]
                .map(|(kind, size_cm)| Blocker { kind, size_cm })
                .to_vec(),
        }
    }

    fn joined(own: Option<&Own>) -> Joined {
        Joined {
            facing: Default::default(),
            id: EntityId(1),
            scene: "meadow".into(),
            plane: Plane(0),
            pos: START,
            tick: Tick(1),
            rules: JoinRules {
                visibility: Visibility::All,
                range: RangeSet::FULL,
                sight: RangeSet::FULL,
                patch_cm: [400; 2],
                patch_margin_cm: 0,
                height_cm: None,
                view_cap: 60,
                view_margin_cm: 0,
                rates: [1; 3],
                size_cm: [10_000, 10_000],
                movement: own.map(|_| move_rules()),
                updates: None,
            },
            own: own.map(OwnMove::from),
            ack: Seq(0),
            ticket: None,
        }
    }

    fn frame(ack: u32, own: Option<&Own>) -> Frame {
        Frame { own: own.map(OwnMove::from), ..Frame::empty(Tick(2), Seq(ack), Epoch(1)) }
    }

    /// The ground as the server has it, with a wall.
    struct Walled(Option<Tile>);

    impl Tiles for Walled {
        fn tile_cm(&self) -> i32 {
            TILES.tile_cm
        }

        fn is_free(&self, _: Plane, tile: Tile) -> bool {
            self.0 != Some(tile)
        }

        fn height_cm(&self, _: Tile) -> Option<i32> {
            None
        }
    }

    /// A walker and the server's account of it, without delay; the two clocks are a minute apart.
    struct Both {
        walker: Walker,
        mover: Mover,
        ground: Walled,
        seq: Seq,
        now: u64,
    }

    impl Both {
        fn new() -> Both {
            let mover = Mover::new(ServerMs(0), START, 500);
            let walker = Walker::new(ClientMs(60_000), &joined(Some(&mover.own(ServerMs(0)))));
            let (walker, ground) = (walker.expect("moves are judged"), Walled(None));
            Both { walker, mover, ground, seq: Seq(0), now: 0 }
        }

        fn clock(&self) -> ClientMs {
            ClientMs(60_000 + self.now)
        }

        /// Time passes; the server must accept every command.
        fn pass(&mut self, ms: u64) {
            let rules = move_rules().rules([10_000, 10_000]);
            let on = Footing { tiles: &self.ground, plane: Plane(0), rules: &rules };
            for _ in 0..ms / 10 {
                self.now += 10;
                let now = ServerMs(self.now);
                while let Some(command) = self.walker.poll(self.clock(), self.seq.next()) {
                    self.seq = self.seq.next();
                    let taken = self.mover.accept(now, self.seq, &command, &on);
                    assert!(taken.is_ok(), "{command:?}: {taken:?}");
                }
                self.mover.advance(now, &on);
                self.walker.frame(self.clock(), &frame(self.seq.0, None));
                assert_eq!(self.walker.position(self.clock()), self.mover.position(now, &on));
            }
        }

        fn tell_own(&mut self) {
            let own = self.mover.own(ServerMs(self.now));
            self.walker.frame(self.clock(), &frame(self.seq.0, Some(&own)));
        }
    }

    #[test]
    fn the_walker_walks_and_stops_where_the_server_has_it() {
        let mut b = Both::new();
        b.walker.walk(3, 4, 9_999);
        b.pass(1_500);
        assert_eq!(b.walker.position(b.clock()), Pos::ground(1_000 + 447, 1_000 + 596));
        b.walker.stop();
        b.pass(100);
        let goal = Pos::ground(2_000, 1_200);
        b.walker.walk_to(b.clock(), goal, 400);
        b.pass(3_000);
        let end = b.walker.position(b.clock());
        assert!(end.dist2(goal) <= 8, "{end:?}");
        b.walker.steps("7744".parse().unwrap(), 500);
        b.pass(1_000);
        assert_eq!(b.walker.position(b.clock()), Pos::ground(2_150, 1_450));
    }

    /// A wall in view: the walker stops where the server stops it, and needs no correction.
    #[test]
    fn the_walker_stops_before_what_it_sees_in_its_way() {
        let mut b = Both::new();
        let entered = |id, kind, x| Entered {
            id: EntityId(id),
            kind,
            x,
            y: START.y,
            z: START.z,
            facing: Default::default(),
            properties: Vec::new(),
            trajectory: None,
        };
        let mut view = View::of(&joined(None));
        let enters = vec![entered(7, Kind(1), 1_150), entered(8, WALL, 1_250)];
        view.apply(&Frame { enters, ..frame(0, None) }).unwrap();
        b.walker.sees(&view);
        b.ground = Walled(Some(Tile { x: 12, z: 10 }));
        b.walker.walk(1, 0, 500);
        b.pass(1_000);
        assert_eq!(b.walker.position(b.clock()), Pos { x: 1_199, ..START });
        assert_eq!(b.mover.correction(), 0);
        let leaves = vec![EntityId(8)];
        view.apply(&Frame { leaves, tick: Tick(3), ..frame(0, None) }).unwrap();
        b.walker.sees(&view);
        b.walker.walk(0, 1, 500);
        b.pass(100);
        b.walker.walk(1, 0, 500);
        b.ground = Walled(None);
        b.pass(500);
        assert!(b.walker.position(b.clock()).x > 1_300);
        // A body in columns 16 to 19.
        let enters = vec![entered(9, OX, 1_800)];
        view.apply(&Frame { enters, tick: Tick(4), ..frame(0, None) }).unwrap();
        b.walker.sees(&view);
        b.ground = Walled(Some(Tile { x: 16, z: 10 }));
        b.walker.walk(1, 0, 500);
        b.pass(1_000);
        assert_eq!((b.walker.position(b.clock()).x, b.mover.correction()), (1_599, 0));
    }

    #[test]
    fn there_is_no_walker_if_positions_are_trusted() {
        assert!(Walker::new(ClientMs(0), &joined(None)).is_none());
        assert!(!Both::new().walker.joined(ClientMs(60_000), &joined(None)));
    }

    #[test]
    fn the_walker_follows_corrections_and_a_jump() {
        let mut b = Both::new();
        b.walker.walk(1, 0, 500);
        b.pass(500);
        let rules = move_rules().rules([10_000, 10_000]);
        let on = Footing { tiles: &TILES, plane: Plane(0), rules: &rules };
        let there = Pos::ground(5_000, 5_000);
        b.mover.correct(ServerMs(b.now), purview::scene::movement::Move::stand(there), &on);
        b.tell_own();
        assert_eq!((b.walker.position(b.clock()), b.walker.correction()), (there, 1));
        assert_eq!(b.walker.shown(b.clock()), there, "too far to blend");
        b.walker.walk(0, 1, 500);
        b.pass(200);
        b.mover.set_flags(ServerMs(b.now), Flags::ROOTED, &on);
        b.tell_own();
        b.walker.walk(0, 1, 500);
        b.pass(200);
        assert_eq!(
            (b.walker.position(b.clock()), b.walker.flags()),
            (Pos::ground(5_000, 5_095), Flags::ROOTED)
        );
        b.mover.set_flags(ServerMs(b.now), Flags::default(), &on);
        b.mover.correct(ServerMs(b.now), purview::scene::movement::Move::stand(START), &on);
        let own = b.mover.own(ServerMs(b.now));
        assert!(b.walker.joined(b.clock(), &joined(Some(&own))));
        assert_eq!((b.walker.position(b.clock()), b.walker.correction()), (START, own.correction));
    }

    /// Found by simulation: a frame tells of a teleport before the `Joined` arrives.
    #[test]
    fn a_repeated_correction_does_not_stop_the_walker() {
        let mut b = Both::new();
        let rules = move_rules().rules([10_000, 10_000]);
        let on = Footing { tiles: &TILES, plane: Plane(0), rules: &rules };
        b.mover.correct(ServerMs(b.now), purview::scene::movement::Move::stand(START), &on);
        b.tell_own();
        let own = b.mover.own(ServerMs(b.now));
        b.walker.walk(1, 0, 500);
        b.pass(300);
        let here = b.walker.position(b.clock());
        assert_ne!(here, START);
        assert!(b.walker.joined(b.clock(), &joined(Some(&own))));
        assert_eq!(b.walker.position(b.clock()), here);
        b.pass(300);
        assert!(b.walker.position(b.clock()).x > here.x, "the player walks on");
    }

    #[test]
    fn the_walker_spends_grants_and_slows_down_when_it_must() {
        let mut b = Both::new();
        b.mover.grant_as(ServerMs(0), GrantId(1), 900, None).unwrap();
        b.mover.grant_as(ServerMs(0), GrantId(2), 2_000, Some(300)).unwrap();
        b.tell_own();
        assert_eq!(b.walker.speed(), 900);
        b.walker.walk(1, 0, 900);
        b.pass(1_000);
        assert_eq!(b.walker.position(b.clock()).x, 1_000 + 9 * 99);
        assert!(b.walker.dash(1, 0) && !b.walker.dash(1, 0));
        let from = b.walker.position(b.clock()).x;
        b.pass(1_000);
        assert!((550..=650).contains(&(b.walker.position(b.clock()).x - from)));
        b.walker.walk(1, 0, 900);
        b.pass(500);
        b.mover.revoke(ServerMs(b.now), GrantId(1));
        b.tell_own();
        b.pass(3_000);
        let own = &b.walker.own().grants;
        assert!(own.iter().all(|g: &Grant| g.left_ms.is_some()), "{own:?}");
    }
}
