// A move as viewers are told it: its position follows from the server's time.

import type { Going } from '../wire/messages.js';
import { U32_MAX, type Position } from './integers.js';
import { moveOf, type Move } from './move.js';

export class Trajectory {
  constructor(
    readonly motion: Move,
    /** When it began, milliseconds of the server's clock. */
    readonly startMs: number,
    /** Milliseconds after which the entity stands. */
    readonly lastsMs: number = U32_MAX,
  ) {}

  static of(going: Going, tileCm: number): Trajectory {
    return new Trajectory(moveOf(going.form, tileCm), going.startMs, going.lastsMs ?? U32_MAX);
  }

  /** The position at a time of the server. */
  position(serverMs: number): Position {
    return this.motion.position(this.elapsed(serverMs));
  }

  private elapsed(serverMs: number): number {
    return Math.min(Math.max(0, Math.floor(serverMs) - this.startMs), U32_MAX, this.lastsMs);
  }
}
