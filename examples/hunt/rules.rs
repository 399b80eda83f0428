//! The rules of `hunt`: monsters chase players and bite, players hit monsters, a dead monster leaves gold, and one
//! player has it. Parties talk, and enter dungeons of their own.
//!
//! One [`Hunt`] runs inside the tick of each region. Whatever must last is a property. Clients ask by actions that are
//! short texts, such as `hit 17`; the logic of one region speaks to that of another in the same way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use purview::actor::logic::LogicFactory;
use purview::scene::messages::{CommandError, LogicEvent, NamedBond, Speaker};
use purview::scene::portals::Journey;
use purview::scene::properties::{Properties, PropertyId, Value};
use purview::scene::region::{Commands, Draft, GameLogic, Known};
use purview::scene::{EntityId, Kind, Plane, Pos, Region, RegionId, Scene, Tick};

// ANCHOR: names
/// The kinds, in the order of the configuration.
pub const PLAYER: Kind = Kind(0);
pub const MONSTER: Kind = Kind(1);
pub const DROP: Kind = Kind(2);
pub const LAIR: Kind = Kind(3);

/// Hit points of players and monsters.
pub const HP: PropertyId = PropertyId(1);
/// Gold of players, monsters and drops.
pub const GOLD: PropertyId = PropertyId(2);
/// The player who has reached for a drop first.
pub const TAKER: PropertyId = PropertyId(3);
/// The drops that a player has taken of late, each with the tick.
pub const TAKEN: PropertyId = PropertyId(4);
/// The gold that a lair has given its monsters.
pub const MINTED: PropertyId = PropertyId(5);
// ANCHOR_END: names

pub const PLAYER_HP: i64 = 100;
pub const MONSTER_HP: i64 = 30;
/// Hit points that a player's hit and a monster's bite take.
pub const HIT: i64 = 10;
const BITE: i64 = 5;
/// The kind of bond of those who go on a hunt together.
const PARTY: &str = "party";
/// The gold of a monster.
pub const PRIZE: i64 = 10;
/// How near one must be to hit, to bite and to take, centimetres.
pub const REACH_CM: i32 = 300;
const REACH2: u64 = (REACH_CM * REACH_CM) as u64;
/// Ticks between two bites of a monster.
const BITE_TICKS: u64 = 5;
/// How far a monster runs in a tick, centimetres.
const STEP_CM: f64 = 30.0;
/// Monsters of a lair, and of a dungeon.
const MONSTERS: usize = 5;
/// Ticks between two looks of a lair.
const LAIR_TICKS: u64 = 50;
/// The first plane of dungeons: each party has one.
pub const DUNGEONS: i32 = 1_000;
/// Ticks after which something that was not answered is said again.
const AGAIN_TICKS: u64 = 100;
/// For how long a player remembers a drop: longer than a checkpoint gets old.
const TAKEN_TICKS: u64 = 600;
const MAX_TAKEN: usize = 40;

fn with(numbers: &[(PropertyId, i64)]) -> Properties {
    let mut properties = Properties::default();
    for (id, n) in numbers {
        properties.begin_with(*id, Value::of(n).unwrap_or(Value::NIL));
    }
    properties
}

// ANCHOR: state
/// The logic of one region. It keeps nothing that must last.
#[derive(Debug, Default)]
pub struct Hunt {
    /// Monsters that have a player in sight.
    awake: BTreeSet<EntityId>,
    /// Gold that changes hands: a drop and its taker, and a player and a drop that it has taken, until the drop is gone.
    steps: BTreeMap<(EntityId, EntityId), Step>,
    /// Commands for other regions whose end matters, and for which step.
    sent: BTreeMap<u64, (EntityId, EntityId)>,
}

/// How far gold has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// So since this tick. It goes on when no death of a machine can undo it.
    Since(Tick),
    /// The other side was told in this tick.
    Told(Tick),
    /// The other side is done.
    Done,
}

impl LogicFactory for Hunt {
    fn make(&self, _: &Arc<Scene>, _: RegionId) -> Option<Box<dyn GameLogic>> {
        Some(Box::<Hunt>::default())
    }
}

impl GameLogic for Hunt {
    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        let draft = &mut Draft::new(region, commands);
        events.iter().for_each(|event| self.take_event(draft, event));
        self.monsters_act(draft);
        self.gold_goes_on(draft);
        lair(draft);
    }
}
// ANCHOR_END: state

