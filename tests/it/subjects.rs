//! A session has a player of its own subject only. A session of another subject that knows the player's
//! number is refused on every path: the owner's session goes on, and nothing of the player changes. The owner's session says
//! what it knows before the player leaves.

use crate::support::alone::{claims, handoffs, nothing_of, ordered, recover};
use crate::support::presented_by;
use crate::support::session::resume_of;
use crate::support::trial::scene;
use crate::support::whose;
use crate::support::world::World;
use purview::scene::messages::{
    Claim, Effect, FIRST_SESSION, Handoff, Input, Notice, Order, Presented, Refusal, Resume, Spawn,
};
use purview::scene::properties::Properties;
use purview::scene::region::RegionSnapshot;
use purview::scene::{
    EntityId, Epoch, Facing, Kind, Plane, Pos, RangeSet, Region, RegionId, SessionId, SubjectHash,
    Tick, Visibility,
};

const HERE: RegionId = RegionId(0);
const NEXT: RegionId = RegionId(1);

const STRANGER: SessionId = SessionId(77);

/// Far above the epochs and times of the owner's session: what the stranger says looks newer.
const LATER: u64 = 1 << 40;

fn strangers() -> SubjectHash {
    whose(EntityId(999))
}

/// A region in which the player of a session lives.
struct Home {
    w: World,
    owner: SessionId,
    id: EntityId,
}

fn home() -> Home {
    let mut w = World::new(scene(Visibility::Patches, 60), 1);
    let owner = w.join(Plane(0), Pos::ground(2_000, 500), RangeSet::FULL);
    w.steps(2);
    let id = w.clients[&owner].entity;
    Home { w, owner, id }
}

impl Home {
    fn resume(&self, session: SessionId, subject: SubjectHash) -> Input {
        Input::Resume(Resume { subject, ..resume_of(session, self.id, HERE, LATER) })
    }

    fn present(&self, session: SessionId, subject: SubjectHash, since_ms: u64) -> Input {
        Input::Present(Box::new(Presented {
            subject,
            to: HERE,
            epoch: Epoch(2),
            facing: Facing::SOUTH,
            properties: Properties::with_appearance(b"stolen").unwrap(),
            since_ms,
            ..presented_by(session, self.id, Pos::ground(1_000, 1_000), self.w.tick)
        }))
    }

    /// The region goes on from its checkpoint: the player waits for its session.
    fn recovered(&self) -> Region {
        let kept = self.w.regions[0].checkpoint().expect("a closed tick");
        recover(&self.w.scene, through_bytes(kept), &[], 400).0
    }
}

fn through_bytes(snapshot: RegionSnapshot) -> RegionSnapshot {
    RegionSnapshot::decode(&snapshot.encode().unwrap()).unwrap()
}

fn notices(fx: &[Effect]) -> Vec<(SessionId, &'static str)> {
    let name = |notice: &Notice| match notice {
        Notice::Route(_) => "route",
        Notice::Left { .. } => "left",
        Notice::Bonds { .. } => "bonds",
        Notice::Present { .. } => "present",
        Notice::Resumed(_) => "resumed",
        Notice::Nowhere { .. } => "nowhere",
        Notice::OtherSubject => "other subject",
        Notice::Replaced => "replaced",
        Notice::Refused(Refusal::OutOfBounds) => "refused",
        Notice::Refused(_) => "refused otherwise",
        Notice::Kicked => "kicked",
        Notice::Stays { .. } => "stays",
    };
    let told = fx.iter().filter_map(|effect| match effect {
        Effect::Notice(session, notice) => Some((*session, name(notice))),
        _ => None,
    });
    told.collect()
}

/// What sessions are told after an input, in so many ticks that the region closes some of them without its
/// neighbours, which are silent.
fn say(region: &mut Region, input: Input) -> Vec<(SessionId, &'static str)> {
    let mut fx = Vec::new();
    region.handle(input, &mut fx);
    let now = region.current_tick().0;
    (now + 1..now + 30).for_each(|now| region.tick(Tick(now), &mut fx));
    notices(&fx)
}

/// What may not change: where the player is, under which epoch, for which session, and its properties.
fn state_of(region: &Region, id: EntityId) -> String {
    let lives = region.acting_players().find(|player| player.id == id).expect("it lives here");
    format!("{lives:?} {:?}", region.find(id).map(|entity| entity.properties))
}

