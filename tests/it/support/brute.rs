//! Brute force: which players must see each other, computed from the rules and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use purview::scene::messages::Bond;
use purview::scene::{EntityId, Kind, Plane, Pos, RangeSet, Scene, SceneId, ViewCap, Visibility};

/// The true state of an entity.
#[derive(Debug, Clone)]
pub struct Truth {
    pub kind: Kind,
    pub scene: SceneId,
    pub plane: Plane,
    pub pos: Pos,
    /// The rings in which it is shown what is not a player.
    pub sight: RangeSet,
    /// Most players that it is shown, if fewer than the scene allows.
    pub cap: ViewCap,
    pub bonds: Vec<Bond>,
    /// The groups that are not neutral to its own: as allies or enemies.
    pub stands: BTreeMap<Bond, u8>,
    /// The players that it fights with at the moment.
    pub fights: BTreeSet<EntityId>,
    /// Class and distance of the last companion that counts, as of the last tick.
    pub reach: Option<(u8, u32)>,
}

impl Truth {
    /// An entity of the first scene, without bonds.
    pub fn new(kind: Kind, plane: Plane, pos: Pos, sight: RangeSet) -> Truth {
        let (bonds, fights) = (Vec::new(), BTreeSet::new());
        let (cap, reach, stands) = (ViewCap::SCENE, None, BTreeMap::new());
        Truth { kind, scene: SceneId(0), plane, pos, sight, cap, bonds, stands, fights, reach }
    }
}

/// The default class of fights: after couples and parties.
const FIGHT: u8 = 2;

/// The classes of allies and enemies, where a scene has them: after fights.
pub const ALLY: u8 = 3;
pub const ENEMY: u8 = 4;

/// The strongest bond of two players, whether it counts or not.
fn any_class(a: (&EntityId, &Truth), b: (&EntityId, &Truth)) -> u8 {
    let shared = a.1.bonds.iter().filter(|x| b.1.bonds.contains(x)).map(|x| x.class);
    let fight = a.1.fights.contains(b.0) || b.1.fights.contains(a.0);
    let stands = a.1.stands.iter().filter(|(bond, _)| b.1.bonds.contains(bond));
    let stands = stands.map(|(_, class)| *class);
    shared.chain(fight.then_some(FIGHT)).chain(stands).min().unwrap_or(255)
}

fn dist(a: &Truth, b: &Truth) -> u32 {
    (a.pos.dist2(b.pos) as f64).sqrt() as u32
}

/// The bond of two players if it counts: for both it is among the strongest and nearest.
fn class(a: (&EntityId, &Truth), b: (&EntityId, &Truth)) -> u8 {
    let class = any_class(a, b);
    let counts = |t: &Truth| t.reach.is_none_or(|reach| (class, dist(a.1, b.1)) <= reach);
    if counts(a.1) && counts(b.1) { class } else { 255 }
}

/// Whether two players are in range, bonds included.
fn players_in_range(
    scene: &Scene,
    a: (&EntityId, &Truth),
    b: (&EntityId, &Truth),
    known: bool,
) -> bool {
    let bonds = &scene.spec.bonds;
    let limit = if known { bonds.leave_cm } else { bonds.enter_cm };
    let bonded = ![ENEMY, 255].contains(&class(a, b));
    let exempt = limit > 0 && bonded && dist(a.1, b.1) <= limit as u32;
    let together = (a.1.scene, a.1.plane) == (b.1.scene, b.1.plane);
    in_range(scene, a.1, b.1, known) || (exempt && together)
}

/// Computes how far bonds reach from the next tick on.
pub fn set_reaches(scene: &Scene, all: &mut Truths) {
    let reach = |a: (&EntityId, &Truth)| {
        let near = |b: &(&EntityId, &Truth)| {
            let exempt =
                any_class(a, *b) != ENEMY && dist(a.1, b.1) <= scene.spec.bonds.leave_cm as u32;
            a.0 != b.0 && a.1.plane == b.1.plane && (exempt || in_range(scene, a.1, b.1, true))
        };
        let others = all.iter().filter(near).map(|b| (any_class(a, b), dist(a.1, b.1)));
        let mut companions: Vec<_> = others.filter(|c| c.0 != 255).collect();
        companions.sort_unstable();
        let cap = scene.spec.bonds.cap;
        (companions.len() > cap).then(|| companions[cap - 1])
    };
    let reaches: Vec<_> = all.iter().map(reach).collect();
    all.values_mut().zip(reaches).for_each(|(t, reach)| t.reach = reach);
}

pub type Pair = (EntityId, EntityId);
pub type Truths = BTreeMap<EntityId, Truth>;

pub fn pair(a: EntityId, b: EntityId) -> Pair {
    (a.min(b), a.max(b))
}