impl Hunt {
    // ANCHOR: events
    fn take_event(&mut self, draft: &mut Draft<'_>, event: &LogicEvent) {
        match event {
            LogicEvent::Started { .. } => {
                // What lives here already has come before this value was made.
                let kinds = [PLAYER, MONSTER, DROP].into_iter();
                let all: Vec<EntityId> = kinds.flat_map(|kind| draft.all(kind)).collect();
                all.into_iter().for_each(|id| self.comes(draft, id));
            }
            LogicEvent::Entered { id, .. } => self.comes(draft, *id),
            LogicEvent::Arrived { id } => open_dungeon(draft, *id),
            LogicEvent::Left { id, kind, cause, .. } => {
                self.leaves(draft, *id, *kind == PLAYER && cause.is_final());
            }
            LogicEvent::Sighted { watcher, .. } => drop(self.awake.insert(*watcher)),
            LogicEvent::Acted { id, by, payload, .. } => {
                let Ok(text) = std::str::from_utf8(payload) else { return };
                match by {
                    Speaker::Client => self.client_asks(draft, *id, text),
                    Speaker::Logic => self.is_told(draft, *id, text),
                }
            }
            LogicEvent::Done { command } => self.ended(draft, *command, None),
            LogicEvent::Refused { command, why, .. } => self.ended(draft, *command, Some(*why)),
            _ => {}
        }
    }
    // ANCHOR_END: events

    fn comes(&mut self, draft: &mut Draft<'_>, id: EntityId) {
        // It may have gone elsewhere in the same tick: then the rules there begin with it.
        let Some(entity) = draft.find(id).filter(|e| e.is_real) else { return };
        let since = Step::Since(draft.now());
        match entity.kind {
            PLAYER if draft.get::<i64>(id, HP) == 0 => draft.set(id, HP, &PLAYER_HP),
            MONSTER => drop(self.awake.insert(id)),
            _ => {}
        }
        let taker: Option<u64> = Some(draft.get(id, TAKER)).filter(|taker| *taker != 0);
        let taken = draft.get::<Vec<(u64, u64)>>(id, TAKEN).into_iter().map(|(of, _)| of);
        self.steps.extend(taken.chain(taker).map(|of| ((id, EntityId(of)), since)));
        open_dungeon(draft, id);
    }

    fn leaves(&mut self, draft: &mut Draft<'_>, id: EntityId, takes_gold: bool) {
        self.awake.remove(&id);
        self.steps.retain(|(of, drop), step| {
            // A player that leaves the game takes its gold along.
            if *of == id && takes_gold && *step != Step::Done {
                draft.despawn(*drop);
            }
            *of != id
        });
    }

    // ANCHOR: client
    /// A client asks for something. It may ask for anything: the rules decide.
    fn client_asks(&mut self, draft: &mut Draft<'_>, player: EntityId, text: &str) {
        let Some(me) = draft.here(player, PLAYER) else { return };
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        match (verb, rest.parse().map(EntityId), me.bonds.group(PARTY)) {
            ("hit", Ok(target), _) if reaches(draft, me, target, MONSTER) => {
                self.tell(draft, target, &format!("hurt {HIT}"));
            }
            ("take", Ok(drop), _) if reaches(draft, me, drop, DROP) => {
                self.tell(draft, drop, &format!("claim {player}"));
            }
            ("party", Ok(EntityId(group)), _) => {
                draft.commands.bonds(player, vec![NamedBond::new(PARTY, group % 1_000)]);
            }
            ("say", _, Some(party)) => {
                let party = NamedBond::new(PARTY, party);
                draft.commands.tell_bond(party, rest.to_owned());
            }
            ("enter", _, Some(party)) => jump(draft, me, Plane(DUNGEONS + party as i32), me.pos),
            ("leave", _, _) => jump(draft, me, Plane(0), me.pos),
            _ => {}
        }
    }
    // ANCHOR_END: client

    // ANCHOR: told
    /// Tells the logic of the region where an entity lives; at once if that is this one. Otherwise the command's number.
    fn tell(&mut self, draft: &mut Draft<'_>, id: EntityId, what: &str) -> Option<u64> {
        if draft.find(id).is_none_or(|e| !e.is_real) {
            return Some(draft.commands.act(id, what.to_owned()));
        }
        self.is_told(draft, id, what);
        None
    }

    /// Something happens to an entity that lives here.
    fn is_told(&mut self, draft: &mut Draft<'_>, id: EntityId, text: &str) {
        let Some(entity) = draft.find(id).filter(|e| e.is_real) else { return };
        let mut words = text.split(' ');
        let verb = words.next().unwrap_or_default();
        let mut numbers = words.map_while(|n| n.parse::<u64>().ok());
        match (entity.kind, verb, numbers.next(), numbers.next()) {
            (MONSTER | PLAYER, "hurt", Some(points), _) => hurt(draft, entity, points as i64),
            (DROP, "claim", Some(player), _) if draft.get::<i64>(id, TAKER) == 0 => {
                draft.set(id, TAKER, &player);
                self.steps.insert((id, EntityId(player)), Step::Since(draft.now()));
            }
            (PLAYER, "gold", Some(drop), Some(gold)) => {
                self.receive(draft, id, (drop, gold as i64))
            }
            _ => {}
        }
    }
    // ANCHOR_END: told

