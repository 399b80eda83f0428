// The entities that the server shows to the player: a set by id, updated frame by frame.

import { ViewError } from './errors.js';
import { Emitter } from './events.js';
import type { Position } from './movement/integers.js';
import { Vector } from './movement/move.js';
import { Trajectory } from './movement/trajectory.js';
import { Names, type Schema } from './schema.js';
import { readValue, type Value } from './value.js';
import type { Entered, Frame, Joined, Moved, TrajectoryUpdate } from './wire/messages.js';

/** An entity in view, or the player itself. */
export class Entity {
  /** Its properties by name, as far as the server told them. */
  readonly properties = new Map<string, Value>();
  /** How it moves since the last message; `null`: it stands at `pos`. */
  trajectory: Trajectory | null = null;

  constructor(
    readonly id: number,
    /** Index into the scene's kinds; 0 is a player. */
    readonly kind: number,
    /** The kind's name in the schema. */
    readonly kindName: string,
    /** The last position that the server sent, centimetres. */
    public pos: Position,
    /** The way it faces: 65,536 steps make a turn, 0 is east, clockwise from above. */
    public facing: number,
    /** The world in which it came into view, see `View.world`. */
    readonly world: number,
  ) {}

  /** A property by its name; `undefined`: never told. */
  get(name: string): Value | undefined {
    return this.properties.get(name);
  }

  /** All properties by name, with the types of a schema: see `PropertiesOf`. */
  as<P extends { [name: string]: unknown }>(): P {
    return Object.fromEntries(this.properties) as P;
  }

  /** The position at a time of the server, by the last message. */
  position(serverMs: number): Position {
    return this.trajectory ? this.trajectory.position(serverMs) : this.pos;
  }
}

/** Why an entity left: it left the view, or the player is in another world. */
export type LeaveReason = 'view' | 'world';

/** What has changed about an entity. */
export type Change = 'position' | 'trajectory' | 'facing';

export type ViewEvents = {
  enter: [entity: Entity];
  leave: [entity: Entity, why: LeaveReason];
  update: [entity: Entity, change: Change];
  /** `entity` may be the player itself, `view.me`. */
  property: [entity: Entity, name: string, value: Value, before: Value | undefined];
  act: [entity: Entity, payload: Uint8Array, byLogic: boolean];
};

/** The players around as dots, without ids. */
export interface CrowdDots {
  /** The tick whose positions these are. */
  readonly tick: number;
  /** Middles of cells, centimetres. */
  readonly dots: readonly { x: number; z: number }[];
  /** An eighth of the sides of a patch along x and z, centimetres. */
  readonly cellCm: readonly [number, number];
}

export class View extends Emitter<ViewEvents> {
  private readonly seen = new Map<number, Entity>();
  private names: Names;
  private tileCm = 0;
  private tickMs = 0;
  private patchCm: readonly number[] = [0, 0];
  /** The player itself. It is never in its own view. */
  me: Entity;
  /** The tick of the last frame; 0 before the first one. */
  tick = 0;
  /** Counts scenes, planes and joins: it grows when the whole world around the player changes. */
  world = 0;
  /** The newest crowd; `null`: none was told. */
  crowd: CrowdDots | null = null;

  constructor(
    joined: Joined,
    private readonly schema: Schema | null = null,
  ) {
    super();
    this.names = new Names(schema, joined.scene);
    this.me = this.self(joined);
    this.rules(joined);
  }

  private self(joined: Joined): Entity {
    return new Entity(joined.id, 0, this.names.kind(0), joined.pos, joined.facing, this.world);
  }

  private rules(joined: Joined): void {
    const { movement, updates, patchCm } = joined.rules;
    this.tileCm = movement?.tileCm ?? 0;
    this.tickMs = movement?.tickMs ?? updates?.tickMs ?? 0;
    this.patchCm = patchCm;
  }

  /**
   * The player has joined, resumed or teleported. The frames that follow change the view.
   * `isOther`: it is another world; the entities that leave from now on leave by that.
   */
  joined(joined: Joined, isOther: boolean): void {
    if (isOther) this.world += 1;
    this.crowd = null;
    this.names = new Names(this.schema, joined.scene);
    this.rules(joined);
    if (joined.id !== this.me.id) this.me = this.self(joined);
    this.me.pos = joined.pos;
    this.me.facing = joined.facing;
  }

  /** A new session begins: everything leaves, and ticks may begin anew. */
  clear(): void {
    const gone = [...this.seen.values()];
    this.seen.clear();
    this.tick = 0;
    for (const entity of gone) this.emit('leave', entity, 'world');
  }

