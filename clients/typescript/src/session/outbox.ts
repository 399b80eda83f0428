// Inputs that the server has not acknowledged, with their numbers. Each number is used once: after a
// refusal by the session the inputs behind it are numbered and sent again.

import { errorName, RefusedError, type PurviewError } from '../errors.js';
import type { Command } from '../movement/predictor.js';
import type { ClientMessage, Refused } from '../wire/messages.js';

/** An input of the player. */
export interface Input {
  /** For messages to people: `Act`, `Walk`, ... */
  readonly what: string;
  /** The message with this number. */
  readonly message: (seq: number) => ClientMessage;
  /** The move command that it carries. */
  readonly command?: Command;
  seq: number;
  readonly applied: () => void;
  readonly failed: (why: PurviewError) => void;
}

/** Most inputs that wait; servers accept a few more. */
export const MAX_WAITING = 240;

export class Outbox {
  private waiting: Input[] = [];
  private last = 0;
  /** The first input that the present connection has not carried. */
  private unsent = 1;
  /** Refusals to come: of inputs that were under way behind a refused one. */
  private void = 0;

  get size(): number {
    return this.waiting.length;
  }

  /** The inputs that wait, in order. */
  get inputs(): readonly Input[] {
    return this.waiting;
  }

  /** Whether an input waits that the present connection has not carried. */
  get isBehind(): boolean {
    return this.last >= this.unsent;
  }

  add(input: Input): void {
    input.seq = ++this.last;
    this.waiting.push(input);
  }

  /** The next message to send, if any. */
  next(): ClientMessage | null {
    const input = this.waiting.find((i) => i.seq >= this.unsent);
    if (!input) return null;
    this.unsent = input.seq + 1;
    return input.message(input.seq);
  }

  /** All inputs up to this number are applied; gives them. */
  acknowledged(ack: number): Input[] {
    const done = this.waiting.filter((i) => i.seq <= ack);
    if (done.length > 0) this.waiting = this.waiting.filter((i) => i.seq > ack);
    return done;
  }

  /** A new connection carries all inputs after this one (again), with their numbers. */
  resumed(ack: number): void {
    this.void = 0;
    this.unsent = ack + 1;
    this.last = Math.max(this.last, ack);
  }

  /** A new player: every input is lost. */
  restart(why: PurviewError): void {
    const lost = this.waiting;
    this.waiting = [];
    this.last = 0;
    this.unsent = 1;
    this.void = 0;
    for (const input of lost) input.failed(why);
  }

  /** The session has refused an input; gives it, if it is not one that is sent again. */
  refused(refused: Refused): { input: Input; error: RefusedError } | null {
    if (this.void > 0) {
      this.void -= 1;
      return null;
    }
    // Alone, this is the answer to a copy of an input that the server has already.
    if (errorName(refused.code) === 'out_of_order') return null;
    const at = this.waiting.findIndex((i) => i.seq === refused.seq && i.seq < this.unsent);
    const input = this.waiting[at];
    if (!input) return null;
    this.void = this.unsent - 1 - input.seq;
    this.waiting.splice(at, 1);
    this.unsent = input.seq;
    this.last = input.seq - 1;
    for (const later of this.waiting.slice(at)) later.seq = ++this.last;
    return { input, error: new RefusedError(refused.code, refused.detail, input.what) };
  }
}
