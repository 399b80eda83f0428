// A move: a path over tiles, or a vector. Its position is a function of the time since its start,
// the same on every machine to the centimetre.
import { ceilLength, i32, mulDiv, rootOf, U32_MAX } from './integers.js';
/** Offsets of the steps 0 to 7, in tiles: right is east, down is south. */
export const DELTAS = [
    [1, 1], [-1, 1], [-1, -1], [1, -1], [0, 1], [-1, 0], [0, -1], [1, 0],
];
/** Greatest speed in any computation, centimetres per second. */
const MAX_SPEED = 100_000_000;
const MAX_TILE = 100_000;
/** The tile of a position. */
export function tileOf(at, tileCm) {
    return { x: Math.floor(at.x / tileCm), z: Math.floor(at.z / tileCm) };
}
function middle(tile, tileCm) {
    return i32(tile * tileCm + Math.floor(tileCm / 2));
}
/** Straight on at a velocity in millimetres per second. */
export class Vector {
    start;
    vx;
    vz;
    lasts;
    kind = 'vector';
    constructor(start, vx, vz, 
    /** Milliseconds; `null`: until the next command. */
    lasts = null) {
        this.start = start;
        this.vx = vx;
        this.vz = vz;
        this.lasts = lasts;
    }
    /** Towards (`dx`, `dz`), rounded so that it is never faster than `speed` (cm/s). */
    static heading(start, dx, dz, speed) {
        const most = Math.max(Math.abs(dx), Math.abs(dz));
        // A longer vector of the same direction: rounding its length loses nothing.
        const longer = 2 ** Math.max(0, Math.clz32(most) - 4);
        const [x, z] = [dx * longer, dz * longer];
        const length = Math.max(1, ceilLength(x, z));
        const top = Math.min(speed, MAX_SPEED) * 10;
        return new Vector(start, mulDiv(x, top, length), mulDiv(z, top, length));
    }
    position(elapsed) {
        const t = Math.min(elapsed, this.walkMs);
        const { x, y, z } = this.start;
        return { x: i32(x + mulDiv(this.vx, t, 10_000)), y, z: i32(z + mulDiv(this.vz, t, 10_000)) };
    }
    /** Milliseconds until it stands; 0: it stands; 2^32 - 1: until the next command. */
    get walkMs() {
        return this.vx === 0 && this.vz === 0 ? 0 : (this.lasts ?? U32_MAX);
    }
    /** Centimetres per second, rounded up. */
    get speed() {
        return Math.ceil(ceilLength(this.vx, this.vz) / 10);
    }
    onTiles(_tileCm) {
        return this;
    }
    form() {
        const { start, vx, vz, lasts } = this;
        return { kind: 'vector', start, vx, vz, lasts };
    }
}
/** Step by step to the middle of the next tile, at one speed. */
export class Path {
    start;
    steps;
    kind = 'path';
    tileCm;
    speed;
    legs;
    /** Milliseconds to the end; 0: it stands. */
    walkMs;
    constructor(start, steps, speed, tileCm) {
        this.start = start;
        this.steps = steps;
        this.tileCm = Math.min(Math.max(tileCm, 1), MAX_TILE);
        this.speed = Math.min(speed, MAX_SPEED);
        this.legs = this.cut();
        const all = this.legs.reduce((sum, leg) => sum + leg.length, 0);
        this.walkMs = this.speed > 0 ? Math.min(U32_MAX, Math.ceil(all / this.speed)) : 0;
    }
    cut() {
        const legs = [];
        let from = this.start;
        let tile = tileOf(from, this.tileCm);
        for (const digit of this.steps) {
            const step = Number(digit);
            const [dx, dz] = DELTAS[step];
            const next = { x: i32(tile.x + dx), z: i32(tile.z + dz) };
            const to = { x: middle(next.x, this.tileCm), y: this.start.y, z: middle(next.z, this.tileCm) };
            const diagonal = step < 4;
            const side = this.tileCm;
            let length = diagonal ? rootOf(side, side, 1_000_000) : side * 1_000;
            // The root of a side of 1 km does not pass 32 bits, but the first step may.
            if (legs.length === 0)
                length = rootOf(to.x - from.x, to.z - from.z, 1_000_000);
            legs.push({ diagonal, from, to, tile, next, length: Math.min(length, U32_MAX) });
            from = to;
            tile = next;
        }
        return legs;
    }
    position(elapsed) {
        if (this.walkMs === 0)
            return this.start;
        const found = this.legAt(elapsed);
        if (!found)
            return this.legs[this.legs.length - 1].to;
        const { leg, gone } = found;
        const at = {
            x: leg.from.x + mulDiv(leg.to.x - leg.from.x, gone, leg.length),
            y: this.start.y,
            z: leg.from.z + mulDiv(leg.to.z - leg.from.z, gone, leg.length),
        };
        const tile = tileOf(at, this.tileCm);
        const is = (t) => t.x === tile.x && t.z === tile.z;
        if (!is(leg.tile) && !is(leg.next) && this.isMiddle(leg))
            return nearest(leg.tile, this.tileCm, at);
        return at;
    }
    /** Whether a step starts in the middle of its tile. */
    isMiddle(leg) {
        return leg.from.x === middle(leg.tile.x, this.tileCm) && leg.from.z === middle(leg.tile.z, this.tileCm);
    }
    legAt(elapsed) {
        if (this.speed > 0 && elapsed >= this.walkMs)
            return null;
        let gone = this.speed * elapsed;
        for (const [index, leg] of this.legs.entries()) {
            if (gone < leg.length)
                return { leg, gone, index };
            gone -= leg.length;
        }
        return null;
    }
    /** The steps to the tiles that are not reached yet. */
    rest(elapsed) {
        const found = this.legAt(elapsed);
        if (!found)
            return '';
        const tile = tileOf(this.position(elapsed), this.tileCm);
        const { next } = found.leg;
        const step = DELTAS.findIndex(([dx, dz]) => dx === next.x - tile.x && dz === next.z - tile.z);
        return (step < 0 ? '' : String(step)) + this.steps.slice(found.index + 1);
    }
    onTiles(tileCm) {
        return tileCm === this.tileCm ? this : new Path(this.start, this.steps, this.speed, tileCm);
    }
    form() {
        const { start, steps, speed } = this;
        return { kind: 'path', start, steps, speed };
    }
}
/** The position of a tile that is nearest to a position. */
function nearest(tile, tileCm, at) {
    const within = (n, t) => Math.min(Math.max(n, t * tileCm), t * tileCm + tileCm - 1);
    return { x: within(at.x, tile.x), y: at.y, z: within(at.z, tile.z) };
}
/** Standing at a position. */
export function stand(at) {
    return new Vector(at, 0, 0);
}
/** The move of a message, over tiles of this side. */
export function moveOf(form, tileCm) {
    return form.kind === 'path'
        ? new Path(form.start, form.steps, form.speed, tileCm)
        : new Vector(form.start, form.vx, form.vz, form.lasts);
}
