//! Portals take players that walk into them: once, over borders and deaths, to any scene.

use std::sync::Arc;

use purview::scene::messages::{Asker, Command, CommandError, CommandId, Input, Order};
use purview::scene::portals::{Journey, PortalSpec, Target, ToPlane};
use purview::scene::region::Atlas;
use purview::scene::{
    EntityId, Plane, Pos, RangeSet, Rect, RegionId, Scene, SceneId, SceneSpec, SessionId,
};

use crate::support::world::World;
use crate::support::{Change, assert_wrong, small_scene};

const HERE: Plane = Plane(0);

/// Where portals of [`spec`] lead.
const EAST: Pos = Pos { x: 6_000, y: 0, z: 3_200 };
const WEST: Pos = Pos { x: 3_200, y: 0, z: 3_200 };

fn portal(name: &str, at: Pos, to: Pos) -> PortalSpec {
    let area = Rect { x0: at.x - 300, z0: at.z - 300, x1: at.x + 300, z1: at.z + 300 };
    PortalSpec {
        name: name.into(),
        area,
        to: Journey { scene: None, plane: ToPlane::Line, at: Target::Ground(to) },
    }
}

/// Regions of 32 m, three by two. A portal on the corner of four regions leads to the middle of another one in the
/// east, and that one back.
fn spec(name: &str) -> SceneSpec {
    SceneSpec {
        name: name.into(),
        region_lands_x: 2,
        region_lands_z: 2,
        portals: vec![portal("to the east", WEST, EAST), portal("to the west", EAST, WEST)],
        patch_margin_cm: Some(0),
        ..small_scene((6, 4), 1_600, 400)
    }
}

/// The line for the next player of every scene.
const NEXT_LINE: Plane = Plane(2);

/// Scenes as they are.
#[derive(Debug)]
struct Maps(Vec<Arc<Scene>>);

impl Atlas for Maps {
    fn scene_named(&self, name: &str) -> Option<Arc<Scene>> {
        self.0.iter().find(|known| known.spec.name == name).cloned()
    }

    fn next_line(&self, scene: SceneId) -> Option<Plane> {
        let scene = self.0.iter().find(|known| known.id == scene)?;
        Some(if scene.spec.name == "city" { NEXT_LINE } else { Plane(0) })
    }
}

fn know_all(w: &mut World) {
    let maps = Arc::new(Maps(w.scenes.clone()));
    w.regions.iter_mut().for_each(|region| region.set_atlas(maps.clone()));
}

fn place(w: &World, session: SessionId) -> (SceneId, Plane, Pos) {
    let id = w.clients[&session].entity;
    let player = w.players()[&id].clone();
    (player.scene, player.plane, player.pos)
}

/// Walks in steps of a metre.
fn walk(w: &mut World, session: SessionId, to: Pos) {
    let mut at = place(w, session).2;
    while at != to {
        let step = |from: i32, to: i32| from + (to - from).clamp(-100, 100);
        at = Pos::ground(step(at.x, to.x), step(at.z, to.z));
        w.walk(session, at);
        w.step();
        if place(w, session).2 != at {
            return w.steps(4);
        }
    }
    w.steps(4);
}

#[test]
fn a_player_that_walks_into_a_portal_is_taken_once() {
    // From every side of the corner of four regions.
    for (x, z) in [(2_800, 3_200), (3_600, 3_200), (3_200, 2_800), (3_200, 3_600), (2_700, 2_700)] {
        let mut w = World::new(spec("field"), 1);
        let s = w.join(HERE, Pos::ground(x, z), RangeSet::FULL);
        w.steps(3);
        walk(&mut w, s, WEST);
        assert_eq!(place(&w, s), (SceneId(0), HERE, EAST), "from {x}, {z}");
        w.steps(20);
        assert_eq!(place(&w, s).2, EAST, "it was put down in an area, and stays");
        // Within the area it may walk.
        walk(&mut w, s, Pos::ground(EAST.x + 200, EAST.z));
        assert_eq!(place(&w, s).2, Pos::ground(EAST.x + 200, EAST.z));
        walk(&mut w, s, Pos::ground(EAST.x + 500, EAST.z));
        walk(&mut w, s, EAST);
        assert_eq!(place(&w, s).2, WEST, "it has left the area and comes again");
    }
}

#[test]
fn a_player_that_joins_in_an_area_has_to_leave_it_first() {
    let mut w = World::new(spec("field"), 2);
    let s = w.join(HERE, Pos::ground(3_150, 3_150), RangeSet::FULL);
    w.steps(5);
    // Over the borders within the area.
    for (x, z) in [(3_450, 3_150), (3_450, 3_450), (2_950, 3_450), (2_950, 2_950)] {
        walk(&mut w, s, Pos::ground(x, z));
        assert_eq!(place(&w, s).2, Pos::ground(x, z));
    }
    walk(&mut w, s, Pos::ground(2_700, 2_950));
    walk(&mut w, s, WEST);
    assert_eq!(place(&w, s).2, EAST);
}

