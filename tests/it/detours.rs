//! Messages to entities that are on their way, and messages lost with a region that crashes.

use std::sync::Arc;

use crate::support::alone::{frames, ghost, settled};
use crate::support::brute::{self, pair};
use crate::support::crash::Crash;
use crate::support::handed_over;
use crate::support::small_scene;
use crate::support::world::World;
use purview::scene::messages::{BorderBatch, Effect, GhostState, Handoff, Input, SeenState, Spawn};
use purview::scene::views::{ViewMsg, ViewMsgBody};
use purview::scene::{
    EntityId, Epoch, Kind, Pos, Region, RegionId, Scene, SceneId, SceneSpec, SessionId, Tick,
    Visibility,
};

const SIDE: i32 = 1_600;
const HERE: RegionId = RegionId(0);
const THERE: RegionId = RegionId(1);
/// The player of the neighbour that sends messages, and their receiver.
const SPEAKER: EntityId = EntityId(1);
const HEARER: EntityId = EntityId(2);
/// An npc of the neighbour.
const NPC: EntityId = EntityId(3);

fn scene(columns: i32, rows: i32, cap: usize) -> SceneSpec {
    SceneSpec {
        visibility: Visibility::Patches,
        patch_margin_cm: Some(0),
        view_cap: cap,
        rates: SceneSpec::default().rates,
        handoff_margin_cm: 50,
        ..small_scene((columns, rows), SIDE, 400)
    }
}

/// One of two regions; the test plays its neighbour.
struct Half {
    region: Region,
    tick: Tick,
}

impl Half {
    /// A region that has a ghost of the neighbour's near the border.
    fn new() -> Half {
        let scene = Scene::new(SceneId(0), scene(2, 1, 5), 100, HERE).expect("a legal scene");
        let region = Region::new(Arc::new(scene), HERE).expect("a region of it");
        let mut half = Half { region, tick: Tick(100) };
        let near = Pos::ground(SIDE + 100, 800);
        half.tick(vec![ghost(SPEAKER, Kind::PLAYER, near), ghost(NPC, Kind(1), near)]);
        half.tick(Vec::new());
        half
    }

    fn receive(&mut self, input: Input) -> Vec<Effect> {
        let mut fx = Vec::new();
        self.region.handle(input, &mut fx);
        fx
    }

    /// A whole tick in which the neighbour mirrors these entities and sends no view messages.
    fn tick(&mut self, enters: Vec<GhostState>) -> Vec<Effect> {
        let mut fx = self.begin(enters);
        fx.extend(self.end());
        fx
    }

    /// A tick up to the border rounds with the neighbour, which mirrors these entities.
    fn begin(&mut self, enters: Vec<GhostState>) -> Vec<Effect> {
        let (prev, tick) = (self.tick, self.tick.next());
        let prev = if prev == Tick(100) { Tick(0) } else { prev };
        self.tick = tick;
        let mut fx = Vec::new();
        self.region.tick(tick, &mut fx);
        let empty = BorderBatch::empty((THERE, Epoch(1), Epoch(1)), (tick, prev));
        let batch = BorderBatch { full: prev == Tick(0), enters, ..empty };
        fx.extend(self.receive(Input::Border(Box::new(batch))));
        fx
    }

    /// The neighbour has no view messages in this tick.
    fn end(&mut self) -> Vec<Effect> {
        let fx = self.receive(settled(THERE, self.tick, Vec::new()));
        assert!(self.region.is_closed());
        fx
    }

    /// A player is handed over whose last tick there was `tick`, and who sees the npc.
    fn hand_over(&mut self, id: EntityId, tick: Tick) -> Vec<Effect> {
        let state = Spawn {
            session: Some(SessionId(9)),
            ..Spawn::new(id, Kind::PLAYER, Pos::ground(SIDE - 100, 800))
        };
        let seen = vec![SeenState { id: NPC, sent: tick, withheld: 0 }];
        let handoff = handed_over(state, Epoch(1), tick);
        let handoff = Handoff { epoch: Epoch(2), seen, teleported: true, ..handoff };
        self.receive(Input::Handoff(Box::new(handoff)))
    }
}

/// View messages to players of the other region outside the border rounds.
fn said(fx: &[Effect]) -> Vec<(EntityId, EntityId, ViewMsgBody)> {
    let view = |e: &Effect| match e {
        Effect::View(THERE, msg) => Some((msg.from, msg.to, msg.say)),
        _ => None,
    };
    fx.iter().filter_map(view).collect()
}