fn epoch_of(region: &Region, id: EntityId) -> Epoch {
    region.acting_players().find(|player| player.id == id).expect("it lives here").epoch
}

#[test]
fn a_session_of_another_subject_neither_resumes_nor_presents_a_player_that_lives_here() {
    let mut home = home();
    let id = home.id;
    let asks = [
        home.resume(STRANGER, strangers()),
        home.present(STRANGER, strangers(), LATER),
        home.resume(STRANGER, SubjectHash::NONE),
    ];
    for (n, ask) in asks.into_iter().enumerate() {
        let region = &mut home.w.regions[0];
        let before = state_of(region, id);
        assert_eq!(say(region, ask), [(STRANGER, "other subject")]);
        assert_eq!(state_of(region, id), before);
        assert_eq!(region.counts().other_subjects, n as u64 + 1);
    }
    // The owner's other connection has the player at once.
    let newer = SessionId(5);
    let resume = home.resume(newer, whose(id));
    let news = say(&mut home.w.regions[0], resume);
    assert!(news.contains(&(newer, "resumed")), "{news:?}");
    assert!(news.contains(&(home.owner, "replaced")), "{news:?}");
}

#[test]
fn a_player_that_waits_for_its_session_after_a_recovery_is_for_its_own_subject_alone() {
    let home = home();
    for ask in [
        home.resume(STRANGER, strangers()),
        home.present(STRANGER, strangers(), LATER),
        home.present(STRANGER, SubjectHash::NONE, LATER),
    ] {
        let mut region = home.recovered();
        assert_eq!(say(&mut region, ask), [(STRANGER, "other subject")]);
        let counts = region.counts();
        assert_eq!((counts.unclaimed, counts.other_subjects), (1, 1));
        let owner = home.present(home.owner, whose(home.id), FIRST_SESSION);
        assert_eq!(say(&mut region, owner), [(home.owner, "route")]);
        assert_eq!(region.counts().unclaimed, 0);
    }
    let mut region = home.recovered();
    (100..140).for_each(|now| region.tick(Tick(now), &mut Vec::new()));
    let newer = SessionId(5);
    let news = say(&mut region, home.resume(newer, whose(home.id)));
    assert!(news.contains(&(newer, "resumed")), "{news:?}");
}

/// What the session was told since the checkpoint is stored. Found by simulation.
#[test]
fn a_player_that_leaves_while_it_waits_is_presented_first_unless_its_session_cannot() {
    let home = home();
    let leave = || Input::Disconnected { id: home.id, session: home.owner, ms: 0 };
    let mut region = home.recovered();
    assert_eq!(say(&mut region, leave()), [(home.owner, "present")]);
    assert_eq!(region.counts().unclaimed, 1);
    let owner = home.present(home.owner, whose(home.id), FIRST_SESSION);
    assert_eq!(say(&mut region, owner), [(home.owner, "route")]);
    assert_eq!(say(&mut region, leave()), [(home.owner, "left")]);
    let mut region = home.recovered();
    assert_eq!(say(&mut region, leave()), [(home.owner, "present")]);
    assert_eq!(say(&mut region, leave()), [(home.owner, "left")]);
    assert_eq!(region.counts().unclaimed, 0);
}

#[test]
fn a_join_with_the_number_of_a_player_that_waits_is_refused() {
    let home = home();
    let spawn = |subject| {
        let player = Spawn::new(home.id, Kind::PLAYER, Pos::ground(1_000, 1_000));
        Input::Enter(Box::new(Spawn { session: Some(STRANGER), subject, ..player }))
    };
    let mut region = home.recovered();
    let news = say(&mut region, spawn(strangers()));
    assert_eq!(news, [(STRANGER, "refused")]);
    assert_eq!((region.counts().unclaimed, region.counts().other_subjects), (1, 1));
}

#[test]
fn a_statement_that_a_player_lives_elsewhere_counts_from_its_own_subject_alone() {
    let home = home();
    let claim = Claim { id: home.id, epoch: Epoch(5), region: NEXT };
    let elsewhere = |subject| Input::Elsewhere { claim, session: home.owner, subject };
    // Lives here.
    let mut region = home.recovered();
    let owner = home.present(home.owner, whose(home.id), FIRST_SESSION);
    say(&mut region, owner);
    let claim = Claim { epoch: Epoch(epoch_of(&region, home.id).0 + 9), ..claim };
    say(&mut region, Input::Elsewhere { claim, session: home.owner, subject: strangers() });
    assert!(region.find(home.id).is_some_and(|entity| !entity.ghost));
    say(&mut region, Input::Elsewhere { claim, session: home.owner, subject: whose(home.id) });
    assert!(region.find(home.id).is_none_or(|entity| entity.ghost));
    // Waits here, or is about to be presented.
    let mut region = home.recovered();
    say(&mut region, elsewhere(strangers()));
    assert_eq!((region.counts().unclaimed, region.counts().other_subjects), (1, 1));
    say(&mut region, elsewhere(whose(home.id)));
    assert_eq!(region.counts().unclaimed, 0);
}

