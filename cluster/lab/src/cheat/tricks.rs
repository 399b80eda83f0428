//! The cheats, each class in several forms. All cheaters stand until the start, and then walk straight on.

use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use purview::scene::movement::{Go, Move};
use serde::Serialize;

use super::account::{Account, Trick};
use super::session::{Moment, TrialInput};
use super::sessions::{Change, Hop};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    Teleport,
    Speed,
    Wall,
    Clock,
    Flood,
    Replay,
    /// Pretends not to have received a correction, or to have received one that does not exist.
    Correction,
    /// Begins another session, so that what it owes would be forgotten.
    Session,
}

#[derive(Clone)]
pub struct Cheat {
    pub class: Class,
    pub name: String,
    pub trick: Trick,
    pub hop: Option<Hop>,
}

/// The honest way: a true clock and the common start.
pub fn honest(top: f64) -> Trick {
    Arc::new(move |a, now| {
        a.pass(now, 1.0);
        walk_on(a, now, top)
    })
}

/// Every cheat within one session, for players with the top speed `top`, centimetres per second.
pub fn cheats(top: f64) -> Vec<Cheat> {
    let mut all = Vec::new();
    teleports(top, &mut all);
    speeds(top, &mut all);
    walls(top, &mut all);
    clocks(top, &mut all);
    clocks_that_step(top, &mut all);
    floods(top, &mut all);
    replays(top, &mut all);
    corrections(top, &mut all);
    all
}

/// Each change of sessions with two lengths of a session and two claims.
pub fn sessions(top: f64) -> Vec<Cheat> {
    let mut all = Vec::new();
    for (change, name) in Change::ALL {
        for (stay_ms, claim_ms) in [(200, 900.0), (700, 400.0)] {
            let name = format!("{name}, claims {claim_ms} ms");
            add(&mut all, Class::Session, name, move |a, now| {
                if !std::mem::take(&mut a.begun) {
                    return walk_on(a, now, top);
                }
                let mut said = vec![a.forth(0, top)];
                a.clock += claim_ms;
                said.push(a.order(Go::On));
                if change == Change::Teleport {
                    said.extend([(); 2].map(|()| TrialInput::Teleport(a.ahead(5_000))));
                }
                said
            });
            let hop = Hop { change, stay: Duration::from_millis(stay_ms) };
            all.last_mut().expect("one was added").hop = Some(hop);
        }
    }
    all
}

fn add(
    all: &mut Vec<Cheat>,
    class: Class,
    name: impl Into<String>,
    trick: impl Fn(&mut Account, &Moment) -> Vec<TrialInput> + Send + Sync + 'static,
) {
    // Only cheats of the class clock state another one.
    let honest = class != Class::Clock;
    let trick = move |a: &mut Account, now: &Moment| {
        if honest {
            a.pass(now, 1.0);
        }
        trick(a, now)
    };
    all.push(Cheat { class, name: name.into(), trick: Arc::new(trick), hop: None });
}

/// The distance in so many seconds at a speed, centimetres.
fn cm(speed_cm_s: f64, s: f64) -> i32 {
    (speed_cm_s * s) as i32
}

/// Starts with all clients, sends a move command every half second of its clock, and starts again after a correction.
fn walk_on(a: &mut Account, now: &Moment, speed_cm_s: f64) -> Vec<TrialInput> {
    if now.ms < 0 {
        return Vec::new();
    }
    if !a.is_walking() {
        return vec![a.forth(0, speed_cm_s)];
    }
    if a.clock - a.said >= 480.0 { vec![a.order(Go::On)] } else { Vec::new() }
}

/// Whether a cheater that sends a new move every 0.4 s of its clock must send one.
fn is_due(a: &Account, now: &Moment) -> bool {
    now.ms >= 0 && (!a.is_walking() || a.clock - a.said >= 400.0)
}

