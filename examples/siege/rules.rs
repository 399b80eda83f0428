//! The rules of `siege`: two guilds are at war. The blue guild breaks the gate of the red guild's city, and a
//! watchtower warns the red guild. A player that falls is a point for the other guild. Parties talk.
//!
//! One [`Siege`] runs inside the tick of each region. Clients ask by actions that are short texts: `strike`, `hit`,
//! `open`, `party 7`, `say hello`. The logic of one region speaks to that of another in the same way.

use std::collections::BTreeMap;
use std::sync::Arc;

use purview::actor::logic::LogicFactory;
use purview::scene::messages::{Command, LogicEvent, NamedBond, Recipients, Speaker};
use purview::scene::portals::Journey;
use purview::scene::properties::PropertyId;
use purview::scene::region::{Commands, Draft, GameLogic, Known};
use purview::scene::views::Relation;
use purview::scene::{EntityId, Kind, Plane, Pos, Region, RegionId, Scene, Tick};

// ANCHOR: names
/// The kinds, in the order of the configuration.
pub const PLAYER: Kind = Kind(0);
pub const GATE: Kind = Kind(1);
pub const BANNER: Kind = Kind(3);

/// Hit points of players and gates.
pub const HP: PropertyId = PropertyId(1);
/// How often a player has fallen.
pub const FALLS: PropertyId = PropertyId(2);
/// The points of a banner's guild.
pub const SCORE: PropertyId = PropertyId(3);

/// The guilds: the number of its bond, its banner, and where its players begin.
pub const RED: u64 = 1;
pub const BLUE: u64 = 2;
const GUILDS: [(u64, &str, Pos); 2] = [
    (RED, "red banner", Pos::ground(21_000, 6_600)),
    (BLUE, "blue banner", Pos::ground(3_600, 6_600)),
];
// ANCHOR_END: names

const PARTY: &str = "party";
const GUILD: &str = "guild";
pub const PLAYER_HP: i64 = 50;
/// Hit points that a strike and a hit take.
pub const BLOW: i64 = 10;
/// For how long a player who was struck stays in the world, milliseconds.
const FIGHT_MS: u32 = 5_000;
/// Ticks between two alarms of a watchtower.
const ALARM_TICKS: u64 = 50;

/// The logic of one region. It keeps nothing that must last.
#[derive(Debug, Default)]
pub struct Siege {
    /// The order that puts the guilds at war, until it is carried out.
    war: Option<u64>,
    /// When each watchtower has last given the alarm.
    alarms: BTreeMap<EntityId, Tick>,
}

impl LogicFactory for Siege {
    fn make(&self, _: &Arc<Scene>, _: RegionId) -> Option<Box<dyn GameLogic>> {
        Some(Box::<Siege>::default())
    }
}

impl GameLogic for Siege {
    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        let draft = &mut Draft::new(region, commands);
        events.iter().for_each(|event| self.take_event(draft, event));
    }
}

impl Siege {
    // ANCHOR: events
    fn take_event(&mut self, draft: &mut Draft<'_>, event: &LogicEvent) {
        match event {
            LogicEvent::Started { .. } => {
                self.war = Some(draft.commands.relate(GUILD, [RED, BLUE], Relation::Enemy));
                draft.all(PLAYER).into_iter().for_each(|id| comes(draft, id));
            }
            LogicEvent::Refused { command, .. } if self.war == Some(*command) => {
                self.war = Some(draft.commands.relate(GUILD, [RED, BLUE], Relation::Enemy));
            }
            LogicEvent::Entered { id, .. } => comes(draft, *id),
            LogicEvent::Sighted { watcher, id } => self.gives_alarm(draft, *watcher, *id),
            LogicEvent::Acted { id, by, payload, .. } => {
                let Ok(text) = std::str::from_utf8(payload) else { return };
                match by {
                    Speaker::Client => client_asks(draft, *id, text),
                    Speaker::Logic => is_told(draft, *id, text),
                }
            }
            _ => {}
        }
    }
    // ANCHOR_END: events

    // ANCHOR: alarm
    /// A watchtower warns the red guild of the blue one.
    fn gives_alarm(&mut self, draft: &mut Draft<'_>, tower: EntityId, seen: EntityId) {
        let Some(enemy) = draft.find(seen).filter(|e| e.bonds.group(GUILD) == Some(BLUE)) else {
            return;
        };
        let last = self.alarms.get(&tower).map_or(0, |at| at.0 + ALARM_TICKS);
        if draft.now().0 >= last {
            let text = format!("alarm: {} m, {} m", enemy.pos.x / 100, enemy.pos.z / 100);
            draft.commands.tell_bond(NamedBond::new(GUILD, RED), text);
            self.alarms.insert(tower, draft.now());
        }
    }
    // ANCHOR_END: alarm
}

// ANCHOR: comes
/// A player is in the region. One that has just joined begins at the camp of its guild.
fn comes(draft: &mut Draft<'_>, id: EntityId) {
    let Some(me) = draft.here(id, PLAYER) else { return };
    let guild = me.bonds.group(GUILD).unwrap_or_else(|| guild_of(me));
    if me.bonds.group(GUILD).is_none() {
        draft.commands.bonds(id, vec![NamedBond::new(GUILD, guild)]);
    }
    if draft.get::<i64>(id, HP) == 0 {
        draft.set(id, HP, &PLAYER_HP);
        goes_to_camp(draft, me, guild);
    }
}