#[test]
fn a_session_whose_player_is_displaced_asks_in_the_name_of_its_subject() {
    let mut home = home();
    let mut there = home.recovered();
    let (id, subject) = (home.id, whose(home.id));
    let epoch = Epoch(epoch_of(&home.w.regions[0], id).0 + 5);
    let claim = Claim { id, epoch, region: NEXT };
    let mut fx = Vec::new();
    let elsewhere = Input::Elsewhere { claim, session: home.owner, subject };
    home.w.regions[0].handle(elsewhere, &mut fx);
    let asked = fx.iter().find_map(|effect| match effect {
        Effect::Forward(to, input) => match &**input {
            Input::Resume(resume) => Some((*to, resume.session, resume.subject)),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(asked, Some((NEXT, home.owner, subject)));
    // The player that lives there is another subject's after all.
    let other = home.present(STRANGER, strangers(), LATER);
    assert_eq!(say(&mut there, other), [(STRANGER, "other subject")]);
}

#[test]
fn a_player_keeps_its_subject_through_a_migration_and_a_handoff() {
    let mut home = home();
    let (id, owner) = (home.id, home.owner);
    // Over the border, into the next region.
    for x in (2_000..3_500).step_by(190) {
        home.w.walk(owner, Pos::ground(x, 500));
        home.w.step();
    }
    home.w.steps(3);
    let at = home.w.regions.iter().position(|r| r.find(id).is_some_and(|e| !e.ghost)).unwrap();
    assert_ne!(at, 0, "it has walked to another region");
    let region = home.w.regions.swap_remove(at);
    let (here, epoch) = (region.id(), Epoch(region.epoch().0 + 1));
    let frozen = through_bytes(region.freeze().expect("it may move"));
    let scene = home.w.scene.clone();
    let mut moved = Region::restore(scene, here, epoch, frozen, &mut Vec::new()).unwrap();
    let stranger = home.resume(STRANGER, strangers());
    assert_eq!(say(&mut moved, stranger), [(STRANGER, "other subject")]);
    let newer = SessionId(5);
    let news = say(&mut moved, home.resume(newer, whose(id)));
    assert!(news.contains(&(newer, "resumed")), "{news:?}");
}

#[test]
fn a_player_that_is_handed_back_after_a_death_is_for_its_own_subject_alone() {
    let home = home();
    let kept = home.recovered();
    // The region that had handed it here remembers it with its subject.
    let escrow = kept.unclaimed_sessions();
    assert_eq!(escrow.collect::<Vec<_>>(), [(home.id, home.owner)]);
    let scene = &home.w.scene;
    let (mut nothing, _) = recover(scene, nothing_of(scene, HERE), &[], 400);
    let handed = claims(NEXT, Some(Epoch(9)), 100, Vec::new(), vec![handoff_of(&home)]);
    nothing.handle(handed, &mut Vec::new());
    assert_eq!(nothing.counts().unclaimed, 1);
    let stranger = home.resume(STRANGER, strangers());
    assert_eq!(say(&mut nothing, stranger), [(STRANGER, "other subject")]);
    assert_eq!(nothing.counts().unclaimed, 1);
}

/// The player as a region hands it over.
fn handoff_of(home: &Home) -> Handoff {
    let mut w = World::new(scene(Visibility::Patches, 60), 1);
    let owner = w.join(Plane(0), Pos::ground(3_190, 500), RangeSet::FULL);
    w.steps(2);
    assert_eq!(w.clients[&owner].entity, home.id);
    let id = w.clients[&owner].entity;
    let order = Order::Move(Pos::ground(3_390, 500));
    let mut fx = Vec::new();
    w.regions[0].handle(ordered(id, owner, 1, order), &mut fx);
    (1..30).for_each(|n| w.regions[0].tick(Tick(w.tick.0 + n), &mut fx));
    handoffs(&fx).remove(0).1
}
