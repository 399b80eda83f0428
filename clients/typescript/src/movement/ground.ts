// The ground as the game knows it, and how far a move over it is clear.

import { i32, U32_MAX, type Position } from './integers.js';
import { tileOf, type Leg, type Path, type Tile, type Vector } from './move.js';

/** Free and blocked tiles, and their heights. */
export interface Tiles {
  /** Side of a tile, centimetres. */
  readonly tileCm: number;
  /** Whether an entity can stand on a tile of this plane. */
  isFree(plane: number, x: number, z: number): boolean;
  /** Height of a tile, centimetres; `null`: the map has no heights. */
  height(x: number, z: number): number | null;
}

/** Ground without a map: the server alone knows walls. */
export function open(tileCm: number): Tiles {
  return { tileCm, isFree: () => true, height: () => null };
}

/** A map of `width` x `depth` tiles, row by row from the north-west corner. Doors change it. */
export class Grid implements Tiles {
  constructor(
    readonly tileCm: number,
    readonly width: number,
    readonly depth: number,
    /** One byte for each tile: 0 is free. */
    readonly blocked: Uint8Array,
    /** Centimetres. */
    readonly heights: Int32Array | null = null,
  ) {}

  isFree(_plane: number, x: number, z: number): boolean {
    const inside = x >= 0 && z >= 0 && x < this.width && z < this.depth;
    return inside && this.blocked[z * this.width + x] === 0;
  }

  height(x: number, z: number): number | null {
    return this.heights?.[z * this.width + x] ?? null;
  }

  /** Opens or closes the tiles of a door. */
  set(west: number, north: number, width: number, depth: number, isFree: boolean): void {
    for (let z = north; z < north + depth; z++) {
      for (let x = west; x < west + width; x++) this.blocked[z * this.width + x] = isFree ? 0 : 1;
    }
  }
}

/** The tiles of a body, both corners included. */
interface Area {
  first: Tile;
  last: Tile;
}

const within = ({ first, last }: Area, { x, z }: Tile): boolean =>
  x >= first.x && x <= last.x && z >= first.z && z <= last.z;

/** The tiles that entities in view occupy. */
export class Bodies {
  private areas: Area[] = [];

  /** Whether a body stops a step to the next tile. What stands in a body walks in it and leaves it. */
  stop(from: Tile, to: Tile): boolean {
    return this.areas.some((area) => within(area, to) && !within(area, from));
  }

  /** These bodies and no others: where each is, and its sides along x and z. */
  take(bodies: Iterable<{ at: Position; sizeCm: readonly number[] }>, tileCm: number): void {
    const tile = Math.max(1, tileCm);
    this.areas = [...bodies].map(({ at, sizeCm }) => {
      const [x, z] = sizeCm.map((side) => Math.max(side, tile) - tile) as [number, number];
      const first = { ...at, x: at.x - Math.ceil(x / 2), z: at.z - Math.ceil(z / 2) };
      const last = { ...at, x: at.x + Math.floor(x / 2), z: at.z + Math.floor(z / 2) };
      return { first: tileOf(first, tile), last: tileOf(last, tile) };
    });
  }
}

/** What movement needs to know of a scene. */
export interface Footing {
  tiles: Tiles;
  /** What else is in the way. */
  bodies?: Bodies;
  plane: number;
  /** The map's sides, centimetres. */
  width: number;
  depth: number;
  /** How much higher and lower the next tile may lie. */
  climb: readonly number[] | null;
  commandMs: number;
  graceMs: number;
  leashMs: number;
}

function side(on: Footing): number {
  return Math.max(1, on.tiles.tileCm);
}

/** Whether an entity gets from a tile to an adjacent one. */
function enters(on: Footing, from: Tile, to: Tile): boolean {
  const free = (x: number, z: number) => on.tiles.isFree(on.plane, x, z) && !on.bodies?.stop(from, { x, z });
  if (!free(to.x, to.z)) return false;
  if (from.x !== to.x && from.z !== to.z && !free(to.x, from.z) && !free(from.x, to.z)) return false;
  if (!on.climb) return true;
  const [low, high] = [on.tiles.height(from.x, from.z), on.tiles.height(to.x, to.z)];
  if (low === null || high === null) return true;
  const rise = high - low;
  return rise <= on.climb[0]! && rise >= -on.climb[1]!;
}

