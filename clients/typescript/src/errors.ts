// Every error that this package throws. Each is a PurviewError of a kind of its own.

import { CLOSES, ERRORS } from './wire/messages.js';
import type { CloseName, ErrorName } from './wire/messages.js';

/** Any error of this package. `kind` says which. */
export class PurviewError extends Error {
  constructor(
    readonly kind: string,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** What is wrong with bytes from the server. */
export type DecodeFault = 'malformed' | 'unknown_type' | 'bad_field' | 'too_big';

/** Bytes are no message, or a value is not MessagePack. */
export class DecodeError extends PurviewError {
  constructor(
    readonly fault: DecodeFault,
    message: string,
  ) {
    super('decode', message);
  }
}

/** A value that cannot be sent: too long, out of range, or of the wrong type. */
export class ValueError extends PurviewError {
  constructor(message: string) {
    super('value', message);
  }
}

/** The name of an error code. An unknown code counts as `busy`. */
export function errorName(code: number): ErrorName {
  return (ERRORS as Record<number, ErrorName>)[code] ?? 'busy';
}

/** The name of a close code. An unknown code counts as `normal`. */
export function closeName(code: number): CloseName {
  return (CLOSES as Record<number, CloseName>)[code] ?? 'normal';
}

/** The server refused a request or an input. Nothing was changed, and the session goes on. */
export class RefusedError extends PurviewError {
  /** The reason by its name. */
  readonly reason: ErrorName;

  constructor(
    readonly code: number,
    readonly detail: string,
    what: string,
  ) {
    super('refused', `${what} was refused: ${errorName(code)}${detail && `: ${detail}`}`);
    this.reason = errorName(code);
  }
}

/** The session is over. */
export class ClosedError extends PurviewError {
  /** The reason by its name; `null` if the connection ended without one. */
  readonly reason: CloseName | null;

  constructor(
    readonly code: number | null,
    readonly detail: string,
  ) {
    const why = code === null ? '' : `: ${closeName(code)} (${code})`;
    super('closed', `the session is closed${why}${detail && `: ${detail}`}`);
    this.reason = code === null ? null : closeName(code);
  }
}

/** The network failed, or no address could be reached. */
export class ConnectionError extends PurviewError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('connection', message, options);
  }
}

/** The server broke the protocol: a message came that is not legal now. */
export class ProtocolError extends PurviewError {
  constructor(message: string) {
    super('protocol', message);
  }
}

/** A frame contradicts those before it. The view is as it was before the frame. */
export class ViewError extends PurviewError {
  constructor(message: string) {
    super('view', message);
  }
}

/** Too many inputs wait for an acknowledgement. This input was not accepted: try again later. */
export class BehindError extends PurviewError {
  constructor(readonly waiting: number) {
    super('behind', `${waiting} inputs wait for an acknowledgement; try again after the next frame`);
  }
}

/** The input was not applied: its player is gone, or has left. */
export class LostError extends PurviewError {
  constructor(message: string) {
    super('lost', message);
  }
}
