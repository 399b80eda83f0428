// Every error that this package throws. Each is a PurviewError of a kind of its own.
import { CLOSES, ERRORS } from './wire/messages.js';
/** Any error of this package. `kind` says which. */
export class PurviewError extends Error {
    kind;
    constructor(kind, message, options) {
        super(message, options);
        this.kind = kind;
        this.name = new.target.name;
    }
}
/** Bytes are no message, or a value is not MessagePack. */
export class DecodeError extends PurviewError {
    fault;
    constructor(fault, message) {
        super('decode', message);
        this.fault = fault;
    }
}
/** A value that cannot be sent: too long, out of range, or of the wrong type. */
export class ValueError extends PurviewError {
    constructor(message) {
        super('value', message);
    }
}
/** The name of an error code. An unknown code counts as `busy`. */
export function errorName(code) {
    return ERRORS[code] ?? 'busy';
}
/** The name of a close code. An unknown code counts as `normal`. */
export function closeName(code) {
    return CLOSES[code] ?? 'normal';
}
/** The server refused a request or an input. Nothing was changed, and the session goes on. */
export class RefusedError extends PurviewError {
    code;
    detail;
    /** The reason by its name. */
    reason;
    constructor(code, detail, what) {
        super('refused', `${what} was refused: ${errorName(code)}${detail && `: ${detail}`}`);
        this.code = code;
        this.detail = detail;
        this.reason = errorName(code);
    }
}
/** The session is over. */
export class ClosedError extends PurviewError {
    code;
    detail;
    /** The reason by its name; `null` if the connection ended without one. */
    reason;
    constructor(code, detail) {
        const why = code === null ? '' : `: ${closeName(code)} (${code})`;
        super('closed', `the session is closed${why}${detail && `: ${detail}`}`);
        this.code = code;
        this.detail = detail;
        this.reason = code === null ? null : closeName(code);
    }
}
/** The network failed, or no address could be reached. */
export class ConnectionError extends PurviewError {
    constructor(message, options) {
        super('connection', message, options);
    }
}
/** The server broke the protocol: a message came that is not legal now. */
export class ProtocolError extends PurviewError {
    constructor(message) {
        super('protocol', message);
    }
}
/** A frame contradicts those before it. The view is as it was before the frame. */
export class ViewError extends PurviewError {
    constructor(message) {
        super('view', message);
    }
}
/** Too many inputs wait for an acknowledgement. This input was not accepted: try again later. */
export class BehindError extends PurviewError {
    waiting;
    constructor(waiting) {
        super('behind', `${waiting} inputs wait for an acknowledgement; try again after the next frame`);
        this.waiting = waiting;
    }
}
/** The input was not applied: its player is gone, or has left. */
export class LostError extends PurviewError {
    constructor(message) {
        super('lost', message);
    }
}