fn teleports(top: f64, all: &mut Vec<Cheat>) {
    for cm in [cm(top, 0.06), 1_000, 5_000] {
        add(all, Class::Teleport, format!("{cm} cm on every second"), move |a, now| {
            match a.each(now, 1_000) {
                Some(n) if n >= 0 => vec![a.forth(cm, top)],
                _ => walk_on(a, now, top),
            }
        });
    }
    add(all, Class::Teleport, "places instead of moves", move |a, now| {
        let mut said = walk_on(a, now, top);
        if a.each(now, 1_000).is_some_and(|n| n >= 0) {
            said.push(TrialInput::Position(a.ahead(1_000)));
        }
        said
    });
    add(all, Class::Teleport, "teleports", move |a, now| {
        let mut said = walk_on(a, now, top);
        if a.each(now, 1_000).is_some_and(|n| n >= 0) {
            said.push(TrialInput::Teleport(a.ahead(5_000)));
        }
        said
    });
}

fn speeds(top: f64, all: &mut Vec<Cheat>) {
    for factor in [1.05, 1.2, 1.5, 2.0, 5.0, 10.0] {
        add(all, Class::Speed, format!("x {factor}, stated"), move |a, now| {
            walk_on(a, now, top * factor)
        });
    }
    for factor in [1.05, 2.0, 10.0] {
        add(all, Class::Speed, format!("x {factor}, by paths"), move |a, now| {
            match is_due(a, now) {
                true => vec![a.forth_by(8, (top * factor) as u32)],
                false => Vec::new(),
            }
        });
        add(all, Class::Speed, format!("x {factor}, unstated"), move |a, now| {
            if !is_due(a, now) {
                return Vec::new();
            }
            let ahead = if a.is_walking() { cm(top * (factor - 1.0), 0.4) } else { 0 };
            vec![a.forth(ahead, top)]
        });
    }
}

fn walls(top: f64, all: &mut Vec<Cheat>) {
    add(all, Class::Wall, "straight on", move |a, now| match a.each(now, 2_000) {
        Some(n) if n > 0 => vec![a.forth(0, top)],
        _ => walk_on(a, now, top),
    });
    add(all, Class::Wall, "by paths", move |a, now| match a.each(now, 200) {
        Some(0..) => vec![a.forth_by(2, top as u32)],
        _ => Vec::new(),
    });
    add(all, Class::Wall, "by hops", move |a, now| match a.each(now, 1_000) {
        Some(0..) => vec![a.forth(cm(top, 0.048), top)],
        _ => walk_on(a, now, top),
    });
    add(all, Class::Wall, "by teleports", move |a, now| match a.each(now, 1_000) {
        Some(0..) => vec![a.forth(300, 0.0)],
        _ => walk_on(a, now, top),
    });
}

fn clocks(top: f64, all: &mut Vec<Cheat>) {
    for rate in [1.05, 1.2, 1.5, 2.0, 5.0, 10.0] {
        add(all, Class::Clock, format!("x {rate}"), move |a, now| {
            a.pass(now, if now.ms < 0 { 1.0 } else { rate });
            walk_on(a, now, top)
        });
    }
    add(all, Class::Clock, "x 0.5", move |a, now| {
        a.pass(now, 0.5);
        walk_on(a, now, top)
    });
    add(all, Class::Clock, "stands, then x 2", move |a, now| {
        a.pass(now, if now.ms < 0 { 0.0 } else { 2.0 });
        match a.each(now, 500) {
            // It sends its move commands with a clock that stands still.
            Some(..0) => {
                let here = Move::stand(a.here());
                vec![a.order(Go::Walk(here))]
            }
            _ => walk_on(a, now, top),
        }
    });
}

