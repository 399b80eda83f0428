import type { Form } from '../wire/messages.js';
import { type Position } from './integers.js';
/** Offsets of the steps 0 to 7, in tiles: right is east, down is south. */
export declare const DELTAS: readonly (readonly [number, number])[];
/** A tile, counted from the map's north-west corner. */
export interface Tile {
    x: number;
    z: number;
}
/** The tile of a position. */
export declare function tileOf(at: Position, tileCm: number): Tile;
/** One step of a path, as positions. */
export interface Leg {
    diagonal: boolean;
    from: Position;
    to: Position;
    tile: Tile;
    next: Tile;
    /** Thousandths of a centimetre. */
    length: number;
}
/** Straight on at a velocity in millimetres per second. */
export declare class Vector {
    readonly start: Position;
    readonly vx: number;
    readonly vz: number;
    /** Milliseconds; `null`: until the next command. */
    readonly lasts: number | null;
    readonly kind = "vector";
    constructor(start: Position, vx: number, vz: number, 
    /** Milliseconds; `null`: until the next command. */
    lasts?: number | null);
    /** Towards (`dx`, `dz`), rounded so that it is never faster than `speed` (cm/s). */
    static heading(start: Position, dx: number, dz: number, speed: number): Vector;
    position(elapsed: number): Position;
    /** Milliseconds until it stands; 0: it stands; 2^32 - 1: until the next command. */
    get walkMs(): number;
    /** Centimetres per second, rounded up. */
    get speed(): number;
    onTiles(_tileCm: number): Vector;
    form(): Form;
}
/** Step by step to the middle of the next tile, at one speed. */
export declare class Path {
    readonly start: Position;
    readonly steps: string;
    readonly kind = "path";
    readonly tileCm: number;
    readonly speed: number;
    readonly legs: readonly Leg[];
    /** Milliseconds to the end; 0: it stands. */
    readonly walkMs: number;
    constructor(start: Position, steps: string, speed: number, tileCm: number);
    private cut;
    position(elapsed: number): Position;
    /** Whether a step starts in the middle of its tile. */
    isMiddle(leg: Leg): boolean;
    private legAt;
    /** The steps to the tiles that are not reached yet. */
    rest(elapsed: number): string;
    onTiles(tileCm: number): Path;
    form(): Form;
}
export type Move = Path | Vector;
/** Standing at a position. */
export declare function stand(at: Position): Vector;
/** The move of a message, over tiles of this side. */
export declare function moveOf(form: Form, tileCm: number): Move;
