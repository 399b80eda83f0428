// What one entity does over time, and the error that is left to spread.
//
// The picture is a little in the past, so a motion usually arrives before it is due, and the one
// before it is still needed.
import { Blend } from '../movement/blend.js';
/** Most motions that wait for their time. */
const MOTIONS_MAX = 8;
function isSample(motion) {
    return 'atMs' in motion;
}
function beginsMs(motion) {
    return isSample(motion) ? motion.atMs : motion.startMs;
}
function positionOf(motion, atMs) {
    if (!isSample(motion))
        return motion.position(atMs);
    const passed = Math.max(atMs - motion.atMs, 0);
    const along = (from, v) => from + Math.trunc((v * passed) / 1_000);
    const { x, y, z } = motion.pos;
    return { x: along(x, motion.vx), y, z: along(z, motion.vz) };
}
/** The way from a motion to the next sample, in the sample's span. */
function between(motion, next, atMs) {
    const span = Math.min(next.spanMs, Math.max(next.atMs - beginsMs(motion), 0));
    const fromMs = next.atMs - span;
    if (atMs <= fromMs)
        return positionOf(motion, atMs);
    const from = positionOf(motion, fromMs);
    const along = (a, b) => a + Math.trunc(((b - a) * (atMs - fromMs)) / span);
    const to = next.pos;
    return { x: along(from.x, to.x), y: along(from.y, to.y), z: along(from.z, to.z) };
}
function isSame(a, b) {
    return a.x === b.x && a.y === b.y && a.z === b.z;
}
/** The motions of one entity. */
export class Track {
    /** By their beginning; never empty. */
    motions;
    blend = new Blend();
    constructor(motion) {
        this.motions = [motion];
    }
    /** Where the entity was at a time, by what is known. */
    position(atMs) {
        let due = this.motions.length - 1;
        while (due >= 0 && beginsMs(this.motions[due]) > atMs)
            due -= 1;
        if (due < 0)
            return positionOf(this.motions[0], atMs);
        const [motion, next] = [this.motions[due], this.motions[due + 1]];
        if (next !== undefined && isSample(next))
            return between(motion, next, atMs);
        return positionOf(motion, atMs);
    }
    /** Where the entity is drawn: there, and the part of the error that is left. */
    shown(atMs) {
        return this.blend.shown(atMs, this.position(atMs));
    }
    /** The server has told a motion, while the picture of `atMs` is drawn. */
    told(atMs, motion) {
        const [shown, was] = [this.shown(atMs), this.position(atMs)];
        const begins = beginsMs(motion);
        while (this.motions.length > 0 && beginsMs(this.motions.at(-1)) >= begins)
            this.motions.pop();
        if (this.motions.length === MOTIONS_MAX)
            this.motions.shift();
        this.motions.push(motion);
        const is = this.position(atMs);
        if (!isSame(is, was))
            this.blend.begin(atMs, shown, is);
    }
    /** The picture goes on to `atMs`. If the display time has jumped, what was shown is `shown`. */
    advance(atMs, shown) {
        while (this.motions.length > 1 && beginsMs(this.motions[1]) <= atMs)
            this.motions.shift();
        if (shown !== null)
            this.blend.begin(atMs, shown, this.position(atMs));
    }
    /** Forgets the error: nothing of it was drawn. */
    snap(atMs) {
        const is = this.position(atMs);
        this.blend.begin(atMs, is, is);
    }
}
