// The game as this page shows it: entities in view with their names and hit points, what the player
// may do, and what is said. The rules are the server's: this only asks.

import { Display } from "../client/display/index.js";

/** How near a target must be, as in the rules of the game, centimetres. */
const REACH_CM = 300;
const HP_MAX = { player: 100, monster: 30 };

/** How long a text floats over an entity, milliseconds. */
const FLOAT_MS = 900;

const decoder = new TextDecoder();

export class Game {
  /** `tell` are the calls to the panels: `line(who, text, kind)`, `notice(text)`. */
  constructor({ scenes, name, tell }) {
    [this.scenes, this.name, this.tell] = [scenes, name, tell];
    this.display = new Display();
    this.floats = [];
    this.headings = new Map();
    this.party = null;
    this.falls = 0;
    this.isInDungeon = false;
    this.scene = "";
    this.plane = 0;
  }

  /** A view of a player that has joined or resumed; `tickMs` is the server's. */
  follow(view, tickMs) {
    this.view = view;
    this.tickMs = tickMs;
    this.display.clear();
    for (const entity of view) this.enter(entity);
    view.on("enter", (entity) => this.enter(entity));
    view.on("leave", (entity) => {
      this.display.leave(entity.id);
      this.headings.delete(entity.id);
    });
    view.on("update", (entity, change) => {
      if (change !== "facing" && entity !== view.me) this.display.told(entity.id, this.motion(entity, change));
    });
    view.on("property", (entity, name, value, before) => this.property(entity, name, value, before));
    view.on("act", (entity, payload, isLogic) => this.acted(entity, decoder.decode(payload), isLogic));
  }

  /** The player is in a scene and plane. */
  joined(joined) {
    [this.scene, this.plane, this.size] = [joined.scene, joined.plane, joined.rules.sizeCm];
    this.isInDungeon = joined.plane >= 1_000;
  }

  enter(entity) {
    this.display.enter(entity.id, this.motion(entity, entity.trajectory ? "trajectory" : "position"));
  }

  /** What the server told of an entity's movement, as the display takes it. */
  motion(entity, change) {
    const { pos, trajectory } = entity;
    if (change === "trajectory" && trajectory) return trajectory;
    const going = trajectory?.motion;
    const [vx, vz] = [going?.vx ?? 0, going?.vz ?? 0].map((mm) => Math.trunc(mm / 10));
    return { atMs: this.view.tick * this.tickMs, spanMs: this.tickMs, pos, vx, vz };
  }

  /** What an entity is called. */
  title(entity) {
    if (entity === this.view.me) return this.name;
    const looks = entity.get("appearance");
    const name = looks && typeof looks === "object" ? looks.name : looks;
    return typeof name === "string" ? name.slice(0, 24) : "";
  }

  /** The party of another player, or null. */
  partyOf(entity) {
    const looks = entity.get("appearance");
    return looks && typeof looks === "object" && Number.isInteger(looks.party) ? looks.party : null;
  }

  /** The party of the nearest player who is in one, or null. */
  nearestParty(at) {
    let best = null;
    for (const entity of this.view) {
      const party = this.partyOf(entity);
      const far = Math.hypot(entity.pos.x - at.x, entity.pos.z - at.z);
      if (party !== null && (!best || far < best.far)) best = { party, far };
    }
    return best?.party ?? null;
  }

  hp(entity) {
    const hp = entity.get("hp");
    return typeof hp === "number" ? hp : null;
  }

  gold() {
    return this.view?.me.get("gold") ?? 0;
  }

  property(entity, name, value, before) {
    if (entity === this.view.me) this.tell.changed();
    if (name === "hp" && typeof before === "number" && value < before) {
      this.float(entity, `-${before - value}`, "#fecaca");
    }
    if (name === "gold" && entity === this.view.me && typeof before === "number" && value > before) {
      this.float(entity, `+${value - before} gold`, "#fde047");
      this.tell.line(null, `You have ${value} gold.`, "event");
    }
  }

