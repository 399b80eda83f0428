import type { Going } from '../wire/messages.js';
import { type Position } from './integers.js';
import { type Move } from './move.js';
export declare class Trajectory {
    readonly motion: Move;
    /** When it began, milliseconds of the server's clock. */
    readonly startMs: number;
    /** Milliseconds after which the entity stands. */
    readonly lastsMs: number;
    constructor(motion: Move, 
    /** When it began, milliseconds of the server's clock. */
    startMs: number, 
    /** Milliseconds after which the entity stands. */
    lastsMs?: number);
    static of(going: Going, tileCm: number): Trajectory;
    /** The position at a time of the server. */
    position(serverMs: number): Position;
    private elapsed;
}
