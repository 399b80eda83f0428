import type { Position } from '../movement/integers.js';
/** A movement that is a function of the server's time: a judged move. */
export interface Evaluated {
    /** When it begins, server's clock, milliseconds. */
    readonly startMs: number;
    /** Where the entity is at a time, at its beginning if that is later. */
    position(serverMs: number): Position;
}
/** A position at a time, which the entity reaches from the one before. */
export interface Sample {
    /** When, server's clock, milliseconds. */
    readonly atMs: number;
    /** The entity comes here within this time before, milliseconds. */
    readonly spanMs: number;
    readonly pos: Position;
    /** Velocity to the east and to the south from then on, centimetres per second. */
    readonly vx: number;
    readonly vz: number;
}
/** What the server has told of an entity's movement. */
export type Motion = Evaluated | Sample;
/** The motions of one entity. */
export declare class Track {
    /** By their beginning; never empty. */
    private readonly motions;
    private readonly blend;
    constructor(motion: Motion);
    /** Where the entity was at a time, by what is known. */
    position(atMs: number): Position;
    /** Where the entity is drawn: there, and the part of the error that is left. */
    shown(atMs: number): Position;
    /** The server has told a motion, while the picture of `atMs` is drawn. */
    told(atMs: number, motion: Motion): void;
    /** The picture goes on to `atMs`. If the display time has jumped, what was shown is `shown`. */
    advance(atMs: number, shown: Position | null): void;
    /** Forgets the error: nothing of it was drawn. */
    snap(atMs: number): void;
}