/// By the token; players whose token names no guild are shared out.
fn guild_of(me: Known<'_>) -> u64 {
    let claims = me.account.map(|account| account.claims()).unwrap_or_default();
    let claims: BTreeMap<String, String> = rmp_serde::from_slice(&claims).unwrap_or_default();
    match claims.get(GUILD).map(String::as_str) {
        Some("red") => RED,
        Some("blue") => BLUE,
        _ => RED + me.id.0 % 2,
    }
}

fn goes_to_camp(draft: &mut Draft<'_>, me: Known<'_>, guild: u64) {
    let camp = GUILDS.iter().find(|(of, ..)| *of == guild).map(|(.., camp)| *camp);
    let camp = camp.unwrap_or(me.pos);
    let beside = |n: u64| (n % 10) as i32 * 150;
    let at = Pos::ground(camp.x + beside(me.id.0 / 2), camp.z + beside(me.id.0 / 20));
    draft.commands.teleport(me.id, Journey::within(me.plane, at));
}
// ANCHOR_END: comes

// ANCHOR: client
/// A client asks for something. It may ask for anything: the rules decide.
fn client_asks(draft: &mut Draft<'_>, player: EntityId, text: &str) {
    let Some(me) = draft.here(player, PLAYER) else { return };
    let Some(guild) = me.bonds.group(GUILD) else { return };
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    match (verb, me.bonds.group(PARTY)) {
        ("strike", _) => {
            let is_enemy = |e: &Known<'_>| e.bonds.group(GUILD).is_some_and(|of| of != guild);
            if let Some(target) = nearest(draft, me, PLAYER, is_enemy) {
                tell(draft, target, &format!("struck {BLOW}"));
            }
        }
        ("hit", _) if guild == BLUE => {
            if let Some(gate) = nearest(draft, me, GATE, |_| true) {
                tell(draft, gate, &format!("struck {BLOW}"));
            }
        }
        ("open", _) if guild == RED => {
            if let Some(gate) = nearest(draft, me, GATE, |_| true) {
                tell(draft, gate, "opened");
            }
        }
        ("party", _) => {
            let number = rest.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            let bonds = vec![NamedBond::new(PARTY, number), NamedBond::new(GUILD, guild)];
            draft.commands.bonds(player, bonds);
        }
        ("say", Some(party)) => {
            draft.commands.tell_bond(NamedBond::new(PARTY, party), rest.to_owned());
        }
        _ => {}
    }
}

/// The nearest entity of a kind that a player has in reach: players watch as far as they reach, also across borders.
fn nearest(
    draft: &Draft<'_>,
    me: Known<'_>,
    kind: Kind,
    is_meant: impl Fn(&Known<'_>) -> bool,
) -> Option<EntityId> {
    let reached = draft.region.sighted_by(me.id).iter().filter_map(|id| draft.find(*id));
    let meant = reached.filter(|e| e.kind == kind && is_meant(e));
    meant.min_by_key(|e| (me.pos.dist2(e.pos), e.id)).map(|e| e.id)
}
// ANCHOR_END: client

// ANCHOR: told
/// Tells the logic of the region where an entity lives; at once if that is this one. A command for another region
/// leaves when no death of a machine can undo this tick: what has happened here and what follows there are one.
fn tell(draft: &mut Draft<'_>, id: EntityId, what: &str) {
    match draft.find(id).is_some_and(|e| e.is_real) {
        true => is_told(draft, id, what),
        false => drop(draft.commands.give_held(Command::act(id, what.to_owned()))),
    }
}

/// Something happens to an entity that lives here.
fn is_told(draft: &mut Draft<'_>, id: EntityId, text: &str) {
    let Some(entity) = draft.find(id).filter(|e| e.is_real) else { return };
    let (verb, points) = text.split_once(' ').unwrap_or((text, ""));
    let left = draft.get::<i64>(id, HP) - points.parse::<i64>().unwrap_or(0);
    match (entity.kind, verb) {
        (GATE, "struck") if left > 0 => draft.set(id, HP, &left),
        (GATE, "struck") => gives_way(draft, entity, "the gate is broken"),
        (GATE, "opened") => gives_way(draft, entity, "the gate is open"),
        (PLAYER, "struck") if left > 0 => {
            draft.set(id, HP, &left);
            draft.commands.hold(id, FIGHT_MS);
        }
        (PLAYER, "struck") => falls(draft, entity),
        (BANNER, "point") => {
            let score = draft.get::<i64>(id, SCORE) + 1;
            draft.set(id, SCORE, &score);
        }
        _ => {}
    }
}
// ANCHOR_END: told

// ANCHOR: falls
/// The way is free until the gate is back.
fn gives_way(draft: &mut Draft<'_>, gate: Known<'_>, text: &str) {
    draft.despawn(gate.id);
    let all = Recipients::Plane(draft.region.scene_id(), gate.plane);
    draft.commands.announce(all, text.to_owned());
}

/// The other guild has a point, and the player begins again at its camp.
fn falls(draft: &mut Draft<'_>, me: Known<'_>) {
    let Some(guild) = me.bonds.group(GUILD) else { return };
    let falls = draft.get::<i64>(me.id, FALLS) + 1;
    draft.set(me.id, FALLS, &falls);
    draft.set(me.id, HP, &PLAYER_HP);
    draft.commands.tell(me.id, "you fell");
    for (_, banner, _) in GUILDS.iter().filter(|(of, ..)| *of != guild) {
        if let Some(banner) = draft.region.content_named(Plane(0), banner) {
            tell(draft, banner, "point");
        }
    }
    goes_to_camp(draft, me, guild);
}
// ANCHOR_END: falls
