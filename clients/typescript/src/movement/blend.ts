// Moves the displayed position smoothly to the computed position after a correction.

import { dist2, i32, mulDiv, type Position } from './integers.js';

export class Blend {
  private off: Position = { x: 0, y: 0, z: 0 };
  private since = 0;

  constructor(
    /** Duration, milliseconds; 0: at once. */
    readonly lastsMs = 200,
    /** Distance from which the picture jumps, centimetres. */
    readonly snapCm = 300,
  ) {}

  /** `shown` was displayed, `is` is the computed position. */
  begin(now: number, shown: Position, is: Position): void {
    this.since = now;
    const near = dist2(shown, is) < this.snapCm ** 2;
    const off = { x: shown.x - is.x, y: shown.y - is.y, z: shown.z - is.z };
    this.off = near ? off : { x: 0, y: 0, z: 0 };
  }

  /** The position to display when the computed one is `is`. */
  shown(now: number, is: Position): Position {
    const passed = Math.max(0, now - this.since);
    if (passed >= this.lastsMs) return is;
    const part = (off: number) => mulDiv(off, this.lastsMs - passed, this.lastsMs);
    return { x: i32(is.x + part(this.off.x)), y: i32(is.y + part(this.off.y)), z: i32(is.z + part(this.off.z)) };
  }
}
