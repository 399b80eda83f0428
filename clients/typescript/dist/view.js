// The entities that the server shows to the player: a set by id, updated frame by frame.
import { ViewError } from './errors.js';
import { Emitter } from './events.js';
import { Vector } from './movement/move.js';
import { Trajectory } from './movement/trajectory.js';
import { Names } from './schema.js';
import { readValue } from './value.js';
/** An entity in view, or the player itself. */
export class Entity {
    id;
    kind;
    kindName;
    pos;
    facing;
    world;
    /** Its properties by name, as far as the server told them. */
    properties = new Map();
    /** How it moves since the last message; `null`: it stands at `pos`. */
    trajectory = null;
    constructor(id, 
    /** Index into the scene's kinds; 0 is a player. */
    kind, 
    /** The kind's name in the schema. */
    kindName, 
    /** The last position that the server sent, centimetres. */
    pos, 
    /** The way it faces: 65,536 steps make a turn, 0 is east, clockwise from above. */
    facing, 
    /** The world in which it came into view, see `View.world`. */
    world) {
        this.id = id;
        this.kind = kind;
        this.kindName = kindName;
        this.pos = pos;
        this.facing = facing;
        this.world = world;
    }
    /** A property by its name; `undefined`: never told. */
    get(name) {
        return this.properties.get(name);
    }
    /** All properties by name, with the types of a schema: see `PropertiesOf`. */
    as() {
        return Object.fromEntries(this.properties);
    }
    /** The position at a time of the server, by the last message. */
    position(serverMs) {
        return this.trajectory ? this.trajectory.position(serverMs) : this.pos;
    }
}
export class View extends Emitter {
    schema;
    seen = new Map();
    names;
    tileCm = 0;
    tickMs = 0;
    patchCm = [0, 0];
    /** The player itself. It is never in its own view. */
    me;
    /** The tick of the last frame; 0 before the first one. */
    tick = 0;
    /** Counts scenes, planes and joins: it grows when the whole world around the player changes. */
    world = 0;
    /** The newest crowd; `null`: none was told. */
    crowd = null;
    constructor(joined, schema = null) {
        super();
        this.schema = schema;
        this.names = new Names(schema, joined.scene);
        this.me = this.self(joined);
        this.rules(joined);
    }
    self(joined) {
        return new Entity(joined.id, 0, this.names.kind(0), joined.pos, joined.facing, this.world);
    }
    rules(joined) {
        const { movement, updates, patchCm } = joined.rules;
        this.tileCm = movement?.tileCm ?? 0;
        this.tickMs = movement?.tickMs ?? updates?.tickMs ?? 0;
        this.patchCm = patchCm;
    }
    /**
     * The player has joined, resumed or teleported. The frames that follow change the view.
     * `isOther`: it is another world; the entities that leave from now on leave by that.
     */
    joined(joined, isOther) {
        if (isOther)
            this.world += 1;
        this.crowd = null;
        this.names = new Names(this.schema, joined.scene);
        this.rules(joined);
        if (joined.id !== this.me.id)
            this.me = this.self(joined);
        this.me.pos = joined.pos;
        this.me.facing = joined.facing;
    }
    /** A new session begins: everything leaves, and ticks may begin anew. */
    clear() {
        const gone = [...this.seen.values()];
        this.seen.clear();
        this.tick = 0;
        for (const entity of gone)
            this.emit('leave', entity, 'world');
    }
    get size() {
        return this.seen.size;
    }
    get(id) {
        return this.seen.get(id);
    }
    has(id) {
        return this.seen.has(id);
    }
    [Symbol.iterator]() {
        return this.seen.values();
    }
    /** The server's time of a tick; 0 where clients do not extrapolate. */
    timeOf(tick) {
        return tick * this.tickMs;
    }
    /**
     * Applies a frame, then calls the listeners.
     *
     * @throws ViewError The frame contradicts those before it; the view is then unchanged.
     * @throws DecodeError A property has a value that is not MessagePack.
     */
    apply(frame) {
        this.check(frame);
        const values = frame.properties.map((p) => readValue(p.value));
        const entered = frame.enters.map((e) => this.entered(e));
        const before = new Map(this.seen);
        const events = [];
        if (frame.resync)
            this.seen.clear();
        for (const id of frame.leaves)
            this.seen.delete(id);
        for (const entity of entered)
            this.enter(entity, before.get(entity.id), frame.resync, events);
        const left = [...before.values()].filter((entity) => this.seen.get(entity.id) !== entity);
        // Leaves come before enters, as in the message.
        events.unshift(...left.map((entity) => () => this.emit('leave', entity, entity.world === this.world ? 'view' : 'world')));
        this.move(frame, events);
        for (const act of frame.acts) {
            const entity = this.seen.get(act.id) ?? before.get(act.id);
            if (entity)
                events.push(() => this.emit('act', entity, act.payload, act.logic));
        }
        this.setProperties(frame, values, events);
        if (frame.crowd)
            this.crowd = crowdOf(frame.crowd, frame.tick, this.patchCm);
        this.tick = frame.tick;
        for (const event of events)
            event();
    }
    entered(e) {
        const { id, kind, x, y, z, facing } = e;
        const entity = new Entity(id, kind, this.names.kind(kind), { x, y, z }, facing, this.world);
        for (const p of e.properties)
            entity.properties.set(this.names.property(kind, p.id), readValue(p.value));
        if (e.trajectory)
            entity.trajectory = Trajectory.of(e.trajectory, this.tileCm);
        return entity;
    }
    /** An entity that a resync names again stays, with what is new about it. */
    enter(fresh, known, resync, events) {
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
        if (moved)
            events.push(() => this.emit('update', known, fresh.trajectory ? 'trajectory' : 'position'));
        else if (turned)
            events.push(() => this.emit('update', known, 'facing'));
        for (const [name, value] of fresh.properties)
            this.put(known, name, value, events);
        for (const name of [...known.properties.keys()]) {
            if (!fresh.properties.has(name))
                known.properties.delete(name);
        }
    }
    move(frame, events) {
        const toldAt = this.timeOf(frame.tick);
        for (const m of frame.moves) {
            const entity = this.seen.get(m.id);
            entity.pos = { x: m.x, y: m.y, z: m.z };
            entity.facing = m.facing;
            entity.trajectory = trajectoryOf(m, toldAt);
            events.push(() => this.emit('update', entity, 'position'));
        }
        for (const t of frame.trajectories) {
            const entity = this.seen.get(t.id);
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
    next(t, entity, toldAt) {
        if (t.kind === 'whole')
            return Trajectory.of(t.trajectory, this.tileCm);
        const start = Math.max(0, toldAt - t.agoMs);
        const from = entity.position(start);
        const at = { x: from.x + t.dx, y: from.y + t.dy, z: from.z + t.dz };
        return new Trajectory(new Vector(at, t.vx, t.vz), start, t.lastsMs ?? undefined);
    }
    setProperties(frame, values, events) {
        const own = new Map(this.me.properties);
        // After a resync the player's own properties are told anew.
        if (frame.resync)
            this.me.properties.clear();
        frame.properties.forEach((p, i) => {
            const entity = this.seen.get(p.entity) ?? this.me;
            const name = this.names.property(entity.kind, p.id);
            const before = entity === this.me && frame.resync ? own.get(name) : entity.get(name);
            this.put(entity, name, values[i], events, before);
        });
    }
    put(entity, name, value, events, before = entity.properties.get(name)) {
        entity.properties.set(name, value);
        if (!sameValue(before, value))
            events.push(() => this.emit('property', entity, name, value, before));
    }
    check(frame) {
        const wrong = (id, what) => new ViewError(`tick ${frame.tick}: entity ${id} ${what}`);
        if (frame.tick <= this.tick) {
            throw new ViewError(`a frame of tick ${frame.tick} after one of tick ${this.tick}`);
        }
        const after = new Set(frame.resync ? [] : this.seen.keys());
        for (const id of frame.leaves) {
            if (!after.delete(id))
                throw wrong(id, 'leaves and was not in view');
        }
        for (const { id } of frame.enters) {
            if (after.has(id))
                throw wrong(id, 'enters and was in view');
            after.add(id);
        }
        for (const { id } of [...frame.moves, ...frame.trajectories]) {
            if (!after.has(id))
                throw wrong(id, 'moves and is not in view');
        }
        const known = (id) => after.has(id) || id === this.me.id;
        for (const { id } of frame.turns)
            if (!known(id))
                throw wrong(id, 'turns and is not in view');
        for (const p of frame.properties) {
            if (!known(p.entity))
                throw wrong(p.entity, 'has a new property and is not in view');
        }
        for (const { id } of frame.acts) {
            // An entity that acts and leaves in one tick was in view.
            if (!after.has(id) && (frame.resync || !this.seen.has(id)))
                throw wrong(id, 'acts and is not in view');
        }
    }
}
function samePlace(a, b) {
    return a.x === b.x && a.y === b.y && a.z === b.z;
}
function trajectoryOf(m, toldAt) {
    if (m.vx === 0 && m.vz === 0)
        return null;
    return new Trajectory(new Vector({ x: m.x, y: m.y, z: m.z }, m.vx * 10, m.vz * 10), toldAt);
}
function crowdOf(crowd, tick, patchCm) {
    const [width = 0, depth = 0] = patchCm;
    const at = (middle, cell, side) => middle + Math.trunc(((2 * cell - 255) * side) / 16);
    const dots = [];
    for (let i = 0; i + 1 < crowd.dots.length; i += 2) {
        dots.push({ x: at(crowd.x, crowd.dots[i], width), z: at(crowd.z, crowd.dots[i + 1], depth) });
    }
    return { tick, dots, cellCm: [Math.trunc(width / 8), Math.trunc(depth / 8)] };
}
/** The dots but for one near each of these places, which are drawn anyway. */
export function beyond(crowd, known) {
    const reach = (side) => Math.max(1, Math.trunc((side * 3) / 2));
    const [x, z] = [reach(crowd.cellCm[0]), reach(crowd.cellCm[1])];
    const dots = [...crowd.dots];
    for (const at of known) {
        let nearest = -1;
        let best = Infinity;
        dots.forEach((dot, i) => {
            const far = (dot.x - at.x) ** 2 + (dot.z - at.z) ** 2;
            const near = Math.abs(dot.x - at.x) <= x && Math.abs(dot.z - at.z) <= z;
            if (near && far < best)
                [nearest, best] = [i, far];
        });
        if (nearest >= 0)
            dots.splice(nearest, 1);
    }
    return dots;
}
function sameValue(a, b) {
    if (Object.is(a, b))
        return true;
    if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null)
        return false;
    const [left, right] = [Object.entries(a), Object.entries(b)];
    return (left.length === right.length &&
        Array.isArray(a) === Array.isArray(b) &&
        left.every(([key, value]) => sameValue(value, b[key])));
}
