// The ground as the game knows it, and how far a move over it is clear.
import { i32, U32_MAX } from './integers.js';
import { tileOf } from './move.js';
/** Ground without a map: the server alone knows walls. */
export function open(tileCm) {
    return { tileCm, isFree: () => true, height: () => null };
}
/** A map of `width` x `depth` tiles, row by row from the north-west corner. Doors change it. */
export class Grid {
    tileCm;
    width;
    depth;
    blocked;
    heights;
    constructor(tileCm, width, depth, 
    /** One byte for each tile: 0 is free. */
    blocked, 
    /** Centimetres. */
    heights = null) {
        this.tileCm = tileCm;
        this.width = width;
        this.depth = depth;
        this.blocked = blocked;
        this.heights = heights;
    }
    isFree(_plane, x, z) {
        const inside = x >= 0 && z >= 0 && x < this.width && z < this.depth;
        return inside && this.blocked[z * this.width + x] === 0;
    }
    height(x, z) {
        return this.heights?.[z * this.width + x] ?? null;
    }
    /** Opens or closes the tiles of a door. */
    set(west, north, width, depth, isFree) {
        for (let z = north; z < north + depth; z++) {
            for (let x = west; x < west + width; x++)
                this.blocked[z * this.width + x] = isFree ? 0 : 1;
        }
    }
}
const within = ({ first, last }, { x, z }) => x >= first.x && x <= last.x && z >= first.z && z <= last.z;
/** The tiles that entities in view occupy. */
export class Bodies {
    areas = [];
    /** Whether a body stops a step to the next tile. What stands in a body walks in it and leaves it. */
    stop(from, to) {
        return this.areas.some((area) => within(area, to) && !within(area, from));
    }
    /** These bodies and no others: where each is, and its sides along x and z. */
    take(bodies, tileCm) {
        const tile = Math.max(1, tileCm);
        this.areas = [...bodies].map(({ at, sizeCm }) => {
            const [x, z] = sizeCm.map((side) => Math.max(side, tile) - tile);
            const first = { ...at, x: at.x - Math.ceil(x / 2), z: at.z - Math.ceil(z / 2) };
            const last = { ...at, x: at.x + Math.floor(x / 2), z: at.z + Math.floor(z / 2) };
            return { first: tileOf(first, tile), last: tileOf(last, tile) };
        });
    }
}
function side(on) {
    return Math.max(1, on.tiles.tileCm);
}
/** Whether an entity gets from a tile to an adjacent one. */
function enters(on, from, to) {
    const free = (x, z) => on.tiles.isFree(on.plane, x, z) && !on.bodies?.stop(from, { x, z });
    if (!free(to.x, to.z))
        return false;
    if (from.x !== to.x && from.z !== to.z && !free(to.x, from.z) && !free(from.x, to.z))
        return false;
    if (!on.climb)
        return true;
    const [low, high] = [on.tiles.height(from.x, from.z), on.tiles.height(to.x, to.z)];
    if (low === null || high === null)
        return true;
    const rise = high - low;
    return rise <= on.climb[0] && rise >= -on.climb[1];
}
function inside(on, at) {
    return at.x >= 0 && at.z >= 0 && at.x < on.width && at.z < on.depth;
}
/** Whether every step of a path can be walked. */
export function isClear(path, on) {
    return path.legs.every((leg, i) => {
        if (!inside(on, leg.to) || !enters(on, leg.tile, leg.next))
            return false;
        return !(i === 0 && leg.diagonal && !path.isMiddle(leg)) || passesCorner(leg, on);
    });
}
/** A diagonal step from off the middle crosses the tile on one side of the corner. */
function passesCorner(leg, on) {
    const tileCm = side(on);
    // How much of the step is gone when it enters the next column or row.
    const gone = (from, to, tile) => {
        const low = tile * tileCm;
        const border = to > from ? low + tileCm - from : from - low + 1;
        const way = Math.abs(to - from);
        return Math.floor((border * leg.length + way - 1) / Math.max(1, way));
    };
    const x = gone(leg.from.x, leg.to.x, leg.tile.x);
    const z = gone(leg.from.z, leg.to.z, leg.tile.z);
    if (x === z)
        return true;
    const beside = x < z ? { x: leg.next.x, z: leg.tile.z } : { x: leg.tile.x, z: leg.next.z };
    return enters(on, leg.tile, beside) && enters(on, beside, leg.next);
}
/** One coordinate of a vector, and when it comes to borders. */
class Axis {
    start;
    v;
    side;
    tile;
    constructor(start, v, side, at) {
        this.start = start;
        this.v = v;
        this.side = side;
        this.tile = Math.floor(at / side);
    }
    /** The first millisecond at `to` or beyond. */
    reaches(to) {
        if (this.v === 0)
            return Infinity;
        const way = Math.max(0, this.v > 0 ? to - this.start : this.start - to);
        // Positions are rounded towards the start: the whole way must be gone.
        return Math.ceil((way * 10_000) / Math.abs(this.v));
    }
    /** The first millisecond in the next tile. */
    next() {
        const low = this.tile * this.side;
        return this.reaches(this.v > 0 ? low + this.side : low - 1);
    }
    go() {
        this.tile += Math.sign(this.v);
        return i32(this.tile);
    }
    leaves(low, high) {
        return this.reaches(this.v > 0 ? high : low - 1);
    }
}
/** How far a vector is clear from `fromMs` to at most `toMs`. */
export function clearVector(vector, fromMs, toMs, on) {
    const end = Math.max(fromMs, Math.min(toMs, vector.walkMs));
    const tileCm = side(on);
    const here = vector.position(fromMs);
    const x = new Axis(vector.start.x, vector.vx, tileCm, here.x);
    const z = new Axis(vector.start.z, vector.vz, tileCm, here.z);
    const out = Math.min(x.leaves(0, on.width), z.leaves(0, on.depth));
    const stopped = (at) => ({ ms: Math.max(fromMs, Math.min(U32_MAX, at - 1)), stopped: true });
    let tile = tileOf(here, tileCm);
    for (;;) {
        const [nextX, nextZ] = [x.next(), z.next()];
        const at = Math.min(nextX, nextZ);
        if (Math.min(at, out) > end)
            return { ms: end, stopped: false };
        if (out <= at)
            return stopped(out);
        const next = { ...tile };
        if (nextX === at)
            next.x = x.go();
        if (nextZ === at)
            next.z = z.go();
        if (!enters(on, tile, next))
            return stopped(at);
        tile = next;
    }
}