  get size(): number {
    return this.seen.size;
  }

  get(id: number): Entity | undefined {
    return this.seen.get(id);
  }

  has(id: number): boolean {
    return this.seen.has(id);
  }

  [Symbol.iterator](): IterableIterator<Entity> {
    return this.seen.values();
  }

  /** The server's time of a tick; 0 where clients do not extrapolate. */
  timeOf(tick: number): number {
    return tick * this.tickMs;
  }

  /**
   * Applies a frame, then calls the listeners.
   *
   * @throws ViewError The frame contradicts those before it; the view is then unchanged.
   * @throws DecodeError A property has a value that is not MessagePack.
   */
  apply(frame: Frame): void {
    this.check(frame);
    const values = frame.properties.map((p) => readValue(p.value));
    const entered = frame.enters.map((e) => this.entered(e));
    const before = new Map(this.seen);
    const events: (() => void)[] = [];
    if (frame.resync) this.seen.clear();
    for (const id of frame.leaves) this.seen.delete(id);
    for (const entity of entered) this.enter(entity, before.get(entity.id), frame.resync, events);
    const left = [...before.values()].filter((entity) => this.seen.get(entity.id) !== entity);
    // Leaves come before enters, as in the message.
    events.unshift(...left.map((entity) => () => this.emit('leave', entity, entity.world === this.world ? 'view' : 'world')));
    this.move(frame, events);
    for (const act of frame.acts) {
      const entity = this.seen.get(act.id) ?? before.get(act.id);
      if (entity) events.push(() => this.emit('act', entity, act.payload, act.logic));
    }
    this.setProperties(frame, values, events);
    if (frame.crowd) this.crowd = crowdOf(frame.crowd, frame.tick, this.patchCm);
    this.tick = frame.tick;
    for (const event of events) event();
  }

  private entered(e: Entered): Entity {
    const { id, kind, x, y, z, facing } = e;
    const entity = new Entity(id, kind, this.names.kind(kind), { x, y, z }, facing, this.world);
    for (const p of e.properties) entity.properties.set(this.names.property(kind, p.id), readValue(p.value));
    if (e.trajectory) entity.trajectory = Trajectory.of(e.trajectory, this.tileCm);
    return entity;
  }

  /** An entity that a resync names again stays, with what is new about it. */
  private enter(fresh: Entity, known: Entity | undefined, resync: boolean, events: (() => void)[]): void {
    if (!resync || !known || known.kind !== fresh.kind || known.world !== this.world) {
      this.seen.set(fresh.id, fresh);
      events.push(() => this.emit('enter', fresh));
      return;
    }
    this.seen.set(known.id, known);
    const moved = known.trajectory !== null || fresh.trajectory !== null || !samePlace(known.pos, fresh.pos);
    const turned = known.facing !== fresh.facing;
    known.pos = fresh.pos;
    known.trajectory = fresh.trajectory;
    known.facing = fresh.facing;
    if (moved) events.push(() => this.emit('update', known, fresh.trajectory ? 'trajectory' : 'position'));
    else if (turned) events.push(() => this.emit('update', known, 'facing'));
    for (const [name, value] of fresh.properties) this.put(known, name, value, events);
    for (const name of [...known.properties.keys()]) {
      if (!fresh.properties.has(name)) known.properties.delete(name);
    }
  }

  private move(frame: Frame, events: (() => void)[]): void {
    const toldAt = this.timeOf(frame.tick);
    for (const m of frame.moves) {
      const entity = this.seen.get(m.id)!;
      entity.pos = { x: m.x, y: m.y, z: m.z };
      entity.facing = m.facing;
      entity.trajectory = trajectoryOf(m, toldAt);
      events.push(() => this.emit('update', entity, 'position'));
    }
    for (const t of frame.trajectories) {
      const entity = this.seen.get(t.id)!;
      entity.trajectory = this.next(t, entity, toldAt);
      entity.pos = entity.trajectory.position(toldAt);
      entity.facing = t.facing;
      events.push(() => this.emit('update', entity, 'trajectory'));
    }
    for (const t of frame.turns) {
      const entity = this.seen.get(t.id) ?? this.me;
      entity.facing = t.facing;
      events.push(() => this.emit('update', entity, 'facing'));
    }
  }

  private next(t: TrajectoryUpdate, entity: Entity, toldAt: number): Trajectory {
    if (t.kind === 'whole') return Trajectory.of(t.trajectory, this.tileCm);
    const start = Math.max(0, toldAt - t.agoMs);
    const from = entity.position(start);
    const at = { x: from.x + t.dx, y: from.y + t.dy, z: from.z + t.dz };
    return new Trajectory(new Vector(at, t.vx, t.vz), start, t.lastsMs ?? undefined);
  }

