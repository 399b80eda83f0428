//! Messages as the types of `purview::interest`, and its errors as refusals.

use std::time::Duration;

use purview::interest::{
    Area, Cap, KindSet, Mode, PairRule, Place, Radii, Reach, RequestError, Rules, Sight, TickError,
};
use purview::scene::{Pos, RangeSet, Rect};

use super::proto::create_scene::Mode as ProtoMode;
use super::proto::reach::Reach as ProtoReach;
use super::proto::{self, CreateScene, Reason};

/// Shortest and longest tick of a scene that ticks by itself, milliseconds.
const TICK_MS: std::ops::RangeInclusive<u32> = 10..=60_000;

/// Why a change, or an item of it, is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub reason: Reason,
    pub text: String,
}

impl Fault {
    pub fn new(reason: Reason, text: impl Into<String>) -> Fault {
        Fault { reason, text: text.into() }
    }

    fn rules(text: impl Into<String>) -> Fault {
        Fault::new(Reason::Rules, text)
    }
}

impl From<RequestError> for Fault {
    fn from(error: RequestError) -> Fault {
        let reason = match error {
            RequestError::Unknown(_) => Reason::UnknownEntity,
            RequestError::Duplicate(_) => Reason::DuplicateEntity,
            RequestError::OutOfBounds { .. } => Reason::OutOfBounds,
            RequestError::Reach { .. } => Reason::Reach,
            RequestError::TooManyClasses(_) => Reason::TooManyCombinations,
            RequestError::Full(_) => Reason::Full,
            RequestError::NoCap(_)
            | RequestError::Strength { .. }
            | RequestError::GroupFull { .. } => Reason::Bond,
        };
        Fault::new(reason, error.to_string())
    }
}

impl From<TickError> for Fault {
    fn from(error: TickError) -> Fault {
        let (reason, flags) = match error {
            TickError::Events(_) => (Reason::TooManyEvents, "--tick-events"),
            TickError::Pairs { .. } => (Reason::TooManyPairs, "--session-pairs, --pairs"),
        };
        Fault::new(reason, format!("{error} ({flags})"))
    }
}

pub fn place(from: &proto::Place) -> Result<Place, Fault> {
    use proto::place::Area as From;
    let area = match &from.area {
        None => return Err(Fault::new(Reason::Query, "the place has no `rect` and no `circle`")),
        Some(From::Rect(r)) => Area::Rect(Rect { x0: r.x0, z0: r.z0, x1: r.x1, z1: r.z1 }),
        Some(From::Circle(proto::Round { x, z, radius_cm })) => {
            Area::Circle { centre: Pos::ground(*x, *z), radius_cm: *radius_cm }
        }
    };
    let as_query = |fault: Fault| Fault::new(Reason::Query, fault.text);
    let kinds = observed(from.kinds.as_ref()).map_err(as_query)?.unwrap_or(KindSet::ALL);
    let nearest = (from.nearest > 0).then_some(from.nearest as usize);
    Ok(Place { area, kinds, plane: from.plane, nearest })
}

/// A length. One that does not fit is longer than every legal one.
fn cm(length: u32) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

pub fn kind(number: u32) -> Result<u8, Fault> {
    let illegal = |_| Fault::new(Reason::Kind, format!("kind {number}; 0 to 255 is legal"));
    u8::try_from(number).map_err(illegal)
}

/// A reach.
///
/// # Errors
/// It has no form, or its rings are none. Whether it fits the mode is not looked at.
pub fn reach(from: &proto::Reach) -> Result<Reach, Fault> {
    match &from.reach {
        None => Err(Fault::new(Reason::Reach, "the reach has no form")),
        Some(ProtoReach::Rings(bits)) => {
            let rings = u8::try_from(*bits).ok().and_then(RangeSet::from_bits);
            let illegal = || Fault::new(Reason::Reach, format!("rings {bits}; 0 to 7 is legal"));
            Ok(Reach::Rings(rings.ok_or_else(illegal)?))
        }
        Some(ProtoReach::Circle(circle)) => Ok(Reach::Circle(Radii {
            enter_cm: cm(circle.enter_cm),
            leave_cm: cm(circle.leave_cm),
            height_cm: circle.height_cm.map(cm),
        })),
        Some(ProtoReach::Everything(_)) => Ok(Reach::All),
    }
}

fn kinds(from: &proto::Kinds) -> Result<KindSet, Fault> {
    from.kinds.iter().try_fold(KindSet::NONE, |set, number| Ok(set.with(kind(*number)?)))
}

/// A set of kinds, if there is one.
pub fn observed(from: Option<&proto::Kinds>) -> Result<Option<KindSet>, Fault> {
    from.map(kinds).transpose()
}

/// What entities see.
pub fn sight(from: &proto::Create) -> Result<Sight, Fault> {
    let reach = from.reach.as_ref().map(reach).transpose()?;
    Ok(Sight { reach, kinds: observed(from.observed.as_ref())? })
}

fn pair(from: &proto::PairRule) -> Result<PairRule, Fault> {
    let reach = from.reach.as_ref().map(reach).transpose()?;
    Ok(PairRule { observer: kind(from.observer)?, subject: kind(from.subject)?, reach })
}

fn mode(from: Option<&ProtoMode>) -> Result<Mode, Fault> {
    match from {
        None => Err(Fault::rules("the scene has no mode, or one that this service does not know")),
        Some(ProtoMode::Patches(patches)) => Ok(Mode::Patches { patch_cm: cm(patches.side_cm) }),
        Some(ProtoMode::ByDistance(_)) => Ok(Mode::Circle),
        Some(ProtoMode::Everything(_)) => Ok(Mode::All),
    }
}

/// The rules of a scene. Whether they are legal is not looked at, apart from their form.
pub fn rules(from: &CreateScene) -> Result<Rules, Fault> {
    let ground = from.ground.as_ref().ok_or_else(|| Fault::rules("the scene has no ground"))?;
    let cap = |cap: &proto::Cap| Cap {
        most: u16::try_from(cap.most).unwrap_or(u16::MAX),
        margin_cm: cap.margin_cm,
    };
    let (reach, pairs) = (from.reach.as_ref().map(reach), from.pairs.iter().map(pair));
    let as_rules = |fault: Fault| Fault::rules(fault.text);
    Ok(Rules {
        ground: Rect { x0: ground.x0, z0: ground.z0, x1: ground.x1, z1: ground.z1 },
        mode: mode(from.mode.as_ref())?,
        reach: reach.transpose().map_err(as_rules)?,
        pairs: pairs.collect::<Result<_, _>>().map_err(as_rules)?,
        cap: from.cap.as_ref().map(cap),
        positions: from.positions,
    })
}

/// The length of a tick; `None`: the client ticks the scene.
pub fn tick(from: &CreateScene) -> Result<Option<Duration>, Fault> {
    match from.tick_ms {
        0 => Ok(None),
        ms if TICK_MS.contains(&ms) => Ok(Some(Duration::from_millis(ms.into()))),
        ms => Err(Fault::rules(format!("a tick of {ms} ms; 0 and 10 to 60000 are legal"))),
    }
}