  acted(entity, text, isLogic) {
    const [verb, ...rest] = text.split(" ");
    const said = rest.join(" ");
    if (verb === "chat" && !isLogic) {
      this.tell.line(this.title(entity) || "a player", said.slice(0, 200), "near");
      this.float(entity, said.slice(0, 40), "#ffffff");
    } else if (verb === "bite" && isLogic && Number(said) === this.view.me.id) {
      this.tell.bitten();
    } else if (verb === "falls" && isLogic) {
      this.float(entity, "falls", "#fecaca");
    } else if (verb === "hit" && !isLogic) {
      this.float(entity, "hits", "#e2e8f0");
    }
  }

  /** A message of the logic: what a party says, as `NAME: TEXT`. */
  message(payload) {
    const text = decoder.decode(payload).slice(0, 240);
    if (text === "you fell") {
      this.falls += 1;
      this.tell.notice("You fell, and stand at the lair again.");
      return;
    }
    const [who, ...rest] = text.split(": ");
    if (rest.length && who.length <= 24) this.tell.line(who, rest.join(": "), "party");
    else this.tell.line("party", text, "party");
  }

  float(entity, text, colour) {
    this.floats.push({ entity, text, colour, since: performance.now() });
    if (this.floats.length > 40) this.floats.shift();
  }

  /** The nearest entity of a kind in reach of a place, or null. */
  nearest(kind, at, reach = REACH_CM) {
    let best = null;
    for (const entity of this.view) {
      if (entity.kindName !== kind) continue;
      const pos = this.display.position(entity.id) ?? entity.pos;
      const far = Math.hypot(pos.x - at.x, pos.z - at.z);
      if (far <= reach && (!best || far < best.far)) best = { entity, far };
    }
    return best?.entity ?? null;
  }

  /** The entities to draw: where, as what, with which name. `own` is the player's place. */
  picture(now, own, isHomeless) {
    const all = [];
    for (const entity of this.view) {
      const pos = this.display.position(entity.id);
      if (pos) all.push(this.drawn(entity, pos, isHomeless(pos)));
    }
    const order = { lair: 0, drop: 1, monster: 2 };
    all.sort((a, b) => (order[a.look] ?? 3) - (order[b.look] ?? 3));
    all.push({ ...this.drawn(this.view.me, own, false), look: "self" });
    this.floats = this.floats.filter((text) => now - text.since < FLOAT_MS);
    const texts = this.floats.map(({ entity, text, colour, since }) => {
      const share = (now - since) / FLOAT_MS;
      const at = entity === this.view.me ? own : this.display.position(entity.id) ?? entity.pos;
      return { x: at.x, z: at.z, text, colour, up: share * 26, alpha: 1 - share * share };
    });
    return { entities: all, texts };
  }

  drawn(entity, pos, isGhost) {
    const { id, kindName } = entity;
    const [hp, most] = [this.hp(entity), HP_MAX[kindName]];
    const look = kindName === "player" && this.party !== null && this.partyOf(entity) === this.party
      ? "friend" : kindName;
    const share = hp === null || !most ? null : hp / most;
    return { id, x: pos.x, z: pos.z, look, facing: this.facing(entity, pos), share, name: this.title(entity), isGhost };
  }

  /** Where an entity faces: where it was told to, else where it walks. */
  facing(entity, pos) {
    const known = this.headings.get(entity.id) ?? { x: pos.x, z: pos.z, facing: entity.facing };
    const [dx, dz] = [pos.x - known.x, pos.z - known.z];
    if (entity.facing !== 0) known.facing = entity.facing;
    else if (Math.hypot(dx, dz) > 6) {
      Object.assign(known, { ...pos, facing: Math.atan2(dz, dx) * 32_768 / Math.PI });
    }
    this.headings.set(entity.id, known);
    return known.facing;
  }

  /** How far each entity is drawn from where the newest message has it. */
  *errors() {
    for (const entity of this.view) {
      const [shown, exact] = [this.display.position(entity.id), this.display.exact(entity.id)];
      if (shown && exact) yield Math.hypot(shown.x - exact.x, shown.z - exact.z);
    }
  }
}
