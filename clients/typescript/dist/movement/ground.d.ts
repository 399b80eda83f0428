import { type Position } from './integers.js';
import { type Path, type Tile, type Vector } from './move.js';
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
export declare function open(tileCm: number): Tiles;
/** A map of `width` x `depth` tiles, row by row from the north-west corner. Doors change it. */
export declare class Grid implements Tiles {
    readonly tileCm: number;
    readonly width: number;
    readonly depth: number;
    /** One byte for each tile: 0 is free. */
    readonly blocked: Uint8Array;
    /** Centimetres. */
    readonly heights: Int32Array | null;
    constructor(tileCm: number, width: number, depth: number, 
    /** One byte for each tile: 0 is free. */
    blocked: Uint8Array, 
    /** Centimetres. */
    heights?: Int32Array | null);
    isFree(_plane: number, x: number, z: number): boolean;
    height(x: number, z: number): number | null;
    /** Opens or closes the tiles of a door. */
    set(west: number, north: number, width: number, depth: number, isFree: boolean): void;
}
/** The tiles that entities in view occupy. */
export declare class Bodies {
    private areas;
    /** Whether a body stops a step to the next tile. What stands in a body walks in it and leaves it. */
    stop(from: Tile, to: Tile): boolean;
    /** These bodies and no others: where each is, and its sides along x and z. */
    take(bodies: Iterable<{
        at: Position;
        sizeCm: readonly number[];
    }>, tileCm: number): void;
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
/** Whether every step of a path can be walked. */
export declare function isClear(path: Path, on: Footing): boolean;
/** How far a vector can be walked, and whether something stops it there. */
export interface Clear {
    ms: number;
    stopped: boolean;
}
/** How far a vector is clear from `fromMs` to at most `toMs`. */
export declare function clearVector(vector: Vector, fromMs: number, toMs: number, on: Footing): Clear;
