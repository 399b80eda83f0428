// Smooth display: where to draw the entities in view, picture by picture.
//
// A game gives it frames and pongs as they arrive, and asks for positions once in every picture. It
// reads no clock and no socket, and takes plain values only. The same algorithm in other languages is
// held to clients/conformance/display.json. The player itself is not part of it: its position is
// predicted by the Walker, which spreads corrections in the same way.

import type { Position } from '../movement/integers.js';
import { type Advance, DisplayClock } from './clock.js';
import { type Motion, Track } from './track.js';

/**
 * The entities in view, as they are drawn. `nowUs` is the client's clock in microseconds; `serverUs`
 * the server's time at that moment, by estimate.
 */
export class Display {
  readonly clock = new DisplayClock();
  private readonly tracks = new Map<number, Track>();

  /** A pong has arrived. */
  pong(nowUs: number): void {
    this.clock.pong(nowUs);
  }

  /** A frame has arrived; see `DisplayClock.frame`. What it tells follows by the calls below. */
  frame(nowUs: number, serverUs: number, toldUs: number, tickUs: number): void {
    this.clock.frame(nowUs, serverUs, toldUs, tickUs);
  }

  /** An entity comes into view. */
  enter(id: number, motion: Motion): void {
    this.tracks.set(id, new Track(motion));
  }

  /** An entity in view has a new motion. One that is not in view is ignored. */
  told(id: number, motion: Motion): void {
    this.tracks.get(id)?.told(this.clock.timeMs, motion);
  }

  /** An entity leaves the view. */
  leave(id: number): void {
    this.tracks.delete(id);
  }

  /** The view begins anew. */
  clear(): void {
    this.tracks.clear();
  }

  /** Moves on to the picture that is drawn now. Call it once in every picture. */
  advance(nowUs: number, serverUs: number): Advance {
    const beforeMs = this.clock.timeMs;
    const advance = this.clock.advance(nowUs, serverUs);
    const atMs = this.clock.timeMs;
    for (const track of this.tracks.values()) {
      track.advance(atMs, advance === 'jumped' ? track.shown(beforeMs) : null);
      if (advance === 'began') track.snap(atMs);
    }
    return advance;
  }

  /** Where an entity is drawn in this picture. */
  position(id: number): Position | null {
    return this.tracks.get(id)?.shown(this.clock.timeMs) ?? null;
  }

  /** Where an entity was at the time of this picture, without the error that is left to spread. */
  exact(id: number): Position | null {
    return this.tracks.get(id)?.position(this.clock.timeMs) ?? null;
  }
}
