import { Blend } from './blend.js';
import type { Footing } from './ground.js';
import { type Position } from './integers.js';
import { type Move } from './move.js';
/** What the player wants to do from its position on. */
export type Wish = {
    kind: 'stand';
}
/** Millimetres per second, for milliseconds or (`null`) until the next wish. */
 | {
    kind: 'straight';
    vx: number;
    vz: number;
    lasts: number | null;
}
/** Steps 0 to 7, centimetres per second. */
 | {
    kind: 'steps';
    steps: string;
    speed: number;
};
/** A move command; `motion` `null`: as before. */
export interface Command {
    correction: number;
    at: number;
    motion: Move | null;
}
export declare function sameWish(a: Wish, b: Wish): boolean;
/** Reads no clock: `now` is the client's time in milliseconds and never goes back. */
export declare class Predictor {
    /** Number of the last correction that was followed. */
    correction: number;
    on: Footing;
    private readonly blend;
    private walk;
    private orderedAt;
    private wished;
    private said;
    private commandedAt;
    private stoppedAt;
    private held;
    private unacked;
    /** Milliseconds walked before the present walk. */
    private walkedMs;
    constructor(now: number, pos: Position, 
    /** Number of the last correction that was followed. */
    correction: number, on: Footing, blend?: Blend);
    /** What the player wants; `poll` gives it as a command. */
    wish(wish: Wish): void;
    /** The command to send at `now`, if any. Call it until it gives `null`, in every drawn frame. */
    poll(now: number): Command | null;
    /** The wish to send now. A change of direction waits for a moment; slowing down does not. */
    private due;
    private begin;
    /**
     * The walk has ended at `at`, by itself or at an obstacle that the client knows. The server is told, because it may
     * know of another obstacle, or of none.
     */
    private end;
    private command;
    private walked;
    /** Stops where the client has walked as far as it may without an acknowledgement. */
    private keepLeash;
    /** The server has applied this command and all before it, or will never apply it. */
    acked(now: number, command: Command): void;
    /** Follows a correction. One that is not newer than the last is ignored. */
    corrected(now: number, number: number, motion: Move, lastsMs: number | null): void;
    /** Whether the server moves the entity now. */
    private isOrdered;
    /** The position, equal to the server's unless a correction is on its way. */
    position(now: number): Position;
    /** The position to draw: the same, blended after a correction. */
    shown(now: number): Position;
    /** Whether the entity stands at the leash and waits for the server. */
    get isHeld(): boolean;
}
