// Spreads a correction: the difference between what was drawn and what is right decays.

/** A place, centimetres. */
export interface Place {
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

/** A correction is spread over this time, milliseconds. */
export const SPREAD_MS = 200;

/** From this distance on the entity jumps, centimetres. */
export const SNAP_CM = 300;

const NOWHERE: Place = { x: 0, y: 0, z: 0 };

/** The error that is left to spread, for an entity or for the player itself. */
export class Blend {
  private off = NOWHERE;
  private sinceMs = 0;

  constructor(
    private readonly lastsMs = SPREAD_MS,
    private readonly snapCm = SNAP_CM,
  ) {}

  /** Begins at `nowMs`: `shown` was drawn, and `is` is right. */
  begin(nowMs: number, shown: Place, is: Place): void {
    this.sinceMs = nowMs;
    const off = { x: shown.x - is.x, y: shown.y - is.y, z: shown.z - is.z };
    const far = off.x * off.x + off.z * off.z;
    this.off = far < this.snapCm * this.snapCm ? off : NOWHERE;
  }

  /** What to draw at `nowMs`, when `is` is right. */
  shown(nowMs: number, is: Place): Place {
    const passed = Math.max(nowMs - this.sinceMs, 0);
    if (passed >= this.lastsMs) return is;
    const part = (off: number): number =>
      Math.trunc((off * (this.lastsMs - passed)) / this.lastsMs);
    return { x: is.x + part(this.off.x), y: is.y + part(this.off.y), z: is.z + part(this.off.z) };
  }
}