fn yes() -> Input {
    let (from, from_region, from_epoch) = (SPEAKER, THERE, Epoch(1));
    Input::View(ViewMsg { from, from_region, from_epoch, to: HEARER, say: ViewMsgBody::Yes(7) })
}

#[test]
fn a_yes_to_a_player_on_its_way_waits_for_it() {
    let mut half = Half::new();
    assert_eq!(said(&half.receive(yes())), [], "no region answers in its name");
    assert_eq!(half.region.inspect_view_queue().len(), 1);
    let fx = half.hand_over(HEARER, half.tick);
    assert_eq!(said(&fx), [(HEARER, SPEAKER, ViewMsgBody::Yes(1))]);
    assert_eq!(half.region.inspect_view_queue(), []);
    assert_eq!(half.region.inspect_player(HEARER).expect("the player lives here").view.len(), 1);
}

#[test]
fn a_message_to_an_unknown_player_is_dropped_after_a_while_without_an_answer() {
    let mut half = Half::new();
    assert_eq!(said(&half.receive(yes())), []);
    let mut ticks = 0;
    while !half.region.inspect_view_queue().is_empty() {
        assert_eq!(said(&half.tick(Vec::new())), []);
        ticks += 1;
        assert!(ticks <= 30, "the message is kept for ever");
    }
    assert!(ticks > 10, "a player that arrives after {ticks} ticks would have missed it");
}

#[test]
fn a_yes_to_a_player_that_has_left_is_answered_by_no() {
    let mut half = Half::new();
    half.hand_over(HEARER, half.tick);
    half.tick(Vec::new());
    half.receive(Input::Leave(HEARER));
    half.tick(Vec::new());
    let no = ViewMsgBody::No { echo: 7, at: u32::MAX };
    assert_eq!(said(&half.receive(yes())), [(HEARER, SPEAKER, no)]);
}

#[test]
fn a_player_whose_old_region_was_a_tick_behind_gets_the_frame_of_the_settled_tick() {
    let mut half = Half::new();
    let behind = half.tick;
    half.begin(Vec::new());
    half.hand_over(HEARER, behind);
    let fx = half.end();
    let frames = frames(&fx)[0];
    assert_eq!(frames.sessions.len(), 1);
    let told = (frames.refs_of(&frames.sessions[0])[0], frames.leaves_of(&frames.sessions[0]));
    assert_eq!(told, (&[][..], &[][..]), "its view is unchanged");
}

/// A NO is lost with the region that forwarded it: only one of two has a link. When the neighbours
/// hear that the region has crashed, they negotiate anew; other players notice nothing.
#[test]
fn neighbours_of_a_crashed_region_negotiate_anew() {
    let mut w = World::new(scene(2, 2, 1), 1);
    let (north, south) = (RegionId(0), RegionId(2));
    let (_, a) = w.player(800, 1_550);
    let (_, b) = w.player(800, 1_650);
    let (_, c) = w.player(800, 1_750);
    let (far, _) = w.player(100, 1_550);
    let (away, _) = w.player(100, 1_650);
    w.steps(3);
    assert!(w.links().contains(&pair(a, b)));
    // A nearer player comes, and the message between the two is lost.
    let (_, d) = w.player(800, 1_500);
    for step in w.steps..w.steps + 200 {
        w.strikes.entry(step).or_default().push(Box::new(move |w: &mut World| {
            for input in w.queues.entry((north, south)).or_default() {
                if let Input::BorderRound(batch) = input {
                    batch.view_messages.retain(|m| (m.from, m.to) != (a, b));
                }
            }
        }));
    }
    w.steps(10);
    let (links, odd) = w.links_and_odd();
    assert!(links.contains(&pair(a, d)) && odd.contains(&pair(a, b)), "{links:?} {odd:?}");
    w.crash(RegionId(3), Crash { back_in: Some(0), loses_sent: true });
    w.steps(3);
    let links = w.links();
    assert!(links.contains(&pair(b, c)));
    assert_eq!(links, brute::greedy(&w.scene, &w.truth, &links));
    for session in [far, away] {
        let client = &w.clients[&session];
        assert_eq!((client.entered.len(), client.left.len()), (1, 0), "{}", client.entity);
    }
}