  private setProperties(frame: Frame, values: Value[], events: (() => void)[]): void {
    const own = new Map(this.me.properties);
    // After a resync the player's own properties are told anew.
    if (frame.resync) this.me.properties.clear();
    frame.properties.forEach((p, i) => {
      const entity = this.seen.get(p.entity) ?? this.me;
      const name = this.names.property(entity.kind, p.id);
      const before = entity === this.me && frame.resync ? own.get(name) : entity.get(name);
      this.put(entity, name, values[i]!, events, before);
    });
  }

  private put(
    entity: Entity,
    name: string,
    value: Value,
    events: (() => void)[],
    before = entity.properties.get(name),
  ): void {
    entity.properties.set(name, value);
    if (!sameValue(before, value)) events.push(() => this.emit('property', entity, name, value, before));
  }

  private check(frame: Frame): void {
    const wrong = (id: number, what: string) => new ViewError(`tick ${frame.tick}: entity ${id} ${what}`);
    if (frame.tick <= this.tick) {
      throw new ViewError(`a frame of tick ${frame.tick} after one of tick ${this.tick}`);
    }
    const after = new Set(frame.resync ? [] : this.seen.keys());
    for (const id of frame.leaves) {
      if (!after.delete(id)) throw wrong(id, 'leaves and was not in view');
    }
    for (const { id } of frame.enters) {
      if (after.has(id)) throw wrong(id, 'enters and was in view');
      after.add(id);
    }
    for (const { id } of [...frame.moves, ...frame.trajectories]) {
      if (!after.has(id)) throw wrong(id, 'moves and is not in view');
    }
    const known = (id: number) => after.has(id) || id === this.me.id;
    for (const { id } of frame.turns) if (!known(id)) throw wrong(id, 'turns and is not in view');
    for (const p of frame.properties) {
      if (!known(p.entity)) throw wrong(p.entity, 'has a new property and is not in view');
    }
    for (const { id } of frame.acts) {
      // An entity that acts and leaves in one tick was in view.
      if (!after.has(id) && (frame.resync || !this.seen.has(id))) throw wrong(id, 'acts and is not in view');
    }
  }
}

function samePlace(a: Position, b: Position): boolean {
  return a.x === b.x && a.y === b.y && a.z === b.z;
}

function trajectoryOf(m: Moved, toldAt: number): Trajectory | null {
  if (m.vx === 0 && m.vz === 0) return null;
  return new Trajectory(new Vector({ x: m.x, y: m.y, z: m.z }, m.vx * 10, m.vz * 10), toldAt);
}

function crowdOf(crowd: { x: number; z: number; dots: Uint8Array }, tick: number, patchCm: readonly number[]): CrowdDots {
  const [width = 0, depth = 0] = patchCm;
  const at = (middle: number, cell: number, side: number) => middle + Math.trunc(((2 * cell - 255) * side) / 16);
  const dots = [];
  for (let i = 0; i + 1 < crowd.dots.length; i += 2) {
    dots.push({ x: at(crowd.x, crowd.dots[i]!, width), z: at(crowd.z, crowd.dots[i + 1]!, depth) });
  }
  return { tick, dots, cellCm: [Math.trunc(width / 8), Math.trunc(depth / 8)] };
}

/** The dots but for one near each of these places, which are drawn anyway. */
export function beyond(crowd: CrowdDots, known: Iterable<{ x: number; z: number }>): { x: number; z: number }[] {
  const reach = (side: number) => Math.max(1, Math.trunc((side * 3) / 2));
  const [x, z] = [reach(crowd.cellCm[0]), reach(crowd.cellCm[1])];
  const dots = [...crowd.dots];
  for (const at of known) {
    let nearest = -1;
    let best = Infinity;
    dots.forEach((dot, i) => {
      const far = (dot.x - at.x) ** 2 + (dot.z - at.z) ** 2;
      const near = Math.abs(dot.x - at.x) <= x && Math.abs(dot.z - at.z) <= z;
      if (near && far < best) [nearest, best] = [i, far];
    });
    if (nearest >= 0) dots.splice(nearest, 1);
  }
  return dots;
}

function sameValue(a: Value | undefined, b: Value | undefined): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const [left, right] = [Object.entries(a), Object.entries(b)];
  return (
    left.length === right.length &&
    Array.isArray(a) === Array.isArray(b) &&
    left.every(([key, value]) => sameValue(value as Value, (b as { [key: string]: Value })[key]))
  );
}
