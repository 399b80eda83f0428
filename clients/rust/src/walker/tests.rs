//! A walker and the server's account of it, side by side.

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

/// Found by simulation: nothing told the client of an obstacle that it had not seen.
#[test]
fn at_rest_the_walker_is_where_the_server_has_it_whatever_each_knows_of_obstacles() {
    let tile = Some(Tile { x: 12, z: 10 });
    for (client, server, stands_at, corrections) in [
        (None, None, 1_300, 0),
        (tile, tile, 1_199, 0),
        (None, tile, 1_199, 1),
        (tile, None, 1_199, 0),
    ] {
        let mut b = Both { ground: Walled(server), ..Both::new() };
        let own = b.mover.own(ServerMs(0));
        let joined = joined(Some(&own));
        let mut walker = Walker::on(b.clock(), &joined, Walled(client)).expect("judged moves");
        let rules = move_rules().rules([10_000, 10_000]);
        let on = Footing { tiles: &b.ground, plane: Plane(0), rules: &rules };
        walker.walk_to(b.clock(), Pos { x: 1_300, ..START }, 500);
        for _ in 0..100 {
            b.now += 16;
            let now = ServerMs(b.now);
            while let Some(command) = walker.poll(b.clock(), b.seq.next()) {
                b.seq = b.seq.next();
                let _: Result<_, _> = b.mover.accept(now, b.seq, &command, &on);
            }
            let own = b.mover.own(now);
            walker.frame(b.clock(), &frame(b.seq.0, Some(&own)));
            b.mover.advance(now, &on);
        }
        let case = format!("client {client:?}, server {server:?}");
        let (here, there) = (walker.position(b.clock()), b.mover.position(ServerMs(b.now), &on));
        assert_eq!((here, here.x), (there, stands_at), "{case}");
        assert_eq!(b.mover.correction(), corrections, "{case}");
    }
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
