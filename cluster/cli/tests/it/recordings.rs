//! The recordings in virtual time: every step of every person goes through the regions, and after every tick links
//! are compared with brute force. No sockets, no clock: each run is the same.

#[path = "../../../../tests/it/support/mod.rs"]
#[allow(dead_code, reason = "the tests of the library use the rest of it")]
mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;

use purview::scene::spec::{LayerSpec, Rates};
use purview::scene::{EntityId, Plane, RangeSet, SceneSpec, SessionId};
use purview_lab::load::trace::Trace;
use support::brute::{self, Spells, pair};
use support::world::World;

fn recording(name: &str) -> Option<Trace> {
    let file =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces").join(name);
    if !file.exists() {
        println!("skipped: {} is not there", file.display());
        return None;
    }
    Some(Trace::open(&file).expect("a readable recording"))
}

/// Plays a recording at so many seconds per tick. Returns the longest periods of disagreement and of blocking, in
/// ticks, and the number of handoffs.
fn play(
    trace: &Trace,
    spec: SceneSpec,
    s_per_tick: f64,
    from_s: f64,
    to_s: f64,
) -> (u32, u32, u64) {
    let mut w = World::new(spec, 1);
    let mut live: BTreeMap<usize, (SessionId, usize)> = BTreeMap::new();
    let (mut odd, mut blocking) = (Spells::default(), Spells::default());
    let mut next = 0;
    let mut t = from_s;
    while t < to_s {
        t += s_per_tick;
        while next < trace.agents.len() && trace.agents[next].samples[0].t_s <= t {
            let agent = &trace.agents[next];
            if agent.samples[agent.samples.len() - 1].t_s >= from_s {
                let s = w.join(Plane(0), trace.pos(&agent.samples[0], 1.0), RangeSet::FULL);
                live.insert(next, (s, 0));
            }
            next += 1;
        }
        let mut gone = Vec::new();
        for (i, (s, at)) in &mut live {
            let samples = &trace.agents[*i].samples;
            while *at + 1 < samples.len() && samples[*at + 1].t_s <= t {
                *at += 1;
                if w.clients[s].epoch.0 > 0 {
                    w.walk(*s, trace.pos(&samples[*at], 1.0));
                }
            }
            if *at + 1 == samples.len() {
                gone.push(*i);
            }
        }
        for i in gone {
            let (s, _) = live[&i];
            if w.clients[&s].epoch.0 > 0 {
                live.remove(&i);
                w.leave(s);
                w.clients.remove(&s);
            }
        }
        w.step();
        // The views of the clients, which are the state before this tick's messages have arrived.
        let shown = w.shown();
        let mutual = |p: &&(EntityId, EntityId)| shown.contains(&(p.1, p.0));
        let links = shown.iter().filter(mutual).map(|p| pair(p.0, p.1)).collect();
        odd.see(shown.iter().filter(|p| !mutual(p)).map(|p| pair(p.0, p.1)).collect());
        blocking.see(brute::blocking(&w.scene, &w.truth, &links).into_iter().collect());
    }
    (odd.longest, blocking.longest, w.handoffs)
}

fn scene(width_cm: i32, depth_cm: i32, land_cm: i32, lands: i32, top_speed_cm_s: i32) -> SceneSpec {
    SceneSpec {
        width_cm,
        depth_cm,
        land_cm,
        region_lands_x: lands,
        region_lands_z: lands,
        layers: vec![LayerSpec::square("common", land_cm / 4)],
        // At twenty times the speed of people a step takes all the room of the mirrored band.
        patch_margin_cm: Some(0),
        rates: Rates { near: 1, middle: 1, far: 1 },
        handoff_margin_cm: 50,
        top_speed_cm_s,
        spawn_x_cm: 0,
        spawn_z_cm: 0,
        ..SceneSpec::default()
    }
}

#[test]
fn grand_central_at_20x_agrees_within_a_tick() {
    let Some(trace) = recording("grand_central_12684.csv.gz") else { return };
    // The edges cut the last lands, in which people walk: the hall is 76.6 m x 61.2 m.
    let spec = scene(8_100, 6_130, 1_600, 2, 19_000);
    let (odd, blocking, handoffs) = play(&trace, spec, 2.0, 3_400.0, 3_700.0);
    assert!(handoffs > 100, "{handoffs} handoffs");
    assert!(odd <= 1, "one-sided for {odd} ticks");
    assert!(blocking <= 1, "a blocking pair lasted {blocking} ticks");
}
