// The player's own movement: predicts the position, and decides which commands to send when. It
// sends no command that an honest server refuses: it stops at the leash and follows corrections.
import { Blend } from './blend.js';
import { U32_MAX } from './integers.js';
import { Path, stand, Vector } from './move.js';
import { Walk } from './walk.js';
/** Least time between two commands that change direction, milliseconds. */
const TURN_MS = 50;
const STAND = { kind: 'stand' };
function motionOf(wish, start, tileCm) {
    if (wish.kind === 'stand')
        return stand(start);
    if (wish.kind === 'straight')
        return new Vector(start, wish.vx, wish.vz, wish.lasts);
    return new Path(start, wish.steps, wish.speed, tileCm);
}
const ORIGIN = { x: 0, y: 0, z: 0 };
function speedOf(wish) {
    return motionOf(wish, ORIGIN, 1).speed;
}
/** The rest of a move after so much of it. */
function rest(motion, walked) {
    if (motion.kind === 'path')
        return { kind: 'steps', steps: motion.rest(walked), speed: motion.speed };
    const lasts = motion.lasts === null ? null : Math.max(0, motion.lasts - walked);
    return { kind: 'straight', vx: motion.vx, vz: motion.vz, lasts };
}
export function sameWish(a, b) {
    if (a.kind === 'stand')
        return b.kind === 'stand';
    if (a.kind === 'straight')
        return b.kind === 'straight' && a.vx === b.vx && a.vz === b.vz && a.lasts === b.lasts;
    return b.kind === 'steps' && a.steps === b.steps && a.speed === b.speed;
}
/** Reads no clock: `now` is the client's time in milliseconds and never goes back. */
export class Predictor {
    correction;
    on;
    blend;
    walk;
    orderedAt;
    wished = null;
    said = STAND;
    commandedAt = 0;
    stoppedAt = null;
    held = false;
    unacked = [];
    /** Milliseconds walked before the present walk. */
    walkedMs = 0;
    constructor(now, pos, 
    /** Number of the last correction that was followed. */
    correction, on, blend = new Blend()) {
        this.correction = correction;
        this.on = on;
        this.blend = blend;
        this.walk = Walk.stand(pos);
        this.orderedAt = now;
    }
    /** What the player wants; `poll` gives it as a command. */
    wish(wish) {
        const same = sameWish(this.wished ?? this.said, wish);
        // A wish that ends by itself can be repeated.
        const endless = wish.kind === 'stand' || (wish.kind === 'straight' && wish.lasts === null);
        if (!same || !endless)
            this.wished = wish;
    }
    /** The command to send at `now`, if any. Call it until it gives `null`, in every drawn frame. */
    poll(now) {
        this.keepLeash(now);
        if (this.stoppedAt !== null) {
            const at = Math.max(this.stoppedAt, this.commandedAt);
            this.stoppedAt = null;
            return this.command(at, this.walk.motion);
        }
        if (this.held || this.isOrdered(now))
            return null;
        const passed = this.walk.passed(now);
        if (this.walk.isClients && this.walk.hasLapsed(passed) && this.wished === null) {
            // The game froze for too long, so the entity stopped: walk on from there.
            this.wished = rest(this.walk.motion, this.walk.walked(passed));
        }
        const movesOn = this.wished !== null && this.wished.kind !== 'stand';
        const end = this.walk.unsaidEnd(now);
        if (end !== null && !movesOn)
            return this.end(end);
        const wish = this.due(now);
        if (wish)
            return this.begin(now, wish);
        const walking = this.walk.isClients && !this.walk.isOver(passed);
        if (!walking || now - this.commandedAt < this.on.commandMs)
            return null;
        this.walk = this.walk.goOn(now, this.on);
        return this.command(now, null);
    }
    /** The wish to send now. A change of direction waits for a moment; slowing down does not. */
    due(now) {
        const wish = this.wished;
        if (!wish)
            return null;
        const turns = this.said.kind !== 'stand' && speedOf(wish) >= speedOf(this.said);
        if (turns && now - this.commandedAt < TURN_MS)
            return null;
        this.wished = null;
        return wish;
    }
    begin(now, wish) {
        const here = this.position(now);
        const stood = !this.walk.isClients || this.walk.isOver(this.walk.passed(now));
        let next = Walk.begin(motionOf(wish, here, Math.max(1, this.on.tiles.tileCm)), now, this.on);
        this.said = wish;
        if (!next) {
            // The map does not allow the path: stand instead.
            this.said = STAND;
        }
        if (!next || (next.isBlocked && next.lastsMs === 0))
            next = Walk.begin(stand(here), now, this.on);
        this.walkedMs = this.walked(now);
        this.walk = next;
        if (stood && next.motion.walkMs === 0)
            return null;
        return this.command(now, next.motion);
    }
    /**
     * The walk has ended at `at`, by itself or at an obstacle that the client knows. The server is told, because it may
     * know of another obstacle, or of none.
     */
    end(at) {
        if (!this.walk.isBlocked) {
            this.walk = this.walk.goOn(at, this.on);
            return this.command(at, null);
        }
        const here = this.walk.at(at);
        this.walkedMs = this.walked(at);
        this.walk = Walk.stood(here, at);
        return this.command(at, this.walk.motion);
    }
    command(at, motion) {
        this.commandedAt = at;
        const command = { correction: this.correction, at, motion };
        this.unacked.push({ command, walked: this.walked(at) });
        return command;
    }
    walked(now) {
        return this.walk.isClients ? this.walkedMs + this.walk.walked(this.walk.passed(now)) : this.walkedMs;
    }
    /** Stops where the client has walked as far as it may without an acknowledgement. */
    keepLeash(now) {
        const oldest = this.unacked[0];
        if (!oldest) {
            this.held = false;
            return;
        }
        const end = oldest.walked + this.on.leashMs;
        this.held = this.walked(now) >= end;
        if (!this.held || !this.walk.isClients || this.walked(now) === this.walkedMs)
            return;
        const walked = this.walk.walked(Math.max(0, end - this.walkedMs));
        const at = (this.walk.since ?? now) + Math.max(0, end - this.walkedMs);
        this.wished ??= rest(this.walk.motion, walked);
        this.said = STAND;
        this.walkedMs += walked;
        this.walk = Walk.stood(this.walk.motion.position(walked), at);
        this.stoppedAt = at;
    }
    /** The server has applied this command and all before it, or will never apply it. */
    acked(now, command) {
        this.keepLeash(now);
        const at = this.unacked.findIndex((u) => u.command === command);
        if (at >= 0)
            this.unacked.splice(0, at + 1);
        this.keepLeash(now);
    }
    /** Follows a correction. One that is not newer than the last is ignored. */
    corrected(now, number, motion, lastsMs) {
        if (number <= this.correction)
            return;
        const shown = this.shown(now);
        this.keepLeash(now);
        this.walkedMs = this.walked(now);
        this.correction = number;
        this.walk = Walk.ordered(motion, lastsMs ?? U32_MAX);
        this.orderedAt = now;
        this.wished = null;
        this.said = STAND;
        this.stoppedAt = null;
        this.blend.begin(now, shown, this.position(now));
    }
    /** Whether the server moves the entity now. */
    isOrdered(now) {
        return !this.walk.isClients && !this.walk.isOver(Math.max(0, now - this.orderedAt));
    }
    /** The position, equal to the server's unless a correction is on its way. */
    position(now) {
        if (this.walk.isClients)
            return this.walk.at(now);
        return this.walk.motion.position(this.walk.walked(Math.max(0, now - this.orderedAt)));
    }
    /** The position to draw: the same, blended after a correction. */
    shown(now) {
        return this.blend.shown(now, this.position(now));
    }
    /** Whether the entity stands at the leash and waits for the server. */
    get isHeld() {
        return this.held;
    }
}