    // ANCHOR: gold
    /// The player has the gold of a drop, once: the drop may say so again.
    fn receive(&mut self, draft: &mut Draft<'_>, player: EntityId, (drop, gold): (u64, i64)) {
        let now = draft.now();
        let mut taken: Vec<(u64, u64)> = draft.get(player, TAKEN);
        if taken.iter().all(|(of, _)| *of != drop) {
            taken.retain(|(_, at)| at + TAKEN_TICKS > now.0);
            if taken.len() >= MAX_TAKEN {
                return;
            }
            taken.push((drop, now.0));
            draft.set(player, TAKEN, &taken);
            let gold = gold + draft.get::<i64>(player, GOLD);
            draft.set(player, GOLD, &gold);
        }
        self.steps.insert((player, EntityId(drop)), Step::Since(now));
    }

    /// Gold goes from hand to hand by steps. Each one waits until the one before it cannot be undone any more by the
    /// death of a machine, so that no gold is lost and none is there twice.
    fn gold_goes_on(&mut self, draft: &mut Draft<'_>) {
        let (now, durable) = (draft.now(), draft.region.durable_tick());
        let due = |step: &Step| match step {
            Step::Since(at) => *at <= durable,
            Step::Told(at) => at.0 + AGAIN_TICKS <= now.0,
            Step::Done => false,
        };
        let steps = self.steps.iter().filter(|(_, step)| due(step));
        for key in steps.map(|(key, _)| *key).collect::<Vec<_>>() {
            let Some(from) = draft.find(key.0).filter(|e| e.is_real) else {
                self.steps.remove(&key);
                continue;
            };
            let gold: i64 = draft.get(key.0, GOLD);
            let sent = match from.kind {
                DROP => self.tell(draft, key.1, &format!("gold {} {gold}", key.0)),
                _ => Some(draft.despawn(key.1)),
            };
            self.steps.insert(key, Step::Told(now));
            self.sent.extend(sent.map(|number| (number, key)));
        }
    }

    /// A command has come to its end in another region.
    fn ended(&mut self, draft: &mut Draft<'_>, command: u64, refused: Option<CommandError>) {
        let Some(key) = self.sent.remove(&command) else { return };
        let Some(step) = self.steps.get_mut(&key) else { return };
        let gone = matches!(refused, Some(CommandError::Unknown(_)));
        match (draft.find(key.0).map(|e| e.kind), refused) {
            (Some(DROP), Some(_)) if gone => {
                // The player is in the scene no more: others may take the drop.
                self.steps.remove(&key);
                draft.set(key.0, TAKER, &0);
            }
            (Some(DROP), None) => {}
            (_, Some(_)) if !gone => *step = Step::Since(draft.now()),
            _ => *step = Step::Done,
        }
    }
    // ANCHOR_END: gold

    // ANCHOR: monsters
    /// Monsters run to the nearest player that they have in sight, and bite the one that they reach.
    fn monsters_act(&mut self, draft: &mut Draft<'_>) {
        for id in self.awake.iter().copied().collect::<Vec<_>>() {
            let Some(me) = draft.here(id, MONSTER) else { continue };
            let in_sight = draft.region.sighted_by(id).iter();
            let near = in_sight.filter_map(|other| Some((draft.find(*other)?.pos, *other)));
            let Some((at, prey)) = near.min_by_key(|(at, id)| (me.pos.dist2(*at), *id)) else {
                self.awake.remove(&id);
                continue;
            };
            if me.pos.dist2(at) <= REACH2 {
                if draft.now().0.wrapping_add(id.0).is_multiple_of(BITE_TICKS) {
                    draft.commands.act(id, format!("bite {prey}"));
                    self.tell(draft, prey, &format!("hurt {BITE}"));
                }
                continue;
            }
            let (dx, dz) = (f64::from(at.x - me.pos.x), f64::from(at.z - me.pos.z));
            let share = STEP_CM / dx.hypot(dz);
            let pos = Pos::ground(me.pos.x + (dx * share) as i32, me.pos.z + (dz * share) as i32);
            draft.commands.place(id, pos);
        }
    }
    // ANCHOR_END: monsters
}

// ANCHOR: hurt
fn reaches(draft: &Draft<'_>, me: Known<'_>, target: EntityId, kind: Kind) -> bool {
    let other = draft.find(target).filter(|e| e.kind == kind && e.plane == me.plane);
    other.is_some_and(|e| me.pos.dist2(e.pos) <= REACH2)
}