/// Whether `b` is in range of `a`; with circles, a `known` pair stays until the leave radius.
pub fn in_range(scene: &Scene, a: &Truth, b: &Truth, known: bool) -> bool {
    if (a.scene, a.plane) != (b.scene, b.plane) {
        return false;
    }
    if let Some(height) = scene.spec.height_cm {
        let most = if known { height + height / 8 } else { height };
        if (a.pos.y - b.pos.y).abs() > most {
            return false;
        }
    }
    let other = if a.kind == Kind::PLAYER { b.kind } else { a.kind };
    match scene.spec.visibility_of(other) {
        Visibility::All => true,
        Visibility::Circle { enter_cm, leave_cm } => {
            let r = if known { leave_cm } else { enter_cm } as i64;
            let (dx, dz) = ((a.pos.x - b.pos.x) as i64, (a.pos.z - b.pos.z) as i64);
            dx * dx + dz * dz <= r * r
        }
        Visibility::Patches => {
            let layer = &scene.spec.layers[scene.spec.kinds[usize::from(b.kind.0)].layer];
            let [width, depth] = layer.patch_cm;
            let margin = scene.spec.patch_margin_cm.unwrap_or(200.min(width / 2).min(depth / 2));
            let steps = if known && margin > 0 { vec![-margin, 0, margin] } else { vec![0] };
            let range = if b.kind == Kind::PLAYER { scene.spec.range } else { a.sight };
            let apart = |a: i32, b: i32, side: i32| (a.div_euclid(side) - b.div_euclid(side)).abs();
            // Every way to move each of the two.
            let moves = |p: Pos| {
                let steps = steps.clone();
                let xs = steps.clone().into_iter();
                xs.flat_map(move |x| steps.clone().into_iter().map(move |z| (p.x + x, p.z + z)))
            };
            moves(a.pos).any(|a| {
                moves(b.pos).any(|b| {
                    let ring = apart(a.0, b.0, width).max(apart(a.1, b.1, depth));
                    (0..3).contains(&ring) && range.bits() & (1 << ring) != 0
                })
            })
        }
    }
}

/// The key by which pairs are ranked: bond class, distance, ids.
pub fn key(a: (&EntityId, &Truth), b: (&EntityId, &Truth)) -> (u8, u32, EntityId, EntityId) {
    let (lo, hi) = pair(*a.0, *b.0);
    (class(a, b), dist(a.1, b.1), lo, hi)
}

/// All pairs of players in range, best first. For `linked` pairs the leave range applies, and the
/// margin is subtracted from their distance.
pub fn pairs_in_range(scene: &Scene, all: &Truths, linked: &BTreeSet<Pair>) -> Vec<Pair> {
    let players: Vec<_> = all.iter().filter(|(_, t)| t.kind == Kind::PLAYER).collect();
    let mut pairs = Vec::new();
    for (i, a) in players.iter().enumerate() {
        for b in &players[i + 1..] {
            let pair = pair(*a.0, *b.0);
            let known = linked.contains(&pair);
            if players_in_range(scene, *a, *b, known) {
                let (class, cm, ..) = key(*a, *b);
                let margin = if known { scene.spec.view_margin_cm } else { 0 };
                pairs.push(((class, i64::from(cm) - i64::from(margin)), pair));
            }
        }
    }
    pairs.sort();
    pairs.into_iter().map(|(_, p)| p).collect()
}

/// The greedy rule: sort all pairs in range by bond, distance (less the margin for those `linked`
/// when the tick began) and ids; match while both have room.
pub fn greedy(scene: &Scene, all: &Truths, linked: &BTreeSet<Pair>) -> BTreeSet<Pair> {
    let mut seen: BTreeMap<EntityId, usize> = BTreeMap::new();
    let mut links = BTreeSet::new();
    for (a, b) in pairs_in_range(scene, all, linked) {
        let room =
            |id| seen.get(id).copied().unwrap_or(0) < all[id].cap.within(scene.spec.view_cap);
        if room(&a) && room(&b) {
            *seen.entry(a).or_default() += 1;
            *seen.entry(b).or_default() += 1;
            links.insert((a, b));
        }
    }
    links
}

/// Blocking pairs: in range (enter range with circles), not linked, though each of the two has room
/// or a link that is worse by more than the margin.
pub fn blocking(scene: &Scene, all: &Truths, links: &BTreeSet<Pair>) -> Vec<Pair> {
    let wanted =
        |(class, cm, lo, hi), margin: i32| (class, i64::from(cm) - i64::from(margin), lo, hi);
    let mut of: BTreeMap<EntityId, Vec<_>> = BTreeMap::new();
    for (a, b) in links {
        let k = wanted(key((a, &all[a]), (b, &all[b])), scene.spec.view_margin_cm);
        of.entry(*a).or_default().push(k);
        of.entry(*b).or_default().push(k);
    }
    let would = |id: &EntityId, k| {
        let have = of.get(id).map_or(&[][..], |v| v);
        have.len() < all[id].cap.within(scene.spec.view_cap) || have.iter().any(|other| *other > k)
    };
    pairs_in_range(scene, all, &BTreeSet::new())
        .into_iter()
        .filter(|p| !links.contains(p))
        .filter(|(a, b)| {
            let k = wanted(key((a, &all[a]), (b, &all[b])), 0);
            would(a, k) && would(b, k)
        })
        .collect()
}

/// How many ticks each pair has been in a state, and the longest time of all.
#[derive(Default)]
pub struct Spells {
    now: BTreeMap<Pair, u32>,
    pub longest: u32,
    /// How often a pair was still in the state in the next tick.
    pub again: usize,
}

impl Spells {
    /// Records that exactly these pairs are in the state now.
    pub fn see(&mut self, pairs: BTreeSet<Pair>) {
        self.now.retain(|p, _| pairs.contains(p));
        for p in pairs {
            let n = self.now.entry(p).or_default();
            *n += 1;
            self.again += usize::from(*n > 1);
            self.longest = self.longest.max(*n);
        }
    }

    /// The same; fails if a pair has been in the state for more than `ticks` ticks.
    pub fn see_for(&mut self, pairs: BTreeSet<Pair>, ticks: u32, what: &str) {
        self.see(pairs);
        let over = self.now.iter().find(|(_, n)| **n > ticks);
        assert_eq!(over, None, "{what} for too long");
    }
}
