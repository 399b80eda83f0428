import type { Position } from '../movement/integers.js';
import { type Advance, DisplayClock } from './clock.js';
import { type Motion } from './track.js';
/**
 * The entities in view, as they are drawn. `nowUs` is the client's clock in microseconds; `serverUs`
 * the server's time at that moment, by estimate.
 */
export declare class Display {
    readonly clock: DisplayClock;
    private readonly tracks;
    /** A pong has arrived. */
    pong(nowUs: number): void;
    /** A frame has arrived; see `DisplayClock.frame`. What it tells follows by the calls below. */
    frame(nowUs: number, serverUs: number, toldUs: number, tickUs: number): void;
    /** An entity comes into view. */
    enter(id: number, motion: Motion): void;
    /** An entity in view has a new motion. One that is not in view is ignored. */
    told(id: number, motion: Motion): void;
    /** An entity leaves the view. */
    leave(id: number): void;
    /** The view begins anew. */
    clear(): void;
    /** Moves on to the picture that is drawn now. Call it once in every picture. */
    advance(nowUs: number, serverUs: number): Advance;
    /** Where an entity is drawn in this picture. */
    position(id: number): Position | null;
    /** Where an entity was at the time of this picture, without the error that is left to spread. */
    exact(id: number): Position | null;
}