function inside(on: Footing, at: Position): boolean {
  return at.x >= 0 && at.z >= 0 && at.x < on.width && at.z < on.depth;
}

/** Whether every step of a path can be walked. */
export function isClear(path: Path, on: Footing): boolean {
  return path.legs.every((leg, i) => {
    if (!inside(on, leg.to) || !enters(on, leg.tile, leg.next)) return false;
    return !(i === 0 && leg.diagonal && !path.isMiddle(leg)) || passesCorner(leg, on);
  });
}

/** A diagonal step from off the middle crosses the tile on one side of the corner. */
function passesCorner(leg: Leg, on: Footing): boolean {
  const tileCm = side(on);
  // How much of the step is gone when it enters the next column or row.
  const gone = (from: number, to: number, tile: number) => {
    const low = tile * tileCm;
    const border = to > from ? low + tileCm - from : from - low + 1;
    const way = Math.abs(to - from);
    return Math.floor((border * leg.length + way - 1) / Math.max(1, way));
  };
  const x = gone(leg.from.x, leg.to.x, leg.tile.x);
  const z = gone(leg.from.z, leg.to.z, leg.tile.z);
  if (x === z) return true;
  const beside = x < z ? { x: leg.next.x, z: leg.tile.z } : { x: leg.tile.x, z: leg.next.z };
  return enters(on, leg.tile, beside) && enters(on, beside, leg.next);
}

/** One coordinate of a vector, and when it comes to borders. */
class Axis {
  private tile: number;

  constructor(
    private readonly start: number,
    private readonly v: number,
    private readonly side: number,
    at: number,
  ) {
    this.tile = Math.floor(at / side);
  }

  /** The first millisecond at `to` or beyond. */
  private reaches(to: number): number {
    if (this.v === 0) return Infinity;
    const way = Math.max(0, this.v > 0 ? to - this.start : this.start - to);
    // Positions are rounded towards the start: the whole way must be gone.
    return Math.ceil((way * 10_000) / Math.abs(this.v));
  }

  /** The first millisecond in the next tile. */
  next(): number {
    const low = this.tile * this.side;
    return this.reaches(this.v > 0 ? low + this.side : low - 1);
  }

  go(): number {
    this.tile += Math.sign(this.v);
    return i32(this.tile);
  }

  leaves(low: number, high: number): number {
    return this.reaches(this.v > 0 ? high : low - 1);
  }
}

/** How far a vector can be walked, and whether something stops it there. */
export interface Clear {
  ms: number;
  stopped: boolean;
}

/** How far a vector is clear from `fromMs` to at most `toMs`. */
export function clearVector(vector: Vector, fromMs: number, toMs: number, on: Footing): Clear {
  const end = Math.max(fromMs, Math.min(toMs, vector.walkMs));
  const tileCm = side(on);
  const here = vector.position(fromMs);
  const x = new Axis(vector.start.x, vector.vx, tileCm, here.x);
  const z = new Axis(vector.start.z, vector.vz, tileCm, here.z);
  const out = Math.min(x.leaves(0, on.width), z.leaves(0, on.depth));
  const stopped = (at: number) => ({ ms: Math.max(fromMs, Math.min(U32_MAX, at - 1)), stopped: true });
  let tile = tileOf(here, tileCm);
  for (;;) {
    const [nextX, nextZ] = [x.next(), z.next()];
    const at = Math.min(nextX, nextZ);
    if (Math.min(at, out) > end) return { ms: end, stopped: false };
    if (out <= at) return stopped(out);
    const next = { ...tile };
    if (nextX === at) next.x = x.go();
    if (nextZ === at) next.z = z.go();
    if (!enters(on, tile, next)) return stopped(at);
    tile = next;
  }
}
