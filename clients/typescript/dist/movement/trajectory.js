// A move as viewers are told it: its position follows from the server's time.
import { U32_MAX } from './integers.js';
import { moveOf } from './move.js';
export class Trajectory {
    motion;
    startMs;
    lastsMs;
    constructor(motion, 
    /** When it began, milliseconds of the server's clock. */
    startMs, 
    /** Milliseconds after which the entity stands. */
    lastsMs = U32_MAX) {
        this.motion = motion;
        this.startMs = startMs;
        this.lastsMs = lastsMs;
    }
    static of(going, tileCm) {
        return new Trajectory(moveOf(going.form, tileCm), going.startMs, going.lastsMs ?? U32_MAX);
    }
    /** The position at a time of the server. */
    position(serverMs) {
        return this.motion.position(this.elapsed(serverMs));
    }
    elapsed(serverMs) {
        return Math.min(Math.max(0, Math.floor(serverMs) - this.startMs), U32_MAX, this.lastsMs);
    }
}