#[test]
fn a_portal_leads_to_a_plane_of_another_scene_by_its_name() {
    let mut field = spec("field");
    let far = Pos::ground(8_000, 5_000);
    field.portals[0].to = Journey {
        scene: Some("cave".into()),
        plane: ToPlane::Of(Plane(5)),
        at: Target::Ground(far),
    };
    let mut w = World::new(field, 3);
    let mut cave = spec("cave");
    // What puts the player down lies in an area there, which leads back.
    let back =
        Journey { scene: Some("field".into()), plane: ToPlane::Line, at: Target::Ground(EAST) };
    cave.portals = vec![PortalSpec { to: back, ..portal("back", far, far) }];
    let cave = w.add_scene(cave);
    know_all(&mut w);
    let s = w.join(HERE, Pos::ground(2_700, 3_200), RangeSet::FULL);
    w.steps(3);
    walk(&mut w, s, WEST);
    w.steps(10);
    assert_eq!(place(&w, s), (cave, Plane(5), far));
    walk(&mut w, s, Pos::ground(8_500, 5_000));
    walk(&mut w, s, far);
    w.steps(10);
    assert_eq!(place(&w, s), (SceneId(0), Plane(5), EAST));
}

#[test]
fn a_portal_to_a_scene_of_several_lines_leads_to_the_line_for_the_next_player() {
    let (line, number, same) = (ToPlane::Line, ToPlane::Of(Plane(1)), ToPlane::Same);
    // From a private plane players go on to the private plane of the same number. A token names a party's line.
    for (from, plane, listed, to) in [
        (HERE, line, &[][..], NEXT_LINE),
        (HERE, line, &[("city", 70), ("field", 0), ("city", 1), ("city", 0)], Plane(1)),
        (HERE, line, &[("city", 70), ("field", 0)], NEXT_LINE),
        (HERE, same, &[("city", 1)], HERE),
        (HERE, number, &[("city", 0)], Plane(1)),
        (Plane(7), line, &[("city", 1)], Plane(7)),
    ] {
        let mut field = spec("field");
        field.portals[0].to =
            Journey { scene: Some("city".into()), plane, at: Target::Ground(EAST) };
        let mut w = World::new(field, 6);
        let city = w.add_scene(spec("city"));
        know_all(&mut w);
        w.listed = listed.iter().map(|(scene, plane)| ((*scene).into(), Plane(*plane))).collect();
        let s = w.join(from, Pos::ground(2_700, 3_200), RangeSet::FULL);
        w.steps(3);
        walk(&mut w, s, WEST);
        w.steps(10);
        assert_eq!(place(&w, s), (city, to, EAST), "from {from} by {plane:?}, {listed:?}");
    }
}

#[test]
fn logic_sends_an_entity_to_a_scene_by_its_name() {
    let mut w = World::new(spec("field"), 4);
    let cave = w.add_scene(spec("cave"));
    know_all(&mut w);
    let s = w.join(HERE, Pos::ground(500, 500), RangeSet::FULL);
    w.steps(3);
    let id: EntityId = w.clients[&s].entity;
    let send = |w: &mut World, scene: &str| {
        let to =
            Journey { scene: Some(scene.into()), plane: ToPlane::Line, at: Target::Ground(EAST) };
        let call = CommandId { from: Asker::Process(1), number: 1 };
        w.tell(RegionId(0), Input::command(call, Command::Order(id, Order::Travel(to))));
        w.steps(10);
    };
    send(&mut w, "moon");
    assert_eq!(w.answers.pop().unwrap().result, Err(CommandError::NoPlace));
    assert_eq!(place(&w, s).0, SceneId(0));
    send(&mut w, "cave");
    assert_eq!(w.answers.pop().unwrap().result, Ok(()));
    assert_eq!(place(&w, s), (cave, HERE, EAST));
}

#[test]
fn marks_outlive_the_death_of_a_region() {
    for inside in [true, false] {
        let mut w = World::new(spec("field"), 5);
        w.sessions = true;
        w.kills.checkpoint_every = 1;
        let at = if inside { Pos::ground(3_100, 3_100) } else { Pos::ground(2_700, 2_700) };
        let s = w.join(HERE, at, RangeSet::FULL);
        w.steps(6);
        w.kill(RegionId(0), 3);
        w.steps(30);
        assert_eq!(place(&w, s).2, at, "nothing takes it");
        walk(&mut w, s, Pos::ground(3_000, 3_000));
        let taken = place(&w, s).2 == EAST;
        assert_eq!(taken, !inside, "it was inside: {inside}");
    }
}

/// A portal of the whole map.
fn everywhere(n: usize) -> PortalSpec {
    let area = Rect { x0: 0, z0: 0, x1: 9_600, z1: 6_400 };
    PortalSpec { area, ..portal(&format!("portal {n}"), EAST, WEST) }
}

#[test]
fn what_is_wrong_with_portals_is_said() {
    let cases: [(Change<'_>, &str); 6] = [
        (&|s| s.portals[1].name = "to the east".into(), "another portal has this name"),
        (&|s| s.portals[0].name = "\n".into(), "1 to 64 bytes"),
        (&|s| s.portals = (0..60_000).map(everywhere).collect(), "may touch 1000000 lands"),
        (&|s| s.portals[0].area.x1 = 9_700, "must lie on the map of 96 m x 64 m"),
        (&|s| s.portals[0].area.x1 = s.portals[0].area.x0 + 200, "a tick at top speed"),
        (
            &|s| s.portals[0].to.at = Target::Ground(Pos::ground(-1, 0)),
            "must lead to a place of the scene",
        ),
    ];
    cases.into_iter().for_each(|(change, says)| assert_wrong(&spec("field"), change, says));
}
