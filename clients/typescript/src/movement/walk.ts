// A move in progress. It ends where its way is blocked, and a while after the last command about it.

import { clearVector, isClear, type Footing } from './ground.js';
import { U32_MAX, type Position } from './integers.js';
import { stand, type Move } from './move.js';

/** Longest move that the server orders, milliseconds. */
const ORDERED_MS_MAX = 60_000;

export class Walk {
  /** When it began, by the client's clock; `null` for a move that the server ordered. */
  since: number | null = null;
  /** From the start to the client's last command about it. */
  private saidMs = 0;
  /** Where the way is blocked, from the start; `null`: nowhere so far. */
  private blockedMs: number | null = null;

  private constructor(
    readonly motion: Move,
    /** How long it goes on after the last command. */
    private readonly reachMs: number,
  ) {}

  /** A client's move that begins at `at`; `null`: the path cannot be walked. */
  static begin(motion: Move, at: number, on: Footing): Walk | null {
    const walk = new Walk(motion.onTiles(on.tiles.tileCm), on.commandMs + on.graceMs);
    walk.since = at;
    if (walk.motion.kind === 'path') return isClear(walk.motion, on) ? walk : null;
    walk.look(0, on);
    return walk;
  }

  /** Standing, by order of the server. */
  static stand(at: Position): Walk {
    return new Walk(stand(at), ORDERED_MS_MAX);
  }

  /** Standing since a moment of the client's clock. */
  static stood(at: Position, since: number): Walk {
    const walk = Walk.stand(at);
    walk.since = since;
    return walk;
  }

  /** A move ordered by the server, for so long. */
  static ordered(motion: Move, lastsMs: number): Walk {
    const walk = new Walk(motion, ORDERED_MS_MAX);
    walk.blockedMs = lastsMs;
    return walk;
  }

  get isClients(): boolean {
    return this.since !== null;
  }

  /** Milliseconds walked when `ms` have passed since the start. */
  walked(ms: number): number {
    return Math.min(ms, this.lapsesMs, this.lastsMs);
  }

  private get lapsesMs(): number {
    return this.saidMs + this.reachMs;
  }

  /** Milliseconds from the start to a client time. A move that the server ordered counts as over. */
  passed(at: number): number {
    return this.since === null ? Infinity : Math.max(0, at - this.since);
  }

  at(at: number): Position {
    return this.motion.position(this.walked(this.passed(at)));
  }

  /** Whether it is over `ms` after the start, whatever the client sends. */
  isOver(ms: number): boolean {
    return this.lastsMs <= ms;
  }

  /** Whether it has ended before its own end, because no command was sent. */
  hasLapsed(ms: number): boolean {
    return ms > this.lapsesMs && this.lastsMs > this.lapsesMs;
  }

  /** When it ended for good, if that was before `at` and no command was sent since. */
  unsaidEnd(at: number): number | null {
    const ends = this.saidMs < this.lastsMs && this.lastsMs <= this.lapsesMs;
    return this.since !== null && ends && this.isOver(this.passed(at)) ? this.since + this.lastsMs : null;
  }

  /** Whether something in the way ends it before its own end. */
  get isBlocked(): boolean {
    return this.lastsMs < this.motion.walkMs;
  }

  /** The client goes on at `at`. A walk that has lapsed stays ended. */
  goOn(at: number, on: Footing): Walk {
    if (this.since === null) return this;
    const passed = Math.max(0, at - this.since);
    if (this.hasLapsed(passed)) {
      const stood = new Walk(stand(this.at(at)), this.reachMs);
      stood.since = at;
      return stood;
    }
    const known = this.walked(Infinity);
    this.saidMs = Math.max(this.saidMs, passed);
    if (this.blockedMs === null) this.look(known, on);
    return this;
  }

  /** Looks how far the way is clear from `fromMs` on. */
  private look(fromMs: number, on: Footing): void {
    if (this.motion.kind !== 'vector') return;
    this.blockedMs = null;
    const from = this.walked(fromMs);
    const clear = clearVector(this.motion, from, Math.min(U32_MAX, this.lapsesMs), on);
    this.blockedMs = clear.stopped ? clear.ms : null;
  }

  /** Milliseconds from the start to the end, as far as known. */
  get lastsMs(): number {
    return Math.min(this.motion.walkMs, this.blockedMs ?? U32_MAX);
  }
}
