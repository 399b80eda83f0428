import { type Position } from './integers.js';
export declare class Blend {
    /** Duration, milliseconds; 0: at once. */
    readonly lastsMs: number;
    /** Distance from which the picture jumps, centimetres. */
    readonly snapCm: number;
    private off;
    private since;
    constructor(
    /** Duration, milliseconds; 0: at once. */
    lastsMs?: number, 
    /** Distance from which the picture jumps, centimetres. */
    snapCm?: number);
    /** `shown` was displayed, `is` is the computed position. */
    begin(now: number, shown: Position, is: Position): void;
    /** The position to display when the computed one is `is`. */
    shown(now: number, is: Position): Position;
}
