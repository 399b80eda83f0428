// The player's own entity in a scene that judges moves: wishes go in, move commands come out.
import { ceilLength, dist2 } from './movement/integers.js';
import { Bodies, open } from './movement/ground.js';
import { moveOf, Vector } from './movement/move.js';
import { Predictor } from './movement/predictor.js';
import { Trajectory } from './movement/trajectory.js';
/** What keeps a player from moving: bits of `flags`. */
export const ROOTED = 1;
export const DEAD = 2;
export const CUTSCENE = 4;
/** `now` is the client's time in milliseconds and never goes back. */
export class Walker {
    rules;
    own;
    tiles;
    predictor;
    wished = { kind: 'stand' };
    bodies = new Bodies();
    constructor(now, joined, rules, own, tiles) {
        this.rules = rules;
        this.own = own;
        this.tiles = tiles;
        this.predictor = new Predictor(now, joined.pos, own.correction, this.footing(joined, rules));
    }
    /** The movement of a player that has joined; `null`: the scene trusts positions. */
    static of(now, joined, tiles = null) {
        const { movement } = joined.rules;
        return movement && joined.own && new Walker(now, joined, movement, joined.own, tiles);
    }
    footing(joined, rules) {
        const [width, depth] = joined.rules.sizeCm;
        const { climb, commandMs, graceMs, leashMs } = rules;
        const tiles = this.tiles ?? open(rules.tileCm);
        this.bodies.take([], rules.tileCm);
        return { tiles, bodies: this.bodies, plane: joined.plane, width, depth, climb, commandMs, graceMs, leashMs };
    }
    /** The player has teleported or resumed. Gives false if positions are trusted now. */
    joined(now, joined, tiles = this.tiles) {
        const { movement } = joined.rules;
        if (!movement || !joined.own)
            return false;
        this.tiles = tiles;
        this.predictor.on = this.footing(joined, movement);
        this.rules = movement;
        this.take(now, joined.own);
        return true;
    }
    /** The entities in view: those of kinds that block are in the way from now on. */
    sees(view) {
        const { blocks, tileCm } = this.rules;
        if (blocks.length === 0)
            return;
        const now = view.timeOf(view.tick);
        const bodies = [...view].flatMap((entity) => {
            const blocker = blocks.find(({ kind }) => kind === entity.kind);
            return blocker ? [{ at: entity.position(now), sizeCm: blocker.sizeCm }] : [];
        });
        this.bodies.take(bodies, tileCm);
    }
    /** The newest own movement that the server told. */
    take(now, own) {
        if (own.correction > this.predictor.correction)
            this.wished = { kind: 'stand' };
        const motion = moveOf(own.trajectory.form, this.rules.tileCm);
        this.predictor.corrected(now, own.correction, motion, own.trajectory.lastsMs);
        this.own = own;
        this.slowDown();
    }
    /** After the speed has dropped: walks on at the speed that is allowed now. */
    slowDown() {
        const { wished } = this;
        if (wished.kind === 'straight' && wished.lasts === null) {
            const speed = Math.floor(Math.floor(Math.hypot(wished.vx, wished.vz)) / 10);
            if (speed > this.speed)
                this.walk(wished.vx, wished.vz);
        }
        else if (wished.kind === 'steps' && wished.speed > this.speed)
            this.stop();
    }
    /** The greatest speed without a time limit, centimetres per second. */
    get speed() {
        const endless = this.own.grants.filter((g) => g.leftMs === null).map((g) => g.speed);
        return Math.max(this.own.speed, ...endless);
    }
    /** What stops the player: a sum of ROOTED, DEAD and CUTSCENE. Wishes are ignored meanwhile. */
    get flags() {
        return this.own.flags;
    }
    /** Walks towards (`dx`, `dz`) until the next wish, at most at `speed`. */
    walk(dx, dz, speed = this.speed) {
        const [x, z] = direction(dx, dz);
        const { vx, vz } = Vector.heading({ x: 0, y: 0, z: 0 }, x, z, Math.min(Math.floor(speed), this.speed));
        this.wish({ kind: 'straight', vx, vz, lasts: null });
    }
    /** Walks straight to a place and stands there, within a centimetre or two. */
    walkTo(now, goal, speed = this.speed) {
        const here = this.predictor.position(now);
        const at = Math.min(Math.floor(speed), this.speed);
        const way = Math.floor(Math.sqrt(dist2(here, { ...goal, y: here.y })));
        this.straight(goal.x - here.x, goal.z - here.z, at, Math.floor((way * 1_000) / Math.max(1, at)));
    }
    /** Spends a speed that was granted for a time. Gives false if there is none. */
    dash(dx, dz) {
        const timed = this.own.grants.filter((g) => g.leftMs !== null && g.leftMs > 0);
        const best = timed.reduce((a, b) => (a && a.speed > b.speed ? a : b), null);
        if (!best)
            return false;
        const left = best.leftMs;
        best.leftMs = 0;
        const [x, z] = direction(dx, dz);
        this.straight(x, z, best.speed, left);
        return true;
    }
    straight(dx, dz, speed, lasts) {
        const { vx, vz } = Vector.heading({ x: 0, y: 0, z: 0 }, dx, dz, speed);
        this.wish({ kind: 'straight', vx, vz, lasts });
    }
    /** Walks tile by tile: digits 0 to 7. A path that the ground does not allow is not walked. */
    steps(steps, speed = this.speed) {
        this.wish({ kind: 'steps', steps, speed: Math.min(Math.floor(speed), this.speed) });
    }
    /** Stands still. */
    stop() {
        this.wish({ kind: 'stand' });
    }
    wish(wish) {
        if (this.own.flags !== 0 && wish.kind !== 'stand')
            return;
        this.wished = wish;
        this.predictor.wish(wish);
    }
    /** The command to send now. Call it until it gives `null`, in every drawn frame. */
    poll(now) {
        return this.predictor.poll(now);
    }
    /** The server has applied this command and all before it. */
    acked(now, command) {
        this.predictor.acked(now, command);
    }
    /** The position, equal to the server's unless a correction is on its way. */
    position(now) {
        return this.predictor.position(now);
    }
    /** The position to draw: the same, blended after a correction. */
    shown(now) {
        return this.predictor.shown(now);
    }
    /** The position as other clients are told it, at a time of the server. */
    told(serverMs) {
        return Trajectory.of(this.own.trajectory, this.rules.tileCm).position(serverMs);
    }
    /** Whether the player stands and waits for the server's acknowledgement. */
    get isHeld() {
        return this.predictor.isHeld;
    }
    /** Number of the last correction that was followed. */
    get correction() {
        return this.predictor.correction;
    }
}
/** A direction of any length as integers; a stick gives fractions. */
function direction(dx, dz) {
    if (Number.isInteger(dx) && Number.isInteger(dz) && Math.max(Math.abs(dx), Math.abs(dz)) < 2 ** 31)
        return [dx, dz];
    const length = ceilLength(Math.round(dx * 1_000), Math.round(dz * 1_000)) || 1;
    const scale = 1_000_000 / length;
    return [Math.round(dx * 1_000 * scale), Math.round(dz * 1_000 * scale)];
}
