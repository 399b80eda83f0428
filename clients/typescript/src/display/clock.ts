// The display clock: for which server time a client draws.
//
// Frames arrive late, and not equally late: a client that draws a moment of the past has the frames
// of that moment already. The clock measures how late frames are, chooses how far behind the server's
// time the picture is, and never runs faster or slower than by a twentieth. It reads no clock: each
// call brings the time. All is integers, so that every language computes the same microsecond.

/** Least and greatest delay, microseconds. */
const DELAY_MIN_US = 50_000;
const DELAY_MAX_US = 500_000;

/** Time constant of the averages, microseconds of server time. */
const AVERAGE_US = 2_000_000;

/** The most that one frame counts for, microseconds of server time. */
const WEIGHT_MAX_US = 500_000;

/** The clock runs faster or slower by at most one part in this number. */
const SPEED_PART = 20;

/** After this time without a frame or pong the picture stops, microseconds. */
const SILENCE_US = 1_000_000;

/** Pictures farther apart than this are not of one motion: the tab was hidden, or the machine slept. */
const PAUSE_US = 250_000;

/** A display time that is farther from its target jumps, microseconds. */
const JUMP_US = 1_000_000;

/**
 * How the display time has come to its new value. `ran`: as time does. `jumped`: while pictures were
 * drawn, so that the difference is spread. `began`: no picture was drawn for a while, or ever.
 */
export type Advance = 'ran' | 'jumped' | 'began';

interface Picture {
  /** When it was drawn, client's clock. */
  readonly nowUs: number;
  /** Up to when the connection was alive, client's clock. */
  readonly aliveUs: number;
  /** The server time that it showed. */
  readonly timeUs: number;
}

/** Chooses the server time to draw. */
export class DisplayClock {
  private meanUs = 0;
  private deviationUs = 0;
  private newestUs: number | null = null;
  private heardUs: number | null = null;
  private picture: Picture | null = null;

  /** A pong has arrived at `nowUs` of the client's clock. */
  pong(nowUs: number): void {
    this.heardUs = nowUs;
  }

  /**
   * A frame has arrived, when the server's time was `serverUs` by estimate. It tells what has begun
   * in the `tickUs` microseconds before the time `toldUs` of its tick.
   */
  frame(nowUs: number, serverUs: number, toldUs: number, tickUs: number): void {
    this.heardUs = nowUs;
    const late = serverUs - Math.max(toldUs - tickUs, 0);
    const newest = this.newestUs;
    this.newestUs = toldUs;
    if (newest === null) {
      this.meanUs = late;
      this.deviationUs = 0;
      return;
    }
    const passed = Math.min(Math.max(toldUs - newest, 0), WEIGHT_MAX_US);
    const towards = (from: number, to: number): number =>
      from + Math.trunc(((to - from) * passed) / (AVERAGE_US + passed));
    this.deviationUs = towards(this.deviationUs, Math.abs(late - this.meanUs));
    this.meanUs = towards(this.meanUs, late);
  }

  /**
   * How far the picture should be behind the server's time: the mean lateness of frames and two and
   * a half times its deviation, 50 to 500 ms.
   */
  delayUs(): number {
    const delay = this.meanUs + Math.trunc((this.deviationUs * 5) / 2);
    return Math.min(Math.max(delay, DELAY_MIN_US), DELAY_MAX_US);
  }

  /**
   * Moves on to the picture that is drawn at `nowUs` of the client's clock, when the server's time is
   * `serverUs` by estimate.
   */
  advance(nowUs: number, serverUs: number): Advance {
    const aliveUs = Math.min(nowUs, (this.heardUs ?? nowUs) + SILENCE_US);
    const silentUs = nowUs - aliveUs;
    const target = Math.max(Math.max(serverUs - silentUs, 0) - this.delayUs(), 0);
    const before = this.picture;
    if (before === null || nowUs - before.nowUs > PAUSE_US) {
      this.picture = { nowUs, aliveUs, timeUs: target };
      return 'began';
    }
    const passed = Math.max(aliveUs - before.aliveUs, 0);
    const time = before.timeUs + passed;
    if (Math.abs(time - target) > JUMP_US || passed > PAUSE_US) {
      this.picture = { nowUs, aliveUs, timeUs: target };
      return 'jumped';
    }
    const most = Math.floor(passed / SPEED_PART);
    const nearer = Math.min(Math.max(target - time, -most), most);
    this.picture = { nowUs, aliveUs, timeUs: Math.max(time + nearer, 0) };
    return 'ran';
  }

  /** The server time of the last picture, microseconds; 0 before the first. */
  get timeUs(): number {
    return this.picture?.timeUs ?? 0;
  }

  /** The same in whole milliseconds, as trajectories take it. */
  get timeMs(): number {
    return Math.floor(this.timeUs / 1_000);
  }
}
