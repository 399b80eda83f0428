// A move in progress. It ends where its way is blocked, and a while after the last command about it.
import { clearVector, isClear } from './ground.js';
import { U32_MAX } from './integers.js';
import { stand } from './move.js';
/** Longest move that the server orders, milliseconds. */
const ORDERED_MS_MAX = 60_000;
export class Walk {
    motion;
    reachMs;
    /** When it began, by the client's clock; `null` for a move that the server ordered. */
    since = null;
    /** From the start to the client's last command about it. */
    saidMs = 0;
    /** Where the way is blocked, from the start; `null`: nowhere so far. */
    blockedMs = null;
    constructor(motion, 
    /** How long it goes on after the last command. */
    reachMs) {
        this.motion = motion;
        this.reachMs = reachMs;
    }
    /** A client's move that begins at `at`; `null`: the path cannot be walked. */
    static begin(motion, at, on) {
        const walk = new Walk(motion.onTiles(on.tiles.tileCm), on.commandMs + on.graceMs);
        walk.since = at;
        if (walk.motion.kind === 'path')
            return isClear(walk.motion, on) ? walk : null;
        walk.look(0, on);
        return walk;
    }
    /** Standing, by order of the server. */
    static stand(at) {
        return new Walk(stand(at), ORDERED_MS_MAX);
    }
    /** Standing since a moment of the client's clock. */
    static stood(at, since) {
        const walk = Walk.stand(at);
        walk.since = since;
        return walk;
    }
    /** A move ordered by the server, for so long. */
    static ordered(motion, lastsMs) {
        const walk = new Walk(motion, ORDERED_MS_MAX);
        walk.blockedMs = lastsMs;
        return walk;
    }
    get isClients() {
        return this.since !== null;
    }
    /** Milliseconds walked when `ms` have passed since the start. */
    walked(ms) {
        return Math.min(ms, this.lapsesMs, this.lastsMs);
    }
    get lapsesMs() {
        return this.saidMs + this.reachMs;
    }
    /** Milliseconds from the start to a client time. A move that the server ordered counts as over. */
    passed(at) {
        return this.since === null ? Infinity : Math.max(0, at - this.since);
    }
    at(at) {
        return this.motion.position(this.walked(this.passed(at)));
    }
    /** Whether it is over `ms` after the start, whatever the client sends. */
    isOver(ms) {
        return this.lastsMs <= ms;
    }
    /** Whether it has ended before its own end, because no command was sent. */
    hasLapsed(ms) {
        return ms > this.lapsesMs && this.lastsMs > this.lapsesMs;
    }
    /** When it ended for good, if that was before `at` and no command was sent since. */
    unsaidEnd(at) {
        const ends = this.saidMs < this.lastsMs && this.lastsMs <= this.lapsesMs;
        return this.since !== null && ends && this.isOver(this.passed(at)) ? this.since + this.lastsMs : null;
    }
    /** Whether something in the way ends it before its own end. */
    get isBlocked() {
        return this.lastsMs < this.motion.walkMs;
    }
    /** The client goes on at `at`. A walk that has lapsed stays ended. */
    goOn(at, on) {
        if (this.since === null)
            return this;
        const passed = Math.max(0, at - this.since);
        if (this.hasLapsed(passed)) {
            const stood = new Walk(stand(this.at(at)), this.reachMs);
            stood.since = at;
            return stood;
        }
        const known = this.walked(Infinity);
        this.saidMs = Math.max(this.saidMs, passed);
        if (this.blockedMs === null)
            this.look(known, on);
        return this;
    }
    /** Looks how far the way is clear from `fromMs` on. */
    look(fromMs, on) {
        if (this.motion.kind !== 'vector')
            return;
        this.blockedMs = null;
        const from = this.walked(fromMs);
        const clear = clearVector(this.motion, from, Math.min(U32_MAX, this.lapsesMs), on);
        this.blockedMs = clear.stopped ? clear.ms : null;
    }
    /** Milliseconds from the start to the end, as far as known. */
    get lastsMs() {
        return Math.min(this.motion.walkMs, this.blockedMs ?? U32_MAX);
    }
}
