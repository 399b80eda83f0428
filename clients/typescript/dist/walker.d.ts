import type { Joined, OwnMove } from './wire/messages.js';
import { type Position } from './movement/integers.js';
import { type Tiles } from './movement/ground.js';
import { type Command } from './movement/predictor.js';
import type { View } from './view.js';
/** What keeps a player from moving: bits of `flags`. */
export declare const ROOTED = 1;
export declare const DEAD = 2;
export declare const CUTSCENE = 4;
/** `now` is the client's time in milliseconds and never goes back. */
export declare class Walker {
    private rules;
    private own;
    private tiles;
    private readonly predictor;
    private wished;
    private readonly bodies;
    private constructor();
    /** The movement of a player that has joined; `null`: the scene trusts positions. */
    static of(now: number, joined: Joined, tiles?: Tiles | null): Walker | null;
    private footing;
    /** The player has teleported or resumed. Gives false if positions are trusted now. */
    joined(now: number, joined: Joined, tiles?: Tiles | null): boolean;
    /** The entities in view: those of kinds that block are in the way from now on. */
    sees(view: View): void;
    /** The newest own movement that the server told. */
    take(now: number, own: OwnMove): void;
    /** After the speed has dropped: walks on at the speed that is allowed now. */
    private slowDown;
    /** The greatest speed without a time limit, centimetres per second. */
    get speed(): number;
    /** What stops the player: a sum of ROOTED, DEAD and CUTSCENE. Wishes are ignored meanwhile. */
    get flags(): number;
    /** Walks towards (`dx`, `dz`) until the next wish, at most at `speed`. */
    walk(dx: number, dz: number, speed?: number): void;
    /** Walks straight to a place and stands there, within a centimetre or two. */
    walkTo(now: number, goal: {
        x: number;
        z: number;
    }, speed?: number): void;
    /** Spends a speed that was granted for a time. Gives false if there is none. */
    dash(dx: number, dz: number): boolean;
    private straight;
    /** Walks tile by tile: digits 0 to 7. A path that the ground does not allow is not walked. */
    steps(steps: string, speed?: number): void;
    /** Stands still. */
    stop(): void;
    private wish;
    /** The command to send now. Call it until it gives `null`, in every drawn frame. */
    poll(now: number): Command | null;
    /** The server has applied this command and all before it. */
    acked(now: number, command: Command): void;
    /** The position, equal to the server's unless a correction is on its way. */
    position(now: number): Position;
    /** The position to draw: the same, blended after a correction. */
    shown(now: number): Position;
    /** The position as other clients are told it, at a time of the server. */
    told(serverMs: number): Position;
    /** Whether the player stands and waits for the server's acknowledgement. */
    get isHeld(): boolean;
    /** Number of the last correction that was followed. */
    get correction(): number;
}