fn clocks_that_step(top: f64, all: &mut Vec<Cheat>) {
    add(all, Class::Clock, "a second back every 3 s", move |a, now| {
        a.pass(now, 1.0);
        if a.each(now, 3_000).is_some_and(|n| n > 0) && a.is_walking() {
            a.clock -= 1_000.0;
            return vec![a.order(Go::On)];
        }
        walk_on(a, now, top)
    });
    add(all, Class::Clock, "a second on every 3 s", move |a, now| {
        a.pass(now, 1.0);
        let mut said = walk_on(a, now, top);
        if a.each(now, 3_000).is_some_and(|n| n > 0) {
            // Step by step: a client that sends nothing for so long stands.
            for _ in 0..4 {
                a.clock += 250.0;
                said.extend(walk_on(a, now, top));
            }
        }
        said
    });
    for silent_s in [1, 3] {
        let name = format!("silent, then {silent_s} s at once");
        add(all, Class::Clock, name, move |a, now| silent(a, now, silent_s * 1_000, top));
    }
    add(all, Class::Clock, "all that passes, at once", move |a, now| {
        // A clock that is a thousandth fast, most of the clock allowance, and most of how far ahead a move may begin.
        a.pass(now, if now.ms < 0 { 1.0 } else { 1.001 });
        let Some(n) = a.each(now, 400).filter(|n| *n >= 0) else { return Vec::new() };
        if (5..=15).contains(&n) && n % 5 == 0 {
            a.clock += 260.0;
        }
        let ahead = match n {
            3 | 8 => cm(top, 0.04),
            _ if n % 4 == 0 => 1,
            _ => 0,
        };
        vec![a.forth(ahead, top)]
    });
}

/// Sends nothing for so long, and then claims to have walked all the time.
fn silent(a: &mut Account, now: &Moment, silent_ms: i64, top: f64) -> Vec<TrialInput> {
    a.pass(now, 1.0);
    if a.each(now, silent_ms).is_none_or(|n| n < 0) {
        return Vec::new();
    }
    let then = a.clock;
    a.clock = a.said.max(then - silent_ms as f64);
    let mut all = vec![a.forth(0, top)];
    while a.clock + 400.0 < then {
        a.clock += 400.0;
        all.push(a.order(Go::On));
    }
    a.clock = then;
    all.push(a.order(Go::On));
    all
}

fn floods(top: f64, all: &mut Vec<Cheat>) {
    for ahead in [1, 5, cm(top, 0.048)] {
        add(all, Class::Flood, format!("{ahead} cm on in each frame"), move |a, now| {
            if now.ms < 0 { Vec::new() } else { vec![a.forth(ahead, top)] }
        });
    }
    add(all, Class::Flood, "a millisecond on in each frame", move |a, now| {
        if now.ms < 0 {
            return Vec::new();
        }
        a.clock += 1.0;
        vec![a.forth(0, top)]
    });
}

fn replays(top: f64, all: &mut Vec<Cheat>) {
    add(all, Class::Replay, "each number three times", move |a, now| {
        let said = walk_on(a, now, top);
        said.into_iter()
            .flat_map(|command| [command, TrialInput::Again(0), TrialInput::Again(0)])
            .collect()
    });
    add(all, Class::Replay, "numbers of long ago", move |a, now| {
        let mut said = walk_on(a, now, top);
        if !said.is_empty() {
            said.extend([2, 4, 8].map(TrialInput::Again));
        }
        said
    });
    add(all, Class::Replay, "old moves, new numbers", move |a, now| {
        let mut said = walk_on(a, now, top);
        if a.each(now, 1_000).is_some_and(|n| n > 0) {
            said.extend(a.command_again(1));
        }
        said
    });
}

fn corrections(top: f64, all: &mut Vec<Cheat>) {
    add(all, Class::Correction, "deaf", move |a, now| {
        a.correction = 0;
        match a.each(now, 400) {
            Some(0..) => vec![a.forth(cm(top, 0.06), top)],
            _ => Vec::new(),
        }
    });
    add(all, Class::Correction, "refused every second, for rest", move |a, now| {
        let said = walk_on(a, now, top);
        match a.each(now, 1_000) {
            Some(1..) => vec![a.forth(9_999, top)],
            _ => said,
        }
    });
    add(all, Class::Correction, "answers to none that was made", move |a, now| {
        let correction = a.correction;
        if a.each(now, 2_000).is_some_and(|n| n > 0) {
            a.correction += 7;
        }
        let said =
            if a.correction > correction { vec![a.order(Go::On)] } else { walk_on(a, now, top) };
        a.correction = correction;
        said
    });
}