fn hurt(draft: &mut Draft<'_>, entity: Known<'_>, points: i64) {
    let left = draft.get::<i64>(entity.id, HP) - points;
    match entity.kind {
        MONSTER if left <= 0 => {
            let gold = with(&[(GOLD, draft.get(entity.id, GOLD))]);
            draft.despawn(entity.id);
            draft.commands.spawn(DROP, entity.plane, entity.pos, gold);
        }
        PLAYER if left <= 0 => falls(draft, entity),
        _ => draft.set(entity.id, HP, &left),
    }
}

/// A player who falls stands up again, at the lair of the region.
fn falls(draft: &mut Draft<'_>, me: Known<'_>) {
    draft.set(me.id, HP, &PLAYER_HP);
    draft.commands.act(me.id, "falls");
    draft.commands.tell(me.id, "you fell");
    let lair = draft.all(LAIR).into_iter().min().and_then(|lair| draft.find(lair));
    if let Some(at) = lair.map(|lair| lair.pos) {
        jump(draft, me, Plane(0), at);
    }
}
// ANCHOR_END: hurt

// ANCHOR: lair
/// A lair sends monsters into the region while there are too few, and dungeons without players end.
fn lair(draft: &mut Draft<'_>) {
    let (rect, region) = (draft.region.rect(), u64::from(draft.region.id().0));
    // A region that a change of the layout has ended has no ground.
    if rect.x0 == rect.x1 || draft.now().0 % LAIR_TICKS != region % LAIR_TICKS {
        return;
    }
    let Some(lair) = draft.all(LAIR).into_iter().min() else {
        let middle = Pos::ground((rect.x0 + rect.x1) / 2, (rect.z0 + rect.z1) / 2);
        draft.commands.spawn(LAIR, Plane(0), middle, with(&[]));
        return;
    };
    let monsters = draft.region.lives_here(MONSTER).filter(|e| e.plane == Plane(0)).count();
    for n in monsters..MONSTERS {
        let along = |from: i32, to: i32, n: u64| from + (n % (to - from) as u64) as i32;
        let n = (draft.now().0 + n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
        let pos = Pos::ground(along(rect.x0, rect.x1, n), along(rect.z0, rect.z1, n >> 20));
        send_monster(draft, lair, Plane(0), pos);
    }
    let players: BTreeSet<Plane> = draft.region.lives_here(PLAYER).map(|e| e.plane).collect();
    for id in [MONSTER, DROP].into_iter().flat_map(|kind| draft.all(kind)).collect::<Vec<_>>() {
        let ends = |e: &Known<'_>| e.plane.0 >= DUNGEONS && !players.contains(&e.plane);
        if draft.find(id).is_some_and(|e| ends(&e)) && draft.get::<i64>(id, TAKER) == 0 {
            let minted = draft.get::<i64>(lair, MINTED) - draft.get::<i64>(id, GOLD);
            draft.set(lair, MINTED, &minted);
            draft.despawn(id);
        }
    }
}

fn send_monster(draft: &mut Draft<'_>, lair: EntityId, plane: Plane, pos: Pos) {
    let minted = draft.get::<i64>(lair, MINTED) + PRIZE;
    draft.set(lair, MINTED, &minted);
    draft.commands.spawn(MONSTER, plane, pos, with(&[(HP, MONSTER_HP), (GOLD, PRIZE)]));
}
// ANCHOR_END: lair

// ANCHOR: dungeon
fn jump(draft: &mut Draft<'_>, me: Known<'_>, plane: Plane, pos: Pos) {
    draft.commands.teleport(me.id, Journey::within(plane, pos));
}

/// A party's first player in a dungeon finds monsters there.
fn open_dungeon(draft: &mut Draft<'_>, id: EntityId) {
    let Some(me) = draft.here(id, PLAYER).filter(|e| e.plane.0 >= DUNGEONS) else { return };
    let Some(lair) = draft.all(LAIR).into_iter().min() else { return };
    let given = draft.commands.given().any(|(_, command)| command.spawns_on(me.plane));
    let (rect, mut monsters) = (draft.region.rect(), draft.region.lives_here(MONSTER));
    if given || rect.x0 == rect.x1 || monsters.any(|e| e.plane == me.plane) {
        return;
    }
    for n in 0..MONSTERS as i32 {
        let x = (me.pos.x + 500 + 200 * n).clamp(rect.x0, rect.x1 - 1);
        send_monster(draft, lair, me.plane, Pos::ground(x, me.pos.z));
    }
}
// ANCHOR_END: dungeon
