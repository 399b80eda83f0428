// What one entity does over time, and the error that is left to spread.
//
// The picture is a little in the past, so a motion usually arrives before it is due, and the one
// before it is still needed.

import { Blend } from '../movement/blend.js';
import type { Position } from '../movement/integers.js';

/** Most motions that wait for their time. */
const MOTIONS_MAX = 8;

/** A movement that is a function of the server's time: a judged move. */
export interface Evaluated {
  /** When it begins, server's clock, milliseconds. */
  readonly startMs: number;
  /** Where the entity is at a time, at its beginning if that is later. */
  position(serverMs: number): Position;
}

/** A position at a time, which the entity reaches from the one before. */
export interface Sample {
  /** When, server's clock, milliseconds. */
  readonly atMs: number;
  /** The entity comes here within this time before, milliseconds. */
  readonly spanMs: number;
  readonly pos: Position;
  /** Velocity to the east and to the south from then on, centimetres per second. */
  readonly vx: number;
  readonly vz: number;
}

/** What the server has told of an entity's movement. */
export type Motion = Evaluated | Sample;

function isSample(motion: Motion): motion is Sample {
  return 'atMs' in motion;
}

function beginsMs(motion: Motion): number {
  return isSample(motion) ? motion.atMs : motion.startMs;
}

function positionOf(motion: Motion, atMs: number): Position {
  if (!isSample(motion)) return motion.position(atMs);
  const passed = Math.max(atMs - motion.atMs, 0);
  const along = (from: number, v: number): number => from + Math.trunc((v * passed) / 1_000);
  const { x, y, z } = motion.pos;
  return { x: along(x, motion.vx), y, z: along(z, motion.vz) };
}

/** The way from a motion to the next sample, in the sample's span. */
function between(motion: Motion, next: Sample, atMs: number): Position {
  const span = Math.min(next.spanMs, Math.max(next.atMs - beginsMs(motion), 0));
  const fromMs = next.atMs - span;
  if (atMs <= fromMs) return positionOf(motion, atMs);
  const from = positionOf(motion, fromMs);
  const along = (a: number, b: number): number => a + Math.trunc(((b - a) * (atMs - fromMs)) / span);
  const to = next.pos;
  return { x: along(from.x, to.x), y: along(from.y, to.y), z: along(from.z, to.z) };
}

function isSame(a: Position, b: Position): boolean {
  return a.x === b.x && a.y === b.y && a.z === b.z;
}

/** The motions of one entity. */
export class Track {
  /** By their beginning; never empty. */
  private readonly motions: Motion[];
  private readonly blend = new Blend();

  constructor(motion: Motion) {
    this.motions = [motion];
  }

  /** Where the entity was at a time, by what is known. */
  position(atMs: number): Position {
    let due = this.motions.length - 1;
    while (due >= 0 && beginsMs(this.motions[due]!) > atMs) due -= 1;
    if (due < 0) return positionOf(this.motions[0]!, atMs);
    const [motion, next] = [this.motions[due]!, this.motions[due + 1]];
    if (next !== undefined && isSample(next)) return between(motion, next, atMs);
    return positionOf(motion, atMs);
  }

  /** Where the entity is drawn: there, and the part of the error that is left. */
  shown(atMs: number): Position {
    return this.blend.shown(atMs, this.position(atMs));
  }

  /** The server has told a motion, while the picture of `atMs` is drawn. */
  told(atMs: number, motion: Motion): void {
    const [shown, was] = [this.shown(atMs), this.position(atMs)];
    const begins = beginsMs(motion);
    while (this.motions.length > 0 && beginsMs(this.motions.at(-1)!) >= begins) this.motions.pop();
    if (this.motions.length === MOTIONS_MAX) this.motions.shift();
    this.motions.push(motion);
    const is = this.position(atMs);
    if (!isSame(is, was)) this.blend.begin(atMs, shown, is);
  }

  /** The picture goes on to `atMs`. If the display time has jumped, what was shown is `shown`. */
  advance(atMs: number, shown: Position | null): void {
    while (this.motions.length > 1 && beginsMs(this.motions[1]!) <= atMs) this.motions.shift();
    if (shown !== null) this.blend.begin(atMs, shown, this.position(atMs));
  }

  /** Forgets the error: nothing of it was drawn. */
  snap(atMs: number): void {
    const is = this.position(atMs);
    this.blend.begin(atMs, is, is);
  }
}
