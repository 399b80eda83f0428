//! The types of `purview::interest` as messages, for clients.

use std::time::Duration;

use purview::interest::{Entity, Event, Mode, Position, Radii, Reach, Rules};
use purview::scene::Pos;

use super::proto::change::Change as Kind;
use super::proto::create_scene::Mode as ProtoMode;
use super::proto::reach::Reach as ProtoReach;
use super::proto::{
    self, ByDistance, Change, Circle, Create, CreateScene, Everything, Move, Patches, Rect,
    SceneUpdate,
};

/// A scene with these rules. `tick`: how often it ticks by itself, 10 ms to 60 s; `None`: the client
/// ticks it.
pub fn scene(rules: &Rules, tick: Option<Duration>) -> CreateScene {
    let ground = rules.ground;
    let pair = |rule: &purview::interest::PairRule| proto::PairRule {
        observer: rule.observer.into(),
        subject: rule.subject.into(),
        reach: rule.reach.map(reach),
    };
    let cap = |cap: purview::interest::Cap| proto::Cap {
        most: cap.most.into(),
        margin_cm: cap.margin_cm,
    };
    CreateScene {
        ground: Some(Rect { x0: ground.x0, z0: ground.z0, x1: ground.x1, z1: ground.z1 }),
        mode: Some(match rules.mode {
            Mode::Patches { patch_cm } => {
                ProtoMode::Patches(Patches { side_cm: patch_cm.unsigned_abs() })
            }
            Mode::Circle => ProtoMode::ByDistance(ByDistance {}),
            Mode::All => ProtoMode::Everything(Everything {}),
        }),
        reach: rules.reach.map(reach),
        pairs: rules.pairs.iter().map(pair).collect(),
        cap: rules.cap.map(cap),
        positions: rules.positions,
        tick_ms: tick.map_or(0, |tick| u32::try_from(tick.as_millis()).unwrap_or(u32::MAX)),
    }
}

/// A reach.
pub fn reach(reach: Reach) -> proto::Reach {
    let circle = |Radii { enter_cm, leave_cm, height_cm }: Radii| Circle {
        enter_cm: enter_cm.unsigned_abs(),
        leave_cm: leave_cm.unsigned_abs(),
        height_cm: height_cm.map(i32::unsigned_abs),
    };
    proto::Reach {
        reach: Some(match reach {
            Reach::Rings(rings) => ProtoReach::Rings(rings.bits().into()),
            Reach::Circle(radii) => ProtoReach::Circle(circle(radii)),
            Reach::All => ProtoReach::Everything(Everything {}),
        }),
    }
}

/// A change of a scene.
pub fn change(scene: u64, kind: Kind) -> Change {
    Change { scene, change: Some(kind) }
}

/// Entities to create, which see what the scene says.
pub fn create<'a>(entities: impl IntoIterator<Item = &'a Entity>) -> Kind {
    let mut all = Create::default();
    for Entity { id, kind, plane, pos, .. } in entities {
        all.ids.push(*id);
        all.kinds.push((*kind).into());
        all.planes.push(*plane);
        all.x.push(pos.x);
        all.y.push(pos.y);
        all.z.push(pos.z);
    }
    Kind::Create(all)
}

/// Moves on the ground: heights are 0.
pub fn moves<'a>(moves: impl IntoIterator<Item = &'a (u64, Pos)>) -> Kind {
    let mut all = Move::default();
    for (id, pos) in moves {
        all.ids.push(*id);
        all.x.push(pos.x);
        all.z.push(pos.z);
    }
    Kind::Move(all)
}

/// The end of a tick.
pub fn tick() -> Kind {
    Kind::Tick(proto::Tick {})
}

/// The events of an update. A shorter column ends them.
pub fn events(update: &SceneUpdate) -> impl Iterator<Item = Event> + '_ {
    let pairs = update.observers.iter().zip(&update.subjects).zip(&update.appears);
    pairs.map(|((observer, subject), appears)| Event {
        observer: *observer,
        subject: *subject,
        appears: *appears,
    })
}

/// The positions of an update. A shorter column ends them.
pub fn positions(update: &SceneUpdate) -> impl Iterator<Item = Position> + '_ {
    let places = update.x.iter().zip(&update.y).zip(&update.z);
    let places = places.map(|((x, y), z)| Pos { x: *x, y: *y, z: *z });
    update.moved.iter().zip(places).map(|(id, pos)| Position { id: *id, pos })
}

#[cfg(test)]
mod tests {
    use super::super::convert;
    use super::*;
    use purview::interest::{Cap, PairRule};
    use purview::scene::{self, RangeSet};

    #[test]
    fn rules_come_back_as_they_were() {
        let ground = scene::Rect { x0: -5, z0: 7, x1: 500, z1: 700 };
        let circle = Reach::Circle(Radii { height_cm: Some(0), ..Radii::new(10, 20) });
        let rings = Reach::Rings(RangeSet::MIDDLE);
        for (mode, reach) in [
            (Mode::Circle, circle),
            (Mode::Patches { patch_cm: 3 }, rings),
            (Mode::All, Reach::All),
        ] {
            let rules = Rules {
                pairs: vec![
                    PairRule { observer: 1, subject: 255, reach: Some(reach) },
                    PairRule { observer: 2, subject: 0, reach: None },
                ],
                cap: Some(Cap { most: 9, margin_cm: 11 }),
                positions: true,
                ..Rules::new(ground, mode, reach)
            };
            let tick = Some(Duration::from_millis(50));
            let scene = scene(&rules, tick);
            assert_eq!(convert::rules(&scene), Ok(rules));
            assert_eq!(convert::tick(&scene), Ok(tick));
        }
    }
}
